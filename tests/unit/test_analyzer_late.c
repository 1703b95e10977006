/* What is not proven: late ranks (DC210), and ranks of which an idle thread could still bring what
 * is missing. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>
#include <stdio.h>

#include "verdict.h"

#define WORLD   UINT64_C(0x5ae7000000000001)
#define CONTROL UINT64_C(0xc0de000000000002)
#define PAIR    UINT64_C(0x9a12000000000003)
#define UPPER   UINT64_C(0x0b0e000000000004)

enum { RANKS = 4, MAIN = 100, AUTOGRAD = 500, GRADIENTS = 0x10, OTHER = 0x20 };

struct notes {
    int count;
    struct finding finding;
    char what[1024];
};

static void take(void *context, const struct finding *finding)
{
    struct notes *notes = context;
    if (strcmp(finding->code, "DC210"))
        fail_msg("%s: %s", finding->code, finding->what);
    notes->count++;
    notes->finding = *finding;
    strncpy(notes->what, finding->what, sizeof notes->what - 1);
}

static struct analyzer *job_analyzer(struct job *job, const struct analyzer_options *options)
{
    struct analyzer *analyzer = analyzer_new(options);
    for (int i = 0; i < RANKS; i++) {
        struct process_info info = {
            .pid = 1000 + i, .rank = i, .world_size = RANKS, .host = "a", .boot_id = "b"};
        assert_int_equal(analyzer_add_process(analyzer, i, &info), 0);
    }
    struct record record;
    int rank;
    for (size_t i = 0; job_event(job, i, &rank, &record); i++)
        assert_int_equal(analyzer_feed(analyzer, rank < 0 ? 0 : rank, &record), 0);
    return analyzer;
}

static void analyze(struct job *job, struct notes *notes)
{
    const struct analyzer_options options = {.on_finding = take, .context = notes};
    struct analyzer *analyzer = job_analyzer(job, &options);
    assert_int_equal(analyzer_finish(analyzer), 0);
    analyzer_free(analyzer);
}

/* Rank 3 works on for a minute: reported once it is late, again when the wait has doubled, and
 * taken back when it comes. */
static void working_rank_is_late(void **state)
{
    (void)state;
    for (int by_gpu = 0; by_gpu < 2; by_gpu++) {
        struct job *job = job_new(RANKS);
        job_init(job, WORLD, 0, RANKS - 1);
        job_init(job, CONTROL, 3, 3);
        for (int rank = 0; rank < RANKS - 1; rank++) {
            ALL_REDUCE(job, rank, WORLD, 8);
            wait_enter(job, rank, API_cudaStreamSynchronize, 0);
        }
        range_push(job, 3, "evaluation");
        for (int i = 0; i < 20; i++) {
            if (by_gpu && i)
                gpu_done(job, 3, CONTROL, OTHER);
            else
                ALL_REDUCE(job, 3, CONTROL, 1, .stream = OTHER);
            ticks(job, 3000);
        }
        struct notes notes = {0};
        analyze(job, &notes);
        assert_int_equal(notes.finding.severity, SEVERITY_NOTE);
        assert_int_equal(notes.finding.state, FINDING_OPEN);
        assert_int_equal(notes.count, 3); /* at 10, 20 and 40 s */
        assert_non_null(
            strstr(notes.what,
                   "rank 3 is late: ranks 0-2 wait in ncclAllReduce(count=8, float32, sum) #0"));
        assert_non_null(strstr(notes.what, "still works"));
        assert_non_null(strstr(notes.what, "in phase \"evaluation\""));
        ALL_REDUCE(job, 3, WORLD, 8);
        ticks(job, 500);
        notes = (struct notes){0};
        analyze(job, &notes);
        assert_int_equal(notes.finding.state, FINDING_RESOLVED);
        assert_non_null(strstr(notes.what, "came within 60."));
        job_free(job);
    }
}

/* What rank 1 issues last is queued behind an operation that all have issued, which itself is
 * queued behind the one that rank 3 is late for. */
static void what_is_queued_behind_is_not_late(void **state)
{
    (void)state;
    struct job *job = job_new(RANKS);
    job_init(job, WORLD, 0, RANKS - 1);
    job_init(job, PAIR, 0, 1);
    job_init(job, UPPER, 1, RANKS - 1);
    job_init(job, CONTROL, 3, 3);
    for (int rank = 0; rank < RANKS - 1; rank++) {
        ALL_REDUCE(job, rank, WORLD, 8);
        if (rank < 2)
            ALL_REDUCE(job, rank, PAIR, 8);
        if (rank > 0)
            ALL_REDUCE(job, rank, UPPER, 8);
        wait_enter(job, rank, API_cudaStreamSynchronize, 0);
    }
    for (int i = 0; i < 5; i++) {
        ALL_REDUCE(job, 3, CONTROL, 1, .stream = OTHER);
        ticks(job, 3000);
    }
    struct notes notes = {0};
    analyze(job, &notes);
    assert_int_equal(notes.count, 1);
    assert_int_equal(notes.finding.comm, WORLD);
    job_free(job);
}

