/* Circles of sends and receives: DC203; each faulty job beside a correct one that looks like it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "cycle_job.h"

static void transfer(struct job *job, int rank, uint16_t api, int peer)
{
    issue(job, rank,
          (struct call){.api = api, .comm = FIRST, .count = 8, .root = peer, .stream = ONE});
}

enum ring_order { ALL_SEND_FIRST, ALL_RECEIVE_FIRST, GROUPED, ODD_RECEIVE_FIRST, SEND_THEN_WAIT };

static struct job *ring(int ranks, enum ring_order how)
{
    struct job *job = cycle_job_new(ranks);
    for (int rank = 0; rank < ranks; rank++) {
        int right = (rank + 1) % ranks, left = (rank + ranks - 1) % ranks;
        bool receive_first = how == ALL_RECEIVE_FIRST || (how == ODD_RECEIVE_FIRST && rank % 2);
        if (how == GROUPED)
            group_start(job, rank);
        transfer(job, rank, receive_first ? API_ncclRecv : API_ncclSend,
                 receive_first ? left : right);
        if (how == SEND_THEN_WAIT) {
            wait_enter(job, rank, API_cudaStreamSynchronize, ONE);
            continue;
        }
        transfer(job, rank, receive_first ? API_ncclSend : API_ncclRecv,
                 receive_first ? right : left);
        if (how == GROUPED)
            group_end(job, rank);
        wait_enter(job, rank, API_cudaStreamSynchronize, ONE);
    }
    ticks(job, 1000);
    return job;
}

static void rings(void **state)
{
    (void)state;
    for (int ranks = 2; ranks <= 12; ranks++)
        for (int how = ALL_SEND_FIRST; how <= SEND_THEN_WAIT; how++) {
            bool faulty = how != GROUPED && (how != ODD_RECEIVE_FIRST || ranks < 2);
            struct job *job = ring(ranks, how);
            struct verdict verdict;
            const struct found *found = expect_in(job, &verdict, faulty ? "DC203" : NULL);
            if (faulty) {
                assert_int_equal(found->certainty, CERTAIN);
                assert_int_equal(found->sides,
                                 ranks < FINDING_SIDES_MAX ? ranks : FINDING_SIDES_MAX);
            }
            job_free(job);
        }
}

/* AlltoAllv by sends, uneven, with messages to itself: all in one group. */
static void uneven_all_to_all_is_none(void **state)
{
    (void)state;
    struct job *job = cycle_job_new(RANKS);
    for (int step = 0; step < 3; step++)
        for (int rank = 0; rank < RANKS; rank++) {
            group_start(job, rank);
            for (int peer = 0; peer < RANKS; peer++) {
                if ((rank + peer + step) % 3) /* nothing to send to some */
                    transfer(job, rank, API_ncclSend, peer);
                if ((rank + peer + step) % 3)
                    transfer(job, rank, API_ncclRecv, peer);
            }
            group_end(job, rank);
            if (step == 2)
                wait_enter(job, rank, API_cudaStreamSynchronize, ONE);
        }
    ticks(job, 1000);
    expect(job, NULL);
    job_free(job);
}

/* A pipeline of halves: the second stage answers in another order than the first asks. */
static void pipeline_order(void **state)
{
    (void)state;
    for (int faulty = 0; faulty < 2; faulty++) {
        struct job *job = cycle_job_new(3);
        transfer(job, 0, API_ncclSend, 1);
        transfer(job, 0, API_ncclRecv, 1);
        transfer(job, 1, faulty ? API_ncclSend : API_ncclRecv, 0);
        transfer(job, 1, faulty ? API_ncclRecv : API_ncclSend, 0);
        transfer(job, 1, API_ncclSend, 2);
        transfer(job, 2, API_ncclRecv, 1);
        for (int rank = 0; rank < 3; rank++)
            wait_enter(job, rank, API_cudaStreamSynchronize, ONE);
        ticks(job, 1000);
        struct verdict verdict;
        const struct found *found = expect_in(job, &verdict, faulty ? "DC203" : NULL);
        if (faulty)
            assert_int_equal(found->sides, 2); /* rank 2 only waits for the circle */
        job_free(job);
    }
}

