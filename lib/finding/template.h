/* template.h: sentences with fields: the words of acts.def, headlines.def and advice.def.
 *
 *   {name}             the field `name`
 *   {name:2}           its number 2, of fields that there are several of; without a number: 0, or
 *                      that of the side in <...>
 *   {waits|wait}       the first where the last ranks or count that were named are one, else the
 *                      second: "{ranks} {waits|wait}" is "rank 3 waits", "ranks 0-2 wait"
 *   {=name}            no words: {waits|wait} after it goes by this field
 *   {name?yes|no}      `yes` if the field has words other than "0", else `no`; `|no` may be missing
 *   [, in {name}]      left out if a field in it has no words
 *   <words|, | and >   the words for each side; before each but the first side ", ", before the
 *                      last one " and "; <1:words|, > leaves out the first side
 *
 * All of these may be inside of each other. Fields are the caller's; one that it does not have, or
 * not with this number, is left as it stands, in braces, which test_headlines finds. */
#ifndef DDPCHECK_TEMPLATE_H
#define DDPCHECK_TEMPLATE_H

#include "lib/base/text.h"

struct words;

/* Adds the text of the field's words->number to words->text, nothing if it is empty. Of ranks or a
 * count it sets words->is_one. */
struct template_field {
    const char *name;
    void (*add)(struct words *words);
    int numbers; /* it has those below; -n: n of them, without a number that of the side in hand */
};

/* Sentences in the making. Zero-initialise, set the first four. */
struct words {
    struct text *text;
    const struct template_field *fields; /* ends with one without a name */
    const void *from;                    /* what the fields are of */
    int sides;                           /* for <...> */
    int side, number;                    /* the side and the field's number in hand */
    bool is_one;                         /* the last ranks or count that were named are one */
};

/* Adds the template's words. */
void template_add(struct words *words, const char *template);

#endif
