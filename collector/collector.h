/* collector.h: takes what the processes of a trace directory recorded, stores it, analyses it.
 *
 * One pass: take records from all rings into a batch, feed the analyzer, write records, ring
 * positions and findings in one transaction, and only then give the rings' room back. So a
 * collector killed at any moment neither loses nor doubles a record, and the next one rebuilds the
 * analyzer from the database and goes on. Memory is bounded by the batch (batch.h), the analyzer's
 * window and one struct producer per process. */
#ifndef DDPCHECK_COLLECTOR_H
#define DDPCHECK_COLLECTOR_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>

#include "analyzer/analyzer.h"
#include "collector/batch.h"
#include "collector/collector_notify.h"
#include "collector/producer.h"
#include "lib/base/clock.h"
#include "lib/base/error.h"
#include "lib/trace/store.h"

/* That must be free when the collector starts: the database and the symbols' view of it, locks, a
 * directory, a ring file. Those of the processes come on top where there are enough. */
enum { COLLECTOR_DESCRIPTORS = 16 };

struct symbolizer;
struct trace;
struct transport;
struct collector_job;
struct collector_news;
struct collector_state;

struct collector_options {
    const char *directory;   /* absolute path of the trace directory */
    const char *database;    /* path of the database (directory_claim) */
    uint64_t hang_after_ns;  /* 0: the analyzer's usual */
    uint64_t timeout_ns;     /* after which silence `ddpcheck run` ends the job; 0: never */
    struct keep_limits keep; /* what is dropped of the database (store_keep) */
    double first_wait_s;     /* how long to wait for the first producer */
    bool fresh;              /* a new job: a finished database is moved away at once */
    /* Whether a finding is reported and counted; its stacks can be looked up in `trace`. */
    bool (*is_shown)(void *context, const struct finding *finding, struct trace *trace);
    void *context;
    const char *hub;             /* its address without the token; NULL: there is none */
    struct transport *transport; /* to the hub of a job on many hosts; NULL: there is none */
    uint64_t sender;             /* join_options has it */
    int notify_fd; /* -1, or where findings and activity are reported (collector_notify.h) */
};

/* What a session came to. */
struct collector_summary {
    uint64_t records, unstored;          /* stored in this session, or not for want of space */
    int processes, ranks, communicators; /* of the whole job; 0 unless it is over */
    int found[SEVERITY_NOTE + 1];        /* open findings, by severity */
    int sent;                /* errors and warnings of the host's own that the hub reports */
    char database[PATH_MAX]; /* empty if there was nothing to store */
    bool left_early;         /* a process that is recorded waits for the collector (awaited.c) */
};

/* Whether the job hangs, for collector_stacks.c. */
struct hang {
    uint64_t last_call_ns; /* when a program's call or progress came last */
    uint64_t found_ns;     /* when a finding said that it hangs; 0 none since it was asked */
    uint64_t asked_ns;     /* when the processes were asked last */
    int asked;             /* how often */
    bool answers_awaited;  /* for collector_notify_standing */
    bool troubled;         /* an error was found: silence means more */
    struct starting_watch *starting; /* NULL until one was needed */
};

/* The job is about to be ended, for collector_stacks.c and collector.c. */
struct job_end {
    struct run_ending ending;
    uint64_t heard_ns; /* when `ddpcheck run` said so, 0 not, or it is answered */
};

/* What is dropped, for collector_keep.c. */
struct keeping {
    uint64_t looked_ns; /* when the size was looked at */
    uint64_t stored;    /* records stored since */
    bool dropping;      /* there was something to drop then */
    bool failed;        /* it can't be done: reported once */
};

enum { EXITS_KEPT = 256 };

/* How processes ended, for collector_producers.c and failed_program.c. */
struct known_ends {
    struct known_exit exit[EXITS_KEPT]; /* the newest that `ddpcheck run` reported, a ring */
    unsigned exits;                     /* that it has reported in all */
    struct known_program program;       /* of `ddpcheck run`, if it failed */
    int failures; /* processes whose end is known to be no exit with status 0 */
};

/* The search for new ring files, for collector_producers.c and collector.c. */
struct ring_search {
    int events;    /* inotify on the rings' directory; -1 none */
    int postponed; /* files that could not be opened for lack of descriptors or memory */
    bool postponed_reported;
    bool unready;    /* a process has not filled in its file's header */
    bool saw_living; /* a producer that ran while we did: others may follow it */
};

/* The processes that the analyzer knows, by their number, for collector_database.c. */
struct known_processes {
    int count;
    struct process_info *info;
    bool *ended; /* its notice_end is stored */
};

