/* The hub's choice of how often hosts send digests, by the processor time that it has used. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <time.h>

#include <cmocka.h>

#include "hub/hub_internal.h"
#include "lib/job/message.h"

static const uint64_t second_ns = 1000000000;
static uint64_t used_ns, sent_every_ns;

/* The processor time of the test's thread is what the test says. */
int __wrap_clock_gettime(clockid_t clock, struct timespec *time);
int __wrap_clock_gettime(clockid_t clock, struct timespec *time)
{
    (void)clock;
    *time = (struct timespec){.tv_sec = (time_t)(used_ns / 1000000000),
                              .tv_nsec = (long)(used_ns % 1000000000)};
    return 0;
}

static int take_pace(struct transport *transport, enum transport_channel channel, const void *data,
                     size_t bytes, struct error *err)
{
    struct message_reader reader;
    struct message_item item;
    (void)transport;
    assert_int_equal(channel, CHANNEL_NEWS);
    assert_int_equal(message_open(&reader, data, bytes, err), 0);
    assert_int_equal(message_next(&reader, &item, err), 1);
    assert_int_equal(item.kind, ITEM_PACE);
    sent_every_ns = item.pace.digest_every_ns;
    return 0;
}

static const struct transport_functions functions = {.publish = take_pace};

struct paced {
    struct transport transport;
    struct hub hub;
    uint64_t now_ns;
};

static void begin(struct paced *paced, int ranks)
{
    *paced = (struct paced){.transport = {.functions = &functions}, .now_ns = second_ns};
    paced->hub.options.transport = &paced->transport;
    paced->hub.counts.ranks = (uint64_t)ranks;
    sent_every_ns = 0;
}

/* `seconds` seconds in which the hub uses `percent` % of a processor. */
static void pass(struct paced *paced, int seconds, int percent)
{
    for (int i = 0; i < 10 * seconds; i++) {
        hub_pace_keep(&paced->hub, paced->now_ns);
        paced->now_ns += second_ns / 10;
        used_ns += second_ns / 1000 * (uint64_t)percent;
    }
    hub_pace_keep(&paced->hub, paced->now_ns);
}

static void a_busy_hub_asks_for_less(void **state)
{
    (void)state;
    struct paced paced;
    begin(&paced, 131072);
    pass(&paced, 9, 30);
    assert_int_equal(sent_every_ns, 0); /* as often as usual */
    for (uint64_t every_ns = second_ns; every_ns <= PACE_MOST_NS; every_ns *= 2) {
        pass(&paced, 3, 60); /* it measures for so long */
        assert_int_equal(sent_every_ns, every_ns);
    }
    pass(&paced, 9, 90);
    assert_int_equal(sent_every_ns, PACE_MOST_NS);
    pass(&paced, 9, 25);
    assert_int_equal(sent_every_ns, PACE_MOST_NS); /* twice as often would be too much again */
    pass(&paced, 60, 5);
    assert_int_equal(sent_every_ns, PACE_USUAL_NS);
    message_free(&paced.hub.writer);
}

static void what_is_not_the_digests(void **state)
{
    (void)state;
    struct paced paced;
    begin(&paced, 9999); /* few take next to no time: what takes it is something else */
    pass(&paced, 10, 90);
    assert_int_equal(sent_every_ns, 0);
    begin(&paced, 131072);
    paced.hub.round.count = 1; /* a fault is looked into */
    pass(&paced, 10, 90);
    assert_int_equal(sent_every_ns, 0);
    paced.hub.round.count = 0; /* what it has used until now does not count */
    pass(&paced, 2, 90);
    pass(&paced, 2, 1);
    assert_int_equal(sent_every_ns, second_ns);
    message_free(&paced.hub.writer);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_busy_hub_asks_for_less),
        cmocka_unit_test(what_is_not_the_digests),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
