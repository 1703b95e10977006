/* Better words change no fingerprint: the words of all acts are replaced, and the findings
 * compared. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "lib/finding/act.h"
#include "verdict.h"

#define WORLD UINT64_C(0x5ae7000000000001)

const char *__real_did_words(enum did did);
const char *__wrap_did_words(enum did did);

static bool reworded;

const char *__wrap_did_words(enum did did)
{
    return reworded ? "something else: {call}" : __real_did_words(did);
}

/* Rank 2 calls another collective, or ends. */
static struct job *faulty_job(bool ends)
{
    struct job *job = job_new(3);
    job_init(job, WORLD, 0, 2);
    for (int rank = 0; rank < 2; rank++)
        ALL_REDUCE(job, rank, WORLD, 4096, .stream = 0);
    if (ends)
        end(job, 2, END_EXIT, 1, false);
    else
        ALL_REDUCE(job, 2, WORLD, 8192, .stream = 0);
    for (int rank = 0; rank < 2; rank++)
        wait_enter(job, rank, API_cudaStreamSynchronize, 0);
    return job;
}

static void fingerprints_do_not_hash_words(void **state)
{
    (void)state;
    for (int ends = 0; ends < 2; ends++) {
        struct verdict before = {0}, after = {0};
        struct job *job = faulty_job(ends);
        reworded = false;
        job_analyze(job, 0, &before);
        reworded = true;
        job_analyze(job, 0, &after);
        reworded = false;
        assert_int_equal(before.count, 1);
        assert_int_equal(after.count, 1);
        assert_string_not_equal(before.found[0].call[1], after.found[0].call[1]);
        assert_int_equal(before.found[0].fingerprint, after.found[0].fingerprint);
        job_free(job);
    }
}

static uint64_t fingerprint_of(const struct act *act)
{
    return act_hash(act, false);
}

static void fields_tell_acts_apart(void **state)
{
    (void)state;
    const struct act exited = {.did = DID_EXITED, .value = 1}, other = {.did = DID_EXITED},
                     killed = {.did = DID_KILLED, .value = 1};
    assert_int_not_equal(fingerprint_of(&exited), fingerprint_of(&other));
    assert_int_not_equal(fingerprint_of(&exited), fingerprint_of(&killed));
    struct act send = {.did = DID_CALLED,
                       .call = {.api = API_ncclSend, .arguments = ARGUMENT_PEER, .peer = 1}},
               far = send;
    far.call.peer = 2;
    assert_int_not_equal(act_hash(&send, false), act_hash(&far, false));
    assert_int_equal(act_hash(&send, true), act_hash(&far, true));
}

/* Messages name samples, addresses and times; a kernel's name is all of it. */
static void messages_are_of_no_fingerprint(void **state)
{
    (void)state;
    const struct act one = {.did = DID_EXITED, .value = 1, .name = "ValueError: sample 17"},
                     two = {.did = DID_EXITED, .value = 1, .name = "ValueError: sample 23"},
                     other = {.did = DID_EXITED, .value = 1, .name = "KeyError: sample 17"},
                     kernel = {.did = DID_LAUNCHED_KERNEL, .name = "a: b"},
                     like = {.did = DID_LAUNCHED_KERNEL, .name = "a: c"};
    assert_int_equal(fingerprint_of(&one), fingerprint_of(&two));
    assert_true(act_equal(&one, &two));
    assert_int_not_equal(fingerprint_of(&one), fingerprint_of(&other));
    assert_false(act_equal(&one, &other));
    assert_int_not_equal(fingerprint_of(&kernel), fingerprint_of(&like));
    assert_false(act_equal(&kernel, &like));
}

/* Fields that are empty leave out the [part] that names them. */
static void words_have_optional_parts(void **state)
{
    (void)state;
    const struct {
        struct act act;
        const char *words;
    } cases[] = {
        {{.did = DID_MODIFIED}, "modified in place"},
        {{.did = DID_MODIFIED, .name = "relu_"}, "modified in place by relu_"},
        {{.did = DID_MODIFIED, .phase = "forward"}, "modified in place, in forward"},
        {{.did = DID_CALLED_PIECES,
          .call = {.api = API_ncclAllReduce, .datatype = TYPE_FLOAT32},
          .name = "4 + 5",
          .number = 3},
         "ncclAllReduce of 4 + 5 + 3 more float32"},
        {{.did = DID_EXITED, .value = 3}, "exited with status 3"},
        {{.did = DID_OTHER}, ""},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char *words = act_words(&cases[i].act);
        assert_string_equal(words, cases[i].words);
        free(words);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fingerprints_do_not_hash_words),
        cmocka_unit_test(fields_tell_acts_apart),
        cmocka_unit_test(messages_are_of_no_fingerprint),
        cmocka_unit_test(words_have_optional_parts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
