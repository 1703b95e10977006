/* Late ranks: DC210, and what it becomes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "lib/trace/unseen.h"
#include "verdict.h"

#define WORLD   UINT64_C(0x5ae7000000000001)
#define CONTROL UINT64_C(0xc0de000000000002)
#define PAIR    UINT64_C(0x9a12000000000003)
#define UPPER   UINT64_C(0x0b0e000000000004)

enum { RANKS = 4, OTHER = 0x20 };

struct notes {
    int count;
    struct finding finding;
    char what[1024];
};

static void take(void *context, const struct finding *finding)
{
    struct notes *notes = context;
    if (finding->code != DC210)
        fail_msg("%s: %s", code_name(finding->code), finding->what);
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
        assert_non_null(strstr(notes.what, "still running"));
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
    assert_int_equal(notes.finding.code, DC201);
    assert_int_equal(notes.finding.state, FINDING_OPEN);
    analyzer_free(analyzer);
    job_free(job);
}

enum { LATE_ROUNDS = 4200, IDS = LATE_ROUNDS + 64 };

struct rounds {
    bool seen[IDS];
    uint32_t late, ended; /* different findings; DC205 */
    uint64_t times;       /* of the last of DC210 */
};

static void note_round(void *context, const struct finding *finding)
{
    struct rounds *rounds = context;
    bool is_late = finding->code == DC210;
    if (finding->id < IDS && !rounds->seen[finding->id]) {
        rounds->seen[finding->id] = true;
        rounds->late += is_late;
        rounds->ended += finding->code == DC205;
    }
    if (is_late)
        rounds->times = finding->times;
}

/* Rank 3 is late in each of more rounds than there are findings of one check, and then dies. */
static void late_rounds_hide_no_error(void **state)
{
    (void)state;
    static struct rounds rounds;
    struct job *job = job_new(RANKS);
    job_init(job, WORLD, 0, RANKS - 1);
    job_init(job, CONTROL, 3, 3);
    for (int round = 0; round < LATE_ROUNDS; round++) {
        for (int rank = 0; rank < RANKS - 1; rank++) {
            ALL_REDUCE(job, rank, WORLD, 8);
            wait_enter(job, rank, API_cudaStreamSynchronize, 0);
        }
        for (int i = 0; i < 2; i++) {
            ticks(job, 250);
            ALL_REDUCE(job, 3, CONTROL, 1, .stream = OTHER);
        }
        ticks(job, 250);
        ALL_REDUCE(job, 3, WORLD, 8);
        for (int rank = 0; rank < RANKS; rank++)
            gpu_done(job, rank, WORLD, 0);
        ticks(job, 250);
        for (int rank = 0; rank < RANKS - 1; rank++)
            wait_done(job, rank, API_cudaStreamSynchronize, 0);
    }
    for (int rank = 0; rank < RANKS - 1; rank++) {
        ALL_REDUCE(job, rank, WORLD, 8);
        wait_enter(job, rank, API_cudaStreamSynchronize, 0);
    }
    end(job, 3, END_SIGNAL, 11, false);
    ticks(job, 5000);
    const struct analyzer_options options = {
        .on_finding = note_round, .context = &rounds, .hang_after_ns = 500000000};
    struct analyzer *analyzer = job_analyzer(job, &options);
    assert_int_equal(analyzer_finish(analyzer), 0);
    analyzer_free(analyzer);
    job_free(job);
    assert_int_equal(rounds.late, 1);
    assert_int_equal(rounds.times, LATE_ROUNDS);
    assert_int_equal(rounds.ended, 1);
}

/* Rank 0 left a wait by a longjmp, so that the end of that call is counted as lost. What it did
 * since is recorded: that all wait, or that rank 0 is missing. */
static void a_jump_hides_no_hang_that_follows(void **state)
{
    (void)state;
    for (int is_missing = 0; is_missing < 2; is_missing++) {
        struct job *job = job_new(RANKS);
        struct verdict verdict;
        job_init(job, WORLD, 0, RANKS - 1);
        for (int rank = 0; rank < RANKS; rank++) {
            ALL_REDUCE(job, rank, WORLD, 100);
            wait_enter(job, rank, API_cudaStreamSynchronize, 0);
            gpu_done(job, rank, WORLD, 0);
            if (rank > 0)
                call_leave(job, rank);
        }
        struct record blind = {.api = API_notice_blind, .range.id = UNSEEN_LEFT};
        job_record(job, 0, blind);
        job_lose(job, 0, 1);
        wait_done(job, 0, API_cudaStreamSynchronize, 0);
        for (int rank = is_missing; rank < RANKS; rank++) {
            ALL_REDUCE(job, rank, WORLD, 100);
            wait_enter(job, rank, API_cudaStreamSynchronize, 0);
        }
        ticks(job, 12000);
        job_analyze(job, 0, &verdict);
        const struct found *found = NULL;
        for (int i = 0; i < verdict.count && !found; i++)
            if (!strncmp(verdict.found[i].code, "DC2", 3))
                found = &verdict.found[i];
        assert_non_null(found);
        assert_string_equal(found->code, is_missing ? "DC201" : "DC211");
        assert_string_equal(found->ranks[is_missing], is_missing ? "0" : "0-3");
        job_free(job);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(awaited_message_is_reported_once),
        cmocka_unit_test(working_rank_is_late),
        cmocka_unit_test(what_is_queued_behind_is_not_late),
        cmocka_unit_test(queued_message_hides_no_late_one),
        cmocka_unit_test(late_rank_falls_silent),
        cmocka_unit_test(a_jump_hides_no_hang_that_follows),
        cmocka_unit_test(late_rounds_hide_no_error),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
