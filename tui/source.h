/* source.h: the databases that the TUI shows, read-only, and what time it is in them. Used by one
 * thread at a time. */
#ifndef DDPCHECK_TUI_SOURCE_H
#define DDPCHECK_TUI_SOURCE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "lib/base/error.h"
#include "lib/trace/cursor.h"

enum { SOURCE_DATABASES_MAX = 1024 };

struct live_process;

struct source {
    const char *const *paths; /* the caller's */
    int count;
    struct trace *trace; /* NULL until there is a database */
    int64_t version[SOURCE_DATABASES_MAX];
    uint64_t files;        /* which database files the paths held when they were opened (a hash) */
    unsigned opened;       /* how often: processes and findings are numbered anew each time */
    struct finding_words { /* of findings, as the databases are now: reading them takes long */
        uint32_t id;       /* findings.h */
        char *what;
    } * words;
    int words_count;
    struct live_process *stood; /* a process as it was when its stacks were asked for; NULL: none */
    uint64_t stood_ns;          /* query.begin_ns of that */
    const atomic_bool *stop;    /* see source_stop_on */
    struct error warning;       /* empty, or why a database that is there is not shown */
    void (*trouble)(void *context, struct error *trouble); /* problems of the process that writes
                                                              the database; NULL: there is none */
    bool (*instead)(void *context, const char **path, const char **title); /* as in tui.h */
    void *context;
    const char *chosen; /* the path that `instead` gave; NULL: none */
    const char *title;  /* shown instead of the database's path; NULL: the path */
    bool live;          /* a collector writes: time goes on */
    uint64_t now_ns;    /* realtime; of a finished trace its last event's */
};

/* Opens the databases (paths as for trace_open). Returns 0 (source_close it), or -1 with err. */
int source_open_all(struct source *source, const char *const *paths, int count, struct error *err);
/* Its ranks were imported from what other tools recorded. */
bool source_is_imported(const struct source *source);
/* The size of the databases together. */
uint64_t source_bytes(const struct source *source);
void source_close_all(struct source *source);
/* Frees source->stood. */
void source_forget_stood(struct source *source);
/* Queries end with an error soon after *stop is true. */
void source_stop_on(struct source *source, const atomic_bool *stop);
/* Looks whether something was written since the last time, and what time it is. Databases that
 * came, or came in the place of others (a new run), are opened; until that succeeds, and when all
 * are removed, the ones before stay, with source->warning. Returns 1, 0, or -1 with err: the
 * database is locked or damaged now; the next call tries again. */
int source_look(struct source *source, struct error *err);

#endif
