/* collector_keep.c: keeps the database within the limits of --keep. */
#include <stdio.h>

#include "collector/collector.h"

static const uint64_t look_each_ns = 1000000000;
/* Of those at one time; a piece is about twice what a pass stores. */
enum { LOOK_EACH_RECORDS = BATCH_RECORDS, PIECES = 2 };

void collector_keep(struct collector *collector, uint64_t now_ns)
{
    struct keeping *keeping = &collector->keeping;
    struct error why;
    bool is_limited = collector->options.keep.bytes || collector->options.keep.age_ns;
    if (!is_limited || keeping->failed ||
        (!keeping->dropping && keeping->stored < LOOK_EACH_RECORDS &&
         now_ns - keeping->looked_ns < look_each_ns))
        return;
    keeping->looked_ns = now_ns;
    keeping->stored = 0;
    collector_store_state(collector, true); /* what is over by now may go */
    int dropped = 1;
    for (int piece = 0; dropped > 0 && piece < PIECES; piece++)
        dropped = store_keep(collector->store, &collector->options.keep, now_ns, &why);
    keeping->dropping = dropped > 0;
    if (dropped < 0 && !store_may_retry(collector->store)) {
        fprintf(stderr, "ddpcheck: %s; nothing more is dropped (--keep)\n", why.text);
        keeping->failed = true;
    }
}

void collector_keep_last(struct collector *collector)
{
    collector->keeping.dropping = true;
    while (collector->keeping.dropping && !collector->keeping.failed) {
        collector->keeping.dropping = false;
        collector->keeping.stored = LOOK_EACH_RECORDS;
        collector_keep(collector, monotonic_now_ns());
    }
}
