/* Which usual cause fits what was seen of a finding. */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "analyzer/cause.h"

/* A finding of two sides: rank 0 or ranks 1-3 made the call, the others did what `act` says. */
static const struct cause *seen(enum code code, bool rank_0_called, struct act act,
                                const char *called, const char *absent)
{
    struct finding finding = {.code = code, .sides = 2};
    for (int rank = 0; rank < 4; rank++)
        assert_int_equal(rankset_add(&finding.side[(rank == 0) != rank_0_called].ranks, rank), 0);
    finding.side[0].act.did = DID_CALLED;
    finding.side[1].act = act;
    const char *const frames[FINDING_SIDES_MAX] = {called, absent};
    const struct cause *cause = cause_seen(check_find(code_name(code)), &finding, frames);
    rankset_free(&finding.side[0].ranks);
    rankset_free(&finding.side[1].ranks);
    return cause;
}

static void assert_cause(const struct cause *cause, const char *part)
{
    assert_non_null(cause);
    if (!strstr(cause->what, part))
        fail_msg("expected '%s', got: %s", part, cause->what);
}

static struct act ended(enum did did, int value)
{
    return (struct act){.did = did, .value = value};
}

static void the_signal_names_the_cause(void **state)
{
    (void)state;
    assert_cause(seen(DC205, true, ended(DID_KILLED, SIGKILL), NULL, NULL), "out-of-memory");
    assert_cause(seen(DC205, true, ended(DID_KILLED_FOR_MEMORY, SIGKILL), NULL, NULL),
                 "out-of-memory");
    assert_cause(seen(DC205, true, ended(DID_KILLED, SIGBUS), NULL, NULL), "bus error");
    assert_cause(seen(DC205, true, ended(DID_KILLED, SIGSEGV), NULL, NULL), "native code");
    assert_cause(seen(DC205, true, ended(DID_KILLED, SIGTERM), NULL, NULL), "preemption");
    assert_null(seen(DC205, true, ended(DID_KILLED, SIGUSR1), NULL, NULL));
    struct act aborted = {.did = DID_KILLED, .value = SIGABRT, .name = "assertion x > 0"};
    assert_cause(seen(DC205, true, aborted, NULL, NULL), "native code");
    aborted.name = "uncaught C++ exception std::bad_alloc";
    assert_cause(seen(DC205, true, aborted, NULL, NULL), "An exception that nobody caught");
}

static void the_status_names_the_cause(void **state)
{
    (void)state;
    assert_cause(seen(DC205, true, ended(DID_EXITED, 1), NULL, NULL), "exception");
    assert_null(seen(DC205, true, ended(DID_EXITED, 0), NULL, NULL));
    const struct act lacked = {.did = DID_LACKED, .value = 127, .name = "ncclNew"};
    assert_cause(seen(DC205, true, lacked, NULL, NULL), "built for a newer version");
    struct act raised = {.did = DID_ABORTED, .name = "ValueError"};
    assert_cause(seen(DC201, true, raised, NULL, NULL), "exception");
    struct act full = {
        .did = DID_EXITED, .value = 1, .name = "OutOfMemoryError: CUDA out of memory"};
    assert_cause(seen(DC205, true, full, NULL, NULL), "memory of its GPU");
}

static void the_stack_names_the_cause(void **state)
{
    (void)state;
    const struct act absent = {.did = DID_NEVER_CALLED};
    const char *loader = "_try_get_data /usr/lib/python3/torch/utils/data/dataloader.py\n";
    const char *save = "save_checkpoint /home/me/train.py\n";
    const char *queue = "get /usr/lib/python3/queue.py\n";
    assert_cause(seen(DC201, true, absent, "step train.py\n", queue), "A thread that should feed");
    assert_cause(seen(DC201, true, absent, "step train.py\n", loader), "data loader");
    assert_cause(seen(DC201, true, absent, save, "step train.py\n"), "if rank == 0");
    assert_cause(seen(DC201, false, absent, "step train.py\n", save), "if rank == 0");
    assert_cause(seen(DC201, true, absent, "forward SyncBatchNorm.py\n", NULL), "SyncBatchNorm");
    assert_cause(seen(DC210, true, absent, NULL, loader), "slow disk");
    const struct act called = {.did = DID_CALLED};
    assert_cause(seen(DC101, true, called, "step train.py\n", "validate train.py\n"), "A branch");
    assert_cause(seen(DC101, true, called, "step train.py\n", "validation \n"), "A branch");
}

