/* A slow GPU by the times of the progress words alone: what a rank's host has put in the queue
 * begins late, and the others' operations wait for it (DC604). And, by exact times, a little more
 * work (DC605). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "lib/trace/lacks.h"
#include "verdict.h"

#define WORLD UINT64_C(0x5ae7000000000001)

enum {
    RANKS = 2,
    GRADIENTS = 0x10,
    ITERATIONS = 120,
    WORK_MS = 50,
    TRANSFER_MS = 1,
    WARM = 3,
    WARM_MS = 200,
    LAUNCHED = 20,
    FIVE = 5, /* what is judged together, of ITERATIONS without names */
    THREADS = 4096
};

/* How it is known that rank 1's operation began: a reading before it was done shows it; or the
 * reading that shows it done, after one in which nothing ran; or its host waits, and sees that it
 * is done before any reading does. */
enum known { BY_READING, BY_SAME_READING, BY_HOST };

/* Rank 1's GPU takes so much longer from iteration `since` on, and before `until`. There `launched`
 * kernels have `threads` each; 0: they are not counted. On rank 0 it is LAUNCHED of THREADS. */
struct machine {
    int slower_ms, since, until; /* until 0: to the end */
    enum known known;
    uint64_t launched, threads;
    int fast_each; /* rank 1 is as fast as rank 0 in one of `fast_each` FIVEs of iterations; 0:
                    * never
                    */
    int burst;     /* the iteration in which it launches much more; 0: none */
};

static void iteration(struct job *job, const struct machine *machine, int number)
{
    bool is_slow = number >= machine->since && (!machine->until || number < machine->until);
    bool is_fast = machine->fast_each && number / FIVE % machine->fast_each == 0;
    bool is_burst = machine->burst && number == machine->burst;
    int slower_ms = is_slow && !is_fast ? machine->slower_ms : 0;
    for (int rank = 0; rank < RANKS; rank++) {
        uint64_t kernels = rank || !machine->launched ? machine->launched : LAUNCHED;
        kernels *= rank && is_burst ? 1000 : 1;
        ALL_REDUCE(job, rank, WORLD, 1000, .stream = GRADIENTS, .kernels = kernels,
                   .threads = kernels * (rank ? machine->threads : THREADS));
        wait_enter(job, rank, API_cudaStreamSynchronize, GRADIENTS);
    }
    job_sleep_ms(job, WORK_MS);
    gpu_started(job, 0, WORLD, GRADIENTS);
    job_sleep_ms(job, (uint64_t)slower_ms);
    if (machine->known == BY_READING)
        gpu_started(job, 1, WORLD, GRADIENTS);
    job_sleep_ms(job, TRANSFER_MS);
    if (machine->known == BY_HOST)
        call_leave(job, 1);
    gpu_done(job, 0, WORLD, GRADIENTS);
    if (machine->known == BY_READING)
        gpu_done(job, 1, WORLD, GRADIENTS);
    else
        gpu_done_since(job, 1, WORLD, GRADIENTS, 1000 * TRANSFER_MS);
    call_leave(job, 0);
    if (machine->known != BY_HOST)
        call_leave(job, 1);
}

/* The open notes of the job, as in struct verdict. */
static void notes_of(const struct machine *machine, char notes[256], char resolved[256])
{
    struct verdict verdict;
    struct job *job = job_new(RANKS);
    job_init(job, WORLD, 0, RANKS - 1);
    for (int number = 0; number < ITERATIONS; number++) {
        char name[32];
        if (machine->until && number < WARM)
            job_sleep_ms(job, WARM_MS);
        snprintf(name, sizeof name, "iteration %d", number);
        for (int rank = 0; rank < RANKS && machine->until; rank++)
            range_push(job, rank, name);
        iteration(job, machine, number);
        for (int rank = 0; rank < RANKS && machine->until; rank++)
            range_pop(job, rank);
        if (number + 1 == machine->until)
            ticks(job, 250); /* it is judged */
    }
    for (int rank = 0; rank < RANKS; rank++)
        end(job, rank, END_EXIT, 0, false);
    job_analyze(job, 0, &verdict);
    assert_int_equal(verdict.count, 0);
    snprintf(notes, 256, "%s", verdict.notes);
    snprintf(resolved, 256, "%s", verdict.resolved);
    job_free(job);
}

