/* dc111_invalid.h: calls of which a finding was made when they were entered. */
#ifndef DDPCHECK_DC111_INVALID_H
#define DDPCHECK_DC111_INVALID_H

struct analyzer;
struct thread;
struct record;

/* NCCL's refusal of the call, or of the open group that it is in, is no finding of its own. */
void invalid_note_call(struct analyzer *analyzer, struct thread *thread,
                       const struct record *record);
/* Likewise of the group alone. */
void invalid_note_group(struct analyzer *analyzer, struct thread *thread);

#endif
