/* findings.c: keeps findings, merges repetitions, suppresses consequences and passes the rest on.
 */
#include "analyzer/findings.h"

#include <stdlib.h>
#include <string.h>

#include "analyzer/model/array.h"
#include "analyzer/model/process.h"

/* What `cause` says explains a finding of this check that began then. */
static bool explains_check(const struct reported *cause, const struct check *check,
                           uint64_t first_ns)
{
    return check_explains(cause->check, check->code, cause->finding.first_ns <= first_ns);
}

void draft_drop(struct draft *draft)
{
    finding_free(&draft->finding);
    rankset_free(&draft->processes);
}

/* In an order that does not depend on which side came first. Where the sides of several ranks are
 * merged, the peer of a send or receive does not count: it differs between ranks that do the same.
 */
static void add_fingerprints(struct draft *draft)
{
    struct finding *finding = &draft->finding;
    uint64_t sides = 0, first_sides = 0;
    for (int i = 0; i < finding->sides; i++) {
        sides += act_hash(&finding->side[i].act, draft->merges_sides);
        first_sides += act_first_hash(&finding->side[i].act, draft->merges_sides);
    }
    uint64_t code = hash_text(HASH_START, finding->code);
    if (!finding->is_taken) /* it came with that of all that its host knew */
        finding->fingerprint = hash_bytes(code, &sides, sizeof sides);
    finding->first_fingerprint = hash_bytes(code, &first_sides, sizeof first_sides);
}

static bool sets_meet(const struct rankset *a, const struct rankset *b)
{
    for (uint32_t i = 0; i < a->words && i < b->words; i++)
        if (a->bits[i] & b->bits[i])
            return true;
    return false;
}

static uint64_t set_word(const struct rankset *set, uint32_t i)
{
    return i < set->words ? set->bits[i] : 0;
}

static bool sets_equal(const struct rankset *a, const struct rankset *b)
{
    for (uint32_t i = 0; i < a->words || i < b->words; i++)
        if (set_word(a, i) != set_word(b, i))
            return false;
    return true;
}

static bool set_add_all(struct rankset *to, const struct rankset *from)
{
    for (int rank = rankset_next(from, 0); rank >= 0; rank = rankset_next(from, rank + 1))
        if (rankset_add(to, rank))
            return false;
    return true;
}

static bool concerns(const struct reported *reported, uint64_t comm,
                     const struct rankset *processes)
{
    return (comm && reported->finding.comm == comm) || sets_meet(&reported->processes, processes);
}

static bool is_open(const struct reported *reported)
{
    return !reported->suppressed && reported->finding.state == FINDING_OPEN;
}

static bool stands(const struct reported *reported)
{
    return is_open(reported) || (reported->over && !reported->suppressed);
}

/* A finding that stands explains the one in the making. */
static bool is_explained(const struct analyzer *analyzer, const struct draft *draft)
{
    const struct finding *finding = &draft->finding;
    for (uint32_t i = 0; i < analyzer->reported_count; i++) {
        const struct reported *reported = &analyzer->reported[i];
        bool weaker = reported->finding.certainty == POSSIBLE && finding->certainty == CERTAIN &&
                      reported->check->family == FAMILY_HANG && draft->check->family == FAMILY_HANG;
        if (stands(reported) && !weaker &&
            explains_check(reported, draft->check, finding->first_ns) &&
            concerns(reported, finding->comm, &draft->processes))
            return true;
    }
    return false;
}

uint32_t findings_find(const struct analyzer *analyzer, enum code code, uint64_t comm,
                       uint64_t number)
{
    for (uint32_t i = 0; i < analyzer->reported_count; i++) {
        const struct finding *finding = &analyzer->reported[i].finding;
        if (stands(&analyzer->reported[i]) && analyzer->reported[i].check->code == code &&
            finding->comm == comm && finding->number == number)
            return finding->id;
    }
    return 0;
}

static void notify(struct analyzer *analyzer, struct reported *reported)
{
    reported->notified_times = reported->finding.times;
    if (analyzer->options.on_finding)
        analyzer->options.on_finding(analyzer->options.context, &reported->finding);
}

static void resolve(struct analyzer *analyzer, struct reported *reported, const char *how)
{
    struct text text = {0};
    text_add(&text, "%s (%s)", reported->finding.what, how);
    char *what = text_take(&text);
    if (what) {
        free(reported->finding.what);
        reported->finding.what = what;
    }
    reported->finding.state = FINDING_RESOLVED;
    reported->finding.severity = SEVERITY_NOTE;
    notify(analyzer, reported);
}

void findings_resolve(struct analyzer *analyzer, uint32_t id, const char *how)
{
    resolve(analyzer, &analyzer->reported[id - 1], how);
}

void findings_close(struct analyzer *analyzer, uint32_t id, const char *how)
{
    analyzer->reported[id - 1].over = true;
    findings_resolve(analyzer, id, how);
}

/* A cause that is found after its consequence (records of another rank came later) takes its place.
 */