static void expect_notes(struct machine machine, const char *expected)
{
    char notes[256], resolved[256];
    notes_of(&machine, notes, resolved);
    assert_string_equal(notes, expected);
    assert_string_equal(resolved, machine.until ? "DC604:1 " : "");
}

static void a_gpu_is_slow(void **state)
{
    (void)state;
    for (enum known known = BY_READING; known <= BY_HOST; known++) {
        expect_notes((struct machine){.slower_ms = 60, .known = known}, "DC604:1 ");
        expect_notes((struct machine){.slower_ms = 0, .known = known}, "");
    }
}

static void a_gpu_becomes_slow(void **state)
{
    (void)state;
    for (enum known known = BY_READING; known <= BY_HOST; known++)
        expect_notes((struct machine){.slower_ms = 60, .since = 44, .known = known}, "DC604:1 ");
}

/* What was found in few iterations is withdrawn, also if the first of them are taken for warming up
 * since the others are shorter. */
static void a_gpu_was_slow(void **state)
{
    (void)state;
    expect_notes((struct machine){.slower_ms = 60, .until = 40}, "");
}

/* Threads of kernels are counted, not timed: more of them are more work, if they are enough more
 * for what is lost, in a usual iteration. A rank that has them need not be behind as often. */
static void a_gpu_has_more_work(void **state)
{
    static const struct {
        struct machine machine;
        const char *notes;
    } cases[] = {
        {{.launched = LAUNCHED, .threads = THREADS}, "DC604:1 "},
        {{.launched = 2 * LAUNCHED, .threads = THREADS}, "DC605:1 "},
        {{.launched = LAUNCHED, .threads = 2 * THREADS}, "DC605:1 "},
        {{.launched = 2 * LAUNCHED, .threads = THREADS / 2}, "DC604:1 "},
        {{.launched = LAUNCHED + 1, .threads = THREADS}, "DC604:1 "},
        {{.launched = LAUNCHED / 2, .threads = THREADS}, "DC604:1 "},
        {{.launched = LAUNCHED, .threads = THREADS, .burst = 50}, "DC604:1 "},
        {{.launched = LAUNCHED, .threads = THREADS, .fast_each = 5}, ""},
        {{.launched = LAUNCHED, .threads = 2 * THREADS, .fast_each = 5}, "DC605:1 "},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct machine machine = cases[i].machine;
        machine.slower_ms = 60;
        expect_notes(machine, cases[i].notes);
    }
    expect_notes((struct machine){.launched = 2 * LAUNCHED, .threads = THREADS}, "");
}

/* Each FIVEth iteration takes longer; or records were lost there, and with them some iterations. */
static void expect_pauses(bool is_lost, const char *expected)
{
    struct verdict verdict;
    struct job *job = job_new(RANKS);
    job_init(job, WORLD, 0, RANKS - 1);
    for (int number = 0; number < ITERATIONS; number++) {
        char name[32];
        bool is_long = number % FIVE == 0;
        job_sleep_ms(job, is_long ? 2 * WORK_MS : 0);
        for (int rank = 0; rank < RANKS && is_lost && is_long; rank++)
            job_lose(job, rank, 1000);
        snprintf(name, sizeof name, "iteration %d", number);
        for (int rank = 0; rank < RANKS; rank++)
            range_push(job, rank, name);
        iteration(job, &(struct machine){0}, number);
        for (int rank = 0; rank < RANKS; rank++)
            range_pop(job, rank);
    }
    for (int rank = 0; rank < RANKS; rank++)
        end(job, rank, END_EXIT, 0, false);
    job_analyze(job, 0, &verdict);
    assert_string_equal(verdict.notes, expected);
    assert_int_equal(verdict.count, is_lost); /* DC901 */
    job_free(job);
}

static void lost_records_are_no_pauses(void **state)
{
    (void)state;
    expect_pauses(false, "DC608:0-1 ");
    expect_pauses(true, "");
}

/* Operations that follow each other; those from number `since` on take longer. */
static void become_slow(struct job *job, int since, uint64_t us)
{
    for (int number = 0; number < since + ITERATIONS; number++) {
        for (int rank = 0; rank < RANKS; rank++)
            ALL_REDUCE(job, rank, WORLD, 1024, .stream = GRADIENTS);
        for (int rank = 0; rank < RANKS; rank++)
            gpu_started(job, rank, WORLD, GRADIENTS);
        job_sleep_us(job, number < since ? 100 : us);
        for (int rank = 0; rank < RANKS; rank++)
            gpu_done(job, rank, WORLD, GRADIENTS);
    }
}

