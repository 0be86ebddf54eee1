/* SPDX-License-Identifier: MIT */
#include "callsites/native_here.h"

#include <dlfcn.h>
#include <elf.h>
#include <link.h>
#include <string.h>
#include <unistd.h>
#include <unwind.h>

#include "record/hook.h"
#include "record/lock.h"
#include "resolve/loaded_objects.h"
#include "resolve/search.h"
#include "resolve/unloading.h"

static struct {
  _Unwind_Reason_Code (*backtrace)(_Unwind_Trace_Fn each, void *context);
  _Unwind_Ptr (*instruction)(struct _Unwind_Context *frame);
} unwinder;

struct lookup {
  u64 address;
  struct native_address *name;
};

static const char library[] = "libgcc_s.so.1";

bool native_here_is_loaded(void) {
  return tscope_definition_in(library, "_Unwind_GetIP") != NULL;
}

static bool load_unwinder(void) {
  return tscope_library_open(library, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE) != NULL;
}

static const char *find_unwinder(void) {
  if (!native_here_is_loaded() && !load_unwinder())
    return "libgcc_s.so.1, which unwinds frames of C and C++, is not there";
  unwinder.backtrace = (_Unwind_Reason_Code(*)(_Unwind_Trace_Fn, void *))tscope_definition_in(
      library, "_Unwind_Backtrace");
  unwinder.instruction =
      (_Unwind_Ptr(*)(struct _Unwind_Context *))tscope_definition_in(library, "_Unwind_GetIP");
  tscope_keep_loaded((const void *)unwinder.backtrace); /* if it is a library's of the job */
  return unwinder.backtrace && unwinder.instruction && tscope_is_own(&unwinder)
             ? NULL
             : "libgcc_s.so.1 lacks functions";
}

const char *native_here_find(void) {
  static struct tscope_lock lock;
  static const char *why;
  static bool searched;
  if (!tscope_lock(&lock))
    return "another thread is looking for the unwinder";
  if (!searched)
    why = find_unwinder();
  searched = true;
  tscope_unlock(&lock);
  return why;
}

struct frame_walk {
  u64 *addresses;
  u32 n, most;
  bool more;
};

static _Unwind_Reason_Code add_frame(struct _Unwind_Context *frame, void *context) {
  struct frame_walk *walk = context;
  u64 address = (u64)unwinder.instruction(frame);
  if (!address || tscope_is_own((const void *)(uintptr_t)address))
    return _URC_NO_REASON;
  walk->more = walk->n == walk->most;
  if (walk->more)
    return _URC_NORMAL_STOP;
  walk->addresses[walk->n++] = address;
  return _URC_NO_REASON;
}

u32 native_here_walk(u64 *addresses, u32 most, bool *more) {
  struct frame_walk walk = {.addresses = addresses, .most = most};
  /* Older unwinders read the list of loaded objects, and lock their own where code that was made at
   * run time has registered its frames: which ones do, none says. */
  tscope_objects_enter();
  unwinder.backtrace(add_frame, &walk);
  tscope_objects_leave();
  *more = walk.more;
  return walk.n;
}

/* Where this part has the note with the build id. */
static bool read_build_id(const struct dl_phdr_info *file, const ElfW(Phdr) * part, char *hex) {
  const u8 *at = (const u8 *)(uintptr_t)(file->dlpi_addr + part->p_vaddr);
  const u8 *end = at + part->p_memsz;
  while ((size_t)(end - at) >= sizeof(ElfW(Nhdr))) {
    const ElfW(Nhdr) *note = (const void *)at;
    size_t name_bytes = (note->n_namesz + 3u) & ~3u, bytes = (note->n_descsz + 3u) & ~3u;
    const u8 *name = at + sizeof(*note), *id = name + name_bytes;
    if (name_bytes > (size_t)(end - name) || bytes > (size_t)(end - id))
      return false;
    if (note->n_type == NT_GNU_BUILD_ID && note->n_namesz == 4 && memcmp(name, "GNU", 4) == 0 &&
        note->n_descsz <= 32) {
      for (u32 i = 0; i < note->n_descsz; i++) {
        hex[2 * i] = "0123456789abcdef"[id[i] >> 4];
        hex[2 * i + 1] = "0123456789abcdef"[id[i] & 15];
      }
      hex[2 * note->n_descsz] = '\0';
      return true;
    }
    at = id + bytes;
  }
  return false;
}

/* The loader's lock is held: only memory is copied. */
static int find_file_of_address(struct dl_phdr_info *file, size_t bytes, void *context) {
  struct lookup *lookup = context;
  uintptr_t begin, end;
  (void)bytes;
  elf_object_extent(file, &begin, &end);
  if (lookup->address - begin >= end - begin)
    return 0;
  struct native_address *name = lookup->name;
  name->offset = lookup->address - file->dlpi_addr;
  const char *path = file->dlpi_name;
  size_t length = strlen(path), most = sizeof(name->file) - 1;
  /* The program itself has no name here. Of a path that is too long, the end is kept. */
  strcpy(name->file, !length ? "?" : length > most ? path + length - most : path);
  for (int i = 0; i < file->dlpi_phnum; i++)
    if (file->dlpi_phdr[i].p_type == PT_NOTE &&
        read_build_id(file, &file->dlpi_phdr[i], name->build_id))
      break;
  return 1;
}

void native_here_name(u64 address, struct native_address *name) {
  struct lookup lookup = {.address = address, .name = name};
  *name = (struct native_address){.offset = address};
  tscope_each_object(find_file_of_address, &lookup);
  if (name->file[0] == '?') {
    ssize_t bytes = readlink("/proc/self/exe", name->file, sizeof(name->file) - 1);
    name->file[MAX(bytes, 0)] = '\0';
  }
}
