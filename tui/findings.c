/* findings.c: loads the findings of all databases, the worst first. */
#include "tui/findings.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/finding/finding_fix.h"
#include "lib/finding/finding_said.h"
#include "lib/trace/site.h"

enum { ID_BITS = 20 }; /* findings of one database */
enum { LINE_WIDTH = 256 };
/* The minor schema versions that have finding_act, finding_comm. */
enum { SINCE_ACTS = 4, SINCE_TITLES = 6 };

static void side_free(struct tui_side *side)
{
    free(side->ranks);
    free(side->call);
    free(side->phase);
    free(side->where);
    act_free(&side->act);
    act_free(&side->now);
}

static void finding_clear(struct tui_finding *finding)
{
    for (int k = 0; k < finding->sides; k++)
        side_free(&finding->side[k]);
    free(finding->code);
    free(finding->severity);
    free(finding->certainty);
    free(finding->state);
    free(finding->what);
    free(finding->todo);
    rankset_free(&finding->more);
}

void tui_findings_free(struct findings *findings)
{
    for (int i = 0; i < findings->count; i++)
        finding_clear(&findings->finding[i]);
    free(findings->finding);
    *findings = (struct findings){0};
}

static struct tui_finding *finding_of_id(const struct findings *findings, uint32_t id)
{
    for (int i = 0; i < findings->count; i++)
        if (findings->finding[i].id == id)
            return &findings->finding[i];
    return NULL;
}

const struct tui_finding *tui_findings_get(const struct findings *findings, uint32_t id)
{
    return finding_of_id(findings, id);
}

static uint32_t id_of(const struct cursor *row)
{
    return (uint32_t)row->database << ID_BITS | (uint32_t)cursor_number(row, 0);
}

static void take_finding(struct findings *findings, const struct cursor *row)
{
    struct tui_finding *grown =
        reallocarray(findings->finding, (size_t)findings->count + 1, sizeof *grown);
    if (!grown)
        return;
    findings->finding = grown;
    grown[findings->count++] = (struct tui_finding){
        .id = id_of(row),
        .code = strdup(cursor_text(row, 1)),
        .severity = strdup(cursor_text(row, 2)),
        .certainty = strdup(cursor_text(row, 3)),
        .state = strdup(cursor_text(row, 4)),
        .comm = (uint64_t)cursor_number(row, 5),
        .has_number = sqlite3_column_type(row->statement, 6) != SQLITE_NULL,
        .number = (uint64_t)cursor_number(row, 6),
        .first_ns = (uint64_t)cursor_number(row, 7),
        .last_ns = (uint64_t)cursor_number(row, 8),
        .times = (uint64_t)cursor_number(row, 9),
        .what = strdup(cursor_text(row, 10)),
        .todo = strdup(cursor_text(row, 11)),
        .fingerprint = (uint64_t)cursor_number(row, 12),
    };
}

static void take_side(struct findings *findings, const struct cursor *row)
{
    struct tui_finding *finding = finding_of_id(findings, id_of(row));
    if (!finding || finding->sides == TUI_SIDES_MAX)
        return;
    finding->side[finding->sides++] = (struct tui_side){
        .ranks = strdup(cursor_text(row, 1)),
        .process = cursor_process(row, 2),
        .call = strdup(cursor_text(row, 3)),
        .phase = strdup(cursor_text(row, 4)),
        .where = strdup(cursor_text(row, 5)),
        .since_ns = (uint64_t)cursor_number(row, 6),
        .stack = (uint64_t)cursor_number(row, 7),
        .stack_is_address = cursor_number(row, 8),
        .where_stack = (uint64_t)cursor_number(row, 9),
        .where_stack_is_address = cursor_number(row, 10),
    };
}

static bool is_whole(const struct findings *findings)
{
    for (int i = 0; i < findings->count; i++) {
        const struct tui_finding *finding = &findings->finding[i];
        if (!finding->code || !finding->severity || !finding->certainty || !finding->state ||
            !finding->what || !finding->todo)
            return false;
        for (int k = 0; k < finding->sides; k++)
            if (!finding->side[k].ranks || !finding->side[k].call || !finding->side[k].phase ||
                !finding->side[k].where)
                return false;
    }
    return true;
}

static int severity_of(const struct tui_finding *finding)
{
    if (!strcmp(finding->severity, "error"))
        return 0;
    return !strcmp(finding->severity, "warning") ? 1 : 2;
}

static int worst_first(const void *left, const void *right)
{
    const struct tui_finding *a = left, *b = right;
    int resolved = !strcmp(a->state, "resolved") - !strcmp(b->state, "resolved");
    int severity = severity_of(a) - severity_of(b);
    int possible = !strcmp(a->certainty, "possible") - !strcmp(b->certainty, "possible");
    if (resolved)
        return resolved;
    if (severity)
        return severity;
    if (possible)
        return possible;
    return a->first_ns < b->first_ns ? -1 : a->first_ns > b->first_ns;
}

