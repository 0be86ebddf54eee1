/* SPDX-License-Identifier: MIT */
#include "attach/ask_ranks.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/checked_memory.h"
#include "base/texts.h"
#include "format/stack_request.h"

enum {
  OTHERS_S = 10 /* nobody asks for longer */,
  FIELDS_MOST = 7,
  THREADS_MOST = 4096,
  FRAMES_MOST = 4096,
  PEERS_MOST = 4096
};

static int open_folder(const char *folder) {
  return open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

static u64 new_number(void) {
  u64 number = 0;
  if (getrandom(&number, sizeof(number), 0) != (ssize_t)sizeof(number))
    number = (u64)getpid() << 32 ^ (u64)time(NULL);
  return number | 1;
}

/* Writes the request under a name that nobody looks for. */
static int write_request(int folder, const char *name, u64 number, struct stat *info) {
  char line[64];
  int length = snprintf(line, sizeof(line), TSCOPE_REQUEST_FORMAT, (unsigned long long)number);
  int file = openat(folder, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644);
  if (file < 0)
    return -errno;
  int error = write(file, line, (size_t)length) == length && fstat(file, info) == 0 ? 0 : -EIO;
  return close(file) == 0 ? error : -EIO;
}

/* Gives the request its name. -EEXIST while somebody else asks: then the caller tries again. NFS
 * says so too of a link that it has made, if its first answer was lost: the file then has two
 * names. Both times are of the same clock, that of the folder's file system. */
static int place_request(int folder, const char *name, uid_t owner) {
  struct stat own, other;
  if (linkat(folder, name, folder, TSCOPE_REQUEST_FILE, 0) == 0)
    return 0;
  if (errno != EEXIST) /* a file system without links */
    return renameat(folder, name, folder, TSCOPE_REQUEST_FILE) == 0 ? 0 : -errno;
  utimensat(folder, name, NULL, 0);
  bool known = fstatat(folder, name, &own, 0) == 0;
  if (known && own.st_nlink == 2)
    return 0;
  if (known && fstatat(folder, TSCOPE_REQUEST_FILE, &other, AT_SYMLINK_NOFOLLOW) == 0 &&
      (own.st_mtime - other.st_mtime > OTHERS_S || (other.st_uid != owner && other.st_uid != 0)))
    unlinkat(folder, TSCOPE_REQUEST_FILE, 0); /* who left it has ended, or nobody answers it */
  return -EEXIST;
}

static int ask(int folder, struct question *question, char *why, size_t why_bytes) {
  char name[48];
  struct stat info, home;
  u64 number = new_number();
  snprintf(name, sizeof(name), TSCOPE_REQUEST_FILE ".%016llx", (unsigned long long)number);
  int error = fstat(folder, &home) == 0 ? write_request(folder, name, number, &info) : -errno;
  if (error) {
    snprintf(why, why_bytes, "cannot write a request in %.300s (%s)", question->folder,
             strerror(-error));
  } else if (info.st_uid != home.st_uid && info.st_uid != 0) {
    snprintf(why, why_bytes,
             "the processes of %.300s answer only their own user (number %u) and root",
             question->folder, (unsigned)home.st_uid);
    error = -EPERM;
  }
  for (int i = 0; !error || (error == -EEXIST && i < 20 * OTHERS_S); i++) {
    error = place_request(folder, name, home.st_uid);
    if (error != -EEXIST)
      break;
    nanosleep(&(struct timespec){.tv_nsec = 100 * 1000 * 1000}, NULL);
  }
  if (error == -EEXIST)
    snprintf(why, why_bytes, "others ask in %.300s all the time", question->folder);
  unlinkat(folder, name, 0);
  if (!error) {
    question->number = number;
    question->owner = home.st_uid;
  }
  return error;
}

int question_ask(struct question *question, const char *folder, char *why, size_t why_bytes) {
  *question = (struct question){.folder = folder};
  int fd = open_folder(folder);
  int error = fd < 0 ? -errno : ask(fd, question, why, why_bytes);
  if (fd >= 0)
    close(fd);
  else
    snprintf(why, why_bytes, "cannot open %.300s (%s)", folder, strerror(-error));
  return error;
}

/* All of an answer, with a 0 after it; NULL. The caller frees it. Opening the folder first makes
 * NFS ask the server for what is new in it. Unlike whole_file_read() it trusts nobody who may write
 * there: no link, no file of others, and no more than an answer may have. */
static char *read_answer(const struct question *question, const char *name) {
  struct stat info;
  const size_t room = 2 * TSCOPE_ANSWER_MOST;
  char *text = NULL;
  int folder = open_folder(question->folder);
  int file = folder < 0 ? -1 : openat(folder, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
  if (file >= 0 && fstat(file, &info) == 0 && S_ISREG(info.st_mode) &&
      info.st_uid == question->owner)
    text = memory_array(size_sum(room, 1), 1);
  ssize_t got = 0;
  for (ssize_t more = 1; text && more > 0; got += MAX(more, 0))
    more = read(file, text + got, room - (size_t)got);
  if (text)
    text[got] = '\0';
  if (file >= 0)
    close(file);
  if (folder >= 0)
    close(folder);
  return text;
}

static u32 hex(char digit) {
  return digit <= '9' ? (u32)(digit - '0') : (u32)((digit | 0x20) - 'a' + 10);
}

/* A text of an answer. NULL where it is not known. */
static const char *decode(struct arena *arena, const char *field) {
  if (!field || strcmp(field, "-") == 0)
    return NULL;
  char *text = arena_alloc(arena, size_sum(strlen(field), 1)), *to = text;
  for (const char *at = field; *at; at++) {
    bool code = at[0] == '%' && at[1] && at[2];
    if (code)
      *to++ = (char)(hex(at[1]) << 4 | hex(at[2]));
    else if (*at != '%')
      *to++ = *at;
    at += code ? 2 : 0;
  }
  *to = '\0';
  return text;
}

static u32 count(const char *field) {
  return field ? (u32)leading_number(field, UINT32_MAX, NULL) : 0;
}

static char letter(const char *field) {
  return field && *field != '-' ? *field : '\0';
}

/* What a line is about, and its fields after that; missing ones are NULL. */
struct line {
  const char *kind, *field[FIELDS_MOST];
};

static struct line split(char *text) {
  struct line line = {.kind = strsep(&text, " ")};
  for (int i = 0; i < FIELDS_MOST && text; i++)
    line.field[i] = strsep(&text, " ");
  return line;
}

struct parse {
  struct arena *arena;
  struct rank_stall *stacks;
  struct stalled_thread *stack; /* whose frames follow */
  u32 threads_room, peers_room, frames_room;
};

static struct stalled_thread *add_thread(struct parse *p, u32 tid) {
  struct rank_stall *stacks = p->stacks;
  struct stalled_thread *known = rank_stall_thread(stacks, tid);
  if (known || stacks->n_threads == THREADS_MOST)
    return known;
  stacks->threads = arena_more(p->arena, stacks->threads, stacks->n_threads, &p->threads_room,
                               sizeof(*stacks->threads));
  stacks->threads[stacks->n_threads] = (struct stalled_thread){.tid = tid};
  return &stacks->threads[stacks->n_threads++];
}

static void read_thread(struct parse *p, const struct line *line) {
  struct stalled_thread *thread = add_thread(p, count(line->field[0]));
  p->stack = NULL; /* the array may have moved */
  if (!thread)
    return;
  thread->main = thread == p->stacks->threads; /* the kernel lists the first one first */
  thread->state = letter(line->field[1]);
  thread->name = decode(p->arena, line->field[2]);
  thread->wait = decode(p->arena, line->field[3]);
  thread->call = decode(p->arena, line->field[4]);
  thread->file = decode(p->arena, line->field[5]);
  thread->waits_for = (u8)count(line->field[6]);
}

static void read_stack(struct parse *p, const struct line *line) {
  struct stalled_thread *thread = p->stack = add_thread(p, count(line->field[0]));
  if (!thread)
    return;
  thread->n_frames = p->frames_room = 0; /* of a thread that is there twice the last stack counts */
  thread->python = true;
  thread->holds_gil = count(line->field[1]) != 0;
  thread->moved = count(line->field[2]) != 0;
  thread->cut = count(line->field[3]) != 0;
}

static void read_frame(struct parse *p, const struct line *line) {
  struct stalled_thread *thread = p->stack;
  if (!thread || thread->n_frames == FRAMES_MOST)
    return;
  struct call_frame *frame = arena_alloc(p->arena, sizeof(*frame));
  *frame = (struct call_frame){.line = count(line->field[0]),
                               .first_line = count(line->field[1]),
                               .file = decode(p->arena, line->field[2]),
                               .function = decode(p->arena, line->field[3])};
  thread->frames =
      arena_more(p->arena, thread->frames, thread->n_frames, &p->frames_room, sizeof(frame));
  thread->frames[thread->n_frames++] = frame;
}

static void read_peer(struct parse *p, const struct line *line) {
  struct rank_stall *stacks = p->stacks;
  if (stacks->n_peers == PEERS_MOST)
    return;
  stacks->peers =
      arena_more(p->arena, stacks->peers, stacks->n_peers, &p->peers_room, sizeof(*stacks->peers));
  stacks->peers[stacks->n_peers++] =
      (struct stalled_peer){.pid = count(line->field[0]),
                            .state = letter(line->field[1]),
                            .wait = decode(p->arena, line->field[2]),
                            .call = decode(p->arena, line->field[3]),
                            .file = decode(p->arena, line->field[4])};
}

static void read_line(struct parse *p, char *text) {
  struct line line = split(text);
  if (strcmp(line.kind, "process") == 0) {
    p->stacks->all_threads = count(line.field[0]);
    p->stacks->no_python = decode(p->arena, line.field[1]);
    p->stacks->folder = decode(p->arena, line.field[2]);
  } else if (strcmp(line.kind, "thread") == 0) {
    read_thread(p, &line);
  } else if (strcmp(line.kind, "peer") == 0) {
    read_peer(p, &line);
  } else if (strcmp(line.kind, "stack") == 0) {
    read_stack(p, &line);
  } else if (strcmp(line.kind, "frame") == 0) {
    read_frame(p, &line);
  }
}

static const char cannot_read[] = "it did not get to reading its own memory: perhaps one of its "
                                  "threads holds the memory map and waits for a device";

static enum answer parse(const struct question *question, char *text, bool part,
                         struct arena *arena, struct rank_stall *stacks) {
  char first[64];
  int start =
      snprintf(first, sizeof(first), TSCOPE_REQUEST_FORMAT, (unsigned long long)question->number);
  bool whole = text_ends_with(text, "\nend\n");
  if (strncmp(text, first, (size_t)start) != 0)
    return ANSWER_NONE;
  if (!whole && !part)
    return ANSWER_PART;
  struct parse p = {.arena = arena, .stacks = stacks};
  *stacks = rank_stall_empty();
  for (char *rest = text + start, *line; (line = strsep(&rest, "\n")) && rest;)
    read_line(&p, line);
  if (!whole && !stacks->no_python)
    stacks->no_python = cannot_read;
  return whole ? ANSWER_WHOLE : ANSWER_PART;
}

enum answer question_read(const struct question *question, const char *trace, bool part,
                          struct arena *arena, struct rank_stall *stacks) {
  char name[300];
  snprintf(name, sizeof(name), TSCOPE_ANSWER_FILE, trace);
  SCOPED char *text = question->number ? read_answer(question, name) : NULL;
  return text ? parse(question, text, part, arena, stacks) : ANSWER_NONE;
}

static void remove_file(const struct question *question, const char *name) {
  int folder = question->number ? open_folder(question->folder) : -1;
  if (folder >= 0) {
    unlinkat(folder, name, 0);
    close(folder);
  }
}

u32 question_seconds(u32 processes) {
  return tscope_seconds_between_looks(processes);
}

void question_withdraw(struct question *question) {
  remove_file(question, TSCOPE_REQUEST_FILE);
}

void question_forget(const struct question *question, const char *trace) {
  char name[300];
  snprintf(name, sizeof(name), TSCOPE_ANSWER_FILE, trace);
  remove_file(question, name);
}