/* A pipeline of two stages whose last one leaves a micro-batch out in its second step: in the first
 * it received as many as it was sent. */
static void skipped_micro_batch(void **state)
{
    (void)state;
    enum { BATCHES = 4 };
    for (int skipped_in = 0; skipped_in < 3; skipped_in++) {
        struct job *job = cycle_job_new(2);
        for (int step = 0; step < 2; step++)
            for (int rank = 0; rank < 2; rank++) {
                int batches = rank && step + 1 == skipped_in ? BATCHES - 1 : BATCHES;
                for (int i = 0; i < batches; i++)
                    transfer(job, rank, rank ? API_ncclRecv : API_ncclSend, !rank);
                for (int i = 0; i < batches; i++)
                    transfer(job, rank, rank ? API_ncclSend : API_ncclRecv, !rank);
            }
        for (int rank = 0; rank < 2; rank++)
            wait_enter(job, rank, API_cudaStreamSynchronize, ONE);
        ticks(job, 1000);
        struct verdict verdict;
        const struct found *found = expect_in(job, &verdict, skipped_in ? "DC203" : NULL);
        if (skipped_in) {
            assert_has(found->todo, "micro-batches");
            assert_int_equal(skipped_in == 2, strstr(found->what, "in a row") != NULL);
        }
        if (skipped_in == 2)
            assert_has(found->what,
                       "rank 1 received from rank 0 3 messages in a row, and 4 the time before");
        job_free(job);
    }
}

static void forward(struct job *job, int rank, int count)
{
    for (int i = 0; i < count; i++)
        transfer(job, rank, rank ? API_ncclRecv : API_ncclSend, !rank);
}

static void backward(struct job *job, int rank, int count)
{
    for (int i = 0; i < count; i++)
        issue(job, rank,
              (struct call){.api = rank ? API_ncclSend : API_ncclRecv,
                            .comm = SECOND,
                            .count = 8,
                            .root = !rank,
                            .stream = TWO});
}

/* A step of a pipeline of two stages: the first sends three micro-batches before it takes turns. */
static void pipeline_step(struct job *job, int turns)
{
    forward(job, 0, 3);
    for (int i = 0; i < turns; i++) {
        backward(job, 0, 1);
        forward(job, 0, 1);
    }
    backward(job, 0, 3);
    for (int i = 0; i < turns + 3; i++) {
        forward(job, 1, 1);
        backward(job, 1, 1);
    }
}

/* How many messages a rank exchanges in a row says nothing where it differs anyway. */
static void runs_of_a_pipeline_differ(void **state)
{
    (void)state;
    for (int steps = 0; steps < 2; steps++) {
        struct job *job = cycle_job_new(2);
        if (steps) { /* the second stage answers before it has received all that it was sent */
            pipeline_step(job, 3);
            forward(job, 0, 3);
            wait_enter(job, 0, API_cudaStreamSynchronize, ONE);
            forward(job, 1, 2);
            backward(job, 1, 1);
            wait_enter(job, 1, API_cudaStreamSynchronize, TWO);
        } else { /* it receives again and again before it answers */
            forward(job, 0, 3);
            backward(job, 0, 1);
            forward(job, 0, 1);
            backward(job, 0, 3);
            wait_enter(job, 0, API_cudaStreamSynchronize, TWO);
            forward(job, 1, 1);
            backward(job, 1, 1);
            forward(job, 1, 4);
            wait_enter(job, 1, API_cudaStreamSynchronize, ONE);
        }
        ticks(job, 1000);
        struct verdict verdict;
        const struct found *found = expect_in(job, &verdict, "DC203");
        assert_null(strstr(found->what, "in a row"));
        job_free(job);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rings),
        cmocka_unit_test(uneven_all_to_all_is_none),
        cmocka_unit_test(pipeline_order),
        cmocka_unit_test(skipped_micro_batch),
        cmocka_unit_test(runs_of_a_pipeline_differ),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
