/* source.h: the databases that the TUI shows, read-only, and what time it is in them. Used by one
 * thread at a time. */
#ifndef DDPCHECK_TUI_SOURCE_H
#define DDPCHECK_TUI_SOURCE_H

#include <sqlite3.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "lib/base/error.h"
#include "lib/trace/trace.h"

enum { SOURCE_DATABASES_MAX = 1024 };

struct source {
    const char *const *paths; /* the caller's */
    int count;
    struct trace *trace; /* NULL until there is a database */
    int64_t version[SOURCE_DATABASES_MAX];
    uint64_t files;  /* which database files the paths held when they were opened (a hash) */
    unsigned opened; /* how often: processes and findings are numbered anew each time */
    const atomic_bool *stop; /* see source_stop_on */
    struct error warning;    /* empty, or why a database that is there is not shown */
    void (*trouble)(
        void *context,
        struct error *trouble); /* what whoever writes the database has to say; NULL: nobody */
    bool (*instead)(void *context, const char **path, const char **title); /* as in tui.h */
    void *context;
    const char *chosen; /* the path that `instead` gave; NULL: none */
    const char *title;  /* shown instead of the database's path; NULL: the path */
    bool live;          /* a collector writes: time goes on */
    uint64_t now_ns;    /* realtime; of a finished trace its last event's */
};

/* Opens the databases (paths as for trace_open). Returns 0 (source_close it), or -1 with err. */
int source_open_all(struct source *source, const char *const *paths, int count, struct error *err);
/* The size of the databases together. */
uint64_t source_bytes(const struct source *source);
void source_close_all(struct source *source);
/* Queries end with an error soon after *stop is true. */
void source_stop_on(struct source *source, const atomic_bool *stop);
/* Looks whether something was written since the last time, and what time it is. Databases that
 * came, or came in the place of others (a new run), are opened; until that succeeds, and when all
 * are removed, the ones before stay, with source->warning. Returns 1, 0, or -1 with err: the
 * database is locked or damaged now; the next call tries again. */
int source_look(struct source *source, struct error *err);

/* The rows of a query over all databases, one after the other. Parameters are numbers. */
struct cursor {
    struct trace *trace;
    const char *sql;
    const int64_t *parameter;
    int parameters;
    int since_minor; /* databases of an older minor schema version are left out */
    int database;    /* the one that the row at hand is from */
    sqlite3_stmt *statement;
};

/* The cursor starts at the first database. `parameter` must outlive it. */
struct cursor cursor_new(struct trace *trace, const char *sql, const int64_t *parameter,
                         int parameters);
/* 1: a row; 0: no more; -1 with err. After 0 and -1 nothing is left to free. */
int cursor_next(struct cursor *cursor, struct error *err);
/* Ends it early. */
void cursor_end(struct cursor *cursor);

int64_t cursor_number(const struct cursor *cursor, int column);
const char *cursor_text(const struct cursor *cursor,
                        int column); /* "" for NULL; valid until the next row */
/* The trace's number of a process that the database calls by the number in `column`; -1 if it is
 * not known. */
int cursor_process(const struct cursor *cursor, int column);

#endif