/* Ids of findings that were reported, as certain; that were taken back: collector_findings.c. */
struct notified_findings {
    struct rankset all, certain, withdrawn;
};

struct collector {
    struct collector_options options;
    char rings[PATH_MAX], database[PATH_MAX];
    struct store *store; /* NULL until there is something to store */
    struct analyzer *analyzer;
    struct symbolizer *symbolizer;
    struct collector_state *state;
    struct progress_watch *progress;
    struct dormant_search *dormant; /* NULL until one was needed */
    struct collector_job *job;      /* NULL without a hub */
    struct collector_news *news;    /* of the hub, of all sessions; NULL: none yet */
    struct record_batch *batch;
    struct producer **producers;
    int producer_count;
    struct known_processes processes;
    bool is_replaced; /* the database, for one that was damaged; nothing is stored in it yet */
    bool recovering;  /* finishing what a dead collector left, before a new job's database */
    bool no_space_reported, replaying, memory_short;
    uint64_t steps;       /* of all processes, when a full disk was tried last */
    uint64_t stop_ns;     /* a signal asked to end: when that is done at the latest; 0: none did */
    bool database_gone;   /* somebody has removed it while the job ran */
    int unrecorded;       /* processes that left a mark that they could not record */
    int unrecorded_error; /* the errno of one of them */
    struct ring_search ring_search;
    bool job_over;  /* as `ddpcheck run` says */
    bool in_memory; /* the disk is full, and the job over: the rest is analysed, not stored */
    struct notified_findings notified;
    uint64_t began_ns, last_tick_ns, last_producer_ns, awaited_ns, stopped_searched_ns,
        run_delays_due_ns;
    struct known_ends ends;
    struct hang hang;
    struct job_end job_end;
    struct keeping keeping;
    struct collector_summary *summary;
};

/* Collects until the last producer has ended, or SIGTERM, SIGINT or SIGHUP, which the caller has
 * blocked, is pending: then it drains once more and ends. Returns 0, or -1 with err (what is not
 * stored stays in the rings). */
int collector_run(const struct collector_options *options, struct collector_summary *summary,
                  struct error *err);

/* awaited.c: whether a process that is recorded waits for the collector's end, and for nothing
 * else. A collector that the shim started belongs to nobody, so the nearest subreaper or the first
 * process of the container adopts it; there wait() does not return while the collector runs, and
 * one that polls finds a child for ever. False where /proc does not say. */
bool collector_is_awaited(struct collector *collector);

/* True once one of those signals is pending. */
bool collector_stopping(void);
/* True if the directory holds ring files of processes that nobody collects: live ones, or ones that
 * left something. */
bool collector_has_newcomers(const char *directory);

/* For the collector's own files. */

/* Remembers how a process ended that `ddpcheck run` reaps. */
void collector_take_exit(struct collector *collector, const struct known_exit *exit);
/* Counts the ends of processes that failed. */
void collector_count_failures(struct collector *collector, const struct record *record);
/* The processes that ended before they were watched, as far as it is known how. */
void collector_give_exits(struct collector *collector);

/* collector_database.c: opens the database for a job whose first process is `info` (NULL: go on
 * with what is there), and rebuilds the analyzer from what it holds. Returns 0, or -1 with err. */
int collector_open(struct collector *collector, const struct process_info *info, struct error *err);
/* Moves the database of a finished job away, if there is one. Returns 0, or -1 with err. */
int collector_move_old(struct collector *collector, struct error *err);
/* Writes to a new database that its job goes on or begins. Returns 0, or -1 with err. */
int collector_begin_session(struct collector *collector, struct error *err);
/* collector_damage.c: moves a damaged database away, whose name goes to `aside`, and says so. `why`
 * may be err. Returns 0, or -1 with err. */
int collector_set_database_aside(const struct collector *collector, const struct error *why,
                                 char aside[PATH_MAX], struct error *err);
/* Begins another in the place of the open one, which is damaged, with what can be read of that, and
 * with the findings. Returns 0, or -1 with err. */
int collector_replace_database(struct collector *collector, const struct error *why,
                               struct error *err);
/* How many processes of the job could not be recorded; their marks are removed. */
int collector_count_unrecorded(struct collector *collector);
/* The job is over: last findings, symbols, `ended`, one file. Returns 0, or -1 with err. */
int collector_finish(struct collector *collector, struct error *err);
/* Stores how the members stand (collector_state.h). */
void collector_store_state(struct collector *collector, bool now);
/* The same within the batch's transaction. Returns 0, or -1 with err. */
int collector_write_state(struct collector *collector, struct error *err);
/* Closes the database as it is; the next collector goes on with it. */
int collector_close(struct collector *collector, struct error *err);

