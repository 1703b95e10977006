/* origin_branch.c: compares the last common call of two members with the call behind it on each. */
#include "lib/finding/origin_branch.h"

#include <stdlib.h>
#include <string.h>

#include "lib/base/hash.h"
#include "lib/base/text.h"
#include "lib/finding/backward_passes.h"

enum { LEFT_OUT_MAX = 8 /* calls: as far as first_divergence.h looks for a shift */ };

/* The three calls of a branch. */
enum branch_call { ODD, OTHER, COMMON, BRANCH_CALLS };

struct branch_view {
    const struct origin_pair *pair;
    const struct member_calls *calls[BRANCH_CALLS]; /* of COMMON those of the odd member */
    const char *name[COMMON];
    size_t at; /* index of the calls that differ */
    const struct call_symbol *symbol[BRANCH_CALLS];
    struct origin_place place[BRANCH_CALLS];
};

/* "st" of 1, for "1st" */
static const char *ordinal_ending(size_t number)
{
    static const char *const endings[] = {"th", "st", "nd", "rd"};
    bool is_teen = number % 100 > 10 && number % 100 < 14;
    return is_teen || number % 10 > 3 ? endings[0] : endings[number % 10];
}

/* --- Two threads --- */

/* The function in which its thread begins. */
static const char *thread_root(const struct origin_place *place)
{
    return place->frame[place->frames - 1].function;
}

static bool is_made_later(const struct branch_view *view, enum branch_call by,
                          enum branch_call call)
{
    const struct member_calls *calls = view->calls[by];
    for (size_t i = view->at + 1; i < calls->count; i++)
        if (calls_are_equal(&calls->symbol[i], view->symbol[call]))
            return true;
    return false;
}

/* The calls of two threads, which one of the members made the other way round. */
static bool find_threads(const struct branch_view *view, struct origin_branch *branch)
{
    struct text text = {0};
    if (!strcmp(thread_root(&view->place[ODD]), thread_root(&view->place[OTHER])) ||
        !(is_made_later(view, ODD, OTHER) || is_made_later(view, OTHER, ODD)))
        return false;
    text_add(&text,
             "two threads of a process make calls on this communicator, and nothing orders them: "
             "on %s the call %s came first, on %s that %s",
             view->name[ODD], view->place[ODD].where, view->name[OTHER], view->place[OTHER].where);
    *branch = (struct origin_branch){text_take(&text), ADVICE_THREADS_SHARE_COMM};
    return true;
}

/* --- Backward passes --- */

static uint64_t serial_at_index(const struct member_calls *calls, size_t index)
{
    return index < calls->count ? calls->at[index].serial : INT64_MAX;
}

/* Index behind the last common reduction of gradients, 0: there is none. */
static size_t find_last_bucket(const struct branch_view *view)
{
    const struct member_calls *calls = view->calls[ODD];
    size_t end = view->at;
    while (end && !backward_passes_made(view->pair->trace, calls, &calls->at[end - 1]))
        end--;
    return end;
}

static void count_passes(const struct branch_view *view, size_t index,
                         struct backward_passes passes[2])
{
    for (int i = ODD; i <= OTHER; i++)
        passes[i] = backward_passes_count(view->pair->trace, view->calls[i],
                                          serial_at_index(view->calls[i], index));
}

/* One had run more passes at the last reduction that both made, or has run as many since without
 * reducing in all of them. */
static bool find_accumulation(const struct branch_view *view, struct origin_branch *branch)
{
    struct backward_passes then[2], now[2];
    struct text text = {0};
    size_t bucket = find_last_bucket(view);
    if (!bucket)
        return false;
    count_passes(view, bucket - 1, then);
    count_passes(view, view->at, now);
    bool is_first = then[ODD].passes != then[OTHER].passes;
    bool is_since = now[ODD].passes == now[OTHER].passes && now[ODD].reducing < now[OTHER].reducing;
    bool is_regular = now[ODD].is_regular && now[OTHER].is_regular;
    if (!is_regular || !then[ODD].passes || !then[OTHER].passes || (!is_first && !is_since))
        return false;
    text_add(&text, "%s reduced gradients in %u of %u backward passes, %s in %u of %u",
             view->name[ODD], now[ODD].reducing, now[ODD].passes, view->name[OTHER],
             now[OTHER].reducing, now[OTHER].passes);
    *branch = (struct origin_branch){text_take(&text), ADVICE_FEWER_BACKWARDS};
    return true;
}

