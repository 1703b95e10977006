/* report_model.h: what a report says, gathered from one or several traces: every event replayed
 * through one analyzer, so that the traces of several hosts are judged together. Knows nothing of
 * how it is printed. */
#ifndef DDPCHECK_REPORT_MODEL_H
#define DDPCHECK_REPORT_MODEL_H

#include <stdbool.h>
#include <stdint.h>

#include "analyzer/analyzer.h"
#include "lib/base/error.h"
#include "lib/base/rankset.h"
#include "lib/trace/trace.h"

enum { SITE_FRAMES_MAX = 32 };

/* One database. */
struct report_source {
    char *path;
    char *hosts;            /* of its processes, "a, b" */
    int processes;
    bool complete;          /* its collector ended in order */
    bool collecting;        /* its collector runs now */
};

/* A member of a communicator as it is at the end of the trace; owns its strings. */
struct report_member {
    uint64_t comm;
    int rank, shown_rank, nranks, process, device;
    uint64_t issued, started, done, calls_p2p;
    bool destroyed, ended;
    char *where, *phase, *last_call, *site;     /* site: where the program stands, "f file.c:12"; "" not known */
    uint64_t where_since_ns;
};

struct report {
    struct trace *trace;
    struct analyzer *analyzer;
    struct report_source *source;
    int sources;
    struct report_member *member;
    int members, members_space;
    uint64_t events, skipped;
    uint64_t begin_ns, end_ns;      /* realtime of the first and last record */
    uint64_t *lost;                 /* per process: records dropped by full rings */
    uint64_t lost_total;
    int unseen_members;             /* members of which no process is in the traces */
    bool complete;                  /* every collector ended in order */
    bool collecting;                /* some collector runs now: the job goes on */
    int count[3];                   /* findings that are still true, by severity, of those chosen */
    int resolved;
    const char *only;               /* codes to show, "DC102,DC2xx"; NULL all */
};

struct report_options {
    uint64_t hang_after_ns;         /* 0: the analyzer's own */
    const char *only;
};

/* Opens `paths` (databases or directories of databases), replays every event and gathers what there is
 * to say. A damaged page ends the reading with err. Returns 0 (report_free it), or -1 with err. */
int report_load(struct report *report, const char *const *paths, int count, const struct report_options *options,
                struct error *err);
void report_free(struct report *report);

/* Calls `visit` for each chosen finding, those still true first, then worst first. */
void report_visit_findings(struct report *report, void (*visit)(void *context, const struct finding *finding),
                           void *context);

/* True if `codes` ("DC102,DC2xx") names `code`; NULL names all. */
bool codes_have(const char *codes, const char *code);
/* The first item of `codes` that names no check of this build, NULL if none. */
const char *codes_unknown(const char *codes, char *item, int bytes);

/* The frames of a call that say where the program stands: those of ddpcheck itself, of the libraries that were
 * called and of the C library are left out (all are kept where nothing else is there). Innermost first.
 * Returns how many (<= max). */
int report_site(struct report *report, int process, uint64_t stack, bool is_address, struct frame *frames, int max);

/* "train.c:88", "libfoo.so+0x1234" or "0x7f..": where a frame is. Returns text. */
char *frame_place(const struct frame *frame, char *text, int bytes);

/* Is the process's (unknown: -1) host worth naming? True if the traces are of several hosts. */
bool report_many_hosts(const struct report *report);

#endif
