/* headline.c: makes the sentences of findings from their sides and values. */
#include "lib/finding/headline.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

#include "lib/base/moment.h"
#include "lib/finding/template.h"

enum { CALL_TEXT_BYTES = 512, RANKS_BYTES = 160, DATE_BYTES = 64 };

static const char *const headlines[] = {
#define HEADLINE(name, words) [HEADLINE_##name] = words,
#include "lib/finding/headlines.def"
#undef HEADLINE
};

static const char *const advices[] = {
#define ADVICE(name, words) [ADVICE_##name] = words,
#include "lib/finding/advice.def"
#undef ADVICE
};

const char *advice_words(enum advice advice)
{
    return advices[advice];
}

struct sentence {
    const struct finding *finding;
    const struct values *values;
};

static const struct finding *finding_of(const struct words *words)
{
    return ((const struct sentence *)words->from)->finding;
}

static const struct values *values_of(const struct words *words)
{
    return ((const struct sentence *)words->from)->values;
}

/* NULL: the finding has no side of this number. */
static const struct finding_side *side_of(const struct words *words)
{
    const struct finding *finding = finding_of(words);
    return words->number < finding->sides ? &finding->side[words->number] : NULL;
}

static void add_string(struct words *words, const char *string)
{
    if (string)
        text_add(words->text, "%s", string);
}

static void say_ranks(struct words *words)
{
    char ranks[RANKS_BYTES];
    const struct finding_side *side = side_of(words);
    if (!side)
        return;
    words->is_one = rankset_count(&side->ranks) == 1;
    add_string(words, rankset_words(&side->ranks, ranks, sizeof ranks));
}

static void say_set(struct words *words)
{
    char ranks[RANKS_BYTES];
    const struct rankset *set = values_of(words)->set[words->number];
    if (!set)
        return;
    words->is_one = rankset_count(set) == 1;
    add_string(words, rankset_brief(set, ranks, sizeof ranks));
}

static void say_those(struct words *words)
{
    char ranks[RANKS_BYTES];
    const struct rankset *set = values_of(words)->set[words->number];
    if (!set)
        return;
    words->is_one = rankset_count(set) == 1;
    add_string(words, rankset_words(set, ranks, sizeof ranks));
}

static void say_did(struct words *words)
{
    add_string(words, side_of(words) ? side_of(words)->call : NULL);
}

static void say_now(struct words *words)
{
    add_string(words, side_of(words) ? side_of(words)->where : NULL);
}

static void say_phase(struct words *words)
{
    add_string(words, side_of(words) ? side_of(words)->phase : NULL);
}

static void say_comm(struct words *words)
{
    add_string(words, values_of(words)->comm);
}

static void say_label(struct words *words)
{
    add_string(words, values_of(words)->label);
}

static void say_number(struct words *words)
{
    text_add(words->text, "%" PRIu64, finding_of(words)->number);
}

static void say_certain(struct words *words)
{
    text_add(words->text, "%d", finding_of(words)->certainty == CERTAIN);
}

static void say_call(struct words *words)
{
    char call[CALL_TEXT_BYTES];
    const struct called *called = &values_of(words)->call[words->number];
    if (called->api)
        add_string(words, call_text(called, call, sizeof call));
}

static void say_function(struct words *words)
{
    const struct called *called = &values_of(words)->call[words->number];
    if (called->api)
        add_string(words, call_name(called));
}

static void say_act(struct words *words)
{
    const struct act *act = values_of(words)->act[words->number];
    if (act)
        act_add(words->text, act);
}

static void say_wait(struct words *words)
{
    awaited_add(words->text, &values_of(words)->wait);
}

static void say_name(struct words *words)
{
    add_string(words, values_of(words)->name[words->number]);
}

static void say_said(struct words *words)
{
    add_string(words, values_of(words)->said[words->number]);
}

static void say_whom(struct words *words)
{
    char ranks[RANKS_BYTES];
    const struct rankset *whom = &values_of(words)->whom[words->number];
    words->is_one = rankset_count(whom) == 1;
    if (rankset_count(whom))
        add_string(words, rankset_words(whom, ranks, sizeof ranks));
}

static void say_torch(struct words *words)
{
    text_add(words->text, "%d", !values_of(words)->is_native);
}

static void say_value(struct words *words)
{
    text_add(words->text, "%" PRId64, values_of(words)->value[words->number]);
}

static void say_count(struct words *words)
{
    words->is_one = values_of(words)->value[words->number] == 1;
    say_value(words);
}

static void say_more(struct words *words)
{
    if (values_of(words)->value[words->number])
        say_count(words);
}

static void say_date(struct words *words)
{
    char date[DATE_BYTES];
    int64_t realtime_ns = values_of(words)->value[words->number];
    if (realtime_ns)
        add_string(words, moment_date((uint64_t)realtime_ns, date, sizeof date));
}

static void say_mib(struct words *words)
{
    text_add(words->text, "%.1f MiB", (double)values_of(words)->value[words->number] / (1 << 20));
}

static void say_each(struct words *words)
{
    words->is_one = values_of(words)->each[words->number] == 1;
    text_add(words->text, "%" PRId64, values_of(words)->each[words->number]);
}

