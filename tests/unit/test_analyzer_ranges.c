/* What the names of NVTX ranges mean, and DC307: what marks say about tensors. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "analyzer/model/ranges.h"
#include "verdict.h"

enum { NONE = -1 };

static void names_have_meanings(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        enum range_kind kind;
        int number;
    } cases[] = {
        {"iteration 12", RANGE_ITERATION, 12},
        {"Iteration", RANGE_ITERATION, NONE},
        {"iter_7", RANGE_ITERATION, 7},
        {"train_step", RANGE_ITERATION, NONE},
        {"training step 3", RANGE_ITERATION, 3},
        {"global_step=400", RANGE_ITERATION, 400},
        {"ProfilerStep#12", RANGE_ITERATION, 12},
        {"[pl][profile]run_training_batch", RANGE_ITERATION, NONE},
        {"batch 4", RANGE_ITERATION, 4},
        {"epoch 2 iteration 5", RANGE_ITERATION, 5},
        {"step", RANGE_STEP_OR_ITERATION, NONE},
        {"step 9", RANGE_STEP_OR_ITERATION, 9},
        {"micro_step 2", RANGE_MICRO_STEP, NONE},
        {"microbatch 1", RANGE_MICRO_STEP, NONE},
        {"Optimizer.step#Adam.step", RANGE_STEP, NONE},
        {"optimizer_step", RANGE_STEP, NONE},
        {"generator step", RANGE_STEP, NONE},
        {"generator forward", RANGE_FORWARD, NONE},
        {"DistributedDataParallel.forward, seq = 7, op_id = 9", RANGE_FORWARD, NONE},
        {"loss.backward()", RANGE_BACKWARD, NONE},
        {"backward pass", RANGE_BACKWARD, NONE},
        {"discriminator reduce bucket 3", RANGE_REDUCE, NONE},
        {"AllReduce", RANGE_REDUCE, NONE},
        /* what only looks so */
        {"batch norm", RANGE_OTHER, NONE},
        {"batch_norm 3", RANGE_OTHER, NONE},
        {"Optimizer.zero_grad#SGD.zero_grad", RANGE_OTHER, NONE},
        {"aten::convolution_backward, op_id = 5", RANGE_OTHER, NONE},
        {"autograd::engine::evaluate_function: ReluBackward0", RANGE_OTHER, NONE},
        {"eval iteration 3", RANGE_OTHER, NONE},
        {"validation step", RANGE_OTHER, NONE},
        {"test_step 4", RANGE_OTHER, NONE},
        {"epoch 3", RANGE_OTHER, NONE},
        {"load data", RANGE_OTHER, NONE},
        {"", RANGE_OTHER, NONE},
        {"#,;", RANGE_OTHER, NONE},
        {"a b c d e f g h i j k l iteration 3", RANGE_OTHER, NONE},
        {"steps", RANGE_OTHER, NONE},
        {"stepwise", RANGE_OTHER, NONE},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct range_meaning meaning = range_meaning_of(cases[i].text, NULL);
        if (meaning.kind != cases[i].kind)
            fail_msg("\"%s\" is %d, not %d", cases[i].text, meaning.kind, cases[i].kind);
        if (meaning.has_number != (cases[i].number != NONE) ||
            (meaning.has_number && (int)meaning.number != cases[i].number))
            fail_msg("the number of \"%s\" is %d, not %d", cases[i].text, (int)meaning.number,
                     cases[i].number);
    }
}

static void models_are_reported_apart(void **state)
{
    (void)state;
    uint64_t generator = range_meaning_of("generator backward", NULL).model;
    assert_true(generator &&
                generator == range_meaning_of("Generator reduce bucket 2", NULL).model);
    assert_true(generator != range_meaning_of("discriminator backward", NULL).model);
    assert_true(range_meaning_of("backward", NULL).model == 0);
    assert_true(range_meaning_of("Optimizer.step#Adam.step", NULL).model !=
                range_meaning_of("Optimizer.step#SGD.step", NULL).model);
}

static void a_name_can_be_given(void **state)
{
    (void)state;
    struct range_meaning meaning = range_meaning_of("tick 31", "tick");
    assert_int_equal(meaning.kind, RANGE_ITERATION);
    assert_int_equal(meaning.number, 31);
    assert_int_equal(range_meaning_of("iteration 3", "tick").kind, RANGE_OTHER);
    assert_int_equal(range_meaning_of("backward", "tick").kind, RANGE_BACKWARD);
}