static void message(struct job *job, int rank, uint16_t api, int peer)
{
    issue(job, rank, (struct call){.api = api, .comm = WORLD, .count = 4, .root = peer});
}

/* Rank 3 owes rank 1 its second message. The first one that rank 0 wants of it is only queued. */
static void queued_message_hides_no_late_one(void **state)
{
    (void)state;
    struct job *job = job_new(RANKS);
    job_init(job, WORLD, 0, RANKS - 1);
    job_init(job, PAIR, 0, 1);
    job_init(job, CONTROL, 3, 3);
    ALL_REDUCE(job, 0, PAIR, 8);
    message(job, 0, API_ncclRecv, 3);
    message(job, 3, API_ncclSend, 1);
    message(job, 1, API_ncclRecv, 3);
    message(job, 1, API_ncclRecv, 3);
    for (int rank = 0; rank < 2; rank++)
        wait_enter(job, rank, API_cudaStreamSynchronize, 0);
    for (int i = 0; i < 5; i++) {
        ALL_REDUCE(job, 3, CONTROL, 1, .stream = OTHER);
        ticks(job, 3000);
    }
    struct notes notes = {0};
    analyze(job, &notes);
    assert_int_equal(notes.count, 1);
    assert_int_equal(notes.finding.number, 1);
    job_free(job);
}

/* The late rank stops for good. */
static void late_rank_falls_silent(void **state)
{
    (void)state;
    struct job *job = job_new(RANKS);
    job_init(job, WORLD, 0, RANKS - 1);
    for (int rank = 0; rank < RANKS - 1; rank++) {
        ALL_REDUCE(job, rank, WORLD, 8);
        wait_enter(job, rank, API_cudaStreamSynchronize, 0);
    }
    for (int i = 0; i < 5; i++) {
        range_push(job, 3, "evaluation");
        ticks(job, 3000);
    }
    expect(job, NULL);
    ticks(job, 12000);
    struct verdict verdict;
    assert_int_equal(expect_in(job, &verdict, "DC201")->certainty, POSSIBLE);
    job_free(job);
}

static void step(struct job *job, int rank)
{
    job_thread(job, rank, AUTOGRAD + (uint32_t)rank);
    for (int bucket = 0; bucket < 3; bucket++)
        ALL_REDUCE(job, rank, WORLD, 100 + (uint64_t)bucket, .stream = GRADIENTS);
    job_thread(job, rank, MAIN + (uint32_t)rank);
    wait_enter(job, rank, API_cudaStreamSynchronize, GRADIENTS);
}

/* PyTorch: the autograd thread and the main thread issue on one communicator. The main threads are
 * stuck in a circle that an autograd thread could still break, but it only works for its main
 * thread. */
static struct job *idle_autograd_for(bool busy, int quarters)
{
    struct job *job = job_new(RANKS);
    job_init(job, WORLD, 0, RANKS - 1);
    job_init(job, CONTROL, 0, RANKS - 1);
    for (int rank = 0; rank < RANKS; rank++) {
        ALL_REDUCE(job, rank, WORLD, 5, .stream = GRADIENTS); /* parameters, by the main thread */
        step(job, rank);
        call_leave(job, rank);
    }
    for (int rank = 0; rank < RANKS; rank++) {
        if (rank == 3) {
            step(job, rank); /* without the barrier */
            continue;
        }
        ALL_REDUCE(job, rank, CONTROL, 1, .stream = OTHER);
        wait_enter(job, rank, API_cudaStreamSynchronize, OTHER);
    }
    for (int i = 0; i < quarters; i++) {
        ticks(job, 250);
        for (int rank = 0; rank < RANKS && busy; rank++) {
            job_thread(job, rank, AUTOGRAD + (uint32_t)rank);
            range_push(job, rank, "backward");
            job_thread(job, rank, MAIN + (uint32_t)rank);
        }
    }
    return job;
}

static struct job *idle_autograd(bool busy)
{
    return idle_autograd_for(busy, 12);
}

static void idle_thread_is_supposed_to_stay_so(void **state)
{
    (void)state;
    struct job *job = idle_autograd(false);
    struct verdict verdict;
    const struct found *found = expect_in(job, &verdict, "DC201");
    assert_int_equal(found->certainty, POSSIBLE);
    assert_int_equal(found->comm, CONTROL);
    assert_string_equal(found->ranks[1], "3");
    job_free(job);
    job = idle_autograd(true);
    expect(job, NULL);
    job_free(job);
}

