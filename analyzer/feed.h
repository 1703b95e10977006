/* feed.h: how a record comes into the model and to the checks: engine.c takes it, calls.c has the
 * records of calls, notices.c those of what the shim and the collector found out beside them. */
#ifndef DDPCHECK_FEED_H
#define DDPCHECK_FEED_H

#include "analyzer/engine.h"
#include "analyzer/model/process.h"

/* What the model answered about a record (ENGINE_*): notes that it failed, or that the record makes
 * no sense. True if the model took it. */
static inline bool engine_took(struct analyzer *analyzer, int result)
{
    if (result == ENGINE_FAILED)
        analyzer->failed = true;
    if (result == ENGINE_SKIPPED)
        analyzer->skipped++;
    return result == ENGINE_OK;
}

/* Calls the handlers of a kind of event with a record; thread: NULL for those of a process. */
void engine_handle(struct analyzer *analyzer, enum event_kind kind, struct process *process,
                   struct thread *thread, const struct record *record);
/* EVENT_SETUP; member: NULL if it is not known. */
void engine_handle_setup(struct analyzer *analyzer, struct process *process,
                         const struct record *record, struct member *member);
/* EVENT_CALL. */
void engine_handle_call(struct analyzer *analyzer, struct thread *thread,
                        const struct record *record);

/* ENTER of a call that may block. */
void calls_enter(struct analyzer *analyzer, struct thread *thread, const struct record *record,
                 enum api_class class);
void calls_leave(struct analyzer *analyzer, struct thread *thread, const struct record *record,
                 enum api_class class);
/* An imported call has no LEAVE of its own. */
void calls_leave_imported(struct analyzer *analyzer, struct thread *thread,
                          const struct record *record, enum api_class class);
/* A call that can't block has one record. */
void calls_point(struct analyzer *analyzer, struct thread *thread, const struct record *record,
                 enum api_class class);

/* A record of CLASS_NOTICE. */
void notices_feed(struct analyzer *analyzer, struct process *process, const struct record *record);

#endif