/* A member that makes no more calls ran fewer passes. */
static bool find_fewer_passes(const struct branch_view *view, struct origin_branch *branch)
{
    struct backward_passes passes[2];
    struct text text = {0};
    count_passes(view, view->at, passes);
    unsigned fewer = passes[OTHER].passes - passes[ODD].passes;
    bool is_regular = passes[ODD].is_regular && passes[OTHER].is_regular;
    if (!is_regular || !passes[ODD].passes || passes[ODD].passes >= passes[OTHER].passes)
        return false;
    if (view->calls[ODD]->first == 0)
        text_add(&text, "%s ran %u backward passes, %s %u", view->name[ODD], passes[ODD].passes,
                 view->name[OTHER], passes[OTHER].passes);
    else
        text_add(&text, "%s ran %u backward pass%s less than %s", view->name[ODD], fewer,
                 fewer == 1 ? "" : "es", view->name[OTHER]);
    *branch = (struct origin_branch){text_take(&text), ADVICE_NONE};
    return true;
}

/* --- A call that was left out --- */

/* How many calls came before `next` when the member made `skipped` right behind the common call,
 * and `next` soon after. 0: it never did, or made `next` behind the common call before. */
static size_t count_left_out(const struct branch_view *view, const struct call_symbol *skipped,
                             const struct call_symbol *next)
{
    const struct call_symbol *symbol = view->calls[ODD]->symbol;
    size_t left_out = 0;
    for (size_t i = 0; i + 1 < view->at; i++) {
        if (!calls_are_equal(&symbol[i], view->symbol[COMMON]))
            continue;
        if (calls_are_equal(&symbol[i + 1], next))
            return 0;
        size_t end = i + 2;
        while (end < view->at && end < i + 2 + LEFT_OUT_MAX && !calls_are_equal(&symbol[end], next))
            end++;
        if (calls_are_equal(&symbol[i + 1], skipped) && end < view->at &&
            calls_are_equal(&symbol[end], next))
            left_out = end - i - 1;
    }
    return left_out <= LEFT_OUT_MAX ? left_out : 0;
}

static bool find_left_out(const struct branch_view *view, enum branch_call side,
                          struct origin_branch *branch)
{
    enum branch_call usual = side == ODD ? OTHER : ODD;
    struct text text = {0};
    size_t calls = count_left_out(view, view->symbol[usual], view->symbol[side]);
    if (!calls || calls_are_equal(view->symbol[usual], view->symbol[COMMON]))
        return false;
    text_add(&text, "%s left out ", view->name[side]);
    if (calls > 1)
        text_add(&text, "%zu calls, from ", calls);
    text_add(&text, "the call %s%s, which came before the one %s until now",
             view->place[usual].where, calls > 1 ? " on" : "", view->place[side].where);
    *branch = (struct origin_branch){text_take(&text), ADVICE_LEFT_OUT};
    return true;
}

/* --- Who left a function, or a loop --- */

/* How many frames, from the outermost on, may be of one call of their function: those that enclose
 * them are at the same lines. */
static int count_shared(const struct origin_place *a, const struct origin_place *b)
{
    int shared = 0;
    while (shared < a->frames && shared < b->frames) {
        const struct frame *one = &a->frame[a->frames - 1 - shared];
        const struct frame *two = &b->frame[b->frames - 1 - shared];
        if (strcmp(one->function, two->function) != 0 || strcmp(one->file, two->file) != 0)
            break;
        shared++;
        if (one->line != two->line)
            break;
    }
    return shared;
}

/* How often in a row the common call was made, by its whole stack: DDP makes other calls at the
 * line of backward() as well. A group's calls are one. 0: not known. */
