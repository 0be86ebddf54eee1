/* SPDX-License-Identifier: MIT
 *
 * The program or library that is Python is found by its name among the process's mappings; its
 * exported symbols give the addresses in it. The file is opened through /proc/PID/root, so that it
 * is the file that the process sees.
 */
#include "attach/python_image.h"

#include <elf.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "attach/refused.h"
#include "base/texts.h"
#include "inspect/small_file.h"

struct image {
  const u8 *file;
  size_t bytes;
  u64 bias; /* what is added to its addresses */
};

/* Mapped for reading; NULL. */
static const u8 *map_file(const char *path, size_t *bytes) {
  struct stat info;
  int fd = open(path, O_RDONLY | O_CLOEXEC);
  void *map = MAP_FAILED;
  if (fd >= 0 && fstat(fd, &info) == 0 && info.st_size > (off_t)sizeof(Elf64_Ehdr)) {
    *bytes = (size_t)info.st_size;
    map = mmap(NULL, *bytes, PROT_READ, MAP_PRIVATE, fd, 0);
  }
  if (fd >= 0)
    close(fd);
  return map == MAP_FAILED ? NULL : map;
}

static bool is_in_file(const struct image *image, u64 offset, u64 bytes) {
  return offset <= image->bytes && bytes <= image->bytes - offset;
}

static const Elf64_Ehdr *header_of(const struct image *image) {
  const Elf64_Ehdr *header = (const void *)image->file;
  bool ours =
      memcmp(header->e_ident, ELFMAG, SELFMAG) == 0 && header->e_ident[EI_CLASS] == ELFCLASS64 &&
      header->e_shentsize == sizeof(Elf64_Shdr) && header->e_phentsize == sizeof(Elf64_Phdr) &&
      header->e_shoff % 8 == 0 && header->e_phoff % 8 == 0;
  return ours && is_in_file(image, header->e_shoff, (u64)header->e_shnum * sizeof(Elf64_Shdr)) &&
                 is_in_file(image, header->e_phoff, (u64)header->e_phnum * sizeof(Elf64_Phdr))
             ? header
             : NULL;
}

/* The address of the file's first byte, as it was linked; 0 also if there is none. */
static u64 first_address(const struct image *image, const Elf64_Ehdr *header) {
  const Elf64_Phdr *parts = (const void *)(image->file + header->e_phoff);
  FOR_EACH(parts, header->e_phnum, part)
    if (part->p_type == PT_LOAD)
      return part->p_vaddr - part->p_offset;
  return 0;
}

static u64 find_symbol_in(const struct image *image, const Elf64_Shdr *symbols,
                          const Elf64_Shdr *names, const char *name) {
  if (symbols->sh_entsize != sizeof(Elf64_Sym) || symbols->sh_offset % 8 != 0 ||
      !is_in_file(image, symbols->sh_offset, symbols->sh_size) ||
      !is_in_file(image, names->sh_offset, names->sh_size))
    return 0;
  const Elf64_Sym *list = (const void *)(image->file + symbols->sh_offset);
  const char *texts = (const char *)image->file + names->sh_offset;
  size_t length = strlen(name) + 1;
  FOR_EACH(list, symbols->sh_size / sizeof(*list), one)
    if (one->st_value && one->st_name < names->sh_size && length <= names->sh_size - one->st_name &&
        memcmp(texts + one->st_name, name, length) == 0)
      return one->st_value + image->bias;
  return 0;
}

/* Address of an exported symbol in the process; 0. */
static u64 find_symbol(const struct image *image, const char *name) {
  const Elf64_Ehdr *header = header_of(image);
  const Elf64_Shdr *sections = header ? (const void *)(image->file + header->e_shoff) : NULL;
  for (u32 i = 0; header && i < header->e_shnum; i++)
    if (sections[i].sh_type == SHT_DYNSYM && sections[i].sh_link < header->e_shnum) {
      u64 found = find_symbol_in(image, &sections[i], &sections[sections[i].sh_link], name);
      if (found)
        return found;
    }
  return 0;
}

/* "python3.11" and "libpython3.11.so.1.0" are Python 3.11; 0 for others. */
static u32 minor_of(const char *path) {
  const char *name = last_part(path);
  if (text_starts_with(name, "lib"))
    name += 3;
  return text_starts_with(name, "python3.") ? (u32)leading_number(name + 8, UINT32_MAX, NULL) : 0;
}

struct mapping {
  u64 start;
  u32 minor;
  char path[512];
};

enum { MAPPINGS = 16 };

struct mappings {
  struct mapping all[MAPPINGS];
  u32 n;
};

/* The first byte of each file that is Python by its name. */
static bool add_mapping(const char *line, void *with) {
  struct mappings *mappings = with;
  struct mapping *mapping = &mappings->all[mappings->n];
  unsigned long long start, offset;
  if (sscanf(line, "%llx-%*x %*s %llx %*s %*s %511[^\n]", &start, &offset, mapping->path) == 3 &&
      !offset) {
    mapping->start = start;
    mapping->minor = minor_of(mapping->path);
    mappings->n += mapping->minor != 0;
  }
  return mappings->n == MAPPINGS;
}

static const char *read_image(pid_t pid, const struct mapping *mapping, struct python *python,
                              u64 *runtime) {
  const struct python_process process = {.pid = pid};
  char path[600], version[32];
  struct image image = {0};
  snprintf(path, sizeof(path), "/proc/%d/root%s", (int)pid, mapping->path);
  image.file = map_file(path, &image.bytes);
  if (!image.file)
    return is_reading_refused(pid) ? describe_refusal(pid)
                                   : "the file of its Python cannot be read";
  const Elf64_Ehdr *header = header_of(&image);
  image.bias = header ? mapping->start - first_address(&image, header) : 0;
  *runtime = find_symbol(&image, "_PyRuntime");
  python->code_type = find_symbol(&image, "PyCode_Type");
  python->text_type = find_symbol(&image, "PyUnicode_Type");
  munmap((void *)(uintptr_t)image.file, image.bytes);
  if (!*runtime || !python->code_type || !python->text_type)
    return ""; /* a program that only starts the library */
  snprintf(version, sizeof(version), "3.%u.", mapping->minor);
  u64 word;
  if (!python_read_process(&process, *runtime, &word, sizeof(word)))
    return is_reading_refused(pid) ? describe_refusal(pid) : "its memory cannot be read";
  return python_layout_find(&python->layout, version, python_read_process, &process, *runtime);
}

const char *python_image_find(pid_t pid, struct python *python, u64 *runtime) {
  static struct mappings mappings;
  char path[64], room[4096];
  mappings.n = 0;
  snprintf(path, sizeof(path), "/proc/%d/maps", (int)pid);
  if (small_file_read(path, room, sizeof(room)) < 0)
    return describe_refusal(pid);
  file_lines_visit(path, room, sizeof(room), add_mapping, &mappings);
  const char *why = "";
  for (u32 i = 0; i < mappings.n && why; i++)
    why = read_image(pid, &mappings.all[i], python, runtime);
  return why;
}
