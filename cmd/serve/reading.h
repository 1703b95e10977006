/* reading.h: reads traces in a process of its own, and takes what is shown of them.
 *
 * The process that serves never waits for a trace, is not ended by one that is too large, and its
 * memory does not grow with what readings leave behind. A reading runs at a lower priority: the job
 * goes first. */
#ifndef DDPCHECK_SERVE_READING_H
#define DDPCHECK_SERVE_READING_H

#include <stddef.h>
#include <sys/types.h>

#include "cmd/options/choice.h"
#include "lib/base/error.h"

/* What is made of one reading. */
enum reading_part {
    READING_PAGE,    /* the HTML page, live */
    READING_REPORT,  /* `report --json` */
    READING_METRICS, /* `export -f prometheus` */
    READING_PARTS
};

struct reading_options {
    char **paths; /* databases, directories, addresses of hubs */
    int count;
    struct choice_options choice;
    double hang_after_s;
};

struct reading {
    pid_t pid; /* 0: none */
    int end;   /* readable when the reading is over: a pipe, with the error if it failed */
    int part[READING_PARTS];
};

struct reading_text {
    char *data; /* the caller frees it */
    size_t bytes;
};

/* Begins a reading. Returns 0 (reading_take it), or -1 with err. */
int reading_begin(struct reading *reading, const struct reading_options *options,
                  struct error *err);
/* Takes what a reading left that is over. Returns 0 with the texts, or -1 with err. */
int reading_take(struct reading *reading, struct reading_text text[READING_PARTS],
                 struct error *err);
/* Ends one that still runs. */
void reading_stop(struct reading *reading);

/* In a process that the server forked: closes the sockets of the server's readers, which would stay
 * open with it. */
void reading_leave_server(void);

#endif