static size_t count_repeated(const struct branch_view *view)
{
    const struct member_calls *calls = view->calls[COMMON];
    const struct made_at *at = calls->at;
    size_t repeated = 0, i = view->at;
    uint64_t stack = at[i - 1].stack;
    for (; i && calls->symbol[i - 1].lines == view->symbol[COMMON]->lines; i--) {
        bool is_in_group = i < view->at && at[i].group && at[i - 1].group == at[i].group;
        repeated += at[i - 1].stack == stack && !is_in_group;
    }
    return i || calls->first == 0 ? repeated : 0;
}

/* The outermost function of the common call in which the member's next call is not; NULL: there is
 * none, or it has no name. */
static const struct frame *find_left(const struct branch_view *view, enum branch_call side)
{
    const struct origin_place *common = &view->place[COMMON];
    int index = common->frames - 1 - count_shared(common, &view->place[side]);
    if (index < 0 || !*common->frame[index].function || *common->frame[index].function == '<')
        return NULL;
    return &common->frame[index];
}

static void add_leaving(struct text *text, const struct branch_view *view, enum branch_call side,
                        const struct frame *left)
{
    char function[sizeof left->function + 8];
    if (left)
        text_add(text, "%s left %s ", view->name[side],
                 frame_function(left, function, sizeof function));
    else
        text_add(text, "%s went on %s ", view->name[side], view->place[side].where);
}

/* One repeats the common call, the other does not. Which of the functions has the loop is not
 * known: that of the line that people look at may be called in it, and what it calls says nothing.
 */
static bool find_repeated(const struct branch_view *view, enum branch_call repeats,
                          struct origin_branch *branch)
{
    enum branch_call leaves = repeats == ODD ? OTHER : ODD;
    const struct origin_place *common = &view->place[COMMON];
    bool is_one = repeats == ODD ? view->pair->names.is_one : view->pair->names.other_is_one;
    const char *where = view->place[repeats].where; /* of the same lines */
    const struct frame *left = find_left(view, leaves);
    struct text text = {0};
    size_t calls = count_repeated(view);
    if (view->symbol[repeats]->lines != view->symbol[COMMON]->lines)
        return false;
    bool is_around = left > common->frame && left >= &common->frame[common->shown];
    add_leaving(&text, view, leaves, is_around ? left : NULL);
    if (calls)
        text_add(&text, "after %zu call%s %s, %s make%s a %zu%s", calls, calls == 1 ? "" : "s",
                 where, view->name[repeats], is_one ? "s" : "", calls + 1,
                 ordinal_ending(calls + 1));
    else
        text_add(&text, "after the common call %s, %s repeat%s it", where, view->name[repeats],
                 is_one ? "s" : "");
    *branch = (struct origin_branch){text_take(&text), ADVICE_DECIDE_TOGETHER};
    return true;
}

static bool find_left_function(const struct branch_view *view, struct origin_branch *branch)
{
    int shared[2] = {count_shared(&view->place[COMMON], &view->place[ODD]),
                     count_shared(&view->place[COMMON], &view->place[OTHER])};
    enum branch_call leaves = shared[ODD] < shared[OTHER] ? ODD : OTHER;
    enum branch_call stays = leaves == ODD ? OTHER : ODD;
    struct text text = {0};
    const struct frame *left = find_left(view, leaves);
    if (shared[ODD] == shared[OTHER] || !left)
        return false;
    add_leaving(&text, view, leaves, left);
    text_add(&text, "after the common call %s, %s went on %s", view->place[COMMON].where,
             view->name[stays], view->place[stays].where);
    *branch = (struct origin_branch){text_take(&text), ADVICE_DECIDE_TOGETHER};
    return true;
}

/* --- The same calls in another order --- */

static uint64_t hash_call(const struct call_symbol *call)
{
    return hash_word(hash_word(0, call->signature), call->lines);
}

/* The fewest calls, from the finding's on, that both members made, each as often; both go on alike
 * behind them, or make no more. 0: there are none. */
