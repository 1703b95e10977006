/* text.h: text of the job (names, paths, sentences) written by the rules of a format. It need not
 * be UTF-8, and may hold anything; what a format can't hold becomes '?'. */
#ifndef DDPCHECK_EXPORT_TEXT_H
#define DDPCHECK_EXPORT_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "lib/base/printable.h"

/* A JSON string with its quotes. Also safe inside of a <script> of HTML: '<' is written as an
 * escape. */
void text_json(const char *text, FILE *out);

/* Text or the value of an attribute, for XML 1.0 and HTML. */
void text_xml(const char *text, FILE *out);

/* A field of CSV (RFC 4180): quoted where it must be. What a spreadsheet would run gets an
 * apostrophe in front. */
void text_csv(const char *text, FILE *out);

/* A path as part of a URI: all but unreserved characters and '/' as %XX (RFC 3986). */
void text_uri(const char *path, char *uri, size_t bytes);

#endif