static int each(struct findings *findings, struct source *source, const char *sql, int since,
                void (*take)(struct findings *findings, const struct cursor *row),
                struct error *err)
{
    struct cursor row = cursor_new(source->trace, sql, NULL, 0);
    int result;
    row.since_minor = since;
    while ((result = cursor_next(&row, err)) == 1)
        take(findings, &row);
    return result;
}

static struct tui_side *find_side(const struct findings *findings, const struct cursor *row)
{
    struct tui_finding *finding = finding_of_id(findings, id_of(row));
    int side = (int)cursor_number(row, 1);
    return finding && side >= 0 && side < finding->sides ? &finding->side[side] : NULL;
}

/* Columns 0-2 of finding_act and finding_call: finding, side, moment. */
static struct act *find_act(const struct findings *findings, const struct cursor *row)
{
    struct tui_side *side = find_side(findings, row);
    if (!side)
        return NULL;
    return strcmp(cursor_text(row, 2), "now") ? &side->act : &side->now;
}

static void take_act(struct findings *findings, const struct cursor *row)
{
    struct act *act = find_act(findings, row);
    const struct store_act stored = {.did = cursor_text(row, 3),
                                     .value = (int32_t)cursor_number(row, 4),
                                     .rank = (int32_t)cursor_number(row, 5),
                                     .number = (uint64_t)cursor_number(row, 6),
                                     .name = cursor_text(row, 7),
                                     .phase = cursor_text(row, 8)};
    const struct act taken = act_of_row(&stored);
    if (act && act_copy(act, &taken) < 0)
        act_free(act); /* the words of the database are shown */
}

static void take_call(struct findings *findings, const struct cursor *row)
{
    struct act *act = find_act(findings, row);
    const struct store_call call = {
        .role = cursor_text(row, 3),
        .kind = cursor_text(row, 4),
        .comm = (uint64_t)cursor_number(row, 5),
        .number = (uint64_t)cursor_number(row, 6),
        .called = {.api = (uint16_t)cursor_number(row, 7),
                   .arguments = (uint16_t)cursor_number(row, 8),
                   .datatype = (uint8_t)cursor_number(row, 9),
                   .redop = (uint8_t)cursor_number(row, 10),
                   .peer = (int32_t)cursor_number(row, 11),
                   .size = (int32_t)cursor_number(row, 12),
                   .count = (uint64_t)cursor_number(row, 13),
                   .bytes = (uint64_t)cursor_number(row, 14)},
    };
    if (act)
        act_take_call(act, &call);
}

static void take_title(struct findings *findings, const struct cursor *row)
{
    uint64_t comm = (uint64_t)cursor_number(row, 0);
    for (int i = 0; i < findings->count; i++)
        for (int k = 0; k < findings->finding[i].sides; k++) {
            act_take_title(&findings->finding[i].side[k].act, comm, cursor_text(row, 1));
            act_take_title(&findings->finding[i].side[k].now, comm, cursor_text(row, 1));
        }
}

static void write_words(const struct act *act, char **words)
{
    char *made = act->did != DID_OTHER || act->name ? act_words(act) : NULL;
    if (!made)
        return;
    free(*words);
    *words = made;
}

static int load_acts(struct findings *findings, struct source *source, struct error *err)
{
    static const char acts[] =
        "SELECT finding, side, moment, did, value, rank, number, name, phase "
        "FROM finding_act";
    static const char calls[] = "SELECT finding, side, moment, role, kind, comm, number, api, "
                                "arguments, datatype, redop, peer, size, count, bytes "
                                "FROM finding_call";
    static const char titles[] = "SELECT comm, title FROM finding_comm";
    if (each(findings, source, acts, SINCE_ACTS, take_act, err) < 0 ||
        each(findings, source, calls, SINCE_ACTS, take_call, err) < 0 ||
        each(findings, source, titles, SINCE_TITLES, take_title, err) < 0)
        return -1;
    for (int i = 0; i < findings->count; i++)
        for (int k = 0; k < findings->finding[i].sides; k++) {
            struct tui_side *side = &findings->finding[i].side[k];
            write_words(&side->act, &side->call);
            write_words(&side->now, &side->where);
        }
    return 0;
}

/* The user's line of the first side that has one; "" if none is known. Returns text. */
static char *user_line_of(struct source *source, const struct tui_finding *finding, char *text,
                          size_t bytes)
{
    struct frame frame[SITE_FRAMES_MAX];
    *text = '\0';
    for (int i = 0; i < finding->sides && !*text; i++) {
        const struct tui_side *side = &finding->side[i];
        int found = site_user_frame(frame, site_frames(source->trace, side->process, side->stack,
                                                       side->stack_is_address, frame));
        if (found >= 0)
            frame_place(&frame[found], LINE_WIDTH, text, bytes);
    }
    return text;
}

