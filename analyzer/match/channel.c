/* channel.c: matches sends and receives between two ranks. */
#include "analyzer/match/channel.h"

#include <stdlib.h>

#include "analyzer/engine.h"

enum {
    CHANNEL_MAX = 65536
}; /* calls that wait; the oldest go (a peer without a trace never answers) */

struct channel_key {
    uint64_t comm;
    int32_t sender, receiver;
};

struct channel {
    struct channel_key key;
    bool receives;             /* which side waits */
    bool reported;             /* a finding was made of those that wait */
    bool doubtful;             /* calls were captured, or records lost */
    struct channel_call *call; /* ring */
    uint32_t head, count, capacity;
    UT_hash_handle hh;
};

static struct channel *channel_get(struct analyzer *analyzer, const struct channel_key *key)
{
    struct channel *channel;
    TABLE_FIND(analyzer->channels, key, channel);
    if (channel)
        return channel;
    channel = calloc(1, sizeof *channel);
    if (!channel)
        return NULL;
    channel->key = *key;
    TABLE_ADD(analyzer->channels, key, channel);
    if (!TABLE_ADDED(channel)) {
        free(channel);
        return NULL;
    }
    return channel;
}

static const struct channel_call *front(const struct channel *channel)
{
    return &channel->call[channel->head & (channel->capacity - 1)];
}

static void channel_pop(struct channel *channel)
{
    channel->head = (channel->head + 1) & (channel->capacity - 1);
    channel->count--;
}

static int channel_push(struct channel *channel, const struct channel_call *call)
{
    if (channel->count == CHANNEL_MAX) {
        channel_pop(channel);
        channel->doubtful = true;
    }
    if (channel->count == channel->capacity) {
        uint32_t capacity = channel->capacity ? 2 * channel->capacity : 4;
        struct channel_call *grown = malloc(capacity * sizeof *grown);
        if (!grown)
            return -1;
        for (uint32_t i = 0; i < channel->count; i++)
            grown[i] = channel->call[(channel->head + i) & (channel->capacity - 1)];
        free(channel->call);
        channel->call = grown;
        channel->capacity = capacity;
        channel->head = 0;
    }
    channel->call[(channel->head + channel->count++) & (channel->capacity - 1)] = *call;
    return 0;
}

int channel_post(struct analyzer *analyzer, const struct operation *operation,
                 struct channel **channel, struct channel_pair *pair)
{
    const struct record *record = &operation->record;
    bool receives = record->api == API_ncclRecv;
    struct channel_key key = {record->op.comm, record->op.rank, record->op.root};
    if (receives)
        key = (struct channel_key){record->op.comm, record->op.root, record->op.rank};
    struct channel_call call = {record->op.number, operation->signature, operation->site};
    pair->complete = false;
    *channel = channel_get(analyzer, &key);
    if (!*channel)
        return -1;
    if ((*channel)->count && (*channel)->receives != receives) {
        while ((*channel)->count && front(*channel)->number < call.number) {
            channel_pop(*channel); /* the record of their counterpart was lost */
            (*channel)->doubtful = true;
        }
        if ((*channel)->count && front(*channel)->number == call.number) {
            pair->complete = true;
            pair->doubtful = (*channel)->doubtful;
            pair->send = receives ? *front(*channel) : call;
            pair->recv = receives ? call : *front(*channel);
            channel_pop(*channel);
            return 0;
        }
        if ((*channel)->count) {
            (*channel)->doubtful = true;
            return 0; /* its counterpart's record was lost */
        }
    }
    (*channel)->receives = receives;
    return channel_push(*channel, &call);
}

bool channel_is_waiting(const struct channel *channel, bool receives, uint64_t number)
{
    return channel->count && channel->receives == receives && front(channel)->number <= number;
}

const struct site *channel_site(const struct channel *channel, bool receives, uint64_t number)
{
    for (uint32_t i = 0; channel->receives == receives && i < channel->count; i++) {
        const struct channel_call *call =
            &channel->call[(channel->head + i) & (channel->capacity - 1)];
        if (call->number == number)
            return &call->site;
    }
    return NULL;
}

bool channel_is_doubtful(const struct channel *channel)
{
    return channel->doubtful;
}

static bool all_empty(const struct channel *channel)
{
    for (uint32_t i = 0; i < channel->count; i++)
        if (channel->call[(channel->head + i) & (channel->capacity - 1)].signature.count)
            return false;
    return true;
}

static struct channel_waiting waiting_in(struct channel *channel)
{
    return (struct channel_waiting){
        channel->key.comm, channel->key.sender, channel->key.receiver, channel->receives,
        channel->count,    front(channel),      all_empty(channel),    &channel->reported,
    };
}

bool channel_waits_for(struct analyzer *analyzer, uint64_t comm, int peer, bool receives,
                       struct channel_waiting *found)
{
    for (struct channel *channel = analyzer->channels; channel; channel = channel->hh.next) {
        int awaited = receives ? channel->key.sender : channel->key.receiver;
        if (!channel->count || channel->doubtful || channel->key.comm != comm ||
            channel->receives != receives || awaited != peer)
            continue;
        *found = waiting_in(channel);
        return true;
    }
    return false;
}

void channels_visit_waiting(struct analyzer *analyzer,
                            void (*visit)(struct analyzer *analyzer,
                                          const struct channel_waiting *waiting))
{
    for (struct channel *channel = analyzer->channels; channel; channel = channel->hh.next) {
        if (!channel->count || channel->doubtful)
            continue;
        const struct channel_waiting waiting = waiting_in(channel);
        visit(analyzer, &waiting);
    }
}

int channel_sender(const struct channel *channel)
{
    return channel->key.sender;
}

int channel_receiver(const struct channel *channel)
{
    return channel->key.receiver;
}

void channels_free(struct analyzer *analyzer)
{
    struct channel *channel, *next;
    HASH_ITER(hh, analyzer->channels, channel, next) {
        HASH_DEL(analyzer->channels, channel);
        free(channel->call);
        free(channel);
    }
}
