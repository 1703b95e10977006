/* unseen.h: what a notice_blind says that was not seen (record.range.id; its text names it for
 * people). The numbers are stored: new ones at the end. Records of earlier versions have 0. */
#ifndef DDPCHECK_UNSEEN_H
#define DDPCHECK_UNSEEN_H

enum unseen {
    UNSEEN_ANYTHING,    /* no check in particular is weaker for it */
    UNSEEN_DEVICE_NCCL, /* operations that kernels start */
    UNSEEN_PAYLOADS,    /* bytes that --hash does not compare */
    UNSEEN_GRAPH,       /* what a CUDA graph does */
    UNSEEN_ONE_SIDED,   /* what is put into other ranks' windows, and signals */
    UNSEEN_GROWN,       /* operations of communicators that ncclCommGrow creates */
    UNSEEN_KINDS,
};

#endif
