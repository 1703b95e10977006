/* invalid_call.h: what DC111 keeps, for all checks that report calls which NCCL then refuses. */
#ifndef DDPCHECK_INVALID_CALL_H
#define DDPCHECK_INVALID_CALL_H

#include "analyzer/findings.h"

struct invalid {
    uint64_t call; /* the ENTER that a finding was made of */
    bool group;    /* a finding was made of a call in the open ncclGroup */
};

/* NCCL's refusal of the call, or of the open group that it is in, is no finding of its own. */
void invalid_note_call(struct analyzer *analyzer, struct thread *thread,
                       const struct record *record);
/* Notes that a finding was made of the open group. */
void invalid_note_group(struct analyzer *analyzer, struct thread *thread);
/* The thread's call, or one of the group that it ends, was reported when it was entered. */
bool invalid_was_reported(struct analyzer *analyzer, struct thread *thread, bool ends_group);
/* One finding for each call, and one for what a group makes of it. */
void invalid_report(struct analyzer *analyzer, struct thread *thread, const struct record *record,
                    const struct member *member, const struct comm *comm, enum certainty certainty,
                    enum headline headline, enum advice advice, const struct values *values);
/* ncclCommSplit, ncclCommShrink: the record's rank is that in the parent. */
bool invalid_is_child(unsigned api);

#endif
