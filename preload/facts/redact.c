/* SPDX-License-Identifier: MIT */
#include "facts/redact.h"

#include <ctype.h>
#include <stdbool.h>
#include <string.h>
#include <strings.h>

#include "format/values.h"

static const char redacted[] = "(redacted)";

/* Environment variables: only a few are recorded, so the rule may be broad. */

static bool is_secret_variable(const char *name, const char *value) {
  static const char *const words[] = {"KEY",  "TOKEN",      "SECRET", "PASSWORD", "PASSWD",
                                      "PASS", "CREDENTIAL", "AUTH",   "COOKIE"};
  for (size_t i = 0; i < LENGTH_OF(words); i++)
    if (strcasestr(name, words[i]) || strcasestr(value, words[i]))
      return true;
  return strstr(value, "://") && strchr(value, '@'); /* user and password in an address */
}

/* Command lines: options such as --tokenizer and --max-tokens are to be recorded. */

static bool is_one_of(const char *word, size_t n, const char *const *words) {
  for (; *words; words++)
    if (strlen(*words) == n && strncasecmp(word, *words, n) == 0)
      return true;
  return false;
}

static bool is_name_character(char c) {
  return isalnum((unsigned char)c) || c == '_' || c == '-';
}

/* Whether the words of a name say that its value is a secret: "hf-token", "wandb_api_key",
 * "dbPassword". Something counted or measured ("pad_token_id") is not a secret. */
static bool is_secret_name(const char *name, size_t n) {
  static const char *const secrets[] = {
      "token",      "secret",      "secrets",    "password",  "passwords",     "passwd",
      "passphrase", "pass",        "pwd",        "key",       "keys",          "apikey",
      "secretkey",  "accesskey",   "privatekey", "authtoken", "authorization", "auth",
      "credential", "credentials", "cookie",     "cookies",   "bearer",        NULL};
  static const char *const measures[] = {"id",    "ids",  "count", "length", "len",
                                         "limit", "size", "type",  "ratio",  NULL};
  bool found = false;
  for (size_t begin = 0, end; begin < n; begin = end) {
    for (end = begin + 1; end < n && name[end] != '_' && name[end] != '-'; end++)
      if (islower((unsigned char)name[end - 1]) && isupper((unsigned char)name[end]))
        break;
    bool last = end == n;
    if (is_one_of(name + begin, end - begin, secrets))
      found = true;
    else if (last && is_one_of(name + begin, end - begin, measures))
      return false;
    while (end < n && (name[end] == '_' || name[end] == '-'))
      end++;
  }
  return found;
}

/* Length of a key in a format known from services, at the beginning of `text`; 0 if there is
 * none. */
static size_t well_known_key(const char *text) {
  static const char *const begins[] = {"hf_",    "sk-",    "ghp_",  "gho_", "github_pat_",
                                       "glpat-", "xoxb-",  "xoxp-", "AKIA", "ASIA",
                                       "eyJ",    "nvapi-", NULL};
  const size_t least = 16; /* shorter ones are words */
  for (const char *const *begin = begins; *begin; begin++) {
    size_t length = strlen(*begin);
    if (strncmp(text, *begin, length) != 0)
      continue;
    while (is_name_character(text[length]) ||
           (text[length] == '.' && is_name_character(text[length + 1])))
      length++;
    if (length >= least)
      return length;
  }
  return 0;
}

/* Length of "user:password" in an address whose "://" ends before `text`; 0 if there is none. */
static size_t credentials(const char *text) {
  size_t length = strcspn(text, "/ \t\"'?#");
  const char *at = memrchr(text, '@', length);
  return at ? (size_t)(at - text) : 0;
}

struct text {
  char *to;
  size_t used, bytes;
};

static void put_text(struct text *text, const char *from, size_t n) {
  size_t room = text->bytes - 1 - text->used;
  n = MIN(n, room);
  memcpy(text->to + text->used, from, n);
  text->used += n;
}

static void put_redacted(struct text *text) {
  put_text(text, redacted, sizeof(redacted) - 1);
}

/* Length of the text between a name and its value: "=", ": ", "\": \""; 0 if no value follows.
 */
static size_t assignment(const char *text) {
  size_t length = strspn(text, "\"' ]");
  if (text[length] != '=' && text[length] != ':')
    return 0;
  length += strspn(text + length, "=: \"'");
  return text[length] ? length : 0;
}

/* One argument. True if its value is the next one. */
static bool put_argument(struct text *text, const char *argument) {
  const char *begin = argument + strspn(argument, "-");
  const char *at = argument;
  while (*at) {
    bool starts = at == argument || !is_name_character(at[-1]);
    size_t key = starts ? well_known_key(at) : 0;
    size_t address = at - argument >= 3 && strncmp(at - 3, "://", 3) == 0 ? credentials(at) : 0;
    if (key || address) {
      put_redacted(text);
      at += key ? key : address;
      continue;
    }
    size_t name = 0;
    while (starts && is_name_character(at[name]))
      name++;
    if (!name) {
      put_text(text, at++, 1);
      continue;
    }
    put_text(text, at, name);
    bool secret = is_secret_name(at, name), whole = at == argument || at == begin;
    at += name;
    size_t between = secret ? assignment(at) : 0;
    if (secret && !*at && whole && *argument == '-')
      return true;
    if (!between)
      continue;
    put_text(text, at, between);
    put_redacted(text);
    at += between;
    /* An option's value is the rest of the argument; in a longer text it ends with the word. */
    at += whole ? strlen(at) : strcspn(at, " \t\n\"',;&)}]");
  }
  return false;
}

void tscope_redact_variable(char *to, size_t bytes, const char *name, const char *value) {
  struct text text = {.to = to, .bytes = bytes};
  if (is_secret_variable(name, value))
    put_redacted(&text);
  else
    put_argument(&text, value);
  text.to[text.used] = '\0';
}

void tscope_redact_command(char *to, size_t bytes, const char *arguments, size_t n) {
  struct text text = {.to = to, .bytes = bytes};
  bool value_follows = false;
  for (const char *argument = arguments; argument < arguments + n;) {
    size_t length = strnlen(argument, n - (size_t)(argument - arguments));
    if (argument > arguments)
      put_text(&text, " ", 1);
    if (value_follows && strncmp(argument, "--", 2) != 0) {
      put_redacted(&text);
      value_follows = false;
    } else {
      value_follows = put_argument(&text, argument);
    }
    argument += length + 1;
  }
  text.to[text.used] = '\0';
}
