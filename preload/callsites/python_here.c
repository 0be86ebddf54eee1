/* SPDX-License-Identifier: MIT */
#include "callsites/python_here.h"

#include <unistd.h>

#include "record/hook.h"
#include "record/lock.h"
#include "resolve/search.h"
#include "resolve/unloading.h"

struct python python_here;
u64 python_here_runtime;

/* Functions of CPython that load a word and return it: no lock, no GIL. */
static struct {
  void *(*this_thread)(void); /* the state this thread was given first, GIL or not */
  void *(*current)(void);     /* up to 3.11 that of whoever holds the GIL, later this thread's */
  void *(*newest)(void);      /* interpreter */
  void *(*main)(void);        /* interpreter */
  int (*is_finalizing)(void);
} api;

static void *find_symbol(const char *name, const char *other_name) {
  void *found = tscope_first_definition(name);
  return found || !other_name ? found : tscope_first_definition(other_name);
}

static bool find_api(void) {
  api.this_thread = (void *(*)(void))find_symbol("PyGILState_GetThisThreadState", NULL);
  api.current =
      (void *(*)(void))find_symbol("PyThreadState_GetUnchecked", "_PyThreadState_UncheckedGet");
  api.newest = (void *(*)(void))find_symbol("PyInterpreterState_Head", NULL);
  api.main = (void *(*)(void))find_symbol("PyInterpreterState_Main", NULL);
  api.is_finalizing = (int (*)(void))find_symbol("Py_IsFinalizing", "_Py_IsFinalizing");
  return api.this_thread && api.current && api.newest && api.main && api.is_finalizing;
}

/* PyMemberDef */
struct member {
  const char *name;
  int type;
  i64 offset;
  int flags;
  const char *doc;
};
_Static_assert(sizeof(struct member) == 40, "PyMemberDef");

/* The offset of a member as the type itself gives it; PYTHON_NONE if it does not. */
static u32 type_member_offset(python_read *read, const void *context, u64 type, const char *name) {
  const u32 most = 64;
  u64 members;
  struct member member;
  if (!read(context, type + PYTHON_TYPE_MEMBERS, &members, 8))
    return PYTHON_NONE;
  for (u32 i = 0; i < most && read(context, members + i * sizeof(member), &member, sizeof(member));
       i++) {
    char text[32] = "";
    if (!member.name)
      break;
    if (read(context, (u64)(uintptr_t)member.name, text, strlen(name) + 1) &&
        memcmp(text, name, strlen(name) + 1) == 0)
      return (u32)member.offset;
  }
  return PYTHON_NONE;
}

/* Whether the known layout is that of the running interpreter. */
static bool layout_matches(const struct python *python, python_read *read, const void *context) {
  const struct python_layout *layout = &python->layout;
  const struct {
    const char *name;
    u32 offset;
  } members[] = {
      {"co_filename", layout->code_file},
      {"co_firstlineno", layout->code_first_line},
      {layout->minor < 11 ? "co_name" : "co_qualname", layout->code_name},
      {layout->minor < 10 ? "co_lnotab" : "co_linetable", layout->code_lines},
  };
  for (size_t i = 0; i < LENGTH_OF(members); i++)
    if (type_member_offset(read, context, python->code_type, members[i].name) != members[i].offset)
      return false;
  const u32 tp_basicsize = 32;
  u64 size;
  return read(context, python->text_type + tp_basicsize, &size, 8) &&
         size == layout->text_compact + 8;
}

static const char *find_python(void) {
  const char *(*version)(void) = (const char *(*)(void))find_symbol("Py_GetVersion", NULL);
  const struct python_process self = {.pid = getpid()};
  struct python python = {0};
  if (!version)
    return "";
  u64 runtime = (u64)(uintptr_t)find_symbol("_PyRuntime", NULL);
  const char *why =
      python_layout_find(&python.layout, version(), python_read_process, &self, runtime);
  if (why)
    return why;
  python.code_type = (u64)(uintptr_t)find_symbol("PyCode_Type", NULL);
  python.text_type = (u64)(uintptr_t)find_symbol("PyUnicode_Type", NULL);
  if (!find_api() || !python.code_type || !python.text_type)
    return "this Python does not export what is needed";
  if (!layout_matches(&python, python_read_process, &self))
    return "this build of Python is not laid out as its version says";
  tscope_keep_loaded((const void *)api.this_thread); /* a program that embeds it may unload it */
  python_here = python;
  python_here_runtime = runtime;
  return NULL;
}

const char *python_here_find(void) {
  static struct tscope_lock lock;
  static const char *why;
  static bool searched;
  if (!tscope_lock(&lock))
    return "another thread is looking for Python";
  if (!searched)
    why = find_python();
  searched = true;
  tscope_unlock(&lock);
  return why;
}

u64 python_here_thread(void) {
  const u32 first_with_current_by_thread = 12;
  if (api.is_finalizing())
    return 0;
  void *first = api.this_thread(), *current = api.current();
  if (current == first)
    return (u64)(uintptr_t)first;
  if (current && python_here.layout.minor >= first_with_current_by_thread)
    return (u64)(uintptr_t)current;
  return api.newest() == api.main() ? (u64)(uintptr_t)first : 0;
}
