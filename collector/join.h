/* join.h: the collector's part in a job of many hosts: what it sends the job's hub.
 *
 * A host sends which processes it has, and twice a second how far their members are, as far as that
 * changed: numbers and hashes, never the records. It keeps the last TAIL_RECORDS records of each
 * process that matter to other ranks (NCCL's calls, waits, streams, events), and sends of them what
 * the hub wants. Nothing here blocks; that the hub or the network is gone does no harm. */
#ifndef DDPCHECK_JOIN_H
#define DDPCHECK_JOIN_H

#include <stdbool.h>
#include <stdint.h>

#include "analyzer/analyzer.h"
#include "lib/base/error.h"
#include "lib/job/message.h"
#include "lib/job/transport.h"

struct join;
struct trace;

struct join_options {
    struct transport *transport; /* borrowed; the caller closes it after join_free */
    uint64_t sender; /* in all messages: the hub takes no other's in this host's name. 0: any */
    /* A finding of the job or of an earlier one on the same server, or its new state; NULL: not
     * wanted. */
    void (*on_news)(void *context, const struct item_news *news);
    /* Which host reports them from now on; NULL: not wanted. */
    void (*on_reporter)(void *context, const struct item_reporter *reporter);
    /* The hub has dropped a finding of a host; NULL: not wanted. */
    void (*on_full)(void *context, const struct item_full *full);
    /* What to add to this host's CLOCK_REALTIME to have the hub's; NULL: not wanted. */
    void (*on_clock)(void *context, int64_t offset_ns);
    /* Where names of addresses are looked up now; it may give NULL. NULL: none are sent. */
    struct trace *(*names)(void *context);
    /* Whether a finding of the host is wanted, once its records are stored; NULL: all are. */
    bool (*is_shown)(void *context, const struct finding *finding);
    void *context;
    uint32_t tail_records; /* how many of each process are kept; 0: TAIL_RECORDS */
    bool keeps_ticks;      /* ticks and progress are among them: of a job that is over they say what
                              it looked like before its end */
};

/* NULL when memory is short. */
struct join *join_new(const struct join_options *options);
void join_free(struct join *join);

/* A process, as analyzer and store number it. 0, or -1 when memory is short. */
int join_add_process(struct join *join, int process, const struct process_info *info);
/* A record that the analyzer was fed just now. 0, or -1 when memory is short. */
int join_feed(struct join *join, const struct analyzer *analyzer, int process,
              const struct record *record);

/* A finding of the host's analysis, or its new state. Sent is what is the host's own. 0, or -1 when
 * memory is short. */
int join_add_finding(struct join *join, const struct finding *finding);
/* The host's own: no rank of another host takes part. A rank that hangs may wait for another host
 * in the end: the hub asks about all ranks that wait. */
bool join_owns_finding(const struct join *join, const struct finding *finding);
/* Whether the hub gets this one. */
bool join_sends_finding(const struct join *join, const struct finding *finding);

/* A sign of life, if one is due: a long analysis is no silence. */
void join_beat(struct join *join, uint64_t now_ns);
/* Sends what is due at now_ns (CLOCK_MONOTONIC), and answers requests. known_ns: all that happened
 * on the host until then was fed; 0: not known this time. */
void join_pass(struct join *join, struct analyzer *analyzer, uint64_t now_ns, uint64_t known_ns);
/* The host's last process has ended: sends that, and answers until the hub has what it wants
 * (judged: until it has judged the job) or patience_ns has passed. */
void join_finish(struct join *join, struct analyzer *analyzer, bool judged, uint64_t patience_ns);

/* In place of passes, of a host whose records were all fed, as those of a database: sends what it
 * has, and that it ends. known_ns as join_pass has it, not 0. */
void join_report_all(struct join *join, struct analyzer *analyzer, uint64_t known_ns);
/* Then sends the findings that are new, or changed. */
void join_report_findings(struct join *join);
/* And answers what the hub has asked. */
void join_answer(struct join *join);

/* Whether ranks of other hosts are members of a communicator, as far as is known. */
bool join_spans_hosts(const struct join *join, uint64_t comm);
/* Whether the job has a hub to judge it: one is connected, or was 10 seconds ago, and gets what the
 * host sends. */
bool join_has_hub(const struct join *join);
/* Whether what the host sent waits to be kept, and for 10 seconds nothing of it was. */
bool join_is_unkept(const struct join *join);
/* Whether a process of the host is this rank of the job. */
bool join_has_rank(const struct join *join, int rank);
/* Whether one is, from first to last, or may be since nothing says which rank it is. */
bool join_has_rank_of(const struct join *join, int first, int last);
/* Why the connection to the hub can't work any more, such as a wrong token; "" if it may. */
const char *join_failure(const struct join *join);
/* Why a message of the hub made no sense, such as another version; "" if none did. */
const char *join_refusal(const struct join *join);

#endif
