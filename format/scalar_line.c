/* SPDX-License-Identifier: MIT */
#include "format/scalar_line.h"

#include <string.h>

/* Without isalpha() and strtod(), because both depend on the locale, which the job may change. */

struct word {
  const char *text;
  u8 length, role;
};

#define WORD(role, text) {text, sizeof(text) - 1, SCALAR_ROLE_##role},
#define NOTHING(role, text)
static const struct word words[] = {TSCOPE_SCALAR_WORDS(WORD, NOTHING, NOTHING)};
static const struct word skipped[] = {TSCOPE_SCALAR_WORDS(NOTHING, WORD, NOTHING)};
static const struct word parts[] = {TSCOPE_SCALAR_WORDS(NOTHING, WORD, WORD)};
#undef WORD
#undef NOTHING

static char lower_case(char c) {
  return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

static int is_digit(char c) {
  return c >= '0' && c <= '9';
}

static int is_name(char c) {
  char s = lower_case(c);
  return (s >= 'a' && s <= 'z') || is_digit(c) || c == '_' || c == '/' || c == '-';
}

static int is_blank(char c) {
  return c == ' ' || c == '\t';
}

static int is_text(const char *at, size_t n, const char *text, size_t length) {
  for (size_t i = 0; i < n && n == length; i++)
    if (lower_case(at[i]) != text[i])
      return 0;
  return n == length;
}

static int ends_with(const char *begin, const char *end, const struct word *word) {
  const char *from = end - word->length;
  return end - begin >= word->length && is_text(from, word->length, word->text, word->length) &&
         (from == begin || !is_name(from[-1]));
}

/* Whether the word before makes it a different loss. */
static int is_different(const char *begin, const char *end) {
  while (end > begin && is_blank(end[-1]))
    end--;
  for (u32 i = 0; i < LENGTH_OF(skipped); i++)
    if (ends_with(begin, end, &skipped[i]))
      return 1;
  return 0;
}

/* The longest word that ends at `end`; NULL if there is none, or if it is a different loss. */
static const struct word *word_before(const char *begin, const char *end) {
  const struct word *best = NULL;
  for (u32 i = 0; i < LENGTH_OF(words); i++)
    if ((!best || words[i].length > best->length) && ends_with(begin, end, &words[i]))
      best = &words[i];
  return best && !is_different(begin, end - best->length) ? best : NULL;
}

/* Where a part of a name ends: at what is not a letter or digit, and before a capital letter. */
static const char *part_end(const char *at, const char *end) {
  const char *begin = at;
  while (at < end && (is_digit(*at) || (lower_case(*at) >= 'a' && lower_case(*at) <= 'z')) &&
         (at == begin || *at > 'Z' || is_digit(*at) || at[-1] <= 'Z'))
    at++;
  return at;
}

/* The role of a name that is no word of the table but has "loss" as one of its parts. */
static enum scalar_role role_of_parts(const char *at, const char *end) {
  enum scalar_role role = SCALAR_ROLE_LOSS;
  int is_loss = 0;
  for (const char *after; at<end; at = after> at ? after : at + 1) {
    after = part_end(at, end);
    size_t n = (size_t)(after - at);
    while (n && is_digit(at[n - 1]))
      n--;
    is_loss |= is_text(at, n, "loss", 4);
    for (u32 i = 0; i < LENGTH_OF(parts); i++)
      if (role != SCALAR_ROLE_NONE && is_text(at, n, parts[i].text, parts[i].length))
        role = (enum scalar_role)parts[i].role;
  }
  return is_loss ? role : SCALAR_ROLE_NONE;
}

/* The same of the name that ends here; where that begins. */
static enum scalar_role loss_before(const char *begin, const char *end, const char **from) {
  for (*from = end; *from > begin && (is_name((*from)[-1]) || (*from)[-1] == '.');)
    --*from;
  return end - *from < SCALAR_LINE_NAME && !is_different(begin, *from) ? role_of_parts(*from, end)
                                                                       : SCALAR_ROLE_NONE;
}

/* Skips back over the text between a name and its number: blanks, quotes, one of : and =, and what
 * Python puts around numbers, such as tensor( or np.float64(. The end of the name, or NULL if there
 * is other text. */
static const char *before_number(const char *begin, const char *at) {
  int signs = 0;
  if (at > begin && at[-1] == '(') {
    for (at--; at > begin && (is_name(at[-1]) || at[-1] == '.');)
      at--;
  }
  for (; at > begin; at--) {
    char c = at[-1];
    if (c == ':' || c == '=')
      signs++;
    else if (!is_blank(c) && c != '"' && c != '\'')
      break;
  }
  return signs <= 2 ? at : NULL;
}

static double power_of_ten(int exponent) {
  double result = 1, base = 10;
  unsigned n = exponent < 0 ? (unsigned)-exponent : (unsigned)exponent;
  for (; n; n >>= 1) {
    if (n & 1)
      result *= base;
    if (n > 1) /* else it might overflow, and nobody needs it */
      base *= base;
  }
  return exponent < 0 ? 1 / result : result;
}

static int same_word(const char *at, const char *end, const char *word, u32 length) {
  return end - at >= (ptrdiff_t)length && is_text(at, length, word, length) &&
         (end - at == (ptrdiff_t)length || !is_name(at[length]));
}

/* Reads digits, up to as many as a double holds; `dropped` counts those beyond. */
static const char *take_digits(const char *at, const char *end, double *value, int *seen,
                               int *dropped) {
  for (; at < end && is_digit(*at); at++, ++*seen) {
    if (*value < 1e17)
      *value = *value * 10 + (*at - '0');
    else
      ++*dropped;
  }
  return at;
}

static const char *take_exponent(const char *at, const char *end, int *exponent) {
  if (at >= end || lower_case(*at) != 'e')
    return at;
  const char *digits = at + 1;
  int negative = digits < end && *digits == '-', value = 0;
  if (digits < end && (*digits == '-' || *digits == '+'))
    digits++;
  if (digits >= end || !is_digit(*digits))
    return at;
  for (; digits < end && is_digit(*digits); digits++)
    value = value < 1000 ? value * 10 + (*digits - '0') : value;
  *exponent += negative ? -value : value;
  return digits;
}

/* Reads a number that begins at `at`. Its end, or NULL. */
static const char *take_number(const char *at, const char *end, double *value) {
  int negative = at < end && *at == '-';
  if (at < end && (*at == '-' || *at == '+'))
    at++;
  if (same_word(at, end, "nan", 3)) {
    *value = __builtin_nan("");
    return at + 3;
  }
  u32 infinite = same_word(at, end, "infinity", 8) ? 8 : same_word(at, end, "inf", 3) ? 3 : 0;
  if (infinite) {
    *value = negative ? -__builtin_inf() : __builtin_inf();
    return at + infinite;
  }
  double digits = 0;
  int seen = 0, dropped = 0, exponent = 0;
  at = take_digits(at, end, &digits, &seen, &dropped);
  exponent += dropped;
  if (at < end && *at == '.') {
    int whole = seen;
    dropped = 0;
    at = take_digits(at + 1, end, &digits, &seen, &dropped);
    exponent -= seen - whole - dropped;
  }
  if (!seen)
    return NULL;
  at = take_exponent(at, end, &exponent);
  exponent = exponent > 400 ? 400 : exponent < -400 ? -400 : exponent;
  *value = digits == 0       ? 0
           : exponent < -300 ? digits * power_of_ten(-300) * power_of_ten(exponent + 300)
                             : digits * power_of_ten(exponent);
  *value = negative ? -*value : *value;
  return at;
}

/* The "| 10/100 [" of a progress bar gives the step. */
static int is_bar(const char *begin, const char *at, char after) {
  while (at > begin && is_blank(at[-1]))
    at--;
  return at > begin && at[-1] == '|' && after == '/';
}

static int is_finite(double value) {
  return value - value == 0;
}

static void add_value(struct scalar_line *out, const char *name, size_t length,
                      enum scalar_role role, double value) {
  if (out->n == SCALAR_LINE_VALUES)
    return;
  struct scalar_line_value *place = &out->values[out->n++];
  memcpy(place->name, name, length);
  place->name[length] = 0;
  place->value = value;
  place->role = (u8)role;
}

static void take_value(struct scalar_line *out, const struct word *word, double value) {
  if (word->role == SCALAR_ROLE_STEP) {
    if (out->step == SCALAR_STEP_UNKNOWN && value >= 0 && value < 1e15)
      out->step = (u64)value;
    return;
  }
  u32 kept = 0;
  for (u32 i = 0; i < out->n; i++) {
    if (out->values[i].role == word->role && scalar_name_is_usual(out->values[i].name))
      return; /* the first value of a role is the main one of the line */
    /* else it is a part of this one, such as loss_bbox: kept where it is not a number */
    if (out->values[i].role != word->role || !is_finite(out->values[i].value))
      out->values[kept++] = out->values[i];
  }
  out->n = kept;
  add_value(out, word->text, word->length, (enum scalar_role)word->role, value);
}

/* A loss with a name of its own: recorded if the line has no main one, or if it is not a number. */
static void take_other_loss(struct scalar_line *out, const char *begin, const char *end,
                            double value) {
  const char *name;
  enum scalar_role role = loss_before(begin, end, &name);
  if (role == SCALAR_ROLE_NONE)
    return;
  for (u32 i = 0; i < out->n; i++)
    if (out->values[i].role == role &&
        ((scalar_name_is_usual(out->values[i].name) && is_finite(value)) ||
         same_word(name, end, out->values[i].name, (u32)strlen(out->values[i].name))))
      return;
  add_value(out, name, (size_t)(end - name), role, value);
}

int scalar_line_read(const char *line, size_t n, struct scalar_line *out) {
  const char *end = line + MIN(n, SCALAR_LINE_BYTES);
  u64 bar_step = SCALAR_STEP_UNKNOWN;
  out->step = SCALAR_STEP_UNKNOWN;
  out->n = 0;
  for (const char *at = line; at < end;) {
    double value;
    int starts = at == line || (!is_name(at[-1]) && at[-1] != '.') || is_blank(at[-1]);
    const char *after = starts ? take_number(at, end, &value) : NULL;
    if (!after) {
      at++;
      continue;
    }
    const char *name = before_number(line, at);
    const struct word *word = name && name < at ? word_before(line, name) : NULL;
    if (word)
      take_value(out, word, value);
    else if (after < end && is_bar(line, at, *after) && value >= 0 && value < 1e15)
      bar_step = (u64)value;
    else if (name && name < at)
      take_other_loss(out, line, name, value);
    at = after;
  }
  if (out->step == SCALAR_STEP_UNKNOWN)
    out->step = bar_step;
  return out->n > 0;
}

size_t scalar_line_clean(char *line, size_t n) {
  size_t kept = 0;
  for (size_t i = 0; i < n; i++) {
    if (line[i] != '\033') {
      line[kept++] = line[i];
      continue;
    }
    /* either ESC [ parameters letter, or ESC and one character */
    if (i + 1 < n && line[i + 1] == '[')
      for (i += 2; i < n && (unsigned char)line[i] < '@'; i++)
        ;
    else
      i++;
  }
  return kept;
}

int scalar_name_is_usual(const char *name) {
  return word_before(name, name + strlen(name)) != NULL;
}

enum scalar_role scalar_role_of(const char *name) {
  const char *end = name + strlen(name), *from;
  const struct word *word = word_before(name, end);
  return word ? (enum scalar_role)word->role : loss_before(name, end, &from);
}
