/* hub.h: the job analyzer: one analysis of a job on many hosts.
 *
 * The hosts' collectors send how far their members are (collector/join.h). While the job gets on
 * and the members' hashes agree, that is all. Where somebody waits, members differ or a process
 * ends, the hosts concerned are asked for the last records of their processes; these go into the
 * ordinary analyzer and, in the trace schema, into a database of the job, so that report, tui,
 * export, diff and sql work on it. Findings go to the hosts as news. Readers elsewhere get the
 * database itself, page by page. */
#ifndef DDPCHECK_HUB_H
#define DDPCHECK_HUB_H

#include <stdbool.h>
#include <stdint.h>

#include "lib/base/error.h"
#include "lib/finding/finding.h"
#include "lib/job/message.h"
#include "lib/job/transport.h"

struct hub;

/* What it means that all hosts have said what they had. */
enum hub_ending {
    HUB_JOB_ENDS,      /* the job has ended: what never happened will not */
    HUB_JOB_BROKE_OFF, /* it runs no more, and its end was not recorded */
    HUB_JOB_GOES_ON    /* they said what there was so far */
};

struct hub_options {
    struct transport *transport; /* borrowed; the caller closes it after hub_close */
    const char *database;        /* path of the job's database; one that is there is moved aside */
    bool is_unnamed;          /* nobody else reads it: hub_open removes its name and its folder's */
    uint64_t hang_after_ns;   /* 0: the analyzer's usual */
    uint64_t silent_after_ns; /* a host that has sent nothing for so long is silent; 0: 5 s */
    enum hub_ending ending;
    /* A finding, or its new state, as it is sent to the hosts; NULL: not wanted. */
    void (*on_news)(void *context, const struct item_news *news);
    void *context;
};

/* Opens the database and begins. Returns 0, or -1 with err. */
int hub_open(struct hub **hub, const struct hub_options *options, struct error *err);

/* Receives what has come, waiting up to timeout_ms for it, judges, stores and asks. now_ns is
 * CLOCK_MONOTONIC. Call it at least every 100 ms or so. Returns
 *
 *    1   the job is over: all hosts that were there have said so, what they had was received, and
 *        what only the end shows is judged and sent (later messages are of another job: dropped);
 *    0   it is not over;
 *   -1   with err. */
int hub_step(struct hub *hub, uint64_t now_ns, int timeout_ms, struct error *err);

/* Judges what only the end shows, if the job was not over, and closes the database. NULL is
 * allowed. Returns 0, or -1 with err. */
int hub_close(struct hub *hub, struct error *err);

/* Calls `visit` for each finding, worst first; its processes are the hub's numbers. */
void hub_visit_findings(struct hub *hub,
                        void (*visit)(void *context, const struct finding *finding), void *context);
/* Calls `visit` for each process: the key of its host, its number there, and the hub's. */
void hub_visit_processes(const struct hub *hub,
                         void (*visit)(void *context, const char *host, int process, int number),
                         void *context);

struct hub_counts {
    int hosts, processes, ranks, errors, warnings;
    uint64_t messages, bytes, records, requests;
    uint64_t views;   /* that readers asked for */
    uint64_t refused; /* messages that made no sense: garbage, another version */
};
void hub_count(const struct hub *hub, struct hub_counts *counts);

#endif
