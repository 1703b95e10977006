/* findings.c: keeps findings, merges repetitions, suppresses consequences and passes the rest on.
 */
#include "analyzer/findings.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analyzer/consequence.h"
#include "analyzer/environment/environment.h"
#include "analyzer/model/process.h"
#include "lib/base/invariant.h"

static struct symptom symptom_of(const struct reported *reported)
{
    return (struct symptom){reported->check, &reported->finding, reported->held_ns};
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

/* The one in the making is a consequence of a finding that stands. */
static bool is_explained(const struct analyzer *analyzer, const struct draft *draft)
{
    const struct symptom symptom = {draft->check, &draft->finding,
                                    draft_held_since(analyzer, draft)};
    for (uint32_t i = 0; i < analyzer->reported_count; i++) {
        const struct reported *reported = &analyzer->reported[i];
        const struct symptom cause = symptom_of(reported);
        if (stands(reported) && is_consequence(&symptom, &cause) &&
            concerns(reported, draft->finding.comm, &draft->processes))
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

void findings_notify(struct analyzer *analyzer, struct reported *reported)
{
    invariant(reported->finding.id, "a finding that is passed on has an id");
    reported->notified_times = reported->finding.times;
    if (analyzer->options.on_finding)
        analyzer->options.on_finding(analyzer->options.context, &reported->finding);
}

static void add_to_headline(struct analyzer *analyzer, struct reported *reported, const char *more)
{
    struct text text = {0};
    text_add(&text, "%s (%s)", reported->finding.what, more);
    char *what = text_take(&text);
    if (!what) {
        analyzer->failed = true;
        return;
    }
    free(reported->finding.what);
    reported->finding.what = what;
}

static void resolve(struct analyzer *analyzer, struct reported *reported, const char *how)
{
    add_to_headline(analyzer, reported, how);
    reported->finding.state = FINDING_RESOLVED;
    reported->finding.severity = SEVERITY_NOTE;
    findings_notify(analyzer, reported);
}

void findings_resolve(struct analyzer *analyzer, uint32_t id, const char *how)
{
    struct reported *reported = findings_of(analyzer, id);
    if (reported)
        resolve(analyzer, reported, how);
}

void findings_close(struct analyzer *analyzer, uint32_t id, const char *how)
{
    struct reported *reported = findings_of(analyzer, id);
    if (reported)
        reported->over = true;
    findings_resolve(analyzer, id, how);
}

/* It predicted what has come now, or said less. */
static bool was_a_guess(const struct reported *reported, const struct reported *cause)
{
    return reported->check->code == DC204 ||
           (reported->finding.certainty == POSSIBLE &&
            reported->finding.severity == SEVERITY_ERROR && cause->finding.certainty == CERTAIN);
}

/* A cause that is found after its consequence (records of another rank came later) takes its place.
 */
static void suppress_consequences(struct analyzer *analyzer, const struct reported *cause)
{
    const struct symptom causing = symptom_of(cause);
    for (uint32_t i = 0; i < analyzer->reported_count; i++) {
        struct reported *reported = &analyzer->reported[i];
        const struct symptom symptom = symptom_of(reported);
        bool are_hangs = code_family(cause->check->code) == FAMILY_HANG &&
                         code_family(reported->check->code) == FAMILY_HANG;
        if (reported == cause || !is_open(reported) || !is_consequence(&symptom, &causing) ||
            (are_hangs && !was_a_guess(reported, cause)) ||
            !concerns(reported, cause->finding.comm, &cause->processes))
            continue;
        struct text how = {0};
        reported->finding.is_consequence = true;
        text_add(&how, "a consequence of %s", code_name(cause->finding.code));
        char *text = text_take(&how);
        resolve(analyzer, reported, text ? text : "a consequence");
        reported->suppressed = true;
        free(text);
    }
}

void findings_count(struct analyzer *analyzer, uint32_t id, uint64_t time_ns)
{
    struct reported *reported = findings_of(analyzer, id);
    if (!reported)
        return;
    reported->finding.times++;
    if (reported->finding.last_ns < time_ns)
        reported->finding.last_ns = time_ns;
    /* One notice for each doubling: a fault in every iteration must not flood the store. */
    if (reported->finding.times >= 2 * reported->notified_times)
        findings_notify(analyzer, reported);
}

/* The same code, communicator and calls, by the same ranks. */
static bool is_of_same(const struct reported *reported, const struct draft *draft)
{
    const struct finding *finding = &reported->finding;
    if (finding->fingerprint != draft->finding.fingerprint || reported->check != draft->check ||
        finding->comm != draft->finding.comm || finding->sides != draft->finding.sides)
        return false;
    bool same = true;
    for (int k = 0; k < finding->sides && !draft->merges_ranks && !draft->merges_sides; k++)
        same = same && sets_equal(&finding->side[k].ranks, &draft->finding.side[k].ranks);
    return same;
}

/* What is known already. */
static struct reported *find_same(struct analyzer *analyzer, const struct draft *draft)
{
    for (uint32_t i = 0; i < analyzer->reported_count; i++)
        if (is_open(&analyzer->reported[i]) && is_of_same(&analyzer->reported[i], draft))
            return &analyzer->reported[i];
    return NULL;
}

void findings_join(struct analyzer *analyzer, struct reported *reported, struct draft *draft)
{
    int before = rankset_count(&reported->finding.side[0].ranks);
    int failed = rankset_unite(&reported->processes, &draft->processes);
    int joined = draft->merges_sides ? draft->finding.sides
                                     : draft->merges_ranks && draft->finding.sides;
    for (int k = 0; k < joined; k++)
        failed |= rankset_unite(&reported->finding.side[k].ranks, &draft->finding.side[k].ranks);
    if (draft->finding.first_ns < reported->finding.first_ns)
        reported->finding.first_ns = draft->finding.first_ns;
    bool is_worse = draft->finding.severity < reported->finding.severity;
    if (is_worse)
        reported->finding.severity = draft->finding.severity;
    if (is_worse ||
        (draft->finding.sides && rankset_count(&reported->finding.side[0].ranks) != before))
        reported->notified_times = 0;
    if (reported->finding.is_taken == draft->finding.is_taken)
        findings_count(analyzer, reported->finding.id, draft->finding.last_ns);
    else if (!reported->notified_times) /* host and hub have seen the same */
        findings_notify(analyzer, reported);
    draft_drop(draft);
    if (failed)
        analyzer->failed = true;
}

/* There are as many of the check as are kept. The last of them says so. */
static bool is_capped(struct analyzer *analyzer, const struct draft *draft)
{
    struct reported *last = NULL;
    uint32_t open = 0;
    char more[128];
    if (draft->finding.severity == SEVERITY_ERROR)
        return false;
    for (uint32_t i = 0; i < analyzer->reported_count; i++) {
        struct reported *reported = &analyzer->reported[i];
        if (reported->check == draft->check && is_open(reported) &&
            reported->finding.severity != SEVERITY_ERROR) {
            last = reported;
            open++;
        }
    }
    if (open < FINDINGS_MAX)
        return false;
    invariant(draft->finding.severity != SEVERITY_ERROR, "an error is never left out");
    if (!last->ends_list) {
        last->ends_list = true;
        snprintf(more, sizeof more, "this is number %d of %s; further ones are not listed",
                 FINDINGS_MAX, code_name(draft->finding.code));
        add_to_headline(analyzer, last, more);
        findings_notify(analyzer, last);
    }
    return true;
}

/* A rank that is late at one place again and again is one finding: the round that was over, as one
 * of the same ranks begins. NULL: there was none. */
static struct reported *find_late_round(struct analyzer *analyzer, const struct draft *draft)
{
    if (!draft->is_wait || draft->finding.severity == SEVERITY_ERROR)
        return NULL;
    for (uint32_t i = 0; i < analyzer->reported_count; i++) {
        struct reported *reported = &analyzer->reported[i];
        if (reported->is_wait && !reported->suppressed && !reported->over &&
            reported->finding.state == FINDING_RESOLVED && is_of_same(reported, draft))
            return reported;
    }
    return NULL;
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
    draft_add_fingerprint(draft);
    struct reported *same = draft->failed ? NULL : find_same(analyzer, draft);
    if (same) {
        if (id)
            *id = same->finding.id;
        findings_join(analyzer, same, draft);
        return;
    }
    if (!draft->failed && (is_explained(analyzer, draft) || is_capped(analyzer, draft))) {
        draft_drop(draft);
        return;
    }
    environment_explain(analyzer, draft);
    struct reported *round = draft->failed ? NULL : find_late_round(analyzer, draft);
    if (round) {
        if (id)
            *id = round->finding.id;
        round->finding.times++;
        round->finding.first_ns = 0; /* of this round */
        findings_replace(analyzer, round->finding.id, draft);
        return;
    }
    struct reported *reported = draft->failed ? NULL : findings_room(analyzer);
    if (!reported) {
        analyzer->failed = true;
        draft_drop(draft);
        return;
    }
    *reported = (struct reported){.check = draft->check,
                                  .finding = draft->finding,
                                  .processes = draft->processes,
                                  .held_ns = draft_held_since(analyzer, draft),
                                  .is_wait = draft->is_wait};
    reported->finding.id = ++analyzer->last_finding;
    invariant(analyzer->reported_count < 2 || reported[-1].finding.id < reported->finding.id,
              "ids of findings rise");
    if (id)
        *id = reported->finding.id;
    findings_notify(analyzer, reported);
    suppress_consequences(analyzer, reported);
}

void findings_replace(struct analyzer *analyzer, uint32_t id, struct draft *draft)
{
    if (draft->failed) {
        analyzer->failed = true;
        draft_drop(draft);
        return;
    }
    struct reported *reported = findings_of(analyzer, id);
    if (!reported || reported->suppressed) {
        draft_drop(draft);
        return;
    }
    invariant(reported->finding.id == id, "a finding that is replaced keeps its id");
    draft->finding.id = id;
    draft->finding.times = reported->finding.times;
    uint64_t first_ns = reported->finding.first_ns; /* 0: not known */
    if (first_ns && first_ns < draft->finding.first_ns)
        draft->finding.first_ns = first_ns;
    if (draft->finding.last_ns < reported->finding.last_ns)
        draft->finding.last_ns = reported->finding.last_ns;
    take_merging(draft);
    draft_add_fingerprint(draft);
    reported->held_ns = draft_held_since(analyzer, draft);
    finding_free(&reported->finding);
    rankset_free(&reported->processes);
    reported->check = draft->check;
    reported->finding = draft->finding;
    reported->processes = draft->processes;
    findings_notify(analyzer, reported);
    suppress_consequences(analyzer, reported);
}
