/* SPDX-License-Identifier: MIT
 *
 * recorder_pickle_dump FILE: reads a pickle and prints it as a Python literal. If that fails,
 * prints the reason and exits with status 1.
 */
#include <stdio.h>
#include <stdlib.h>

#include "import/pickle/pickle.h"

static void print_text(const struct value *value, const char *prefix) {
  printf("%s'", prefix);
  for (u32 i = 0; i < value->n; i++)
    printf("\\x%02x", (unsigned char)value->text[i]);
  putchar('\'');
}

static void print(const struct value *value);

static void print_items(const struct value *value, const char *before, const char *after) {
  fputs(before, stdout);
  for (u32 i = 0; i < value_count(value); i++) {
    const struct value *key = value_key(value, i);
    if (key) {
      print(key);
      putchar(':');
    }
    print(value_item(value, i));
    putchar(',');
  }
  fputs(after, stdout);
}

static void print(const struct value *value) {
  switch (value->kind) {
  case VALUE_NONE:
    fputs("None", stdout);
    break;
  case VALUE_BOOL:
    fputs(value->boolean ? "True" : "False", stdout);
    break;
  case VALUE_INT:
    printf("%lld", (long long)value->integer);
    break;
  case VALUE_BIG:
    fputs("Big(", stdout);
    print_text(value, "b");
    putchar(')');
    break;
  case VALUE_FLOAT:
    printf("Float('%a')", value->real);
    break;
  case VALUE_STR:
    fputs("Str(", stdout);
    print_text(value, "b");
    putchar(')');
    break;
  case VALUE_BYTES:
    print_text(value, "b");
    break;
  case VALUE_LIST:
    print_items(value, "[", "]");
    break;
  case VALUE_TUPLE:
    print_items(value, "(", ")");
    break;
  case VALUE_SET:
    print_items(value, "Set([", "])");
    break;
  case VALUE_DICT:
    print_items(value, "{", "}");
    break;
  }
}

int main(int argc, char **argv) {
  FILE *file = argc == 2 ? fopen(argv[1], "rb") : NULL;
  size_t room = 64u << 20;
  char *bytes = malloc(room), why[300];
  if (!file || !bytes)
    return 2;
  size_t n = fread(bytes, 1, room, file);
  fclose(file);
  struct arena arena = {0};
  struct value root;
  int error = pickle_read(bytes, n, &arena, &root, why, sizeof(why));
  free(bytes); /* the tree must not need them */
  if (error)
    puts(why);
  else
    print(&root);
  arena_release(&arena);
  return error != 0;
}
