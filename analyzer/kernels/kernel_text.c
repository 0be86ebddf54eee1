/* SPDX-License-Identifier: MIT */
#include "kernels/kernel_text.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/kernels.h"

/* Of the C++ ABI, https://itanium-cxx-abi.github.io/cxx-abi/abi.html#demangler */
char *__cxa_demangle(const char *mangled, char *buffer, size_t *length, int *status);

char *kernel_demangle(const char *name) {
  /* Without the prefix it would take "f" for a type, float. */
  if (strncmp(name, "_Z", 2) == 0) {
    int status;
    char *demangled = __cxa_demangle(name, NULL, NULL, &status);
    if (demangled)
      return demangled;
  }
  return strdup(name);
}

static void remove_all(char *text, const char *what) {
  size_t length = strlen(what);
  for (char *at = strstr(text, what); at; at = strstr(at, what))
    memmove(at, at + length, strlen(at + length) + 1);
}

static bool ends_with(const char *text, const char *end) {
  size_t length = strlen(text), tail = strlen(end);
  return length >= tail && strcmp(text + length - tail, end) == 0;
}

/* Where the parameters begin, NULL if the name has none. "Memcpy DtoH (Device -> Pinned)" has
 * none: nothing in parentheses behind a space is a parameter list. */
static char *find_parameters(char *name) {
  char *at = name + strlen(name);
  int depth = 0;
  if (at == name || at[-1] != ')')
    return NULL;
  while (at > name) {
    --at;
    depth += (*at == ')') - (*at == '(');
    if (depth == 0)
      return at > name && at[-1] != ' ' ? at : NULL;
  }
  return NULL;
}

/* Whether '<' or '>' here is a bracket, and not part of "->", "operator<" and their like. */
static bool is_bracket(const char *name, const char *at) {
  if (at > name && *at == '>' && at[-1] == '-')
    return false;
  size_t before = (size_t)(at - name);
  return !(before >= 8 && strncmp(at - 8, "operator", 8) == 0);
}

/* How much deeper in brackets one is behind this character. */
static int depth_change(const char *name, const char *at) {
  switch (*at) {
  case '(':
  case '{':
  case '[':
    return 1;
  case ')':
  case '}':
  case ']':
    return -1;
  case '<':
    return is_bracket(name, at) ? 1 : 0;
  case '>':
    return is_bracket(name, at) ? -1 : 0;
  default:
    return 0;
  }
}

/* What follows the last space outside all brackets: a return type stands before it. */
static char *after_return_type(char *name) {
  char *start = name;
  int depth = 0;
  for (char *at = name; *at; at++) {
    depth += depth_change(name, at);
    if (depth == 0 && *at == ' ' && at[1])
      start = at + 1;
  }
  return start;
}

/* An identifier of a mangled name, its length before it; 0 if there is none here. */
static size_t mangled_identifier(const char *at, const char **identifier) {
  char *behind;
  size_t bytes = isdigit((unsigned char)*at) && *at != '0' ? strtoul(at, &behind, 10) : 0;
  if (!bytes || strnlen(behind, bytes) < bytes || isdigit((unsigned char)*behind))
    return 0;
  *identifier = behind;
  return bytes;
}

/* The demangler takes no name of more than 1024 bytes, as CUTLASS 3 makes them. The identifiers in
 * such a name still say what it is: those of the function, then the others as its arguments. */
static char *read_identifiers(const char *mangled) {
  char *out = malloc(2 * strlen(mangled) + 4), *end = out;
  const char *identifier = NULL, *joined = NULL;
  bool inside = false;
  for (const char *at = mangled; out && *at;) {
    size_t bytes = mangled_identifier(at, &identifier);
    if (!bytes) {
      if (joined == at && *at == 'L') /* of internal linkage: the name goes on */
        joined++;
      at++;
      continue;
    }
    bool first = end == out, open = !first && !inside && joined != at;
    end = stpcpy(end, first ? "" : joined == at ? "::" : open ? "<" : ", ");
    inside |= open;
    end = mempcpy(end, identifier, bytes);
    joined = at = identifier + bytes;
  }
  if (out)
    strcpy(end, inside ? ">" : "");
  return out;
}

char *kernel_strip(const char *demangled) {
  bool mangled = strncmp(demangled, "_ZN", 3) == 0;
  char *name = mangled ? read_identifiers(demangled) : strdup(demangled);
  if (!name)
    return NULL;
  remove_all(name, "(anonymous namespace)::");
  remove_all(name, "<unnamed>::");
  char *clone = strstr(name, " [clone");
  if (clone)
    *clone = '\0';
  if (ends_with(name, ".kd")) /* ROCm's kernel descriptors */
    name[strlen(name) - 3] = '\0';
  if (ends_with(name, " const"))
    name[strlen(name) - 6] = '\0';
  char *parameters = find_parameters(name);
  if (parameters) {
    *parameters = '\0';
    char *start = after_return_type(name);
    memmove(name, start, strlen(start) + 1);
  }
  return name;
}

