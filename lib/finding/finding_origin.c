/* finding_origin.c: compares the lines at which a member of each side of a finding made the calls
 * that NCCL matched before it. */
#include "lib/finding/finding_origin.h"

#include <stdlib.h>
#include <string.h>

#include "lib/base/text.h"
#include "lib/finding/finding_fix.h"
#include "lib/finding/finding_said.h"
#include "lib/finding/first_divergence.h"
#include "lib/finding/member_calls.h"
#include "lib/finding/origin_branch.h"
#include "lib/finding/origin_place.h"
#include "lib/trace/names.h"

/* Calls before the finding, and such as were made after it: they show a shift as well. */
enum { CALLS_BEFORE = 1024, CALLS_AFTER = 8, CALLS_OF_ORDER = 64 /* that are in another order */ };

static bool is_about_messages(const struct finding *finding)
{
    return api_class_of(finding->side[0].act.call.api) == CLASS_P2P;
}

/* Its sides are at different calls. Collectives are numbered in the order in which they are
 * matched, messages in that of the two ranks. */
static bool is_about_order(const struct finding *finding)
{
    static const enum code codes[] = {DC101, DC102, DC107, DC108, DC110, DC201, DC202,
                                      DC203, DC205, DC206, DC504, DC505, DC507};
    bool is_one = false;
    for (size_t i = 0; i < sizeof codes / sizeof *codes; i++)
        is_one = is_one || finding->code == codes[i];
    return is_one && finding->comm && finding->has_number && finding->number &&
           finding->sides > 1 &&
           (api_class_of(finding->side[0].act.call.api) == CLASS_COLLECTIVE ||
            is_about_messages(finding));
}

/* Side 0, and then another one: of messages, what it sent to side 0 or received from it. */
static int read_sides(struct member_calls calls[2], struct trace *trace,
                      const struct finding *finding, int other)
{
    const int side[] = {0, other};
    const struct called *call = &finding->side[0].act.call;
    uint64_t number = finding->number;
    struct calls_wanted wanted = {
        .comm = finding->comm,
        .first = number > CALLS_BEFORE ? number - CALLS_BEFORE : 0,
        .end = number + CALLS_OF_ORDER,
        .api = is_about_messages(finding) ? call->api : API_NONE,
        .peer = call->peer,
    };
    for (int i = 0; i < 2; i++) {
        wanted.shown_rank = rankset_next(&finding->side[side[i]].ranks, 0);
        if (finding->side[side[i]].process < 0 ||
            member_calls_read(&calls[i], trace, finding->side[side[i]].process, &wanted))
            return -1;
        if (wanted.api)
            wanted.api = wanted.api == API_ncclSend ? API_ncclRecv : API_ncclSend;
        wanted.peer = calls[i].rank;
    }
    return !wanted.api || calls[1].rank == call->peer ? 0 : -1;
}

/* A send and its receive are never on one line: the line of each receive becomes that of the send
 * which it met first, so that what is usual reads alike. */
static void pair_lines(struct member_calls calls[2])
{
    enum { LINES_MAX = 256 };
    struct {
        uint64_t from, to;
    } pair[LINES_MAX];
    int pairs = 0;
    for (size_t i = 0; i < calls[0].count && i < calls[1].count; i++) {
        uint64_t mine = calls[0].symbol[i].lines, theirs = calls[1].symbol[i].lines;
        bool is_new = pairs < LINES_MAX;
        for (int k = 0; k < pairs && is_new; k++)
            is_new = pair[k].from != theirs && pair[k].to != mine;
        if (is_new) {
            pair[pairs].from = theirs;
            pair[pairs++].to = mine;
        }
    }
    for (size_t i = 0; i < calls[1].count; i++)
        for (int k = 0; k < pairs; k++)
            if (calls[1].symbol[i].lines == pair[k].from) {
                calls[1].symbol[i].lines = pair[k].to;
                break;
            }
}

