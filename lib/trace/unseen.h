/* unseen.h: what a notice_blind says that was not seen (record.range.id; its text names it for
 * people). The numbers are stored: new ones at the end. */
#ifndef DDPCHECK_UNSEEN_H
#define DDPCHECK_UNSEEN_H

enum unseen {
    UNSEEN_ANYTHING,    /* no check in particular is weaker for it */
    UNSEEN_DEVICE_NCCL, /* operations that kernels start */
    UNSEEN_PAYLOADS,    /* bytes that --hash does not compare */
    UNSEEN_GRAPH,       /* what a CUDA graph does */
    UNSEEN_ONE_SIDED,   /* one-sided calls; not written any more: they are recorded */
    UNSEEN_GROWN,       /* operations of communicators that ncclCommGrow creates */
    UNSEEN_LEFT,        /* how a call ended that was left by a longjmp or an exception */
    UNSEEN_CONFINED,    /* all calls after the program set a seccomp filter that kills */
    UNSEEN_DAMAGED,     /* what a damaged ring file held, and all that came afterwards */
    UNSEEN_KINDS,
};

#endif
