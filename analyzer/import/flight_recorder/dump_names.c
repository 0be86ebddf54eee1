/* SPDX-License-Identifier: MIT
 *
 * Flight-recorder dumps do not contain the rank. It is in the file's name, <prefix><rank>, and the
 * prefix may contain a host name with digits and dots.
 */
#include <ctype.h>
#include <strings.h>

#include "base/texts.h"
#include "import/flight_recorder/flight_recorder.h"
#include "import/import.h"

static bool is_digit(char c) {
  return isdigit((unsigned char)c) != 0;
}

static void add_rank_number(struct name_ranks *ranks, const char *digits) {
  const char *end;
  u32 rank = (u32)leading_number(digits, INDEX_NONE, &end);
  if (end - digits <= 9 && ranks->n < LENGTH_OF(ranks->at) &&
      !ANY(ranks->at, ranks->n, one, *one == rank))
    ranks->at[ranks->n++] = rank;
}

/* The name without the part that only names the format. */
static size_t length_without_suffixes(const char *name) {
  static const char *const endings[] = {".gz", ".json", ".pickle", ".pkl", ".dump", ".bin", ".txt"};
  size_t length = strlen(name);
  bool again = true;
  while (again) {
    again = false;
    FOR_EACH(endings, LENGTH_OF(endings), ending) {
      size_t n = strlen(*ending);
      if (length > n && strncasecmp(name + length - n, *ending, n) == 0) {
        length -= n;
        again = true;
      }
    }
  }
  return length;
}

/* Where the digits that end at `end` begin; `end` itself if there are none. */
static size_t digits_before(const char *name, size_t end) {
  while (end > 0 && is_digit(name[end - 1]))
    end--;
  return end;
}

void dump_name_ranks(const char *name, struct name_ranks *ranks) {
  *ranks = (struct name_ranks){0};
  const char *named = digits_after_rank(name);
  size_t length = length_without_suffixes(name);
  if (named)
    add_rank_number(ranks, named);
  for (size_t end = length; end > 0; end--)
    if (is_digit(name[end - 1]) && (end == length || !is_digit(name[end])))
      add_rank_number(ranks, name + digits_before(name, end));
}

const char *dump_name_host(struct draft *draft, const char *name) {
  static const char *const words[] = {"rank", "dump", "trace",  "nccl",
                                      "xccl", "fr",   "flight", "recorder"};
  const char *named = digits_after_rank(name);
  size_t end = named ? (size_t)(named - name) : digits_before(name, length_without_suffixes(name));
  bool again = true;
  while (again) {
    again = false;
    while (end > 0 && strchr("_-=.: ", name[end - 1])) {
      end--;
      again = true;
    }
    FOR_EACH(words, LENGTH_OF(words), word) {
      size_t n = strlen(*word);
      bool whole = end == n || (end > n && strchr("_-=.: ", name[end - n - 1]));
      if (end >= n && whole && strncasecmp(name + end - n, *word, n) == 0) {
        end -= n;
        again = true;
      }
    }
  }
  return end ? draft_keep_text(draft, name, end) : NULL;
}
