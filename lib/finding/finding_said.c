/* finding_said.c: PyTorch's names of calls, in a finding's sentence. */
#include "lib/finding/finding_said.h"

#include <stdlib.h>
#include <string.h>

#include "lib/base/text.h"
#include "lib/trace/site_operation.h"

/* The operation of PyTorch that made the side's call; "" if its ranks made none, or it is not
 * known.
 */
static char *said_operation(struct trace *trace, const struct finding_side *side, char *text,
                            size_t bytes)
{
    *text = '\0';
    if (side->act.did != DID_CALLED && side->act.did != DID_CALLED_IN_GROUP)
        return text;
    return site_operation_of(trace, side->process, side->stack, side->stack_is_address, side->call,
                             text, bytes);
}

char *finding_said(struct trace *trace, const struct finding *finding)
{
    struct text text = {0};
    const char *at = finding->what;
    for (int i = 0; i < finding->sides; i++) {
        char name[SITE_OPERATION_BYTES];
        const char *call = finding->side[i].call, *found = *call ? strstr(at, call) : NULL;
        if (!found || !*said_operation(trace, &finding->side[i], name, sizeof name))
            continue;
        text_add(&text, "%.*s%s [%s]", (int)(found - at), at, name, call);
        at = found + strlen(call);
    }
    text_add(&text, "%s", at);
    return text_take(&text);
}
