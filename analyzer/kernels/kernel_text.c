/* SPDX-License-Identifier: MIT */
#include "kernels/kernel_text.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/checked_memory.h"
#include "base/texts.h"
#include "kernels/kernels.h"

/* Of the C++ ABI, https://itanium-cxx-abi.github.io/cxx-abi/abi.html#demangler */
char *__cxa_demangle(const char *mangled, char *buffer, size_t *length, int *status);

char *kernel_demangle(const char *name) {
  /* Without the prefix it would take "f" for a type, float. */
  if (text_starts_with(name, "_Z")) {
    int status;
    char *demangled = __cxa_demangle(name, NULL, NULL, &status);
    if (demangled)
      return demangled;
  }
  return memory_text(name);
}

static void remove_all(char *text, const char *what) {
  size_t length = strlen(what);
  for (char *at = strstr(text, what); at; at = strstr(at, what))
    memmove(at, at + length, strlen(at + length) + 1);
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

/* The brackets that are open at one place of a name, read from its beginning. */
struct brackets {
  const char *name;
  char open[64]; /* '(' or '<'; deeper ones are only counted */
  u32 depth;
};

static bool is_open(const struct brackets *b, char kind) {
  return b->depth && b->depth <= sizeof(b->open) && b->open[b->depth - 1] == kind;
}

/* Whether '<' or '>' here is part of "->", "operator<" and their like, or compares two constants,
 * as in "(8)<(0)". */
static bool is_operator(const struct brackets *b, const char *at) {
  size_t before = (size_t)(at - b->name);
  if (before == 0)
    return false;
  if (*at == '>' && (at[-1] == '-' || !is_open(b, '<')))
    return true;
  if (*at == '<' && at[-1] == ')' && !(before >= 10 && text_starts_with(at - 10, "operator()")))
    return true;
  return before >= 8 && text_starts_with(at - 8, "operator");
}

static void open_bracket(struct brackets *b, char kind) {
  if (b->depth < sizeof(b->open))
    b->open[b->depth] = kind;
  b->depth++;
}

/* Goes on by one character. */
static void follow_brackets(struct brackets *b, const char *at) {
  switch (*at) {
  case '(':
  case '{':
  case '[':
    open_bracket(b, '(');
    break;
  case ')':
  case '}':
  case ']':
    while (is_open(b, '<')) /* it was no bracket */
      b->depth--;
    b->depth -= b->depth > 0;
    break;
  case '<':
    if (!is_operator(b, at))
      open_bracket(b, '<');
    break;
  case '>':
    if (!is_operator(b, at))
      b->depth--;
    break;
  default:
    break;
  }
}

/* What follows the last space outside all brackets: a return type stands before it. */
static char *after_return_type(char *name) {
  char *start = name;
  struct brackets brackets = {.name = name};
  for (char *at = name; *at; at++) {
    follow_brackets(&brackets, at);
    if (brackets.depth == 0 && *at == ' ' && at[1])
      start = at + 1;
  }
  return start;
}

/* An identifier of a mangled name, its length before it; 0 if there is none here. */
static size_t mangled_identifier(const char *at, const char **identifier) {
  const char *behind;
  size_t bytes = *at != '0' ? leading_number(at, INT64_MAX, &behind) : 0;
  if (!bytes || strnlen(behind, bytes) < bytes)
    return 0;
  *identifier = behind;
  return bytes;
}

/* The demangler takes no name of more than 1024 bytes, as CUTLASS 3 makes them. The identifiers in
 * such a name still say what it is: those of the function, then the others as its arguments. */
static char *read_identifiers(const char *mangled) {
  char *out = memory_array(size_sum(size_product(2, strlen(mangled)), 4), 1), *end = out;
  const char *identifier = NULL, *joined = NULL;
  bool inside = false;
  for (const char *at = mangled; *at;) {
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
  strcpy(end, inside ? ">" : "");
  return out;
}

char *kernel_strip(const char *demangled) {
  bool mangled = text_starts_with(demangled, "_ZN");
  char *name = mangled ? read_identifiers(demangled) : memory_text(demangled);
  remove_all(name, "(anonymous namespace)::");
  remove_all(name, "<unnamed>::");
  char *clone = strstr(name, " [clone");
  if (clone)
    *clone = '\0';
  if (text_ends_with(name, ".kd")) /* ROCm's kernel descriptors */
    name[strlen(name) - 3] = '\0';
  if (text_ends_with(name, " const"))
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
      text_starts_with(word, "enable_")) /* CUTLASS's kernel, if the device can run it */
    return true;
  for (const char *const *wrapper = wrappers; *wrapper; wrapper++)
    if (text_is_piece(*wrapper, word, bytes))
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
    bool is_namespace = bytes && text_starts_with(at + bytes, "::") && at[bytes + 2] != '{' &&
                        !text_starts_with(at + bytes + 2, "operator");
    if (bytes > 2 && !is_namespace && !isdigit((unsigned char)*at) && !is_wrapper(at, bytes))
      return at;
    at += MAX(bytes, 1);
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

/* Where the last part of a qualified name begins, and where its template arguments do: at its end
 * if it has none. */
static void find_function(const char *name, const char **function, const char **arguments) {
  struct brackets brackets = {.name = name};
  const char *at = name;
  *function = name;
  *arguments = NULL;
  for (; *at; at++) {
    u32 depth = brackets.depth;
    follow_brackets(&brackets, at);
    if (depth == 0 && at[0] == ':' && at[1] == ':') {
      *function = at + 2;
      *arguments = NULL;
    } else if (depth == 0 && brackets.depth == 1 && *at == '<' && !*arguments) {
      *arguments = at;
    }
  }
  if (!*arguments)
    *arguments = at;
}

enum { SAYS_LITTLE = 10 }; /* bytes of a name */

/* Whether a kernel's own name says nothing beside its template argument. */
static bool is_generic_name(const char *name, size_t bytes) {
  static const char *const names[] = {"Kernel", "Kernel2",        "kernel",        "device_kernel",
                                      "launch", "kernel_wrapper", "launch_wrapper"};
  FOR_EACH(names, LENGTH_OF(names), one) {
    size_t length = strlen(*one);
    if (bytes >= length && memcmp(name + bytes - length, *one, length) == 0 &&
        (bytes == length || name[bytes - length - 1] == ':'))
      return true;
  }
  return false;
}

/* Whether a name only frames its first template argument. CUTLASS also has a guard around a kernel,
 * such as enable_sm90_or_later. */
static bool is_frame(const char *function, size_t bytes) {
  return is_generic_name(function, bytes) || (bytes > 7 && text_starts_with(function, "enable_"));
}

/* The length of the first of several template arguments. */
static size_t first_argument(const char *arguments) {
  struct brackets brackets = {.name = arguments};
  for (const char *at = arguments; *at; at++) {
    if (brackets.depth == 0 && (*at == ',' || *at == '>'))
      return (size_t)(at - arguments);
    follow_brackets(&brackets, at);
  }
  return strlen(arguments);
}

/* The argument that is framed: the first that is no guard by itself, as where the demangler gave up
 * (see read_identifiers()). Moves *at there, and returns its length. */
static size_t framed_argument(char **at) {
  size_t bytes = first_argument(*at);
  const char *function, *arguments;
  for (;;) {
    char end = (*at)[bytes];
    (*at)[bytes] = '\0';
    find_function(*at, &function, &arguments);
    bool guard = !*arguments && text_starts_with(function, "enable_");
    (*at)[bytes] = end;
    if (!guard || end != ',')
      return bytes;
    *at += bytes + 1 + ((*at)[bytes + 1] == ' ');
    bytes = first_argument(*at);
  }
}

char *kernel_split(const char *stripped, struct kernel_parts *parts) {
  char *text = memory_text(stripped), *at = text;
  const char *function, *arguments;
  find_function(at, &function, &arguments);
  while (*arguments && is_frame(function, (size_t)(arguments - function))) {
    char *inner = text + (arguments + 1 - text);
    size_t bytes = framed_argument(&inner);
    if (!bytes || isdigit((unsigned char)*inner) || is_wrapper(inner, bytes))
      break;
    at = inner;
    at[bytes] = '\0';
    find_function(at, &function, &arguments);
  }
  char *end = text + (arguments - text), *name = text + (function - text);
  bool has_arguments = *end;
  *end = '\0';
  if (name > at)
    name[-2] = '\0'; /* the colons */
  *parts = (struct kernel_parts){name > at ? at : end, name, has_arguments ? end + 1 : end};
  return text;
}

/* Leaves the beginning and the end of a text that is too long. */
static void shorten_middle(const char *text, char *out) {
  size_t length = strlen(text), head = KERNEL_SHORT * 2 / 3, tail = KERNEL_SHORT - head - 3;
  if (length <= KERNEL_SHORT)
    memcpy(out, text, length + 1);
  else
    snprintf(out, KERNEL_SHORT + 1, "%.*s...%s", (int)head, text, text + length - tail);
}

/* The last part of the namespaces, with its colons, where the function alone says little, such as
 * GemmKernel; the rest of the text is not looked at. */
static const char *needed_scope(const struct kernel_parts *parts) {
  if (!*parts->scope || strlen(parts->function) > SAYS_LITTLE)
    return NULL;
  const char *last = parts->scope, *function, *arguments;
  find_function(last, &function, &arguments);
  return *arguments ? NULL : function;
}

/* The arguments that say what the kernel does, in brackets; empty if there are none. */
static void choose_arguments(const char *arguments, char *out, size_t room) {
  char inside[256] = "";
  const char *word = find_specific_word(arguments);
  *out = '\0';
  if (word) {
    size_t bytes = word_bytes(word);
    bool more =
        word[bytes] == '<' && copy_plain_arguments(word + bytes + 1, inside, sizeof(inside));
    snprintf(out, room, "<%.*s%s%s%s>", bytes < 512 ? (int)bytes : 512, word, more ? "<" : "",
             inside, more ? ">" : "");
  } else if (copy_plain_arguments(arguments, inside, sizeof(inside))) {
    snprintf(out, room, "<%s>", inside);
  }
}

void kernel_shorten(const char *stripped, char *out) {
  char chosen[1024];
  struct kernel_parts parts;
  SCOPED char *copy = kernel_split(stripped, &parts);
  const char *scope = needed_scope(&parts);
  choose_arguments(parts.arguments, chosen, sizeof(chosen));
  SCOPED char *text =
      memory_printf("%s%s%s%s", text_or_empty(scope), scope ? "::" : "", parts.function, chosen);
  shorten_middle(text, out);
}