enum { RANKS = 3, TENSOR = 0x1000 };
#define UNKNOWN RECORD_NO_VERSION

static void tensor(struct job *job, int rank, uint16_t api, uint64_t id, uint64_t version,
                   uint64_t saved, const char *name)
{
    struct record record = {.api = api};
    record.tensor.name = intern(job, rank, name);
    record.tensor.tensor = id;
    record.tensor.version = version;
    record.tensor.saved = saved;
    record.stack = 0x4000 + api;
    job_record(job, rank, record);
}

static void save(struct job *job, int rank, uint64_t version)
{
    tensor(job, rank, API_ddpcheck_save, TENSOR, version, UNKNOWN, "the output of conv1");
}

static void modified_in_place(struct job *job, int rank, uint64_t version)
{
    range_push(job, rank, "generator forward");
    tensor(job, rank, API_ddpcheck_modify, TENSOR, version, UNKNOWN, "relu_");
    range_pop(job, rank);
}

static void use(struct job *job, int rank, uint64_t version, uint64_t saved)
{
    tensor(job, rank, API_ddpcheck_use, TENSOR, version, saved, "");
}

/* In every order of save, modify and use that is wrong, and in those that are right. */
static void modified_before_its_use(void **state)
{
    (void)state;
    for (int way = 0; way < 8; way++) {
        struct job *job = job_new(RANKS);
        for (int rank = 0; rank < RANKS; rank++) {
            save(job, rank, 0);
            if (way == 0 || way == 1 || way == 2)
                modified_in_place(job, rank, 1);
            if (way == 2)
                save(job, rank, 1); /* another node saves it as it is now */
            switch (way) {
            case 0:
                use(job, rank, 1, 0);
                break; /* the mark says all */
            case 1:
                use(job, rank, UNKNOWN, UNKNOWN);
                break; /* the marks before it do */
            case 2:
                use(job, rank, 1, 1), use(job, rank, 1, 0);
                break;
            case 3:
                use(job, rank, 0, 0), modified_in_place(job, rank, 1);
                break;
            case 4:
                use(job, rank, 0, UNKNOWN);
                break;
            case 5:
                tensor(job, rank, API_ddpcheck_use, TENSOR + 8, 3, UNKNOWN, "never saved");
                break;
            case 6:
                modified_in_place(job, rank, 5), save(job, rank, 0),
                    use(job, rank, UNKNOWN, UNKNOWN);
                break;
            case 7:
                use(job, rank, UNKNOWN, 0);
                break;
            }
        }
        bool wrong = way < 3;
        for (uint64_t seed = 0; seed < 4; seed++) {
            struct verdict verdict;
            job_analyze(job, seed, &verdict);
            assert_int_equal(verdict.count, wrong);
            if (!wrong)
                continue;
            assert_string_equal(verdict.found[0].code, "DC307");
            assert_string_equal(verdict.found[0].ranks[0], "0-2");
            assert_int_equal(verdict.found[0].times, RANKS);
            assert_int_equal(verdict.found[0].certainty, CERTAIN);
            assert_string_equal(verdict.found[0].call[0], "backward reads the output of conv1");
            assert_string_equal(verdict.found[0].where[0],
                                "modified in place by relu_, in generator forward");
            assert_non_null(strstr(
                verdict.found[0].what,
                "saved for backward at version 0; when backward reads it, it is at version 1"));
        }
        job_free(job);
    }
}

/* Marks may be missing: only a use that says itself what was saved is still believed. */
static void lost_marks_make_it_silent(void **state)
{
    (void)state;
    for (int says_all = 0; says_all < 2; says_all++) {
        struct job *job = job_new(1);
        save(job, 0, 0);
        struct record lost = {.api = API_notice_lost};
        lost.lost.bulk = 7;
        job_record(job, 0, lost);
        modified_in_place(job, 0, 1);
        use(job, 0, says_all ? 1 : UNKNOWN, says_all ? 0 : UNKNOWN);
        struct verdict verdict;
        job_analyze(job, 0, &verdict);
        bool found = false;
        for (int i = 0; i < verdict.count; i++)
            found = found || !strcmp(verdict.found[i].code, "DC307");
        assert_int_equal(found, says_all);
        job_free(job);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_have_meanings),       cmocka_unit_test(models_are_reported_apart),
        cmocka_unit_test(a_name_can_be_given),       cmocka_unit_test(modified_before_its_use),
        cmocka_unit_test(lost_marks_make_it_silent),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
