/* finding_said.c: PyTorch's names of calls, in a finding's sentence. */
#include "lib/finding/finding_said.h"

#include <stdlib.h>
#include <string.h>

#include "lib/base/text.h"
#include "lib/trace/site_operation.h"

char *said_operation(struct trace *trace, const struct said_side *side, char *text, size_t bytes)
{
    *text = '\0';
    if (side->act->did != DID_CALLED && side->act->did != DID_CALLED_IN_GROUP)
        return text;
    return site_operation_of(trace, side->process, side->stack, side->stack_is_address, text,
                             bytes);
}

char *said_with_names(struct trace *trace, const char *what, const struct said_side *side,
                      int sides)
{
    struct text text = {0};
    const char *at = what;
    for (int i = 0; i < sides; i++) {
        char name[SITE_OPERATION_BYTES];
        const char *call = side[i].call, *found = *call ? strstr(at, call) : NULL;
        if (!found || !*said_operation(trace, &side[i], name, sizeof name))
            continue;
        text_add(&text, "%.*s%s [%s]", (int)(found - at), at, name, call);
        at = found + strlen(call);
    }
    text_add(&text, "%s", at);
    return text_take(&text);
}

char *finding_said(struct trace *trace, const struct finding *finding)
{
    struct said_side side[FINDING_SIDES_MAX];
    for (int i = 0; i < finding->sides; i++)
        side[i] = (struct said_side){
            .act = &finding->side[i].act,
            .call = finding->side[i].call,
            .process = finding->side[i].process,
            .stack = finding->side[i].stack,
            .stack_is_address = finding->side[i].stack_is_address,
        };
    return said_with_names(trace, finding->what, side, finding->sides);
}