/* Of a job that lacks this. */
static void expect_slow_link(uint32_t lacks, bool is_import, int since, uint64_t us, bool is_found)
{
    struct verdict verdict;
    struct job *job = job_new(RANKS);
    job_set_lacks(job, lacks, is_import);
    job_init(job, WORLD, 0, RANKS - 1);
    become_slow(job, since, us);
    for (int rank = 0; rank < RANKS; rank++)
        end(job, rank, END_EXIT, 0, false);
    job_analyze(job, 0, &verdict);
    assert_string_equal(verdict.notes, is_found ? "DC606:0-1 " : "");
    assert_int_equal(verdict.count, 0);
    job_free(job);
}

/* An import's times are exact. The host of a recorded job may have become busy, above all soon
 * after the job began. */
static void transfers_become_slow(void **state)
{
    (void)state;
    expect_slow_link(LACKS_CUDA | LACKS_STACK, true, ITERATIONS, 900, true);
    expect_slow_link(LACKS_CUDA | LACKS_STACK, false, ITERATIONS, 900, false);
    expect_slow_link(0, false, ITERATIONS, 900, false);
    expect_slow_link(0, false, 22, 12000, false);
    expect_slow_link(0, false, 22, 80000, true);
    expect_slow_link(0, false, ITERATIONS, 12000, true);
}

/* Kernels of the rank, launched with `threads` threads, and an operation that ends with the last.
 */
static void work_of(struct job *job, int rank, uint64_t threads, uint64_t us, uint64_t end_ns)
{
    uint64_t begin_ns = job_now(job), name = intern(job, rank, "gemm"), busy_ns = 1000 * us;
    ALL_REDUCE(job, rank, WORLD, 1000, .stream = GRADIENTS);
    job_record(job, rank,
               (struct record){.api = API_notice_activity,
                               .activity = {.name = name,
                                            .begin_ns = begin_ns,
                                            .kind = ACTIVITY_COMPUTE,
                                            .count = 1,
                                            .end_ns = begin_ns + busy_ns}});
    job_record(job, rank,
               (struct record){
                   .api = API_notice_kernels,
                   .kernels = {.name = name, .count = 1, .total_ns = busy_ns, .amount = threads}});
    gpu_timed(job, rank, WORLD, GRADIENTS, begin_ns + busy_ns, end_ns);
}

/* Rank 1's kernels take 1.2 ms longer in iterations of 2.9 ms. */
static void expect_of_kernels(uint64_t threads, const char *notes)
{
    struct verdict verdict;
    enum { LESS_US = 600, MORE_US = 1800, LENGTH_US = 2900 };
    struct job *job = job_new(RANKS);
    job_init(job, WORLD, 0, RANKS - 1);
    for (int number = 0; number < ITERATIONS; number++) {
        uint64_t end_ns = job_now(job) + 1000 * (MORE_US + 100);
        work_of(job, 0, 1024, LESS_US, end_ns);
        work_of(job, 1, threads, MORE_US, end_ns);
        job_sleep_us(job, LENGTH_US);
        for (int rank = 0; rank < RANKS; rank++)
            gpu_done(job, rank, WORLD, GRADIENTS);
    }
    for (int rank = 0; rank < RANKS; rank++)
        end(job, rank, END_EXIT, 0, false);
    job_analyze(job, 0, &verdict);
    assert_int_equal(verdict.count, 0);
    assert_string_equal(verdict.notes, notes);
    job_free(job);
}

/* Less than 2 ms of an iteration another program may take. But it launches no larger kernels. */
static void a_rank_has_more_work(void **state)
{
    (void)state;
    expect_of_kernels(1024, "");
    expect_of_kernels(3 * 1024, "DC605:1 ");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_gpu_is_slow),
        cmocka_unit_test(a_gpu_becomes_slow),
        cmocka_unit_test(a_gpu_was_slow),
        cmocka_unit_test(a_gpu_has_more_work),
        cmocka_unit_test(lost_records_are_no_pauses),
        cmocka_unit_test(transfers_become_slow),
        cmocka_unit_test(a_rank_has_more_work),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
