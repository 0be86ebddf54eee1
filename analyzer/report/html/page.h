/* SPDX-License-Identifier: MIT
 *
 * The page without its data: page.html with style.css and the scripts in it, made by embed.py.
 */
#ifndef TSCOPE_HTML_PAGE_H
#define TSCOPE_HTML_PAGE_H

extern const char html_page_before_data[], html_page_after_data[];

#endif