/* Parts of names that wrap the part that says what the kernel does. */
static const char *const wrappers[] = {"gpu_kernel_impl",
                                       "gpu_kernel_impl_nocast",
                                       "BinaryFunctor",
                                       "AUnaryFunctor",
                                       "BUnaryFunctor",
                                       "UnaryFunctor",
                                       "func_wrapper_t",
                                       "ReduceOp",
                                       "operator",
                                       "lambda",
                                       "const",
                                       "char",
                                       "bool",
                                       "short",
                                       "int",
                                       "long",
                                       "unsigned",
                                       "float",
                                       "double",
                                       "float2",
                                       "half",
                                       "__half",
                                       "Half",
                                       "__nv_bfloat16",
                                       "__nv_bfloat162",
                                       "bfloat16_t",
                                       "half_t",
                                       "BFloat16",
                                       "complex",
                                       "OpaqueType",
                                       "TensorListMetadata",
                                       "TensorListScalarListMetadata",
                                       "FusedOptimizerTensorListMetadata",
                                       "TensorIteratorBase",
                                       "TensorIterator",
                                       "Tensor",
                                       "Scalar",
                                       "array",
                                       "Array",
                                       "type",
                                       "true",
                                       "false",
                                       "TensorInfo",
                                       "opmath_gpu_kernel_with_scalars",
                                       "enable_if",
                                       "void",
                                       "gpu_index_kernel",
                                       "elementwise_kernel_with_index",
                                       "OpMathType",
                                       "basic_string_view",
                                       "cublasGemvTensorStridedBatched",
                                       "cublasGemvTensorBatched",
                                       "cublasGemvTensor",
                                       NULL};

static bool is_wrapper(const char *word, size_t bytes) {
  if (bytes > 7 &&
      strncmp(word, "enable_", 7) == 0) /* CUTLASS's kernel, if the device can run it */
    return true;
  for (const char *const *wrapper = wrappers; *wrapper; wrapper++)
    if (strlen(*wrapper) == bytes && memcmp(*wrapper, word, bytes) == 0)
      return true;
  return false;
}

static size_t word_bytes(const char *at) {
  size_t bytes = 0;
  while (isalnum((unsigned char)at[bytes]) || at[bytes] == '_')
    bytes++;
  return bytes;
}

/* The first name among template arguments that is no wrapper, number or built-in type. */
static const char *find_specific_word(const char *arguments) {
  for (const char *at = arguments; *at;) {
    size_t bytes = word_bytes(at);
    bool is_namespace = bytes && strncmp(at + bytes, "::", 2) == 0 && at[bytes + 2] != '{' &&
                        strncmp(at + bytes + 2, "operator", 8) != 0;
    if (bytes > 2 && !is_namespace && !isdigit((unsigned char)*at) && !is_wrapper(at, bytes))
      return at;
    at += bytes ? bytes : 1;
  }
  return NULL;
}

/* Copies template arguments, from behind '<', as long as they are plain, four at most. */
static size_t copy_plain_arguments(const char *at, char *out, size_t room) {
  size_t n = 0;
  for (int i = 0; i < 4; i++) {
    size_t bytes = strcspn(at, ",<>(){}");
    if (bytes == 0 || n + bytes + 2 >= room || (at[bytes] != ',' && at[bytes] != '>'))
      break;
    if (n) {
      memcpy(out + n, ", ", 2);
      n += 2;
    }
    memcpy(out + n, at, bytes);
    n += bytes;
    if (at[bytes] == '>')
      break;
    at += bytes + 1;
    at += strspn(at, " ");
  }
  out[n] = '\0';
  return n;
}

/* Where the last part of a name without template arguments begins; two parts if the last alone
 * says little, such as "cutlass::Kernel2". */
static const char *last_parts(const char *name, size_t bytes) {
  const char *last = name, *before = name;
  for (size_t i = 0; i + 2 < bytes; i++)
    if (name[i] == ':' && name[i + 1] == ':') {
      before = last;
      last = name + i + 2;
    }
  return (size_t)(name + bytes - last) < 10 ? before : last;
}

/* Whether a kernel's own name says nothing beside its template argument. */
static bool is_generic_name(const char *name, size_t bytes) {
  static const char *const names[] = {"Kernel", "Kernel2", "kernel", "device_kernel"};
  for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
    size_t length = strlen(names[i]);
    if (bytes >= length && memcmp(name + bytes - length, names[i], length) == 0 &&
        (bytes == length || name[bytes - length - 1] == ':'))
      return true;
  }
  return false;
}

/* Leaves the beginning and the end of a text that is too long. */
static void shorten_middle(const char *text, char *out) {
  size_t length = strlen(text), head = KERNEL_SHORT * 2 / 3, tail = KERNEL_SHORT - head - 3;
  if (length <= KERNEL_SHORT)
    memcpy(out, text, length + 1);
  else
    snprintf(out, KERNEL_SHORT + 1, "%.*s...%s", (int)head, text, text + length - tail);
}

void kernel_shorten(const char *stripped, char *out) {
  char text[1024], inside[256] = "";
  size_t base = strcspn(stripped, "<");
  const char *start = last_parts(stripped, base);
  int part = (int)(stripped + base - start);
  if (!stripped[base]) {
    shorten_middle(start, out);
    return;
  }
  const char *word = find_specific_word(stripped + base + 1);
  if (word) {
    size_t bytes = word_bytes(word);
    bool more =
        word[bytes] == '<' && copy_plain_arguments(word + bytes + 1, inside, sizeof(inside));
    bool alone = is_generic_name(stripped, base);
    snprintf(text, sizeof(text), "%.*s%s%.*s%s%s%s%s", alone ? 0 : part, start, alone ? "" : "<",
             (int)bytes, word, more ? "<" : "", inside, more ? ">" : "", alone ? "" : ">");
  } else if (copy_plain_arguments(stripped + base + 1, inside, sizeof(inside))) {
    snprintf(text, sizeof(text), "%.*s<%s>", part, start, inside);
  } else {
    snprintf(text, sizeof(text), "%.*s", part, start);
  }
  shorten_middle(text, out);
}
