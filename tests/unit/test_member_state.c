/* How members of a communicator stand beside each other: one rule for report, TUI and exports. */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "lib/trace/member_state.h"

static const uint64_t now_ns = 60000000000;

enum { MEMBERS = 3 };

/* Counts are issued, started, done; how and value count if it has ended. */
struct member_case {
    uint64_t issued, started, done;
    enum { LIVES, ENDED, LEFT, UNSEEN } life;
    enum end_how how;
    int value;
    enum standing standing;
};

static void members_stand_by_what_they_did(void **state)
{
    (void)state;
    static const struct member_case cases[][MEMBERS] = {
        /* a hang that goes on */
        {{5, 5, 4, LIVES, 0, 0, STANDS_STARTED},
         {5, 4, 4, LIVES, 0, 0, STANDS_ISSUED},
         {4, 4, 4, LIVES, 0, 0, STANDS_MISSING}},
        /* one exited with an error, and the launcher stopped the others */
        {{5, 5, 4, ENDED, END_SIGNAL, SIGTERM, STANDS_STARTED},
         {4, 4, 4, ENDED, END_EXIT, 1, STANDS_EXITED},
         {0, 0, 0, UNSEEN, 0, 0, STANDS_UNSEEN}},
        /* one exited too early with status 0 while another goes on */
        {{5, 5, 4, LIVES, 0, 0, STANDS_STARTED},
         {4, 4, 4, ENDED, END_EXIT, 0, STANDS_EXITED},
         {5, 5, 5, LIVES, 0, 0, STANDS_DONE}},
        /* somebody killed all of them: how each stood then */
        {{5, 5, 4, ENDED, END_SIGNAL, SIGKILL, STANDS_STARTED},
         {4, 4, 4, ENDED, END_SIGNAL, SIGKILL, STANDS_MISSING},
         {5, 5, 5, ENDED, END_SIGNAL, SIGKILL, STANDS_EXITED}},
        /* all went well */
        {{5, 5, 5, ENDED, END_EXIT, 0, STANDS_OVER},
         {5, 5, 5, LEFT, 0, 0, STANDS_OVER},
         {5, 5, 5, LIVES, 0, 0, STANDS_DONE}},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct member_state member[MEMBERS];
        for (int k = 0; k < MEMBERS; k++) {
            const struct member_case *from = &cases[i][k];
            member[k] = (struct member_state){.process = from->life == UNSEEN ? -1 : k,
                                              .issued = from->issued,
                                              .started = from->started,
                                              .done = from->done,
                                              .ended = from->life == ENDED,
                                              .destroyed = from->life == LEFT,
                                              .how = from->how,
                                              .value = from->value,
                                              .since_ns = 1};
        }
        members_stand(member, MEMBERS, now_ns);
        for (int k = 0; k < MEMBERS; k++) {
            if (member[k].standing != cases[i][k].standing)
                fail_msg("case %zu: member %d stands '%s'", i, k,
                         standing_name(member[k].standing));
            assert_int_equal(member[k].behind, cases[i][0].issued - cases[i][k].issued);
        }
    }
}

static void who_is_behind_is_missing_after_a_second(void **state)
{
    (void)state;
    struct member_state member[] = {
        {.issued = 2, .started = 2, .done = 1, .since_ns = now_ns - 500000000},
        {.process = 1, .issued = 1, .started = 1, .done = 1},
    };
    members_stand(member, 2, now_ns);
    assert_int_equal(member[1].standing, STANDS_BEHIND);
    members_stand(member, 2, now_ns + 1000000000);
    assert_int_equal(member[1].standing, STANDS_MISSING);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(members_stand_by_what_they_did),
        cmocka_unit_test(who_is_behind_is_missing_after_a_second),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
