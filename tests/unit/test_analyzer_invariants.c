/* Each invariant of the analyzer ends the program when it is broken (invariant.h). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "analyzer/match/window.h"
#include "analyzer/hazard/flight.h"
#include "analyzer/hazard/intervals.h"
#include "analyzer/model/memory.h"
#include "analyzer/model/model.h"

static bool aborts(void (*act)(void))
{
    int status = 0;
    pid_t child = fork();
    if (child == 0) {
        const struct rlimit none = {0, 0};
        setrlimit(RLIMIT_CORE, &none);
        signal(SIGABRT, SIG_DFL);
        if (!freopen("/dev/null", "w", stderr))
            _exit(1);
        act();
        _exit(0);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    return WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT;
}

static void raise_unsorted_clock(void)
{
    struct clock clock = {0};
    clock_raise(&clock, (struct place){.timeline = 2, .position = 1});
    clock_raise(&clock, (struct place){.timeline = 9, .position = 1});
    clock.entry[0].timeline = 20;
    clock_raise(&clock, (struct place){.timeline = 15, .position = 1});
}

static void merge_unsorted_clock(void)
{
    struct clock clock = {0}, other = {0};
    clock_raise(&other, (struct place){.timeline = 2, .position = 1});
    clock_raise(&other, (struct place){.timeline = 9, .position = 1});
    other.entry[0].timeline = 20;
    clock_merge(&clock, &other);
}

static void add_to_broken_heap(void)
{
    struct intervals ranges = {0};
    struct flight *flight = calloc(1, sizeof *flight);
    for (uint64_t i = 0; i < 64; i++)
        intervals_add(&ranges, 16 * i, 16 * i + 8, (struct access){0}, flight);
    for (uint32_t i = 1; i <= 64; i++)
        ranges.node[i].priority = ~ranges.node[i].priority;
    for (uint64_t i = 0; i < 64; i++)
        intervals_add(&ranges, 16 * i + 8, 16 * i + 9, (struct access){0}, flight);
}

static void release_twice(void)
{
    struct intervals ranges = {0};
    struct flight flight = {0};
    intervals_add(&ranges, 0, 8, (struct access){0}, &flight);
    flight.ranges = 0;
    intervals_remove(&ranges, &ranges.node[ranges.root]);
}

static void allocate_among_overlapping(void)
{
    struct process process = {0};
    struct record record = {.api = API_notice_buffer,
                            .buffer = {.base = 0x1000, .bytes = 0x100, .type = MEMORY_DEVICE}};
    memory_notice(&process, &record);
    record.buffer.base = 0x3000;
    memory_notice(&process, &record);
    record.buffer.base = 0x5000;
    memory_notice(&process, &record);
    process.allocation[0].bytes = 0x10000; /* over all, although the search takes the middle one */
    record.buffer.base = 0x4000;
    memory_notice(&process, &record);
}

/* As in window.c, up to its bounds. */
struct window_bounds {
    struct slot *slot;
    uint32_t capacity;
    uint64_t base, end;
};

static void find_in_window_beyond_its_slots(void)
{
    struct comm comm = {.nranks = 2};
    struct process process = {0};
    struct member member = {.comm = &comm, .process = &process};
    struct member *members[] = {&member};
    struct window_answer answer;
    comm.member = members;
    comm.members = 1;
    for (uint64_t number = 0; number < 4; number++)
        window_pass(&comm, &member, number, &(struct signature){.api = API_ncclAllReduce},
                    &(struct site){.process = &process}, &answer);
    struct window_bounds *bounds = (struct window_bounds *)comm.window;
    if (!window_slot(&comm, 3) || bounds->end != 4)
        _exit(2); /* the bounds are elsewhere */
    bounds->end = bounds->base + bounds->capacity + 1;
    window_slot(&comm, 3);
}

/* Only a build with invariants looks at them. */
static void expect_abort(void **state)
{
    void (*act)(void) = *state;
#ifdef DDPCHECK_INVARIANTS
    assert_true(aborts(act));
#else
    (void)act;
    skip();
#endif
}

#define BREAKS(act)                                   \
    {                                                 \
#act, expect_abort, NULL, NULL, (void *)(act) \
    }

int main(void)
{
    const struct CMUnitTest tests[] = {
        BREAKS(raise_unsorted_clock),       BREAKS(merge_unsorted_clock),
        BREAKS(add_to_broken_heap),         BREAKS(release_twice),
        BREAKS(allocate_among_overlapping), BREAKS(find_in_window_beyond_its_slots),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
