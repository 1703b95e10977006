/* What must hold for any input: legal programs give no finding, interleaving changes nothing,
 * damage does no harm, memory is bounded. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include <cmocka.h>

#include "verdict.h"

#define COMM(i) (UINT64_C(0x1111000000000000) * ((uint64_t)(i) + 1))

enum { RANKS = 4, COMMS = 3, PROGRAMS = 1000 };

static const uint16_t kinds[] = {
    API_ncclAllReduce, API_ncclBroadcast,     API_ncclReduce,
    API_ncclAllGather, API_ncclReduceScatter, API_ncclAlltoAll,
};

struct step {
    int what; /* 0 collective, 1 group of three, 2 send and receive, 3 event, 4 wait, 5 time passes
               */
    int comm;
    struct call call;
};

static struct step draw_step(uint64_t *state)
{
    struct step step = {.what = (int)(draw(state) % 6), .comm = (int)(draw(state) % COMMS)};
    step.call = (struct call){
        .api = kinds[draw(state) % (sizeof kinds / sizeof *kinds)],
        .comm = COMM(step.comm),
        .count = 1 + draw(state) % 1000,
        .redop = (int)(draw(state) % 5),
        .root = (int)(draw(state) % 2),
        .stream = 0x10 * (draw(state) % 3),
        .no_progress = draw(state) % 4 == 0,
    };
    return step;
}

static void act(struct job *job, int rank, const struct step *step, uint64_t local)
{
    switch (step->what) {
    case 1:
        group_start(job, rank);
        for (int i = 0; i < 3; i++)
            issue(job, rank, step->call);
        group_end(job, rank);
        break;
    case 2:
        group_start(job, rank); /* a ring on communicator 0, which has all ranks */
        issue(job, rank,
              (struct call){.api = API_ncclSend,
                            .comm = COMM(0),
                            .count = step->call.count,
                            .root = (rank + 1) % RANKS,
                            .stream = step->call.stream});
        issue(job, rank,
              (struct call){.api = API_ncclRecv,
                            .comm = COMM(0),
                            .count = step->call.count,
                            .root = (rank + RANKS - 1) % RANKS,
                            .stream = step->call.stream});
        group_end(job, rank);
        break;
    case 3:
        event_record(job, rank, 0xe0, step->call.stream);
        event_wait(job, rank, 0xe0, 0x10 * (local % 3));
        break;
    case 4:
        wait_done(job, rank, local % 2 ? API_cudaDeviceSynchronize : API_cudaStreamSynchronize,
                  step->call.stream);
        break;
    default:
        issue(job, rank, step->call);
    }
}

/* Communicator 0 has all ranks, 1 the first two, 2 the last three; each rank makes the same steps
 * on those that it belongs to. A wait of a rank comes only after all have issued what is ahead, as
 * time passes. */
static bool belongs(int comm, int rank)
{
    return comm == 0 || (comm == 1 ? rank < 2 : rank > 0);
}

static struct job *legal_program(uint64_t seed)
{
    uint64_t state = seed * 2654435761u + 88172645463325252u;
    struct job *job = job_new(RANKS);
    job_init(job, COMM(0), 0, 3);
    job_init(job, COMM(1), 0, 1);
    job_init(job, COMM(2), 1, 3);
    for (int rank = 0; rank < RANKS; rank++) {
        stream_create(job, rank, 0x10, true);
        stream_create(job, rank, 0x20, false);
    }
    for (int i = 0; i < 40; i++) {
        struct step step = draw_step(&state);
        if (step.what == 5) {
            ticks(job, 250 * (1 + draw(&state) % 60));
            continue;
        }
        for (int rank = 0; rank < RANKS; rank++)
            if (step.what == 2 || belongs(step.comm, rank))
                act(job, rank, &step, draw(&state));
    }
    for (int rank = 0; rank < RANKS; rank++) {
        comm_call_enter(job, rank, API_ncclCommDestroy, COMM(0));
        call_leave(job, rank);
    }
    for (int rank = 0; rank < RANKS; rank++)
        end(job, rank, END_EXIT, 0, false);
    ticks(job, 2000);
    return job;
}

static void legal_programs_give_no_finding(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= PROGRAMS; seed++) {
        struct job *job = legal_program(seed);
        struct verdict verdict;
        for (uint64_t order = 0; order < 3; order++) {
            job_analyze(job, order ? seed * 3 + order : 0, &verdict);
            if (verdict.count)
                fail_msg("program %d, order %d: %s: %s", (int)seed, (int)order,
                         verdict.found[0].code, verdict.found[0].what);
            assert_int_equal(verdict.skipped, 0);
        }
        job_free(job);
    }
}