static const struct cause *seen_calls_from(const char *from, enum code code, struct called first,
                                           struct called second)
{
    struct finding finding = {.code = code, .sides = 2};
    const char *const frames[FINDING_SIDES_MAX] = {NULL, from};
    finding.side[0].act = (struct act){.did = DID_CALLED, .call = first};
    finding.side[1].act = (struct act){.did = DID_CALLED, .call = second};
    return cause_seen(check_find(code_name(code)), &finding, frames);
}

static const struct cause *seen_calls(enum code code, struct called first, struct called second)
{
    return seen_calls_from("step train.c\n", code, first, second);
}

static struct called all_reduce(uint64_t count, uint8_t datatype)
{
    return (struct called){.api = API_ncclAllReduce,
                           .arguments = ARGUMENT_COUNT | ARGUMENT_DATATYPE,
                           .count = count,
                           .datatype = datatype};
}

static void the_calls_name_the_cause(void **state)
{
    (void)state;
    struct called few = all_reduce(100, TYPE_FLOAT32), many = all_reduce(400, TYPE_FLOAT32);
    assert_cause(seen_calls(DC102, few, many), "in bytes");
    assert_cause(seen_calls(DC102, many, few), "in bytes");
    assert_null(seen_calls_from("step train.py\n", DC102, many, few)); /* torch counts elements */
    assert_null(seen_calls(DC102, few, all_reduce(200, TYPE_FLOAT32)));
    assert_null(seen_calls(DC102, all_reduce(100, TYPE_INT8), all_reduce(100, TYPE_INT8)));
    assert_cause(seen_calls(DC103, few, all_reduce(100, TYPE_BFLOAT16)), "Mixed precision");
    assert_cause(seen_calls(DC103, all_reduce(100, TYPE_INT64), few), "an integer on one rank");
    assert_null(seen_calls(DC103, few, all_reduce(100, TYPE_FLOAT64)));
    assert_null(seen_calls(DC103, few, all_reduce(50, TYPE_BFLOAT16))); /* more than the type */
    struct called unknown = all_reduce(400, TYPE_FLOAT32);
    unknown.arguments = ARGUMENT_COUNT;
    assert_null(seen_calls(DC102, few, unknown));
}

static void the_function_names_the_cause(void **state)
{
    (void)state;
    struct called reduced = all_reduce(100, TYPE_FLOAT32);
    assert_cause(seen_calls(DC302, reduced, call_of_api(API_cudaMemcpy)), "cudaStreamNonBlocking");
    assert_null(seen_calls(DC302, reduced, call_of_api(API_cudaMemcpyAsync)));
    assert_cause(seen_calls(DC303, reduced, call_of_api(API_cudaMemset)), "cudaMemset");
    assert_cause(seen_calls(DC306, reduced, call_of_api(API_cudaFreeAsync)), "record_stream");
    assert_cause(seen_calls(DC306, reduced, call_of_api(API_cudaStreamDestroy)), "Destroying");
}

/* The side that did `act` does `now` since. */
static const struct cause *seen_now(enum code code, struct act act, enum did now)
{
    struct finding finding = {.code = code, .sides = 1};
    const char *const frames[FINDING_SIDES_MAX] = {NULL};
    finding.side[0].act = act;
    finding.side[0].now.did = now;
    return cause_seen(check_find(code_name(code)), &finding, frames);
}