/* A trace that was cut off before its host's first tick: no thread has been idle for any time. */
static void without_a_tick_nobody_is_idle(void **state)
{
    (void)state;
    struct job *job = idle_autograd_for(false, 0);
    expect(job, NULL);
    job_free(job);
}

/* It went on after all: taken back. */
static void supposition_is_taken_back(void **state)
{
    (void)state;
    struct job *job = idle_autograd(false);
    job_thread(job, 3, AUTOGRAD + 3);
    ALL_REDUCE(job, 3, CONTROL, 1, .stream = OTHER);
    for (int rank = 0; rank < RANKS - 1; rank++) {
        job_thread(job, rank, MAIN + (uint32_t)rank);
        job_record(job, rank,
                   (struct record){.api = API_cudaStreamSynchronize, .phase = RECORD_LEAVE});
        step(job, rank);
    }
    for (int rank = 0; rank < RANKS; rank++) {
        job_thread(job, rank, MAIN + (uint32_t)rank);
        job_record(job, rank,
                   (struct record){.api = API_cudaStreamSynchronize, .phase = RECORD_LEAVE});
    }
    ticks(job, 500);
    expect(job, NULL);
    job_free(job);
}

/* At the end of the run rank 0 saves while its peers exit; rank 3 has one more batch. Who left is
 * reported when it is known of rank 0: it exits as well, or stays. */
static void last_to_leave(void **state)
{
    (void)state;
    for (int stays = 0; stays < 2; stays++) {
        struct job *job = job_new(RANKS);
        struct verdict verdict;
        job_init(job, WORLD, 0, RANKS - 1);
        for (int rank = 0; rank < RANKS; rank++) {
            ALL_REDUCE(job, rank, WORLD, 8);
            wait_done(job, rank, API_cudaStreamSynchronize, 0);
        }
        ALL_REDUCE(job, 3, WORLD, 8);
        wait_enter(job, 3, API_cudaStreamSynchronize, 0);
        for (int rank = 1; rank < 3; rank++)
            end(job, rank, END_EXIT, 0, false);
        ticks(job, 1000);
        kernel(job, 0, 0, "save", 0);
        ticks(job, 4000);
        expect(job, NULL);
        if (!stays)
            end(job, 0, END_EXIT, 0, false);
        ticks(job, stays ? 7000 : 500);
        const struct found *found = expect_in(job, &verdict, stays ? "DC201" : "DC206");
        assert_string_equal(found->ranks[0], "3");
        assert_int_equal(found->certainty, CERTAIN);
        if (!stays)
            assert_string_equal(found->ranks[1], "0-2");
        job_free(job);
    }
}

/* The job is ended while three ranks wait for the fourth: said before (by `ddpcheck run`) or not,
 * the ends being signals or, where the program handles them, exit statuses. */
static void ended_while_waiting(void **state)
{
    (void)state;
    static const struct {
        bool said, by_signal;
        uint64_t waited_ms;
        const char *code;
    } cases[] = {
        {true, true, 3000, "DC201"},   {true, false, 3000, "DC201"}, {false, true, 3000, "DC201"},
        {false, false, 3000, "DC205"}, {true, true, 500, NULL},      {false, true, 500, NULL},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct job *job = job_new(RANKS);
        struct verdict verdict;
        job_init(job, WORLD, 0, RANKS - 1);
        for (int rank = 0; rank < RANKS - 1; rank++) {
            ALL_REDUCE(job, rank, WORLD, 8);
            wait_enter(job, rank, API_cudaStreamSynchronize, 0);
        }
        ticks(job, cases[i].waited_ms);
        if (cases[i].said)
            job_record(job, 0, (struct record){.api = API_notice_ending});
        for (int rank = RANKS - 1; rank >= 0; rank--)
            end(job, rank, cases[i].by_signal ? END_SIGNAL : END_EXIT, cases[i].by_signal ? 15 : 1,
                false);
        const struct found *found = expect_in(job, &verdict, cases[i].code);
        if (found && !strcmp(found->code, "DC201")) {
            assert_int_equal(found->certainty, POSSIBLE);
            assert_string_equal(found->ranks[0], "0-2");
            assert_string_equal(found->ranks[1], "3");
        }
        job_free(job);
    }
}

/* Every rank has called it and waits, and nothing happens any more. */
static void all_wait_and_nothing_happens(void **state)
{
    (void)state;
    struct job *job = job_new(RANKS);
    job_init(job, WORLD, 0, RANKS - 1);
    for (int rank = 0; rank < RANKS; rank++) {
        ALL_REDUCE(job, rank, WORLD, 100, .stream = GRADIENTS);
        wait_enter(job, rank, API_cudaStreamSynchronize, GRADIENTS);
    }
    ticks(job, 12000);
    const struct found *found = expect(job, "DC211");
    assert_int_equal(found->certainty, POSSIBLE);
    assert_string_equal(found->ranks[0], "0-3");
    assert_non_null(strstr(found->what, "which every rank has called, does not end"));
    job_free(job);
}

