/* feed.h: the way of a record. engine.c makes an event of it; by its kind a row of a table in
 * calls.c or notices.c says which room takes it in, and which event the checks get then. */
#ifndef DDPCHECK_FEED_H
#define DDPCHECK_FEED_H

#include "analyzer/engine.h"
#include "analyzer/model/process.h"

/* A room takes in a record. ENGINE_*. */
typedef int feeder(struct event *event);

/* One that is all zero: nothing is done with the record. */
struct way {
    feeder *feed;
    enum event_kind event; /* what the checks get once `feed` has taken it */
};

/* What a room answered about a record (ENGINE_*): notes that memory was short, or that the record
 * makes no sense. True if the room took it and it says something new. */
static inline bool engine_took(const struct event *event, int result)
{
    event->process->analyzer->failed |= result == ENGINE_FAILED;
    event->process->analyzer->skipped += result == ENGINE_SKIPPED;
    return result == ENGINE_OK;
}

/* The checks get the record as an event of this kind. */
static inline void event_hand_on(struct event *event, enum event_kind kind)
{
    event->kind = kind;
    event_handle(event->process->analyzer, event);
}

static inline void event_go(struct event *event, const struct way *way)
{
    if (way->feed && engine_took(event, way->feed(event)))
        event_hand_on(event, way->event);
}

/* A record of a call; the event has its thread. */
void calls_feed(struct event *event);
/* A record of CLASS_NOTICE. */
void notices_feed(struct event *event);

#endif
