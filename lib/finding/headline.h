/* headline.h: the words of findings: a headline says what happened, an advice what to do.
 *
 * Checks choose one of each and set values; the words are in headlines.def and advice.def alone.
 * The templates (template.h) have these fields:
 *
 *   {ranks:1}           "rank 3", "ranks 0-2": the ranks of side 1
 *   {did:1} {now:1}     what side 1 did, where it is now; {phase:1}: its NVTX range
 *   {comm} {label}      the communicator, with and without the number of its ranks
 *   {number}            the number of the communicator's operation
 *   {certain}           for {certain?reads|may read}
 *   {set:0}             "0-2", ranks that are no side's (values.set)
 *   {call:0} {function:0} a call, and its name alone
 *   {act:0} {wait} {name:0} what else was done, what is waited for, a text
 *   {value:0}           a number; {count:0}: one that {waits|wait} goes by; {more:0}: no words if 0
 *   {date:0} {mib:0}    the value as a date (nanoseconds of realtime), as MiB (bytes)
 *   {each} {said}       the number, the text of this side (values.each, values.said)
 *   {whom}              the ranks that this side waits for (values.whom)
 *   {torch}             for {torch?work.wait()|cudaStreamWaitEvent}: the program may use PyTorch
 *   {ahead} {by} {own} {theirs} values.each as a shift of the side's sequence: for
 *                       {ahead?ahead|behind}; "two"; the number of its operation and the others'
 *   {flag:0}            for {flag:0?writes|reads}
 *   {time:0} {factor:0} {percent:0} {amount:0}   values.amount: seconds, a ratio ("1.5 times"), a
 *                       share, "%.3g"; no words if 0 */
#ifndef DDPCHECK_HEADLINE_H
#define DDPCHECK_HEADLINE_H

#include "lib/finding/finding.h"

enum headline {
#define HEADLINE(name, words) HEADLINE_##name,
#include "lib/finding/headlines.def"
#undef HEADLINE
    HEADLINE_COUNT
};

enum advice {
#define ADVICE(name, words) ADVICE_##name,
#include "lib/finding/advice.def"
#undef ADVICE
    ADVICE_COUNT
};

enum { VALUES_MAX = 12, NAMES_MAX = 10, PAIR = 2, FLAGS_MAX = 6 };

/* What a headline and an advice name beside the sides of the finding; nothing is owned. Only what
 * the templates name need be set. */
struct values {
    const char *comm, *label; /* NULL: draft_headline sets those of the finding's communicator */
    const struct rankset *set[PAIR]; /* NULL: none */
    struct called call[PAIR];
    const struct act *act[PAIR]; /* NULL: none */
    struct awaited wait;
    const char *name[NAMES_MAX]; /* NULL: none */
    int64_t value[VALUES_MAX];
    int64_t each[FINDING_SIDES_MAX];     /* of each side */
    const char *said[FINDING_SIDES_MAX]; /* of each side */
    struct rankset whom[FINDING_SIDES_MAX];
    bool is_native; /* the program has no PyTorch loaded */
    bool flag[FLAGS_MAX];
    double amount[VALUES_MAX];
};

/* The advice, as a template. */
const char *advice_words(enum advice advice);

/* Sets the finding's `what` and `todo`; its sides are complete. Returns 0, or -1 when memory is
 * short: the finding then has the old sentences. */
int finding_say(struct finding *finding, enum headline headline, enum advice advice,
                const struct values *values);
/* Adds another sentence to `todo`. Returns 0, or -1 when memory is short. */
int finding_advise(struct finding *finding, enum advice advice, const struct values *values);

#endif