static void add_dormant(struct job *job, int rank, uint64_t id, const char *place)
{
    struct record dormant = {.api = API_notice_dormant};
    dormant.range.id = id;
    dormant.range.domain = 4711 + (uint64_t)rank;
    dormant.range.text = intern(job, rank, place);
    job_record(job, rank, dormant);
}

/* No rank has called NCCL when the job is ended after a silence, or for another reason. */
static void ended_before_any_call(void **state)
{
    (void)state;
    for (int silent = 0; silent <= 1; silent++) {
        struct job *job = job_new(RANKS);
        struct record ending = {.api = API_notice_ending};
        for (int rank = 0; rank < RANKS - 1; rank++)
            add_dormant(job, rank, (uint64_t)rank, "main() at train.py:9, in init_process_group()");
        add_dormant(job, RANKS - 1, RANKS - 1, "load() at train.py:5");
        ending.ending.silence_ns = silent ? UINT64_C(40000000000) : 0;
        job_record(job, 0, ending);
        const struct found *found = expect(job, silent ? "DC211" : NULL);
        if (silent) {
            assert_int_equal(found->certainty, POSSIBLE);
            assert_int_equal(found->sides, 2);
            assert_string_equal(found->ranks[0], "0-2");
            assert_string_equal(found->ranks[1], "3");
            assert_string_equal(found->call[1], "made no NCCL call, in load() at train.py:5");
        }
        job_free(job);
    }
}

/* No launcher numbers them; they are in more places than a finding has sides. */
static void ended_before_any_call_in_many_places(void **state)
{
    (void)state;
    enum { PROCESSES = FINDING_SIDES_MAX + 4 };
    char place[32];
    struct job *job = job_new(PROCESSES);
    struct record ending = {.api = API_notice_ending, .ending.silence_ns = 1};
    for (int i = 0; i < PROCESSES; i++) {
        snprintf(place, sizeof place, "main() at train.py:%d", i < 2 ? 1 : i);
        add_dormant(job, i, UINT64_MAX, place);
    }
    job_record(job, 0, ending);
    const struct found *found = expect(job, "DC211");
    assert_int_equal(found->sides, FINDING_SIDES_MAX);
    assert_string_equal(found->ranks[0], "none");
    assert_non_null(strstr(found->what, "processes 4711-4712 are in main() at train.py:1; "));
    assert_non_null(strstr(found->what, "; processes 4719-4722"));
    job_free(job);
}

static void count_findings(void *context, const struct finding *finding)
{
    struct notes *notes = context;
    notes->count++;
    notes->finding = *finding;
}

/* Rank 0 waits for a message from rank 1, which has made more calls than the message's number: the
 * finding is reported once and not withdrawn while the message is awaited. */
static void awaited_message_is_reported_once(void **state)
{
    (void)state;
    struct job *job = job_new(RANKS);
    job_init(job, WORLD, 0, RANKS - 1);
    for (int rank = 0; rank < RANKS; rank++) {
        ALL_REDUCE(job, rank, WORLD, 8);
        wait_done(job, rank, API_cudaStreamSynchronize, 0);
    }
    issue(job, 0, (struct call){.api = API_ncclRecv, .comm = WORLD, .count = 4, .root = 1});
    wait_enter(job, 0, API_cudaStreamSynchronize, 0);
    ticks(job, 15000);
    struct notes notes = {0};
    const struct analyzer_options options = {.on_finding = count_findings, .context = &notes};
    struct analyzer *analyzer = job_analyzer(job, &options);
    assert_int_equal(notes.count, 1);
    assert_string_equal(notes.finding.code, "DC201");
    assert_int_equal(notes.finding.state, FINDING_OPEN);
    analyzer_free(analyzer);
    job_free(job);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ended_before_any_call),
        cmocka_unit_test(ended_before_any_call_in_many_places),
        cmocka_unit_test(awaited_message_is_reported_once),
        cmocka_unit_test(all_wait_and_nothing_happens),
        cmocka_unit_test(working_rank_is_late),
        cmocka_unit_test(what_is_queued_behind_is_not_late),
        cmocka_unit_test(queued_message_hides_no_late_one),
        cmocka_unit_test(late_rank_falls_silent),
        cmocka_unit_test(idle_thread_is_supposed_to_stay_so),
        cmocka_unit_test(without_a_tick_nobody_is_idle),
        cmocka_unit_test(supposition_is_taken_back),
        cmocka_unit_test(last_to_leave),
        cmocka_unit_test(ended_while_waiting),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