static void suppress_consequences(struct analyzer *analyzer, const struct reported *cause)
{
    bool cause_precedes = cause->check->family != FAMILY_HANG;
    for (uint32_t i = 0; i < analyzer->reported_count; i++) {
        struct reported *reported = &analyzer->reported[i];
        bool was_a_guess =
            reported->check->code == DC204 || /* it predicted what has come now */
            (reported->check->family == FAMILY_HANG && reported->finding.certainty == POSSIBLE &&
             reported->finding.severity == SEVERITY_ERROR && cause->finding.certainty == CERTAIN);
        if (!cause_precedes && !was_a_guess)
            continue;
        if (reported == cause || !is_open(reported) ||
            !explains_check(cause, reported->check, reported->finding.first_ns) ||
            !concerns(reported, cause->finding.comm, &cause->processes))
            continue;
        struct text how = {0};
        reported->finding.is_consequence = true;
        text_add(&how, "a consequence of %s", cause->finding.code);
        char *text = text_take(&how);
        resolve(analyzer, reported, text ? text : "a consequence");
        reported->suppressed = true;
        free(text);
    }
}

void findings_count(struct analyzer *analyzer, uint32_t id, uint64_t time_ns)
{
    struct reported *reported = &analyzer->reported[id - 1];
    reported->finding.times++;
    if (reported->finding.last_ns < time_ns)
        reported->finding.last_ns = time_ns;
    /* One notice for each doubling: a fault in every iteration must not flood the store. */
    if (reported->finding.times >= 2 * reported->notified_times)
        notify(analyzer, reported);
}

/* The same thing, known already: the same code, communicator and calls, by the same ranks. */
static struct reported *find_same(struct analyzer *analyzer, const struct draft *draft)
{
    for (uint32_t i = 0; i < analyzer->reported_count; i++) {
        struct reported *reported = &analyzer->reported[i];
        const struct finding *finding = &reported->finding;
        if (!is_open(reported) || finding->fingerprint != draft->finding.fingerprint ||
            reported->check != draft->check || finding->comm != draft->finding.comm ||
            finding->sides != draft->finding.sides)
            continue;
        bool same = true;
        for (int k = 0; k < finding->sides && !draft->merges_ranks && !draft->merges_sides; k++)
            same = same && sets_equal(&finding->side[k].ranks, &draft->finding.side[k].ranks);
        if (same)
            return reported;
    }
    return NULL;
}

static void join(struct analyzer *analyzer, struct reported *reported, struct draft *draft)
{
    int before = rankset_count(&reported->finding.side[0].ranks);
    bool ok = set_add_all(&reported->processes, &draft->processes);
    int joined = draft->merges_sides ? draft->finding.sides
                                     : draft->merges_ranks && draft->finding.sides;
    for (int k = 0; k < joined; k++)
        ok = ok && set_add_all(&reported->finding.side[k].ranks, &draft->finding.side[k].ranks);
    if (draft->finding.first_ns < reported->finding.first_ns)
        reported->finding.first_ns = draft->finding.first_ns;
    if (draft->finding.sides && rankset_count(&reported->finding.side[0].ranks) != before)
        reported->notified_times = 0;
    if (reported->finding.is_taken == draft->finding.is_taken)
        findings_count(analyzer, reported->finding.id, draft->finding.last_ns);
    else if (!reported->notified_times) /* host and hub have seen the same */
        notify(analyzer, reported);
    draft_drop(draft);
    if (!ok)
        analyzer->failed = true;
}

enum { FINDINGS_MAX = 4096 }; /* more different ones help nobody; they are dropped */

static struct reported *reported_new(struct analyzer *analyzer)
{
    struct reported *grown = array_room(analyzer->reported, sizeof *grown, analyzer->reported_count,
                                        &analyzer->reported_capacity, 16);
    if (!grown)
        return NULL;
    analyzer->reported = grown;
    return &analyzer->reported[analyzer->reported_count++];
}

/* What a source can't say must not be judged of its ranks, whatever a check made of the blanks. */
static bool is_beyond_source(const struct analyzer *analyzer, const struct draft *draft)
{
    const struct finding *finding = &draft->finding;
    for (int i = 0; i < finding->sides; i++) {
        int process = finding->side[i].process;
        if (process >= 0 && process < analyzer->processes && analyzer->process[process] &&
            analyzer->process[process]->info.lacks & draft->check->needs)
            return true;
    }
    return false;
}

static void take_merging(struct draft *draft)
{
    draft->finding.merges_ranks = draft->merges_ranks;
    draft->finding.merges_sides = draft->merges_sides;
}

