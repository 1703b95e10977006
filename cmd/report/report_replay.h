/* report_replay.h: how a report replays its trace, all databases as one stream or a host's alone.
 */
#ifndef DDPCHECK_REPORT_REPLAY_H
#define DDPCHECK_REPORT_REPLAY_H

#include <pthread.h>
#include <stdatomic.h>

#include "cmd/progress.h"
#include "cmd/report/report_model.h"

struct join;

/* Makes the analyzer, which knows all processes of report->trace; none if report->is_judged.
 * Returns 0, or -1 with err. */
int replay_begin(struct report *report, uint64_t hang_after_ns, struct error *err);
/* Feeds all events, with progress on the terminal. Returns 0 (what could not be read is in
 * report->damage), or -1 with err. */
int replay_events(struct report *report, struct error *err);
/* What several threads have read together, and its progress on the terminal. */
struct replay_progress {
    atomic_ullong events;
    pthread_mutex_t lock; /* of progress */
    struct progress progress;
};

/* Replays one host's events, also to its join; *known_ns becomes its clock's last time. */
int replay_host_events(struct report *report, struct join *join, struct replay_progress *progress,
                       uint64_t *known_ns, struct error *err);
/* Judges what the end shows, or where the trace breaks off if that may be called an end, or what is
 * known of a job that goes on. Sets report->complete. Returns 0, or -1 when memory is short. */
int replay_end(struct report *report, bool may_break_off);
/* Fills report->member; seen_only: without the ranks that the trace has nothing of. Returns 0, or
 * -1 when memory is short. */
int replay_members(struct report *report, bool seen_only);

/* Fills report->member from what the database keeps. Returns 0, or -1 with err. */
int replay_stored_members(struct report *report, struct error *err);

/* Returns -1 with err. */
int report_fail_memory(struct error *err);

#endif
