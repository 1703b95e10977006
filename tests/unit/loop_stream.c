#include "loop_stream.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

struct job *loop_job_new(void)
{
    struct job *job = job_new(RANKS);
    job_init(job, WORLD, 0, RANKS - 1);
    return job;
}

void begin(struct job *job, int rank, int number)
{
    char text[32];
    snprintf(text, sizeof text, number < 0 ? "train_step" : "iteration %d", number);
    range_push(job, rank, text);
}

void end_of_range(struct job *job, int rank)
{
    range_pop(job, rank);
}

static void push_phase(struct job *job, int rank, const char *model, const char *phase)
{
    char text[64];
    snprintf(text, sizeof text, "%s %s", model, phase);
    range_push(job, rank, text);
}

void backward(struct job *job, int rank, const char *model, int first, int last)
{
    push_phase(job, rank, model, "backward");
    for (int bucket = first; bucket < last; bucket++) {
        char phase[32];
        snprintf(phase, sizeof phase, "reduce bucket %d", bucket);
        push_phase(job, rank, model, phase);
        ALL_REDUCE(job, rank, WORLD, 1000 + 100 * (uint64_t)bucket);
        range_pop(job, rank);
    }
    range_pop(job, rank);
}

void forward_with_buffers(struct job *job, int rank, const char *model)
{
    push_phase(job, rank, model, "forward");
    issue(job, rank, (struct call){.api = API_ncclBroadcast, .comm = WORLD, .count = 96});
    range_pop(job, rank);
}

void step(struct job *job, int rank, const char *model)
{
    push_phase(job, rank, model, "step");
    range_pop(job, rank);
}

void iterate(struct job *job, int rank, int number)
{
    begin(job, rank, number);
    backward(job, rank, "model", 0, BUCKETS);
    step(job, rank, "model");
    end_of_range(job, rank);
}

const struct found *expect_always(struct job *job, struct verdict *verdict, const char *code)
{
    static const uint64_t seeds[] = {1, 2, 3, 4, 5, 6, 7, 8, BY_RANK, BY_RANK_BACKWARDS};
    for (size_t k = 0; k < sizeof seeds / sizeof *seeds; k++) {
        uint64_t seed = seeds[k];
        job_analyze(job, seed, verdict);
        if (verdict->count != (code != NULL) || (code && strcmp(verdict->found[0].code, code)))
            for (int i = 0; i < verdict->count; i++)
                print_message("mixed by %d: %s: %s\n", (int)seed, verdict->found[i].code,
                              verdict->found[i].what);
        assert_int_equal(verdict->count, code != NULL);
        if (code)
            assert_string_equal(verdict->found[0].code, code);
    }
    return expect_in(job, verdict, code);
}
