#include "verdict.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define REALTIME_OFFSET_NS UINT64_C(1700000000000000000)

struct collected {
    struct verdict *verdict;
    uint64_t now_ns;
    struct found all[JOB_FINDINGS_MAX];
    int count;
};

static void take(void *context, const struct finding *finding)
{
    struct collected *collected = context;
    assert_in_range(finding->id, 1, JOB_FINDINGS_MAX);
    struct found *found = &collected->all[finding->id - 1];
    uint64_t seen_ns = found->seen_ns ? found->seen_ns : collected->now_ns;
    *found = (struct found){
        .severity = finding->severity,
        .certainty = finding->certainty,
        .state = finding->state,
        .comm = finding->comm,
        .number = finding->number,
        .times = finding->times,
        .fingerprint = finding->fingerprint,
        .sides = finding->sides,
        .seen_ns = seen_ns,
    };
    snprintf(found->code, sizeof found->code, "%s", code_name(finding->code));
    snprintf(found->what, sizeof found->what, "%s", finding->what);
    snprintf(found->todo, sizeof found->todo, "%s", finding->todo);
    assert_true(finding->todo && *finding->todo);
    for (int i = 0; i < finding->sides; i++) {
        rankset_text(&finding->side[i].ranks, found->ranks[i], sizeof found->ranks[i]);
        snprintf(found->call[i], sizeof found->call[i], "%s", finding->side[i].call);
        snprintf(found->where[i], sizeof found->where[i], "%s", finding->side[i].where);
        found->stack[i] = finding->side[i].stack;
        assert_non_null(finding->side[i].phase);
    }
    if ((int)finding->id > collected->count)
        collected->count = (int)finding->id;
}

/* The rank whose the i-th record is; -1: a tick, or past the end. */
static int rank_of(const struct job *job, size_t i)
{
    struct record record;
    int rank;
    return job_event(job, i, &rank, &record) ? rank : -1;
}

static void feed(const struct job *job, struct analyzer *analyzer, struct collected *collected,
                 size_t i)
{
    struct record record;
    int rank;
    assert_true(job_event(job, i, &rank, &record));
    collected->now_ns = record.time_ns;
    assert_int_equal(analyzer_feed(analyzer, rank < 0 ? 0 : rank, &record), 0);
}

/* Feeds events first .. last - 1, no ticks among them, in each process's order. */
static void feed_mixed(struct job *job, struct analyzer *analyzer, struct collected *collected,
                       size_t first, size_t last, uint64_t *state)
{
    size_t next[JOB_RANKS_MAX];
    for (int rank = 0; rank < job_ranks(job); rank++)
        next[rank] = first;
    for (size_t fed = first; fed < last;) {
        int rank = (int)(draw(state) % (uint64_t)job_ranks(job));
        size_t run = 1 + draw(state) % 20;
        for (; next[rank] < last && run; next[rank]++)
            if (rank_of(job, next[rank]) == rank) {
                feed(job, analyzer, collected, next[rank]);
                fed++;
                run--;
            }
    }
}

static void feed_by_rank(struct job *job, struct analyzer *analyzer, struct collected *collected,
                         size_t first, size_t last, bool backwards)
{
    for (int turn = 0; turn < job_ranks(job); turn++)
        for (size_t i = first; i < last; i++)
            if (rank_of(job, i) == (backwards ? job_ranks(job) - 1 - turn : turn))
                feed(job, analyzer, collected, i);
}

static void list(char *text, size_t bytes, const struct found *found, int side)
{
    size_t length = strlen(text);
    snprintf(text + length, bytes - length, "%s%s:%s ", found->code,
             found->certainty == POSSIBLE && found->severity == SEVERITY_NOTE ? "?" : "",
             side < 0 ? "" : found->ranks[side]);
}

/* How slow a job is: a note or a warning, by what it costs. */
static bool is_slow(const struct found *found)
{
    return !strncmp(found->code, "DC6", 3);
}

void job_analyze(struct job *job, uint64_t seed, struct verdict *verdict)
{
    static struct collected collected;
    memset(&collected, 0, sizeof collected);
    const struct analyzer_options options = {.on_finding = take, .context = &collected};
    struct analyzer *analyzer = analyzer_new(&options);
    assert_non_null(analyzer);
    bool is_import;
    uint32_t lacks = job_lacks(job, &is_import);
    for (int rank = 0; rank < job_ranks(job); rank++) {
        int shown, ranks;
        uint64_t started_ns;
        int restart = job_incarnation(job, rank, &shown, &ranks, &started_ns);
        struct process_info info = {
            .pid = 1000 + rank,
            .start_ticks = is_import ? 0 : 77,
            .lacks = lacks,
            .rank = shown,
            .local_rank = shown,
            .world_size = ranks,
            .restart = restart,
            .realtime_ns = REALTIME_OFFSET_NS + started_ns,
            .monotonic_ns = started_ns,
            .host = "node1",
            .boot_id = "boot1",
        };
        assert_int_equal(analyzer_add_process(analyzer, rank, &info), 0);
    }
    struct record record;
    for (size_t i = 0; job_event(job, i, &(int){0}, &record);) {
        size_t last = i;
        while (rank_of(job, last) >= 0)
            last++;
        if (seed >= BY_RANK_BACKWARDS)
            feed_by_rank(job, analyzer, &collected, i, last, seed == BY_RANK_BACKWARDS);
        else if (seed)
            feed_mixed(job, analyzer, &collected, i, last, &seed);
        else
            for (size_t k = i; k < last; k++)
                feed(job, analyzer, &collected, k);
        i = last;
        if (job_event(job, i, &(int){0}, &record)) /* a tick */
            feed(job, analyzer, &collected, i++);
    }
    assert_int_equal(analyzer_finish(analyzer), 0);
    *verdict = (struct verdict){.skipped = analyzer_skipped(analyzer)};
    for (int i = 0; i < collected.count; i++) {
        const struct found *found = &collected.all[i];
        if (found->state == FINDING_OPEN && found->severity != SEVERITY_NOTE && !is_slow(found))
            verdict->found[verdict->count++] = *found;
        else if (found->state == FINDING_OPEN) {
            list(verdict->notes, sizeof verdict->notes, found, 0);
            verdict->last_note = *found;
        } else
            list(verdict->resolved, sizeof verdict->resolved, found, found->sides - 1);
    }
    analyzer_free(analyzer);
}

const struct found *expect_in(struct job *job, struct verdict *verdict, const char *code)
{
    job_analyze(job, 0, verdict);
    if (verdict->count != (code != NULL) || (code && strcmp(verdict->found[0].code, code))) {
        print_message("expected %s, got %d findings:\n", code ? code : "none", verdict->count);
        for (int i = 0; i < verdict->count; i++)
            print_message("  %s: %s\n", verdict->found[i].code, verdict->found[i].what);
        fail();
    }
    assert_int_equal(verdict->skipped, 0);
    return &verdict->found[0];
}

void assert_has(const char *text, const char *part)
{
    if (!strstr(text, part))
        fail_msg("\"%s\" is not in \"%s\"", part, text);
}
