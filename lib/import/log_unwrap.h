/* log_unwrap.h: takes off a log's line what terminals, containers and log services put around the
 * line that a program printed: colours, Docker's and other JSON, CRI's headers, cursor returns. */
#ifndef DDPCHECK_IMPORT_LOG_UNWRAP_H
#define DDPCHECK_IMPORT_LOG_UNWRAP_H

#include <stdbool.h>
#include <stddef.h>

/* Zeroed at first; log_unwrap_free frees what it holds. */
struct log_unwrap {
    char *text; /* the line so far */
    size_t bytes, capacity;
    bool open; /* its end is in the next line of the file */
    bool no_memory;
};

/* The lines inside of text[bytes], which is NUL and is changed: one, or several with newlines
 * between. Valid until the next call. NULL: the rest is still to come, or memory is short
 * (no_memory). */
char *log_unwrap(struct log_unwrap *unwrap, char *text, size_t *bytes);
/* What is left at the end of a file: a line whose rest is missing. NULL: nothing. */
char *log_unwrap_rest(struct log_unwrap *unwrap, size_t *bytes);
void log_unwrap_free(struct log_unwrap *unwrap);

/* Whether the lines of the text are numbered one after the other, as web pages and editors show
 * them: such a number looks like the rank that a launcher puts before a line. */
bool log_is_numbered(const char *text, size_t bytes);
/* How long the number before the line is, with its bracket or colon; 0: it has none. */
size_t log_number_bytes(const char *text);

/* JSON's keys of records: the lower, the more it is the line itself; -1: it holds no line. */
int log_unwrap_key(const char *name);
bool log_unwrap_time_key(const char *name); /* it holds the time */
bool log_unwrap_has_keys(const char *text); /* a key of a line, and one of a time */

#endif