static int64_t shift_of(const struct words *words)
{
    return values_of(words)->each[words->number];
}

static void say_ahead(struct words *words)
{
    text_add(words->text, "%d", shift_of(words) > 0);
}

static void say_by(struct words *words)
{
    static const char *const counts[] = {"no", "one", "two", "three"};
    int64_t by = llabs(shift_of(words));
    words->is_one = by == 1;
    if (by < (int64_t)(sizeof counts / sizeof *counts))
        add_string(words, counts[by]);
    else
        text_add(words->text, "%" PRId64, by);
}

static void add_shifted(struct words *words, int64_t by)
{
    text_add(words->text, "%" PRIu64, finding_of(words)->number + (uint64_t)(by > 0 ? by : 0));
}

static void say_own(struct words *words)
{
    add_shifted(words, -shift_of(words));
}

static void say_theirs(struct words *words)
{
    add_shifted(words, shift_of(words));
}

static void say_flag(struct words *words)
{
    text_add(words->text, "%d", values_of(words)->flag[words->number]);
}

static double amount_of(const struct words *words)
{
    return values_of(words)->amount[words->number];
}

static void say_time(struct words *words)
{
    double seconds = amount_of(words);
    if (seconds != 0 && seconds < 0.9995)
        text_add(words->text, "%.3g ms", 1e3 * seconds);
    else if (seconds != 0)
        text_add(words->text, seconds < 99.95 ? "%.3g s" : "%.0f s", seconds);
}

static void say_factor(struct words *words)
{
    double factor = amount_of(words), unit = 1;
    while (factor / unit >= 100)
        unit *= 10;
    if (factor > 0 && factor < 9.95)
        text_add(words->text, factor < 1.995 ? "%.2f times" : "%.1f times", factor);
    else if (factor > 0)
        text_add(words->text, "%.0f times", unit * rint(factor / unit));
}

static void say_percent(struct words *words)
{
    double percent = 100 * amount_of(words);
    if (percent != 0)
        text_add(words->text, percent < 0.995 ? "%.1g%%" : "%.0f%%", percent);
}

static void say_amount(struct words *words)
{
    if (amount_of(words) != 0)
        text_add(words->text, "%.3g", amount_of(words));
}

static const struct template_field headline_fields[] = {
    {"ranks", say_ranks, -FINDING_SIDES_MAX},
    {"did", say_did, -FINDING_SIDES_MAX},
    {"now", say_now, -FINDING_SIDES_MAX},
    {"phase", say_phase, -FINDING_SIDES_MAX},
    {"each", say_each, -FINDING_SIDES_MAX},
    {"ahead", say_ahead, -FINDING_SIDES_MAX},
    {"by", say_by, -FINDING_SIDES_MAX},
    {"own", say_own, -FINDING_SIDES_MAX},
    {"theirs", say_theirs, -FINDING_SIDES_MAX},
    {"said", say_said, -FINDING_SIDES_MAX},
    {"whom", say_whom, -FINDING_SIDES_MAX},
    {"torch", say_torch, 1},
    {"comm", say_comm, 1},
    {"label", say_label, 1},
    {"number", say_number, 1},
    {"certain", say_certain, 1},
    {"wait", say_wait, 1},
    {"set", say_set, PAIR},
    {"those", say_those, PAIR},
    {"call", say_call, PAIR},
    {"function", say_function, PAIR},
    {"act", say_act, PAIR},
    {"name", say_name, NAMES_MAX},
    {"value", say_value, VALUES_MAX},
    {"count", say_count, VALUES_MAX},
    {"more", say_more, VALUES_MAX},
    {"date", say_date, VALUES_MAX},
    {"mib", say_mib, VALUES_MAX},
    {"flag", say_flag, FLAGS_MAX},
    {"time", say_time, VALUES_MAX},
    {"factor", say_factor, VALUES_MAX},
    {"percent", say_percent, VALUES_MAX},
    {"amount", say_amount, VALUES_MAX},
    {NULL, NULL, 0},
};

/* The sentence, behind what is `before` it; the caller owns it. NULL when memory is short. */
static char *sentence(const struct finding *finding, const char *before, const char *template,
                      const struct values *values)
{
    static const struct values none;
    struct text text = {0};
    const struct sentence sentence = {finding, values ? values : &none};
    struct words words = {
        .text = &text, .fields = headline_fields, .from = &sentence, .sides = finding->sides};
    text_add(&text, *before ? "%s " : "%s", before);
    template_add(&words, template);
    return text_take(&text);
}

/* Takes the sentence. */
static int replace(char **old, char *sentence)
{
    if (!sentence)
        return -1;
    free(*old);
    *old = sentence;
    return 0;
}

int finding_say(struct finding *finding, enum headline headline, enum advice advice,
                const struct values *values)
{
    int failed = replace(&finding->what, sentence(finding, "", headlines[headline], values));
    return failed | replace(&finding->todo, sentence(finding, "", advices[advice], values));
}

int finding_advise(struct finding *finding, enum advice advice, const struct values *values)
{
    return replace(&finding->todo, sentence(finding, finding->todo, advices[advice], values));
}
