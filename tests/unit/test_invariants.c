/* An invariant that is broken ends the program and says its rule (lib/base/invariant.h): one or
 * more of each kind. */
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

#include "analyzer/findings.h"
#include "analyzer/hang/waits.h"
#include "analyzer/hazard/flight.h"
#include "analyzer/hazard/intervals.h"
#include "analyzer/match/window.h"
#include "analyzer/model/callbacks.h"
#include "analyzer/model/comm.h"
#include "analyzer/model/freed.h"
#include "analyzer/model/gone.h"
#include "analyzer/model/memory.h"
#include "analyzer/model/order.h"
#include "analyzer/model/own_members.h"
#include "analyzer/model/process.h"
#include "lib/import/time_heap.h"
#include "lib/trace/merge.h"

/* Whether `act` ends the program, and says `rule`. */
static bool aborts(void (*act)(void), const char *rule)
{
    char said[512] = "";
    int status = 0, out[2];
    assert_int_equal(pipe(out), 0);
    pid_t child = fork();
    if (child == 0) {
        const struct rlimit none = {0, 0};
        setrlimit(RLIMIT_CORE, &none);
        signal(SIGABRT, SIG_DFL);
        if (dup2(out[1], STDERR_FILENO) < 0)
            _exit(1);
        act();
        _exit(0);
    }
    close(out[1]);
    ssize_t bytes = read(out[0], said, sizeof said - 1);
    close(out[0]);
    assert_int_equal(waitpid(child, &status, 0), child);
    bool is_said = bytes > 0 && strstr(said, rule);
    if (!is_said)
        print_error("expected \"%s\", got \"%s\"\n", rule, said);
    return is_said && WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT;
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
    struct event event = {.process = &process, .record = &record};
    memory_notice(&event);
    record.buffer.base = 0x3000;
    memory_notice(&event);
    record.buffer.base = 0x5000;
    memory_notice(&event);
    process.memory.allocation[0].bytes =
        0x10000; /* over all, although the search takes the middle one */
    record.buffer.base = 0x4000;
    memory_notice(&event);
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
    struct window_bounds *bounds = (struct window_bounds *)comm.slot.window;
    if (!window_slot(&comm, 3) || bounds->end != 4)
        _exit(2); /* the bounds are elsewhere */
    bounds->end = bounds->base + bounds->capacity + 1;
    window_slot(&comm, 3);
}

/* --- rising numbers */

static void put_work_before_earlier(void)
{
    struct process process = {.now = 5};
    struct stream_state stream = {
        .key = {.handle = 9}, .timeline = 1, .known = true, .position = 7};
    struct place place;
    order_put(&process, &stream, &place);
}

static void end_iteration_that_did_not_begin(void)
{
    struct process process = {0};
    struct thread thread = {.process = &process};
    loop_end(&thread);
}

static void watch_twice(void)
{
    struct analyzer analyzer = {0};
    struct comm comm = {.analyzer = &analyzer};
    comm_watch(&comm);
    comm.is_watched = false;
    comm_watch(&comm);
    comm_watched(&analyzer, 1);
}

static void find_among_unsorted_ids(void)
{
    struct reported reported[2] = {{.finding = {.id = 7}}, {.finding = {.id = 3}}};
    const struct analyzer analyzer = {.reported = reported, .reported_count = 2};
    findings_of(&analyzer, 3);
}

/* --- lists and their counts */

static void leave_call_that_is_not_listed(void)
{
    struct analyzer analyzer = {0};
    struct process process = {.analyzer = &analyzer};
    struct thread thread = {.process = &process, .in_call = true};
    thread_leave(&thread);
}

static void move_member_that_is_not_listed(void)
{
    struct member listed = {0}, other = {0};
    struct process process = {.members = &listed, .own = {.last = &listed}};
    other.process = &process;
    own_member_put_last(&other);
}

static void end_callback_that_is_not_counted(void)
{
    struct analyzer analyzer = {0};
    struct callback *callback = calloc(1, sizeof *callback);
    struct process process = {.analyzer = &analyzer, .callbacks = {.first = callback}};
    struct thread thread = {.process = &process};
    struct record record = {.api = API_notice_host_function_end, .leave = {.enter = 7}};
    callback->launch = 7;
    callbacks_notice(&(struct event){.process = &process, .thread = &thread, .record = &record});
}

