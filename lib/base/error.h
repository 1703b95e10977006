/* error.h: how a function says what went wrong. The text is made where the most is known; the
 * caller that can act on it prints it once. */
#ifndef DDPCHECK_ERROR_H
#define DDPCHECK_ERROR_H

#define OUT_OF_MEMORY "out of memory" /* as every message says it */

struct error {
    char text[512]; /* empty: no error */
};

/* Formats the message (what failed, on what, why, what to do) and returns -1, so that
 * `return error_set(err, ...)` reads well. `err` may be NULL. */
int error_set(struct error *err, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Formats what can't be done for lack of memory, "can't read t.db", and puts ": out of memory"
 * behind it. Returns -1. */
int error_memory(struct error *err, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* "can't read the directory NAME: why", for an errno of a trace's file. `what`: "the directory ",
 * or
 * "" for a file. Returns -1. */
int error_unreadable(struct error *err, const char *what, const char *name, int number);

/* Puts "prefix: " before the message that is there. Returns -1. */
int error_prefix(struct error *err, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
