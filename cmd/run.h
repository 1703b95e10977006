/* run.h: one run of a program under ddpcheck. */
#ifndef DDPCHECK_CMD_RUN_H
#define DDPCHECK_CMD_RUN_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "cmd/job.h"
#include "cmd/options/choice.h"
#include "lib/finding/finding.h"

enum { ON_FINDING_WARN, ON_FINDING_ABORT };
enum {
    NO_STATUS = -1,
    NOT_EMULATED = -1,
    EMULATED_MAX = 256,
    LINE_BYTES = 4096,
    JOB_NEWS_KEPT = 256
};

struct run_hub;

/* What the command line says, for run_command.c. */
struct run_options {
    long emulate, error_exitcode;
    const char *hub; /* its address, or "auto"; NULL none */
    const char *directory_name, *emulate_memory, *keep;
    const char *metrics; /* of serve_metrics_start; NULL none */
    double timeout, hang_after;
    int on_finding, stacks, cuda;
    int fail_on; /* enum severity; NO_STATUS: not given */
    struct choice_options choice;
    bool quiet, hash, timing, plugin, group, guard;
    bool tui;
};

/* Findings of the job's hub, for run_findings.c. */
struct job_news {
    bool any;
    uint64_t
        hash[JOB_NEWS_KEPT]; /* of those that stand: a collector's successor hears them again */
    int count;
};

/* How long the job has made no progress, for --timeout; monotonic. */
struct job_silence {
    uint64_t since_ns, looked_ns;
    uint64_t held_ns; /* how long the collector is stopped, or waits for storage */
    bool said_held;
};

struct watched_run {
    struct run_options options;
    int ready_fd; /* closed once the collector is ready; -1 none */
    char **argv;

    char directory[PATH_MAX];
    struct run_job job;
    pid_t collector;
    struct run_hub *joined; /* NULL: no hub */
    int collector_status, collector_starts;
    int socket; /* to the collector; -1 none */
    char line[LINE_BYTES];
    size_t line_bytes;
    bool ends_for_finding; /* --on-finding abort */
    bool ready, judged, timed_out,
        shared;        /* shared: another `ddpcheck run` or shim collects into this directory */
    uint64_t began_ns; /* realtime */
    struct job_silence silence;
    uint64_t ending_since_ns;
    uint64_t judging_since_ns; /* the collector judges what waits before the job is ended; 0 not */
    int held_signal;           /* that the job gets then; 0: --timeout */
    bool killed;
    char details[2 * LINE_BYTES]; /* lines below the finding that the collector sends next */
    bool has_recorded;            /* the collector has recorded a call */
    bool saw_end, said_report;
    struct job_news job_news;
    struct rankset possible;     /* ids of findings that were printed as possible */
    int states;                  /* of members, that were said */
    bool gone;                   /* the trace was removed while the job ran */
    bool said_left, left_behind; /* of what still runs after the program */
    int ranks, communicators;
    int found[SEVERITY_NOTE + 1];     /* open findings, by severity */
    int sent;                         /* findings of this host that are printed on another */
    bool is_unrecorded;               /* no place for rings, or no collector: no shim */
    int unrecorded, unrecorded_error; /* processes that could not record, and the errno of one */
};

/* Runs it to its end. Returns the exit status of ddpcheck. */
int run_program(struct watched_run *run, char **argv);

/* Says that the disk was full until the job had ended; `text` is what the collector sent of it. */
void run_print_full(const struct watched_run *run, const char *text);
/* Says, behind `before`, which command prints the report. */
void run_print_report(const struct watched_run *run, const char *before);
/* Prints a finding that the collector sends, with the details before it. True if the job is to be
 * ended for it. */
bool run_print_finding(struct watched_run *run, const char *line);
/* Keeps a line for below the finding that comes next: where a rank is, how to fix it. */
void run_keep_detail(struct watched_run *run, const char *text);
void run_print_withdrawn(struct watched_run *run, const char *line);
/* Prints where a rank stood last, of what could not be stored. */
void run_print_state(struct watched_run *run, const char *text);
/* Says that the trace was removed while the job ran, `text` is how many records it held. */
void run_print_gone(struct watched_run *run, const char *text);
/* Says what the job of `program` came to: ranks, findings, where the report is. */
void run_print_summary(const struct watched_run *run, const char *program);

#endif