static void recall_more_than_are_gone(void)
{
    struct forgotten forgotten = {0};
    struct analyzer analyzer = {.forgotten = &forgotten};
    struct comm comm = {.analyzer = &analyzer, .is_gone = true};
    forgotten_recall(&analyzer, &comm);
}

/* --- ranges */

static void free_among_overlapping(void)
{
    struct process process = {0};
    freed_add(&process, &(struct freed){.base = 0x1000, .bytes = 0x100});
    freed_add(&process, &(struct freed){.base = 0x2000, .bytes = 0x100});
    process.memory.freed[0].bytes = 0x3000;
    freed_add(&process, &(struct freed){.base = 0x3000, .bytes = 0x100});
}

/* --- who is stuck */

static void look_up_thread_of_another_place(void)
{
    struct thread thread = {.blocked_node = 1}, other = {0};
    struct blocked blocked = {.thread = &other};
    struct wait_graph graph = {.blocked = &blocked, .blocked_count = 1};
    wait_graph_blocked(&graph, &thread);
}

/* --- findings */

static void pass_on_finding_without_id(void)
{
    struct analyzer analyzer = {0};
    struct reported reported = {0};
    findings_notify(&analyzer, &reported);
}

/* --- room, and what an empty collection has */

static void merge_more_than_was_reserved(void)
{
    struct merge merge = {0};
    if (merge_reserve(&merge, 1))
        _exit(2);
    merge_push(&merge, (struct merge_head){.time_ns = 1});
    merge_push(&merge, (struct merge_head){.time_ns = 2});
}

static void take_from_empty_heap(void)
{
    struct timed item[2] = {{0}};
    struct time_heap heap = {.item_bytes = sizeof item[0]};
    time_heap_put(&heap, &item[0]);
    time_heap_take(&heap, &item[1]);
    time_heap_take(&heap, &item[1]);
}

/* Only a build with invariants looks at them. */
static const struct broken {
    const char *kind;
    void (*act)(void);
    const char *rule;
} broken[] = {
    {"sorted", raise_unsorted_clock, "the timelines of a clock rise"},
    {"sorted", merge_unsorted_clock, "the timelines of a clock that is merged rise"},
    {"sorted", add_to_broken_heap, "in the tree of ranges begins no"},
    {"rising", put_work_before_earlier, "put there in the order of its issue"},
    {"rising", end_iteration_that_did_not_begin, "an iteration that ends has begun"},
    {"rising", watch_twice, "no communicator is watched twice"},
    {"rising", find_among_unsorted_ids, "findings are kept in the order of their ids"},
    {"disjoint", allocate_among_overlapping, "no two allocations of a process overlap"},
    {"disjoint", free_among_overlapping, "freed ranges are sorted and do not overlap"},
    {"references", release_twice, "a flight lives as long as a range refers to it"},
    {"listed", leave_call_that_is_not_listed, "the analyzer lists the threads that are in a call"},
    {"listed", move_member_that_is_not_listed, "the members of a process are linked both ways"},
    {"counted", end_callback_that_is_not_counted,
     "host functions that have not returned are counted"},
    {"counted", recall_more_than_are_gone, "communicators that are gone are counted"},
    {"stuck", look_up_thread_of_another_place, "and its place in the graph name each other"},
    {"finding", pass_on_finding_without_id, "a finding that is passed on has an id"},
    {"room", find_in_window_beyond_its_slots, "a window has a slot for each of its numbers"},
    {"room", merge_more_than_was_reserved, "a merge has room for each of its sources"},
    {"empty", take_from_empty_heap, "only a heap with items has a first one"},
};

static void each_kind_fires(void **state)
{
    (void)state;
#ifdef DDPCHECK_INVARIANTS
    for (size_t i = 0; i < sizeof broken / sizeof *broken; i++)
        if (!aborts(broken[i].act, broken[i].rule))
            fail_msg("number %zu, of the kind \"%s\", did not fire", i, broken[i].kind);
#else
    (void)broken;
    (void)aborts;
    skip();
#endif
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(each_kind_fires)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