/* The number behind the last gap before the finding. */
static uint64_t find_known_start(const struct member_calls *calls, uint64_t number)
{
    uint64_t start = number < calls->first + calls->count ? number : calls->first + calls->count;
    while (start > calls->first && calls->at[start - calls->first - 1].stack)
        start--;
    return start;
}

/* Leaves of both members the calls of the same numbers whose lines are known without a gap. */
static void cut_to_known(struct member_calls calls[2], uint64_t number)
{
    uint64_t start[2];
    for (int i = 0; i < 2; i++)
        start[i] = find_known_start(&calls[i], number);
    for (int i = 0; i < 2; i++) {
        member_calls_drop(&calls[i], start[0] > start[1] ? start[0] : start[1]);
        size_t known = 0;
        while (known < calls[i].count && calls[i].at[known].stack)
            known++;
        calls[i].count = known;
    }
}

static size_t least_of(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* What the lines say, as of side 0 and side `other`: a shift is how far `other` is ahead. */
static struct finding_origin compare_origin_members(const struct member_calls calls[2],
                                                    const struct finding *finding, int other)
{
    size_t most = (size_t)(finding->number - calls[0].first) + CALLS_AFTER;
    const struct call_sequence a = {calls[0].symbol, least_of(calls[0].count, most)};
    const struct call_sequence b = {calls[1].symbol, least_of(calls[1].count, most)};
    struct finding_origin origin = {
        .other = 0, .odd = other, .is_of_messages = is_about_messages(finding)};
    struct first_divergence found = first_divergence_find(&a, &b);
    uint64_t matched = finding->number - calls[0].first;
    size_t count = least_of(least_of(a.count, b.count), (size_t)matched);
    size_t at = found.is_found ? found.at : first_divergence_last_run(a.call, b.call, count);
    if (at >= count || (!found.is_found && is_about_messages(finding)))
        return origin;
    origin.kind = found.is_found ? ORIGIN_SHIFT : ORIGIN_LINES;
    origin.certainty = found.is_certain ? CERTAIN : POSSIBLE;
    bool goes_on = finding->code != DC206; /* else it says what a rank that has left did */
    origin.advice = found.is_found && goes_on ? ADVICE_DIVERGED_BEFORE : ADVICE_NONE;
    origin.number = calls[0].first + at;
    origin.shift = found.shift;
    origin.is_either_way = found.is_either_way;
    return origin;
}

static void add_shift(struct text *text, const struct finding_origin *origin,
                      const struct origin_names *names)
{
    int calls = abs(origin->shift);
    char count[16] = "one";
    const char *noun = origin->is_of_messages ? "message" : "call";
    const char *plural = calls == 1 ? "" : "s", *odd = names->odd, *other = names->other;
    if (calls > 1)
        snprintf(count, sizeof count, "%d", calls);
    text_add(text, "%s", origin->certainty == POSSIBLE ? "possibly " : "");
    if (origin->is_either_way)
        text_add(text, "%s left out %s %s%s or made %s more", odd, count, noun, plural, count);
    else if (origin->shift > 0)
        text_add(text, "%s left out %s %s%s (or %s made %s more)", odd, count, noun, plural, other,
                 count);
    else
        text_add(text, "%s made %s %s%s more (or %s left out %s)", odd, count, noun, plural, other,
                 count);
}

static char *describe_shift(const struct finding_origin *origin, const struct origin_names *names,
                            const char *odd_place, const char *other_place)
{
    struct text text = {0};
    int calls = abs(origin->shift);
    add_shift(&text, origin, names);
    text_add(&text, " at %s#%llu: %s %s, %s %s", origin->is_of_messages ? "their message " : "",
             (unsigned long long)origin->number, names->is_one ? "it was" : "they were", odd_place,
             names->other, other_place);
    if (!origin->is_either_way && calls == 1)
        text_add(&text, "; since then %s one %s %s", names->is_one ? "it is" : "they are",
                 origin->is_of_messages ? "message" : "call",
                 origin->shift > 0 ? "ahead" : "behind");
    else if (!origin->is_either_way)
        text_add(&text, "; since then %s %d %s %s", names->is_one ? "it is" : "they are", calls,
                 origin->is_of_messages ? "messages" : "calls",
                 origin->shift > 0 ? "ahead" : "behind");
    return text_take(&text);
}

static char *describe_lines(const struct finding_origin *origin, const struct origin_names *names,
                            const char *odd_place, const char *other_place)
{
    struct text text = {0};
    text_add(&text, "the lines of %s and %s last agreed at #%llu; at #%llu %s %s %s, %s %s",
             names->odd, names->other, (unsigned long long)origin->number - 1,
             (unsigned long long)origin->number, names->odd, names->is_one ? "was" : "were",
             odd_place, names->other, other_place);
    return text_take(&text);
}

/* Writes it in words; without places there is no origin. */
static void describe_origin(struct finding_origin *origin, const struct origin_pair *pair)
{
    struct origin_place *place = calloc(2, sizeof *place);
    if (place && origin_read_places(place, pair, (size_t)(origin->number - pair->odd->first)))
        origin->what = (origin->kind == ORIGIN_SHIFT ? describe_shift : describe_lines)(
            origin, &pair->names, place[0].where, place[1].where);
    free(place);
    if (!origin->what)
        *origin = (struct finding_origin){0};
}

static bool lines_agree(const struct origin_pair *pair, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (pair->odd->symbol[i].lines != pair->other->symbol[i].lines)
            return false;
    return count > 0;
}

/* Serial of the member's call of that number; what it has not made comes last. */
static uint64_t serial_of_call(const struct member_calls *calls, uint64_t number)
{
    size_t index = (size_t)(number - calls->first);
    return index < calls->count ? calls->at[index].serial : INT64_MAX;
}

/* "cudaMalloc failed on rank 1 before #7, at load() train.py:5", "rank 1 caught an exception
 * (ValueError: a bad sample) before #7, at ..." */
static char *describe_failure(const struct finding_origin *origin, const struct origin_pair *pair,
                              const struct failed_allocation *failed)
{
    struct text text = {0};
    struct origin_place *place = calloc(1, sizeof *place);
    if (!place)
        return NULL;
    if (origin_read_place(place, pair->trace, pair->odd, &failed->at))
        origin_write_place(place, pair->trace, pair->odd, &failed->at, false);
    const char *exception = trace_string(pair->trace, pair->odd->process, failed->text);
    if (failed->api == API_notice_exception)
        text_add(&text, "%s caught an exception (%s)", pair->names.odd, exception ? exception : "");
    else
        text_add(&text, "%s failed on %s", api_name(failed->api), pair->names.odd);
    text_add(&text, " before #%llu%s%s", (unsigned long long)origin->number,
             *place->where ? ", " : "", place->where);
    free(place);
    return text_take(&text);
}

/* Whole iterations that one side left out look alike: an error that it caught may be why. */
static void find_failed_call(struct finding_origin *origin, const struct origin_pair *pair)
{
    const struct member_calls *calls[] = {pair->odd, pair->other};
    uint64_t number = pair->finding->number;
    struct failed_allocation failed[2];
    size_t least = least_of(calls[0]->count, calls[1]->count);
    if (!lines_agree(pair, least_of(least, (size_t)(number - calls[0]->first))))
        return;
    for (int i = 0; i < 2; i++)
        failed[i] = failed_allocation_find(pair->trace, calls[i]->process, &calls[i]->at[0],
                                           serial_of_call(calls[i], number));
    bool has_failed = failed[0].api || failed[1].api;
    for (int i = 0; i < 2 && !has_failed; i++)
        failed[i] = caught_exception_find(pair->trace, calls[i]->process, &calls[i]->at[0],
                                          serial_of_call(calls[i], number));
    if (!failed[0].api || failed[1].api)
        return;
    origin->number = calls[0]->first;
    while (serial_of_call(calls[0], origin->number) < failed[0].at.serial)
        origin->number++;
    origin->what = describe_failure(origin, pair, &failed[0]);
    if (origin->what) {
        origin->kind = ORIGIN_FAILED;
        origin->advice = ADVICE_SKIP_TOGETHER;
    }
}

static void describe_branch(struct finding_origin *origin, const struct origin_pair *pair)
{
    struct origin_branch branch = origin_branch(pair);
    if (!branch.what)
        return;
    origin->kind = ORIGIN_BRANCH;
    origin->number = pair->finding->number;
    origin->advice = branch.advice;
    origin->what = branch.what;
}

/* Of side 0 and another one. */
static struct finding_origin find_between(struct trace *trace, const struct finding *finding,
                                          int side)
{
    struct finding_origin origin = {0};
    struct member_calls calls[2] = {{0}, {0}};
    if (!read_sides(calls, trace, finding, side)) {
        cut_to_known(calls, finding->number);
        if (is_about_messages(finding))
            pair_lines(calls);
        origin = compare_origin_members(calls, finding, side);
        bool is_first = rankset_count(&finding->side[0].ranks) <
                        rankset_count(&finding->side[side].ranks);
        if (is_first) {
            origin.odd = 0;
            origin.other = side;
            origin.shift = -origin.shift;
        }
        struct origin_pair pair = {.trace = trace,
                                   .finding = finding,
                                   .odd = &calls[!is_first],
                                   .other = &calls[is_first]};
        origin_name_sides(&pair, origin.odd, origin.other);
        if (origin.kind != ORIGIN_NONE)
            describe_origin(&origin, &pair);
        if (origin.kind == ORIGIN_NONE)
            find_failed_call(&origin, &pair);
        if (origin.kind == ORIGIN_NONE)
            describe_branch(&origin, &pair);
    }
    member_calls_free(&calls[0]);
    member_calls_free(&calls[1]);
    return origin;
}

/* A claim before a fact, what is certain before what is possible, and then the earliest. */
static bool is_better_origin(const struct finding_origin *a, const struct finding_origin *b)
{
    if (a->kind != b->kind)
        return a->kind > b->kind;
    return a->certainty != b->certainty ? a->certainty < b->certainty : a->number < b->number;
}

struct finding_origin finding_origin(struct trace *trace, const struct finding *finding)
{
    struct finding_origin best = {0};
    for (int side = 1; trace && is_about_order(finding) && side < finding->sides; side++) {
        struct finding_origin origin = find_between(trace, finding, side);
        bool is_better = is_better_origin(&origin, &best);
        free(is_better ? best.what : origin.what);
        if (is_better)
            best = origin;
    }
    return best;
}

/* Without what the analyzer guesses from the calls alone, where their lines say more: how far a
 * rank is ahead beside the call that it left out, and that an argument must be the same where the
 * ranks make different calls of the program. */
static void cut_guesses(char *said, bool has_origin, bool calls_part)
{
    static const char rule[] = " must be the same on every rank", instead[] = "different calls";
    char *guess = strstr(said, "; rank"), *end = strstr(said, rule), *start = end;
    if (guess && has_origin && strstr(guess, " seem"))
        *guess = '\0';
    if (!end || !calls_part)
        return;
    while (start > said + 2 && strncmp(start - 2, ": ", 2) != 0)
        start--;
    size_t length = sizeof instead - 1;
    memmove(start + length, end + sizeof rule - 1, strlen(end + sizeof rule - 1) + 1);
    memcpy(start, instead, length);
}

char *finding_sentence(struct trace *trace, const struct finding *finding)
{
    struct text text = {0};
    struct finding_origin origin = finding_origin(trace, finding);
    char *said = finding_said(trace, finding);
    bool is_shown = origin.kind == ORIGIN_SHIFT || origin.kind == ORIGIN_BRANCH;
    bool calls_part = origin.advice == ADVICE_CALLS_IN_ONE_ORDER ||
                      finding_calls_part(trace, finding);
    if (said)
        cut_guesses(said, is_shown, calls_part);
    if (origin.what)
        text_add(&text, "%s; then ", origin.what);
    text_add(&text, "%s", said ? said : finding->what);
    free(origin.what);
    free(said);
    return text_take(&text);
}
