/* SPDX-License-Identifier: MIT
 *
 * The terminal while it shows a page: the alternate screen, keys without Enter, its size. However
 * the program ends, the terminal is as it was before.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* Takes the terminal. False when it cannot be had. */
bool top_screen_begin(void);
void top_screen_end(void);

/* Columns and lines as they are now. */
void top_screen_size(unsigned *columns, unsigned *lines);

/* Draws the text in place of what is there, a line each. */
void top_screen_draw(const char *text, size_t bytes, unsigned lines);

enum top_key {
  KEY_NONE,    /* time is up */
  KEY_RESIZED, /* or resumed by the shell: draw again */
  KEY_QUIT,    /* a signal, or the terminal was closed */
  KEY_UP,
  KEY_DOWN,
  KEY_PAGE_UP,
  KEY_PAGE_DOWN,
  KEY_HOME,
  KEY_END,
  KEY_ENTER,
  KEY_ESCAPE,
  KEY_CHARACTER = 256, /* plus the character */
};

/* Waits for a key or a signal, at most this long. Without a terminal for keys only for signals. */
int top_screen_key(double seconds);

/* The signal that ended it, 0 if none: the caller ends with it after it has tidied up. */
int top_screen_signal(void);

/* From here on signals that end the program are noted, also without a screen. */
void top_screen_catch(void);