static size_t count_permuted(const struct branch_view *view)
{
    const struct member_calls *odd = view->calls[ODD], *other = view->calls[OTHER];
    uint64_t sum = 0; /* of the one's hashes less the other's */
    size_t i = view->at;
    do {
        if (i >= odd->count || i >= other->count)
            return 0;
        sum += hash_call(&odd->symbol[i]) - hash_call(&other->symbol[i]);
        i++;
    } while (sum);
    bool both_end = i == odd->count && i == other->count;
    bool go_on = i < odd->count && i < other->count &&
                 calls_are_equal(&odd->symbol[i], &other->symbol[i]);
    return both_end || go_on ? i - view->at : 0;
}

/* One of them begins `by` calls further on and makes those last that it left out at first, as one
 * does that left calls out of a loop. */
static bool is_rotated(const struct branch_view *view, size_t calls, size_t by)
{
    const struct call_symbol *odd = &view->calls[ODD]->symbol[view->at];
    const struct call_symbol *other = &view->calls[OTHER]->symbol[view->at];
    for (size_t i = 0; i < calls; i++)
        if (!calls_are_equal(&odd[i], &other[(i + by) % calls]))
            return false;
    return true;
}

static bool find_permuted(const struct branch_view *view, struct origin_branch *branch)
{
    size_t calls = count_permuted(view), at = view->at;
    const struct origin_pair *pair = view->pair;
    struct text text = {0};
    bool is_one_line = at < pair->odd->count && at < pair->other->count &&
                       pair->odd->symbol[at].lines == pair->other->symbol[at].lines;
    for (size_t by = 1; by < calls && !is_one_line; by++)
        if (is_rotated(view, calls, by))
            return false;
    if (!calls)
        return false;
    text_add(&text, "%s and %s make the same %zu calls from #%llu on, in different orders",
             view->name[ODD], view->name[OTHER], calls, (unsigned long long)pair->finding->number);
    *branch = (struct origin_branch){text_take(&text), ADVICE_CALLS_IN_ONE_ORDER};
    return true;
}

/* --- All of them --- */

/* Reads the places of the calls; false: they do not differ, or a line is not known. */
static bool read_branch(struct branch_view *view)
{
    const struct origin_pair *pair = view->pair;
    size_t at = view->at;
    if (!at || at >= pair->odd->count || at >= pair->other->count ||
        !calls_are_equal(&pair->odd->symbol[at - 1], &pair->other->symbol[at - 1]) ||
        pair->odd->symbol[at].lines == pair->other->symbol[at].lines ||
        !origin_read_places(view->place, pair, at) ||
        !origin_read_place(&view->place[COMMON], pair->trace, pair->odd, &pair->odd->at[at - 1]))
        return false;
    origin_write_place(&view->place[COMMON], pair->trace, pair->odd, &pair->odd->at[at - 1], false);
    view->symbol[ODD] = &pair->odd->symbol[at];
    view->symbol[OTHER] = &pair->other->symbol[at];
    view->symbol[COMMON] = &pair->odd->symbol[at - 1];
    return true;
}

static void choose_branch(const struct branch_view *view, struct origin_branch *branch)
{
    if (find_threads(view, branch) || find_accumulation(view, branch) ||
        find_left_out(view, ODD, branch) || find_left_out(view, OTHER, branch) ||
        find_permuted(view, branch) || find_repeated(view, OTHER, branch) ||
        find_repeated(view, ODD, branch))
        return;
    find_left_function(view, branch);
}

struct origin_branch origin_branch(const struct origin_pair *pair)
{
    struct origin_branch branch = {0};
    struct branch_view *view = calloc(1, sizeof *view);
    if (!view)
        return branch;
    view->pair = pair;
    view->calls[ODD] = view->calls[COMMON] = pair->odd;
    view->calls[OTHER] = pair->other;
    view->name[ODD] = pair->names.odd;
    view->name[OTHER] = pair->names.other;
    view->at = (size_t)(pair->finding->number - pair->odd->first);
    if (pair->finding->code <= DC105 && read_branch(view))
        choose_branch(view, &branch);
    else if (pair->finding->code <= DC105)
        find_permuted(view, &branch);
    else if (pair->finding->code == DC206 && !find_accumulation(view, &branch))
        find_fewer_passes(view, &branch);
    free(view);
    return branch;
}
