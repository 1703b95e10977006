/* Between which calls a host does something else: what is over is forgotten. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "analyzer/model/process.h"
#include "analyzer/speed/gaps.h"

#define MS UINT64_C(1000000)

enum { TRAINING = 1, EVALUATION, STEPS = 20, GAP_MS = 10, LONG_GAP_MS = 200 };

/* One process and its thread. */
struct caller {
    struct analyzer *analyzer;
    struct process *process;
    struct thread *thread;
    uint64_t now_ns;
};

static void caller_new(struct caller *caller)
{
    *caller = (struct caller){.analyzer = calloc(1, sizeof *caller->analyzer),
                              .process = calloc(1, sizeof *caller->process),
                              .thread = calloc(1, sizeof *caller->thread),
                              .now_ns = 1000 * MS};
    assert_true(caller->analyzer && caller->process && caller->thread);
    assert_non_null(speed_get(caller->analyzer));
    caller->process->analyzer = caller->analyzer;
    caller->thread->process = caller->process;
    caller->thread->uses_nccl = true;
}

static void caller_free(struct caller *caller)
{
    speed_free(caller->analyzer->slot.speed);
    free(caller->analyzer);
    free(caller->process);
    free(caller->thread);
}

static void make_call(struct caller *caller, uint64_t stack)
{
    struct record record = {
        .api = API_ncclAllReduce, .phase = RECORD_ENTER, .stack = stack, .time_ns = caller->now_ns};
    const struct event event = {.class = CLASS_COLLECTIVE,
                                .process = caller->process,
                                .thread = caller->thread,
                                .record = &record};
    speed_host_call(&event);
    caller->thread->enter = record;
    record.phase = RECORD_LEAVE;
    record.time_ns = ++caller->now_ns;
    speed_host_call(&event);
}

/* The process does something else for so long each time between calls at this place. */
static void make_steps(struct caller *caller, uint64_t stack, uint64_t gap_ms)
{
    make_call(caller, stack);
    for (int step = 0; step < STEPS; step++) {
        caller->now_ns += gap_ms * MS;
        make_call(caller, stack);
    }
}

static uint64_t longest_gap(const struct caller *caller)
{
    struct speed_rank rank = {.key = {caller->process, -1}};
    const struct speed_rank *ranks[] = {&rank};
    struct slowdown slowdown = {.rank = ranks, .ranks = 1};
    speed_find_gap(caller->analyzer->slot.speed, 0, STEPS / 2, &slowdown);
    return slowdown.gap ? slowdown.gap->from.stack : 0;
}

static void a_phase_that_is_over_is_forgotten(void **state)
{
    (void)state;
    struct caller caller;
    caller_new(&caller);
    make_steps(&caller, EVALUATION, LONG_GAP_MS);
    speed_forget_gaps(caller.analyzer->slot.speed, GAP_ITERATIONS);
    make_steps(&caller, TRAINING, GAP_MS);
    assert_int_equal(longest_gap(&caller), EVALUATION); /* iterations that are judged may hold it */
    speed_forget_gaps(caller.analyzer->slot.speed, 2 * GAP_ITERATIONS - 1);
    assert_int_equal(longest_gap(&caller), EVALUATION);
    speed_forget_gaps(caller.analyzer->slot.speed, 2 * GAP_ITERATIONS);
    assert_int_equal(longest_gap(&caller), TRAINING);
    speed_forget_gaps(caller.analyzer->slot.speed, 3 * GAP_ITERATIONS);
    assert_int_equal(longest_gap(&caller), 0);
    caller_free(&caller);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(a_phase_that_is_over_is_forgotten)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