static void what_was_done_names_the_cause(void **state)
{
    (void)state;
    const struct act never = {.did = DID_NOT_SEEN}, often = {.did = DID_REDUCES_OFTEN},
                     taken = {.did = DID_INIT_TAKEN_RANK}, used = {.did = DID_INIT_USED_ID},
                     last = {.did = DID_ISSUES_LATE}, host = {.did = DID_STEP_UNCALLED};
    const struct act called = {.did = DID_CALLED};
    assert_cause(seen(DC209, true, never, NULL, NULL), "Fewer processes");
    assert_cause(seen_now(DC207, called, DID_WAITS_IN), "inside the group");
    assert_null(seen_now(DC207, called, DID_NOT_IN_CALL));
    assert_cause(seen_now(DC208, called, DID_IN_CALL), "calls CUDA or NCCL");
    assert_null(seen_now(DC208, called, DID_NOT_IN_CALL));
    assert_cause(seen(DC505, true, often, NULL, NULL), "forgotten");
    assert_cause(seen(DC109, true, taken, NULL, NULL), "WORLD_SIZE");
    assert_cause(seen(DC109, true, used, NULL, NULL), "share a rendezvous");
    assert_cause(seen(DC202, true, host, NULL, NULL), "Host waits");
    assert_cause(seen(DC601, false, last, NULL, NULL), "checkpoints"); /* rank 0 */
    assert_null(seen(DC601, true, last, NULL, NULL));                  /* ranks 1-3 */
}

static void another_side_or_another_stack_names_none(void **state)
{
    (void)state;
    const struct act absent = {.did = DID_NEVER_CALLED};
    const char *loader = "_try_get_data /usr/lib/python3/torch/utils/data/dataloader.py\n";
    assert_null(seen(DC201, true, absent, loader, "step train.py\n")); /* the rank that waits */
    assert_null(seen(DC201, false, absent, "save train.py\n", "step train.py\n")); /* ranks 1-3 */
    assert_null(seen(DC201, true, absent, "torch::autograd::Engine::evaluate_function engine.cpp\n",
                     "save_for_backward function.py\n"));
    assert_null(seen(DC201, true, absent, NULL, NULL));
    assert_null(seen(DC901, true, absent, loader, loader)); /* has no causes */
}

static void a_sign_has_words(void **state)
{
    (void)state;
    int signs = 0;
    for (const struct check *check = check_next(NULL); check; check = check_next(check))
        for (const struct cause *cause = check->causes; cause && cause->what; cause++) {
            const struct sign *sign = &cause->sign;
            bool any = sign->signals || sign->failed || sign->absent || sign->waiting ||
                       sign->function || sign->did || sign->difference;
            assert_true(any || !sign->rank_0_alone);
            assert_true(!sign->absent || *sign->absent);
            assert_true(!sign->waiting || *sign->waiting);
            signs += any;
        }
    assert_true(signs > 0);
}

/* A cause without something to look at can't be told from the others. Speed and the trace itself
 * have other advice. */
static void every_fault_has_causes(void **state)
{
    (void)state;
    for (const struct check *check = check_next(NULL); check; check = check_next(check)) {
        int causes = 0;
        if (code_family(check->code) == FAMILY_SPEED || code_family(check->code) == FAMILY_TRACE)
            continue;
        for (const struct cause *cause = check->causes; cause && cause->what; cause++, causes++)
            assert_true(*cause->look);
        if (causes < 2)
            fail_msg("%s has %d usual causes", code_name(check->code), causes);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_signal_names_the_cause),
        cmocka_unit_test(the_status_names_the_cause),
        cmocka_unit_test(the_stack_names_the_cause),
        cmocka_unit_test(the_calls_name_the_cause),
        cmocka_unit_test(the_function_names_the_cause),
        cmocka_unit_test(what_was_done_names_the_cause),
        cmocka_unit_test(another_side_or_another_stack_names_none),
        cmocka_unit_test(a_sign_has_words),
        cmocka_unit_test(every_fault_has_causes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