/* As fault_is_same (lib/finding/fault.h). */
static bool is_one_fault(struct source *source, const struct tui_finding *a,
                         const struct tui_finding *b)
{
    char line[LINE_WIDTH], other[LINE_WIDTH];
    if (strcmp(a->code, b->code) || strcmp(a->certainty, b->certainty) ||
        strcmp(a->state, b->state))
        return false;
    if (a->fingerprint == b->fingerprint)
        return true;
    return *user_line_of(source, a, line, sizeof line) &&
           !strcmp(line, user_line_of(source, b, other, sizeof other));
}

static void unite_fault(struct tui_finding *kept, const struct tui_finding *other)
{
    kept->others++;
    kept->times += other->times;
    if (other->last_ns > kept->last_ns)
        kept->last_ns = other->last_ns;
    for (int i = 0; i < other->sides; i++)
        rankset_parse(&kept->more, other->side[i].ranks);
}

/* As finding_fix (lib/finding/finding_fix.h). */
static void choose_fixes(struct findings *findings, struct source *source)
{
    for (int i = 0; i < findings->count; i++) {
        struct tui_finding *finding = &findings->finding[i];
        struct fix_place place[TUI_SIDES_MAX];
        for (int k = 0; k < finding->sides; k++)
            place[k] = (struct fix_place){
                .process = finding->side[k].process,
                .stack = finding->side[k].stack,
                .stack_is_address = finding->side[k].stack_is_address,
            };
        const char *fix =
            fix_of_places(source->trace, finding->code, finding->todo, place, finding->sides);
        char *copy = fix != finding->todo ? strdup(fix) : NULL;
        if (!copy)
            continue;
        free(finding->todo);
        finding->todo = copy;
    }
}

static void name_calls(struct findings *findings, struct source *source)
{
    for (int i = 0; i < findings->count; i++) {
        struct tui_finding *finding = &findings->finding[i];
        struct said_side side[TUI_SIDES_MAX];
        for (int k = 0; k < finding->sides; k++)
            side[k] = (struct said_side){
                .act = &finding->side[k].act,
                .call = finding->side[k].call,
                .process = finding->side[k].process,
                .stack = finding->side[k].stack,
                .stack_is_address = finding->side[k].stack_is_address,
            };
        char *said = said_with_names(source->trace, finding->what, side, finding->sides);
        if (!said)
            continue;
        free(finding->what);
        finding->what = said;
    }
}

/* One fault is one finding: the first of it, which is the worst, stays in the list. */
static void merge_faults(struct findings *findings, struct source *source)
{
    int kept = 0;
    for (int i = 0; i < findings->count; i++) {
        struct tui_finding finding = findings->finding[i];
        int same = 0;
        while (same < kept && !is_one_fault(source, &findings->finding[same], &finding))
            same++;
        if (same == kept) {
            findings->finding[kept++] = finding;
            continue;
        }
        unite_fault(&findings->finding[same], &finding);
        finding_clear(&finding);
    }
    findings->count = kept;
}

int tui_findings_load(struct findings *findings, struct source *source, struct error *err)
{
    *findings = (struct findings){0};
    if (each(findings, source,
             "SELECT id, code, severity, certainty, state, comm, number, first_ns, last_ns, times, "
             "what, todo, fingerprint "
             "FROM finding ORDER BY id",
             0, take_finding, err) < 0 ||
        each(findings, source,
             "SELECT finding, ranks, process, call, phase, \"where\", since_ns, stack, "
             "stack_is_address, "
             "where_stack, where_stack_is_address FROM finding_side ORDER BY finding, side",
             0, take_side, err) < 0 ||
        load_acts(findings, source, err) < 0 ||
        (!is_whole(findings) && error_set(err, "can't show the findings: memory is short"))) {
        tui_findings_free(findings);
        return -1;
    }
    if (findings->count)
        qsort(findings->finding, (size_t)findings->count, sizeof *findings->finding, worst_first);
    choose_fixes(findings, source);
    name_calls(findings, source);
    merge_faults(findings, source);
    return 0;
}

int findings_worst_comm(struct source *source, uint64_t *comm, struct error *err)
{
    struct findings findings;
    if (tui_findings_load(&findings, source, err) < 0)
        return -1;
    *comm = findings.count && strcmp(findings.finding[0].state, "resolved")
                ? findings.finding[0].comm
                : 0;
    tui_findings_free(&findings);
    return 0;
}

enum tone finding_tone(const struct tui_finding *finding)
{
    static const enum tone tones[] = {TONE_ERROR, TONE_WARNING, TONE_NOTE};
    return strcmp(finding->state, "resolved") ? tones[severity_of(finding)] : TONE_FAINT;
}

char *finding_ranks(const struct tui_finding *finding, char *text, size_t bytes)
{
    struct rankset all = {0};
    for (int i = 0; i < finding->sides; i++)
        rankset_parse(&all, finding->side[i].ranks);
    rankset_unite(&all, &finding->more);
    rankset_text(&all, text, bytes);
    rankset_free(&all);
    return text;
}
