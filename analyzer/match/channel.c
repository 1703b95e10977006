/* channel.c: matches sends and receives between two ranks. */
#include "analyzer/match/channel.h"

#include <stdlib.h>

#include "analyzer/engine.h"
#include "lib/base/invariant.h"

enum {
    CHANNEL_MAX = 65536
}; /* calls that wait; the oldest go (a peer without a trace never answers) */

enum { SIGNALS_MAX = 4096 }; /* that one wait is for; of more, the last are followed */

struct channel_key {
    uint64_t comm;
    int32_t sender, receiver;
    int64_t signal; /* which, as of one-sided calls; MESSAGES: sends and receives */
};

enum { MESSAGES = -1 };

struct channel {
    struct channel_key key;
    bool receives;             /* which side waits */
    bool reported;             /* a finding was made of those that wait */
    bool is_held;              /* an operation refers to it: forgotten.c */
    bool doubtful;             /* calls were captured, or records lost */
    bool is_awaited;           /* signals: some ncclWaitSignal was for them */
    struct channel_call *call; /* ring */
    uint32_t head, count, capacity;
    UT_hash_handle hh;
};

static struct channel *channel_get(struct analyzer *analyzer, const struct channel_key *key)
{
    struct channel *channel;
    TABLE_FIND(analyzer->slot.channel, key, channel);
    if (channel)
        return channel;
    channel = calloc(1, sizeof *channel);
    if (!channel)
        return NULL;
    channel->key = *key;
    TABLE_ADD(analyzer->slot.channel, key, channel);
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
    invariant(channel->count, "only a channel with calls has a first one");
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
    invariant(channel->count < channel->capacity, "a channel has room for the call that is added");
    channel->call[(channel->head + channel->count++) & (channel->capacity - 1)] = *call;
    return 0;
}

/* `pair` may be NULL. */
static int channel_meet(struct channel *channel, const struct channel_call *call, bool receives,
                        struct channel_pair *pair)
{
    if (channel->count && channel->receives != receives) {
        while (channel->count && front(channel)->number < call->number) {
            channel_pop(channel); /* the record of their counterpart was lost */
            channel->doubtful = true;
        }
        if (channel->count && front(channel)->number == call->number) {
            if (pair)
                *pair = (struct channel_pair){.complete = true,
                                              .doubtful = channel->doubtful,
                                              .send = receives ? *front(channel) : *call,
                                              .recv = receives ? *call : *front(channel)};
            channel_pop(channel);
            return 0;
        }
        if (channel->count) {
            channel->doubtful = true;
            return 0; /* its counterpart's record was lost */
        }
    }
    channel->receives = receives;
    return channel_push(channel, call);
}

/* A wait for several signals: its number is that of the last. */
static int channel_await(struct channel *channel, struct channel_call call, uint64_t signals)
{
    uint64_t last = call.number, followed = signals < SIGNALS_MAX ? signals : SIGNALS_MAX;
    channel->is_awaited = true;
    for (uint64_t left = followed; left; left--) {
        call.number = last - (left - 1);
        if (channel_meet(channel, &call, true, NULL))
            return -1;
    }
    return 0;
}

int channel_post(struct analyzer *analyzer, const struct operation *operation,
                 struct channel **channel, struct channel_pair *pair)
{
    const struct record *record = &operation->record;
    bool receives = kind_receives(record->api);
    bool one_sided = kind_has(record->api, KIND_ONE_SIDED);
    struct channel_key key = {.comm = record->op.comm,
                              .sender = receives ? record->op.root : record->op.rank,
                              .receiver = receives ? record->op.rank : record->op.root,
                              .signal = one_sided ? (int64_t)(uint32_t)record->result : MESSAGES};
    struct channel_call call = {record->op.number, operation->signature, operation->site};
    pair->complete = false;
    *channel = channel_get(analyzer, &key);
    if (!*channel)
        return -1;
    if (one_sided && receives)
        return channel_await(*channel, call, record->op.count);
    return channel_meet(*channel, &call, receives, one_sided ? NULL : pair);
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
        channel->key.comm,   channel->key.sender, channel->key.receiver,
        channel->receives,   channel->count,      front(channel),
        all_empty(channel),  &channel->reported,  channel->key.signal != MESSAGES,
        channel->is_awaited,
    };
}

bool channel_waits_for(struct analyzer *analyzer, uint64_t comm, int peer, bool receives,
                       struct channel_waiting *found)
{
    for (struct channel *channel = analyzer->slot.channel; channel; channel = channel->hh.next) {
        int awaited = receives ? channel->key.sender : channel->key.receiver;
        if (!channel->count || channel->doubtful || channel->key.comm != comm ||
            channel->key.signal != MESSAGES || channel->receives != receives || awaited != peer)
            continue;
        *found = waiting_in(channel);
        return true;
    }
    return false;
}

bool channel_beside(struct analyzer *analyzer, uint64_t comm, int sender, int receiver,
                    bool receives, struct channel_waiting *found)
{
    for (struct channel *channel = analyzer->slot.channel; channel; channel = channel->hh.next) {
        if (!channel->count || channel->doubtful || channel->key.comm != comm ||
            channel->receives == receives || channel->key.receiver != receiver ||
            channel->key.sender == sender)
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
    for (struct channel *channel = analyzer->slot.channel; channel; channel = channel->hh.next) {
        if (!channel->count || channel->doubtful)
            continue;
        const struct channel_waiting waiting = waiting_in(channel);
        visit(analyzer, &waiting);
    }
}

bool channel_is_of_signals(const struct channel *channel)
{
    return channel->key.signal != MESSAGES;
}

uint64_t channel_sends(const struct channel *channel)
{
    return channel->count && channel->receives ? front(channel)->number : 0;
}

int channel_sender(const struct channel *channel)
{
    return channel->key.sender;
}

int channel_receiver(const struct channel *channel)
{
    return channel->key.receiver;
}

void channel_hold(struct channel *channel)
{
    channel->is_held = true;
}

void channels_forget(struct analyzer *analyzer,
                     bool (*is_listed)(struct analyzer *analyzer, uint64_t comm))
{
    struct channel *channel, *next;
    HASH_ITER(hh, analyzer->slot.channel, channel, next) {
        if (!channel->is_held && !channel->count && !is_listed(analyzer, channel->key.comm)) {
            HASH_DEL(analyzer->slot.channel, channel);
            free(channel->call);
            free(channel);
            continue;
        }
        channel->is_held = false;
    }
}

void channels_free(struct channel *channels)
{
    struct channel *channel, *next;
    HASH_ITER(hh, channels, channel, next) {
        HASH_DEL(channels, channel);
        free(channel->call);
        free(channel);
    }
}
