/* comm.h: communicators and their members. */
#ifndef DDPCHECK_COMM_H
#define DDPCHECK_COMM_H

#include "analyzer/engine.h"
#include "analyzer/model/watched.h"
#include "lib/finding/act.h"

/* Made known if it is not. NULL with errno = ENOMEM. */
struct comm *comm_get(struct analyzer *analyzer, uint64_t id);
struct comm *comm_find(struct analyzer *analyzer, uint64_t id);
/* Without its slots (states.h), which the caller has freed. */
void comm_free(struct comm *comm);
/* Takes it and its members out of all lists and tables of the model. */
void comm_remove(struct analyzer *analyzer, struct comm *comm);

/* The member, made known and given to `process` if it has none yet. NULL with errno = ENOMEM, or
 * with errno = EINVAL if the rank can't be. */
struct member *member_get(struct comm *comm, int rank, struct process *process);
/* NULL if never seen. */
struct member *member_find(struct analyzer *analyzer, uint64_t comm, int rank);
struct member *comm_member(const struct comm *comm, int rank);

/* ENTER and LEAVE of the COMM calls, notice_member. ENGINE_*. The event's member is set if one is
 * concerned. */
int comm_enter(struct event *event);
int comm_leave(struct event *event);
int comm_notice(struct event *event);

/* ncclCommGetAsyncError said that what went on in the background is over, or not. */
int comm_state(struct event *event);
/* notice_reached: the member has issued operations that are not recorded. ENGINE_*. */
int comm_reached(struct event *event);

/* The process that must be rank `rank` of a communicator although it never called it: known only if
 * the communicator is as large as the job. NULL otherwise. */
struct process *comm_guess_process(struct analyzer *analyzer, const struct comm *comm, int rank);

/* Whether an importer has said which ranks of the job the communicator has. */
bool comm_knows_job_ranks(const struct comm *comm);
/* Whether the trace has nothing of some of its ranks; which ones these are, in the job's numbers if
 * those are known and else in the communicator's, added to `ranks`: 0, or -1 when memory is
 * short. */
bool comm_has_untraced(const struct comm *comm);
int comm_list_untraced(const struct comm *comm, struct rankset *ranks);

/* "comm 5ae7", or as the program named it: "comm default_pg". Returns text. */
char *comm_label(const struct comm *comm, char text[COMM_LABEL_BYTES]);
/* notice_comm_name. ENGINE_*. */
int comm_take_name(struct event *event);

/* What people call the communicator: "comm 5ae7 of ranks 8-15" if its ranks are in a row and do not
 * begin with 0, else "comm 5ae7 (64 ranks)", or "comm 5ae7" where its size is not known. One that
 * the program named is "comm default_pg (64 ranks)", or "comm dp 5ae7 (8 ranks)" if others have
 * that name too. For sentences alone: it changes as members come to be known. Returns text. */
char *comm_title(const struct comm *comm, char text[COMM_TITLE_BYTES]);

/* The same of the communicator with that id; "comm 5ae7" if none is known. Returns text. */
char *comm_title_of(struct analyzer *analyzer, uint64_t id, char text[COMM_TITLE_BYTES]);

/* Whether its processes have had another communicator before: it is one of a group of ranks, not
 * the job's first. */
bool comm_is_of_group(const struct comm *comm);

/* Whether a member's process lost records that no check can do without. */
bool comm_lost(const struct comm *comm);

/* LEAVE of a call that makes communicators, or of the ncclGroupEnd around it, while thread->setup
 * holds them: notes which go on in the background. */
void comm_goes_on(const struct event *event);

/* Members whose sources all lack `what` (lacks.h), and that have issued different numbers of
 * collectives. */
struct standing_apart {
    uint64_t least, most; /* collectives issued */
};
bool comm_stands_apart(const struct comm *comm, uint32_t what, struct standing_apart *apart);

#endif
