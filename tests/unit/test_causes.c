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
    struct finding finding = {.code = code_name(code), .sides = 2};
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
}

static void the_status_names_the_cause(void **state)
{
    (void)state;
    assert_cause(seen(DC205, true, ended(DID_EXITED, 1), NULL, NULL), "exception");
    assert_null(seen(DC205, true, ended(DID_EXITED, 0), NULL, NULL));
    struct act raised = {.did = DID_ABORTED, .name = "ValueError"};
    assert_cause(seen(DC201, true, raised, NULL, NULL), "exception");
}

static void the_stack_names_the_cause(void **state)
{
    (void)state;
    const struct act absent = {.did = DID_NEVER_CALLED};
    const char *loader = "_try_get_data /usr/lib/python3/torch/utils/data/dataloader.py\n";
    const char *save = "save_checkpoint /home/me/train.py\n";
    assert_cause(seen(DC201, true, absent, "step train.py\n", loader), "data loader");
    assert_cause(seen(DC201, true, absent, save, "step train.py\n"), "if rank == 0");
    assert_cause(seen(DC201, false, absent, "step train.py\n", save), "if rank == 0");
    assert_cause(seen(DC201, true, absent, "forward SyncBatchNorm.py\n", NULL), "SyncBatchNorm");
    assert_cause(seen(DC210, true, absent, NULL, loader), "slow disk");
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
            bool any = sign->signals || sign->failed || sign->absent || sign->waiting;
            assert_true(any || !sign->rank_0_alone);
            assert_true(!sign->absent || *sign->absent);
            assert_true(!sign->waiting || *sign->waiting);
            signs += any;
        }
    assert_true(signs > 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_signal_names_the_cause),
        cmocka_unit_test(the_status_names_the_cause),
        cmocka_unit_test(the_stack_names_the_cause),
        cmocka_unit_test(another_side_or_another_stack_names_none),
        cmocka_unit_test(a_sign_has_words),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