void findings_report(struct analyzer *analyzer, struct draft *draft, uint32_t *id)
{
    if (id)
        *id = 0;
    if (is_beyond_source(analyzer, draft)) {
        draft_drop(draft);
        return;
    }
    take_merging(draft);
    add_fingerprints(draft);
    struct reported *same = draft->failed ? NULL : find_same(analyzer, draft);
    if (same) {
        if (id)
            *id = same->finding.id;
        join(analyzer, same, draft);
        return;
    }
    if (!draft->failed &&
        (analyzer->reported_count >= FINDINGS_MAX || is_explained(analyzer, draft))) {
        draft_drop(draft);
        return;
    }
    struct reported *reported = draft->failed ? NULL : reported_new(analyzer);
    if (!reported) {
        analyzer->failed = true;
        draft_drop(draft);
        return;
    }
    *reported = (struct reported){.check = draft->check,
                                  .finding = draft->finding,
                                  .processes = draft->processes,
                                  .is_wait = draft->is_wait};
    reported->finding.id = analyzer->reported_count;
    if (id)
        *id = reported->finding.id;
    notify(analyzer, reported);
    suppress_consequences(analyzer, reported);
}

void findings_replace(struct analyzer *analyzer, uint32_t id, struct draft *draft)
{
    if (draft->failed) {
        analyzer->failed = true;
        draft_drop(draft);
        return;
    }
    struct reported *reported = &analyzer->reported[id - 1];
    if (reported->suppressed) {
        draft_drop(draft);
        return;
    }
    draft->finding.id = id;
    draft->finding.times = reported->finding.times;
    uint64_t first_ns = reported->finding.first_ns; /* 0: not known */
    if (first_ns && first_ns < draft->finding.first_ns)
        draft->finding.first_ns = first_ns;
    if (draft->finding.last_ns < reported->finding.last_ns)
        draft->finding.last_ns = reported->finding.last_ns;
    take_merging(draft);
    add_fingerprints(draft);
    finding_free(&reported->finding);
    rankset_free(&reported->processes);
    reported->check = draft->check;
    reported->finding = draft->finding;
    reported->processes = draft->processes;
    notify(analyzer, reported);
    suppress_consequences(analyzer, reported);
}

/* The host takes it back. */
static void withdraw_taken(struct analyzer *analyzer, struct reported *reported,
                           struct draft *draft)
{
    if (reported->finding.state == FINDING_OPEN) {
        free(reported->finding.what);
        reported->finding.what = draft->finding.what;
        draft->finding.what = NULL;
        reported->finding.is_consequence = draft->finding.is_consequence;
        reported->finding.state = FINDING_RESOLVED;
        reported->finding.severity = SEVERITY_NOTE;
        notify(analyzer, reported);
    }
    draft_drop(draft);
}

static void renew_taken(struct analyzer *analyzer, uint32_t id, struct draft *draft)
{
    struct reported *reported = &analyzer->reported[id - 1];
    bool is_own =
        !reported->finding.is_taken; /* found here as well, and judged here from then on */
    if (is_own && finding_can_join(&reported->finding, &draft->finding)) {
        join(analyzer, reported, draft);
    } else if (is_own || draft->failed) {
        analyzer->failed |= draft->failed;
        draft_drop(draft);
    } else if (draft->finding.state == FINDING_RESOLVED) {
        withdraw_taken(analyzer, reported, draft);
    } else {
        reported->finding.times = draft->finding.times;
        findings_replace(analyzer, id, draft);
    }
}

void findings_take(struct analyzer *analyzer, struct draft *draft, uint32_t *id)
{
    if (*id)
        renew_taken(analyzer, *id, draft);
    else if (draft->finding.state == FINDING_OPEN)
        findings_report(analyzer, draft, id);
    else
        draft_drop(draft);
}

void findings_flush(struct analyzer *analyzer)
{
    for (uint32_t i = 0; i < analyzer->reported_count; i++)
        if (analyzer->reported[i].notified_times != analyzer->reported[i].finding.times)
            notify(analyzer, &analyzer->reported[i]);
}

void findings_free(struct analyzer *analyzer)
{
    for (uint32_t i = 0; i < analyzer->reported_count; i++) {
        finding_free(&analyzer->reported[i].finding);
        rankset_free(&analyzer->reported[i].processes);
    }
    free(analyzer->reported);
}

static int worse_first(const void *left, const void *right)
{
    const struct finding *a = *(const struct finding *const *)left,
                         *b = *(const struct finding *const *)right;
    if (a->severity != b->severity)
        return a->severity < b->severity ? -1 : 1;
    if (a->certainty != b->certainty)
        return a->certainty < b->certainty ? -1 : 1;
    if (a->first_ns != b->first_ns)
        return a->first_ns < b->first_ns ? -1 : 1;
    return a->id < b->id ? -1 : 1;
}

void analyzer_visit_findings(struct analyzer *analyzer,
                             void (*visit)(void *context, const struct finding *finding),
                             void *context)
{
    const struct finding **sorted = calloc(analyzer->reported_count + 1, sizeof(*sorted));
    for (uint32_t i = 0; i < analyzer->reported_count; i++) {
        if (sorted)
            sorted[i] = &analyzer->reported[i].finding;
        else
            visit(context,
                  &analyzer->reported[i].finding); /* memory is short: in order of their coming */
    }
    if (sorted)
        qsort(sorted, analyzer->reported_count, sizeof(*sorted), worse_first);
    for (uint32_t i = 0; sorted && i < analyzer->reported_count; i++)
        visit(context, sorted[i]);
    free(sorted);
}