/* collector_producers.c: looks for new ring files. Returns how many were admitted, or -1 with err.
 */
int collector_admit(struct collector *collector, struct error *err);
/* Frees producers whose end is stored, and removes their files. */
void collector_dismiss(struct collector *collector);
/* Says that a ring file is damaged, and sets it aside. */
void collector_set_aside(const char *path, const struct error *why);
/* Reads how long the processes' threads wait for a processor, if that is due (run_delay.h), and
 * records what is worth it. */
void collector_read_run_delays(struct collector *collector, uint64_t now_ns);
/* Makes a process known to store and analyzer. Returns its number, or -1 with err. */
int collector_add_process(struct collector *collector, const struct process_info *info,
                          struct error *err);

/* collector_stacks.c: remembers what shows whether the job hangs. */
void collector_note_record(struct collector *collector, const struct record *record,
                           uint64_t now_ns);
void collector_note_finding(struct collector *collector, const struct finding *finding);
/* The job's hub has found an error: a rank that others wait for may be here. */
void collector_note_job_error(struct collector *collector);
/* Asks every process where its threads stand, if the job hangs: once a hang. The answers come
 * through the rings. */
void collector_ask_stacks(struct collector *collector, uint64_t now_ns);
/* The job is about to be ended: asks them now. */
void collector_ask_last_stacks(struct collector *collector, uint64_t now_ns);
/* Sends the caller, once the processes of a hung job have answered and the answers are stored,
 * where the ranks are that errors named as in no call: "rank 3 is at train.c:20, in load_batch()".
 */
void collector_notify_standing(struct collector *collector, uint64_t now_ns);
/* Whether all that were asked have answered, or had time enough. */
bool collector_has_stacks(const struct collector *collector, uint64_t now_ns);

/* collector_keep.c: drops a piece of the oldest records if the database is beyond its limits. The
 * size is looked at each second, and each time that much was stored. */
void collector_keep(struct collector *collector, uint64_t now_ns);
/* The same at the end of the job, until there is nothing to drop. */
void collector_keep_last(struct collector *collector);

/* collector.c: feeds, writes and publishes the batch. Retries while the disk is full. Returns 0, or
 * -1 with err. */
int collector_write_batch(struct collector *collector, struct error *err);

/* The finding was reported as it is. */
void collector_mark_notified(struct collector *collector, const struct finding *finding);
/* collector_job.c: this host's part in a job on many hosts; without one nothing happens. Returns 0,
 * or -1 when memory is short, as the three after it. */
int collector_job_open(struct collector *collector);
int collector_job_add_process(struct collector *collector, int process,
                              const struct process_info *info);
/* A sign of life to the hub, if one is due. */
void collector_job_beat(struct collector *collector);
int collector_job_feed(struct collector *collector, int process, const struct record *record);
/* It is sent to the hub if no other host takes part. */
int collector_job_add_finding(struct collector *collector, const struct finding *finding);
/* known: all that happened until now_ns was fed. */
void collector_job_pass(struct collector *collector, uint64_t now_ns, bool known);
/* Stores what the hub has said, if it changed. Returns 0, or -1 with err. */
int collector_job_store(struct collector *collector, struct error *err);
/* The last process has ended: the hub gets what it still wants. */
void collector_job_finish(struct collector *collector);
/* Adds the job's findings, where they are reported here, to those of the summary. */
void collector_job_count(struct collector *collector);
void collector_job_close(struct collector *collector);
/* What the hub has said. */
void collector_job_forget(struct collector *collector);
/* The hub reports it: it is about ranks of several hosts, about which the hub knows more, or it was
 * sent to the hub. */
bool collector_job_leaves(const struct collector *collector, const struct finding *finding);
/* It was sent to the hub, which reports it. */
bool collector_job_sends(const struct collector *collector, const struct finding *finding);

/* No finding was reported yet. */
void collector_forget_notified(struct collector *collector);

/* Sends the caller the findings that changed, after they were stored, and with them the stacks by
 * which some may be suppressed. */
void collector_notify_findings(struct collector *collector);
/* The same with those that were left to the job's hub, once it is gone. */
void collector_notify_left(struct collector *collector);
/* Whether the caller wants this finding reported. */
bool collector_shows(const struct collector *collector, const struct finding *finding);

#endif
