/* channel.h: sends and receives of one (communicator, sender, receiver) that have no counterpart yet.
 *
 * The n-th send meets the n-th receive, so at most one side has calls that wait. */
#ifndef DDPCHECK_CHANNEL_H
#define DDPCHECK_CHANNEL_H

#include "analyzer/model.h"

struct channel_call {
    uint64_t number;
    struct signature signature;
    struct site site;
};

/* Both calls of a pair, when the second one comes. */
struct channel_pair {
    bool complete;
    struct channel_call send, recv;
};

struct analyzer;

/* A send or receive is issued. *channel is set; `pair` says whether its counterpart was there.
 * 0, or -1 with errno = ENOMEM. */
int channel_post(struct analyzer *analyzer, const struct operation *operation, struct channel **channel,
                 struct channel_pair *pair);
/* The call is still without its counterpart. */
bool channel_is_waiting(const struct channel *channel, bool receives, uint64_t number);
/* Ranks in the communicator. */
int channel_sender(const struct channel *channel);
int channel_receiver(const struct channel *channel);
void channels_free(struct analyzer *analyzer);

#endif
