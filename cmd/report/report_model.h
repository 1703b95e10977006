/* report_model.h: what a report says, gathered from one or several traces: every event replayed
 * through one analyzer, so that the traces of several hosts are judged together. Knows nothing of
 * how it is printed. */
#ifndef DDPCHECK_REPORT_MODEL_H
#define DDPCHECK_REPORT_MODEL_H

#include <stdbool.h>
#include <stdint.h>

#include "analyzer/analyzer.h"
#include "cmd/options/choice.h"
#include "cmd/report/report_sources.h"
#include "cmd/report/report_stacks.h"
#include "lib/base/error.h"
#include "lib/finding/fault.h"
#include "lib/finding/finding_load.h"
#include "lib/trace/member_state.h"
#include "lib/trace/record.h"
#include "lib/trace/trace.h"

/* The first and the last notice_lost of a process; api 0: there is none. */
struct losses_notices {
    struct record first, last;
};

struct report {
    struct trace *trace;
    struct analyzer *analyzer;
    struct report_source *source;
    int sources;
    struct member_state *member; /* as they are at the end of the trace */
    int members;
    struct standings standings; /* where threads were when the job hung */
    int *rank;                  /* per process: the one that people know, -1 none */
    uint64_t events;
    uint64_t skipped;              /* records that made no sense */
    uint64_t begin_ns, end_ns;     /* realtime of the first and last record; 0 without records */
    uint64_t *lost;                /* per process: records that its full rings dropped */
    struct losses_notices *losses; /* per process; NULL where nothing was lost */
    uint64_t lost_total;
    struct trace_dropped dropped; /* what --keep dropped */
    struct finding_list united;   /* is_united: the findings */
    bool is_united;               /* they are not the analyzer's */
    bool is_judged;               /* findings and ranks are the database's: nothing was analysed */
    bool is_by_host;              /* each host was analysed by itself (report_by_host.h) */
    uint64_t forgotten;           /* communicators that `member` lacks; is_by_host: the least */
    int unseen;                   /* members whose process is in none of the traces */
    bool complete;                /* every collector ended in order */
    bool collecting;              /* some collector runs now: the job goes on */
    int count[3];                 /* chosen findings that are still true, by severity */
    int resolved;                 /* chosen findings that the job got over */
    int consequences;             /* those of them whose cause is another finding */
    struct choice *choice;        /* which findings are reported; the caller's */
    struct error damage;          /* a database could be read only up to here */
};

/* How the databases of several hosts are analysed. */
enum report_hosts {
    HOSTS_MERGED,  /* all their events as one stream */
    HOSTS_BY_SIZE, /* so, unless there are too many */
    HOSTS_APART    /* each by itself, and a hub asks them for what is between them */
};

struct report_options {
    enum report_hosts hosts;
    uint64_t hang_after_ns;              /* 0: what the collectors took */
    bool is_anew;                        /* analyse also what was analysed to its end */
    struct choice *choice;               /* which findings are reported */
    const struct command_traces *traces; /* names of those paths that are copies; NULL none is */
};

/* Opens `paths` (databases or directories of databases), replays every event and gathers what there
 * is to say. Shows progress on stderr where that is a terminal. Returns 0 (report_free it), or -1
 * with err. */
int report_load(struct report *report, const char *const *paths, int count,
                const struct report_options *options, struct error *err);
void report_free(struct report *report);
/* Closes its trace and frees the analyzer; what it says stays. */
void report_close_trace(struct report *report);

/* How many members from `first` on are of the same communicator as that one. */
int report_comm_members(const struct report *report, int first);

/* Calls `visit` for each chosen finding in the state, worst first. */
void report_visit_findings(struct report *report, enum finding_state state,
                           void (*visit)(void *context, const struct finding *finding),
                           void *context);

/* True if a rank is not in the traces or they lack their end, so that a clean report proves little.
 */
bool report_incomplete(const struct report *report);
/* It is of one host of a job that a hub analyses. */
bool report_is_part(const struct report *report);

static inline const char *plural(uint64_t count, const char *one, const char *many)
{
    return count == 1 ? one : many;
}

/* The findings of a report, those of one fault together. */

/* Gathers the chosen findings in the state, the worst first; each by itself where `merge` is false.
 * The caller frees it with fault_list_free. */
void report_faults_find(struct fault_list *faults, struct report *report, enum finding_state state,
                        bool merge);
/* "The same on 7 more communicators, by ranks 8-63."; "" if there are no others. Returns text. */
char *report_fault_others(const struct fault_group *fault, char *text, size_t bytes);

#endif
