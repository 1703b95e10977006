/* report_environment.h: what a process of a trace ran in, as a list: variables, versions, files of
 * libraries, facts about its host. */
#ifndef DDPCHECK_REPORT_ENVIRONMENT_H
#define DDPCHECK_REPORT_ENVIRONMENT_H

#include <stdbool.h>

#include "lib/trace/trace.h"

struct environment_item {
    char *name, *value; /* value "": the program removed the variable */
    char set_by[16];    /* start, program, host, library, file */
};

struct environment_list {
    struct environment_item *item; /* sorted by name */
    int count;
    bool failed; /* memory was short */
};

/* Reads that of a process of the trace. Returns 0, or -1 when memory is short; environment_free()
 * in both cases. */
int environment_load(struct environment_list *environment, struct trace *trace, int process);
void environment_free(struct environment_list *environment);
/* As strcmp of their names; what is NULL comes last. */
int environment_order(const struct environment_item *a, const struct environment_item *b);
/* The process had it from its environment. */
bool environment_is_variable(const struct environment_item *item);

#endif