/* A legal program with one call of one rank changed. */
static struct job *faulty_program(uint64_t seed)
{
    uint64_t state = seed * 7919 + 1;
    struct job *job = job_new(RANKS);
    job_init(job, COMM(0), 0, 3);
    int odd = (int)(draw(&state) % RANKS), at = (int)(draw(&state) % 20);
    uint64_t fault = draw(&state) % 3;
    for (int i = 0; i < 30; i++)
        for (int rank = 0; rank < RANKS; rank++) {
            bool bad = rank == odd && i == at;
            if (bad && fault == 0)
                continue;
            ALL_REDUCE(job, rank, COMM(0), 100 + (uint64_t)i + (bad && fault == 1),
                       .redop = bad && fault == 2);
            if (i % 5 == 4 && i < at)
                wait_done(job, rank, API_cudaStreamSynchronize, 0);
        }
    for (int rank = 0; rank < RANKS; rank++)
        wait_enter(job, rank, API_cudaStreamSynchronize, 0);
    ticks(job, 1000);
    for (int rank = 0; rank < RANKS; rank++)
        end(job, rank, END_SIGNAL, 15, false);
    ticks(job, 2000);
    return job;
}

static void interleaving_changes_nothing(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 50; seed++) {
        struct job *job = faulty_program(seed);
        struct verdict first, other;
        job_analyze(job, 0, &first);
        assert_int_equal(first.count, 1);
        for (uint64_t order = 1; order <= 10; order++) {
            job_analyze(job, seed * 100 + order, &other);
            assert_int_equal(other.count, 1);
            assert_string_equal(first.found[0].code, other.found[0].code);
            assert_true(first.found[0].fingerprint == other.found[0].fingerprint);
            assert_int_equal(first.found[0].number, other.found[0].number);
            assert_string_equal(first.found[0].what, other.found[0].what);
        }
        job_free(job);
    }
}

/* Records of chance, and records of a real kind with fields that make no sense. */
static void damage_does_no_harm(void **state)
{
    (void)state;
    uint64_t random = 12345;
    struct analyzer *analyzer = analyzer_new(&(struct analyzer_options){0});
    assert_non_null(analyzer);
    for (int i = 0; i < 3; i++)
        assert_int_equal(
            analyzer_add_process(analyzer, i, &(struct process_info){.rank = i, .world_size = 3}),
            0);
    static const uint64_t odd[] = {0,         1,       2,          3,         UINT64_MAX,
                                   INT64_MAX, 1 << 20, UINT32_MAX, INT32_MAX, 0x1111};
    for (int i = 0; i < 300000; i++) {
        struct record record;
        uint64_t words[RECORD_BYTES / 8];
        for (size_t k = 0; k < RECORD_BYTES / 8; k++)
            words[k] = draw(&random) % 8 ? odd[draw(&random) % (sizeof odd / sizeof *odd)]
                                         : draw(&random);
        memcpy(&record, words, sizeof record);
        if (draw(&random) % 16) {
            record.api = (uint16_t)(draw(&random) % (API_COUNT + 5));
            record.phase = (uint8_t)(draw(&random) % 3);
            record.thread = (uint32_t)(draw(&random) % 5);
        }
        if (record.api == API_notice_tick && draw(&random) % 16)
            continue;
        assert_int_equal(analyzer_feed(analyzer, (int)(draw(&random) % 4), &record), 0);
    }
    assert_true(analyzer_skipped(analyzer) > 0);
    assert_int_equal(analyzer_finish(analyzer), 0);
    analyzer_free(analyzer);
}

static void ignore_finding(void *context, const struct finding *finding)
{
    (void)context;
    (void)finding;
}

/* A real stream with single bits turned. */
static void turned_bits_do_no_harm(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 200; seed++) {
        uint64_t random = seed * 104729;
        struct job *job = legal_program(seed);
        struct analyzer *analyzer =
            analyzer_new(&(struct analyzer_options){.on_finding = ignore_finding});
        assert_non_null(analyzer);
        for (int rank = 0; rank < RANKS; rank++)
            assert_int_equal(
                analyzer_add_process(analyzer, rank, &(struct process_info){.rank = rank}), 0);
        struct record record;
        int rank;
        for (size_t i = 0; job_event(job, i, &rank, &record); i++) {
            if (draw(&random) % 8 == 0)
                ((unsigned char *)&record)[draw(&random) % sizeof record] ^=
                    (unsigned char)(1 << draw(&random) % 8);
            assert_int_equal(analyzer_feed(analyzer, rank < 0 ? 0 : rank, &record), 0);
        }
        assert_int_equal(analyzer_finish(analyzer), 0);
        analyzer_free(analyzer);
        job_free(job);
    }
}

