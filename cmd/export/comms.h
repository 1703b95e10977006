/* comms.h: the communicators and processes of a report, as exports name them. */
#ifndef DDPCHECK_EXPORT_COMMS_H
#define DDPCHECK_EXPORT_COMMS_H

#include <uthash.h>

#include "cmd/report/report_model.h"

struct export_comm {
    uint64_t id;
    int nranks;
    char name[COMM_LABEL_BYTES]; /* "comm 5ae7", "comm generator" */
    bool is_named;
    char hex[24];       /* "0x5ae77eb5ea4ec1ee" */
    char *ranks;        /* that people know, in the order of the communicator: "[0, 1, 3]" */
    size_t ranks_bytes; /* its length */
    int known;          /* how many of them */
    int *shown;         /* by rank in the communicator: the one that people know, -1 not known */
    UT_hash_handle hh;
};

struct export_process {
    int pid; /* the rank where one process alone has it, else a number above all ranks: unlike pids,
              * the same in every export of the trace */
    int rank;       /* that people know; -1: none, or several */
    char name[128]; /* "rank 3 (node-01)" */
};

struct export_names {
    struct export_comm *comms;      /* in the order of their creation */
    struct export_process *process; /* by index */
    int processes, unnamed;         /* unnamed: communicators without a name */
};

/* Returns 0 (names_free it), or -1 with err. */
int names_load(struct export_names *names, const struct report *report, struct error *err);
void names_free(struct export_names *names);

/* The rank, as people know it, that made the call: a collective or a message. */
int names_rank(const struct export_names *names, int process, const struct record *call);
/* NULL: no member of it is known. */
const struct export_comm *names_comm(const struct export_names *names, uint64_t id);

#endif
