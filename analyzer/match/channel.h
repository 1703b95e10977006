/* channel.h: sends and receives of one (communicator, sender, receiver) that have no counterpart
 * yet. Signals are like them, each of sigIdx and ctx with a channel of its own: ncclPutSignal and
 * ncclSignal send one, ncclWaitSignal receives several.
 *
 * The n-th send meets the n-th receive, so at most one side has calls that wait. */
#ifndef DDPCHECK_CHANNEL_H
#define DDPCHECK_CHANNEL_H

#include "analyzer/model/model.h"

struct channel_call {
    uint64_t number;
    struct signature signature;
    struct site site;
};

/* Both calls of a pair, when the second one comes. */
struct channel_pair {
    bool complete;
    bool doubtful; /* its channel may pair the wrong calls: some were captured, or records lost */
    struct channel_call send, recv;
};

struct analyzer;
struct channel;

/* A send or receive is issued. *channel is set; `pair` says whether its counterpart was there.
 * 0, or -1 with errno = ENOMEM. */
int channel_post(struct analyzer *analyzer, const struct operation *operation,
                 struct channel **channel, struct channel_pair *pair);
/* The call is still without its counterpart. */
bool channel_is_waiting(const struct channel *channel, bool receives, uint64_t number);
/* Where that call was made; NULL if it waits no more. Valid until the channel changes. */
const struct site *channel_site(const struct channel *channel, bool receives, uint64_t number);
/* Calls of one side that wait for the other's; nothing if their number can't be trusted (below). */
struct channel_waiting {
    uint64_t comm;
    int sender, receiver;
    bool receives; /* which side waits */
    uint32_t count;
    const struct channel_call *first; /* valid until the channel changes */
    bool is_empty;                    /* all of them are messages of no elements */
    bool *reported;                   /* the visitor's */
    bool is_signal;                   /* of one-sided calls */
    bool is_awaited;                  /* the receiver waited for some of these signals */
};
/* Calls `visit` for each channel in which calls wait, the oldest channel first. A channel is left
 * out if records of its calls were lost, or if one of its calls was captured into a graph: a replay
 * repeats it unseen. */
void channels_visit_waiting(struct analyzer *analyzer,
                            void (*visit)(struct analyzer *analyzer,
                                          const struct channel_waiting *waiting));
/* The channel of the communicator in which calls wait for `peer` to send, or, for !receives, to
 * receive. False if there is none. */
bool channel_waits_for(struct analyzer *analyzer, uint64_t comm, int peer, bool receives,
                       struct channel_waiting *found);
/* Another channel to `receiver` than that from `sender`, in which calls wait on the other side than
 * `receives` says. False if there is none. */
bool channel_beside(struct analyzer *analyzer, uint64_t comm, int sender, int receiver,
                    bool receives, struct channel_waiting *found);
/* Its calls are one-sided: ncclWaitSignal waits for ncclPutSignal and ncclSignal. */
bool channel_is_of_signals(const struct channel *channel);
/* How many sends there were, where receives wait. */
uint64_t channel_sends(const struct channel *channel);
/* Ranks in the communicator. */
int channel_sender(const struct channel *channel);
int channel_receiver(const struct channel *channel);
/* An operation refers to it. */
void channel_hold(struct channel *channel);
/* Frees those of communicators that are not known any more, unless calls wait in them or they are
 * held, and lets go of what is held. */
void channels_forget(struct analyzer *analyzer,
                     bool (*is_listed)(struct analyzer *analyzer, uint64_t comm));
void channels_free(struct channel *channels);

#endif