static long resident_kb(void)
{
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return usage.ru_maxrss;
}

static void feed_op(struct analyzer *analyzer, int rank, uint64_t number)
{
    struct record record = {
        .api = API_ncclAllReduce, .phase = RECORD_ENTER, .thread = 1, .time_ns = number * 1000};
    record.serial = number + 1;
    record.op.comm = COMM(0);
    record.op.number = number;
    record.op.count = 1 + number % 17;
    record.op.rank = rank;
    record.op.datatype = TYPE_FLOAT32;
    record.op.slot = number % 2 ? RECORD_NO_SLOT : 3;
    record.op.launch = number + 1;
    assert_int_equal(analyzer_feed(analyzer, rank, &record), 0);
}

static struct analyzer *two_ranks(void)
{
    struct analyzer *analyzer = analyzer_new(&(struct analyzer_options){0});
    assert_non_null(analyzer);
    for (int rank = 0; rank < 2; rank++)
        assert_int_equal(analyzer_add_process(analyzer, rank, &(struct process_info){.rank = rank}),
                         0);
    return analyzer;
}

/* Two million operations without any word of their progress; then half as many with a rank that is
 * silent. What is kept of these fills up soon, and stays as large. */
static void memory_follows_the_lag(void **state)
{
    (void)state;
    enum {
        OPERATIONS = 1000000,
        FULL_AT = OPERATIONS + OPERATIONS / 5,
        LIMIT_KB = 64 * 1024,
        GROWTH_KB = 1600,        /* less than a byte for each operation that both ranks issue */
        LAG_GROWTH_KB = 5 * 1024 /* 7 bytes for each one of the rank that goes on */
    };
    struct analyzer *analyzer = two_ranks();
    for (uint64_t number = 0; number < 1000; number++)
        for (int rank = 0; rank < 2; rank++)
            feed_op(analyzer, rank, number);
    long before = resident_kb();
    for (uint64_t number = 1000; number < OPERATIONS; number++)
        for (int rank = 0; rank < 2; rank++)
            feed_op(analyzer, rank, number);
    assert_in_range(resident_kb() - before, 0, GROWTH_KB);
    for (uint64_t number = OPERATIONS; number < FULL_AT; number++)
        feed_op(analyzer, 0, number);
    long full = resident_kb();
    assert_in_range(full - before, 0, LIMIT_KB);
    for (uint64_t number = FULL_AT; number < 2 * OPERATIONS; number++)
        feed_op(analyzer, 0, number);
    assert_in_range(resident_kb() - full, 0, LAG_GROWTH_KB);
    analyzer_free(analyzer);
}

static void count_finding(void *context, const struct finding *finding)
{
    *(int *)context += finding->severity != SEVERITY_NOTE;
}

/* A rank that comes back after its peers' calls were condensed is still compared with them. */
static void late_rank_is_compared_with_the_summary(void **state)
{
    (void)state;
    for (int faulty = 0; faulty < 2; faulty++) {
        int findings = 0;
        struct analyzer *analyzer = two_ranks();
        for (int rank = 0; rank < 2; rank++)
            feed_op(analyzer, rank, 0);
        for (uint64_t number = 1; number < 100000; number++)
            feed_op(analyzer, 0, number);
        for (uint64_t number = 1; number < 100000; number++) {
            if (faulty && number == 20000) {
                struct record record = {
                    .api = API_ncclAllGather, .phase = RECORD_ENTER, .thread = 1};
                record.op.comm = COMM(0);
                record.op.number = number;
                record.op.rank = record.op.count = 1;
                assert_int_equal(analyzer_feed(analyzer, 1, &record), 0);
                continue;
            }
            feed_op(analyzer, 1, number);
        }
        analyzer_visit_findings(analyzer, count_finding, &findings);
        assert_int_equal(findings, faulty);
        analyzer_free(analyzer);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(legal_programs_give_no_finding),
        cmocka_unit_test(interleaving_changes_nothing),
        cmocka_unit_test(damage_does_no_harm),
        cmocka_unit_test(turned_bits_do_no_harm),
        cmocka_unit_test(memory_follows_the_lag),
        cmocka_unit_test(late_rank_is_compared_with_the_summary),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
