/* finding_site.c: where in the program's sources a finding is, and how long its ranks have waited.
 */
#include "lib/finding/finding_site.h"

#include <string.h>

#include "lib/trace/site_operation.h"

static void read_site_frames(struct trace *trace, const struct finding_side *side,
                             enum side_stack which, struct shown_frames *frames)
{
    if (which == SIDE_STACK_NOW)
        site_shown_frames(trace, side->process, side->where_stack, side->where_stack_is_address,
                          frames);
    else
        site_shown_frames(trace, side->process, side->stack, side->stack_is_address, frames);
}

void finding_side_frames(struct trace *trace, const struct finding *finding, int side,
                         enum side_stack which, struct shown_frames *frames)
{
    struct shown_frames other;
    read_site_frames(trace, &finding->side[side], which, frames);
    int usual = frames->shown;
    for (int i = 0; usual >= 0 && i < finding->sides && frames->shown == usual; i++) {
        if (i == side)
            continue;
        read_site_frames(trace, &finding->side[i], which, &other);
        frames->shown = site_frame_beside(frames->frame, frames->count, other.frame, other.count);
    }
}

static bool place_of_side_stack(struct trace *trace, const struct finding *finding, int side,
                                enum side_stack which, int width, char *text, size_t bytes)
{
    struct shown_frames frames;
    finding_side_frames(trace, finding, side, which, &frames);
    *text = '\0';
    if (frames.shown >= 0)
        frame_place(&frames.frame[frames.shown], width, text, bytes);
    return *text;
}

/* Its stack is where an exception was raised that ended the side's ranks, or where they called
 * exit(): if it is of an operation, that was only their last call. */
static bool failed_there(struct trace *trace, const struct finding_side *side)
{
    char operation[SITE_OPERATION_BYTES] = "";
    bool lacked_function = side->act.did == DID_LACKED;
    bool has_failed = lacked_function || (side->act.did == DID_EXITED && side->act.value);
    if (side->act.name && *side->act.name && !lacked_function)
        return did_end(side->act.did) || side->act.did == DID_ENDING;
    if (has_failed)
        site_operation_of(trace, side->process, side->stack, side->stack_is_address, NULL,
                          operation, sizeof operation);
    return has_failed && side->stack && !*operation;
}

char *finding_location(struct trace *trace, const struct finding *finding, int width, char *text,
                       size_t bytes)
{
    *text = '\0';
    for (int pass = 0; pass < 2; pass++) /* first where a rank failed, which the others wait for */
        for (int i = 0; i < finding->sides && !*text; i++) {
            const struct finding_side *side = &finding->side[i];
            if (pass == 1 || failed_there(trace, side))
                place_of_side_stack(trace, finding, i, SIDE_STACK_ACT, width, text, bytes);
        }
    for (int i = 0; i < finding->sides && !*text;
         i++) /* what a hung call's stack was later read for */
        finding_side_location(trace, finding, i, width, text, bytes);
    return text;
}

char *finding_side_location(struct trace *trace, const struct finding *finding, int side, int width,
                            char *text, size_t bytes)
{
    if (!place_of_side_stack(trace, finding, side, SIDE_STACK_NOW, width, text, bytes))
        place_of_side_stack(trace, finding, side, SIDE_STACK_ACT, width, text, bytes);
    return text;
}

uint64_t finding_wait_ns(const struct finding *finding, uint64_t now_ns)
{
    uint64_t since_ns = 0;
    int ended = 0;
    for (int i = 0; i < finding->sides; i++)
        ended += did_end(finding->side[i].act.did) || finding->side[i].act.did == DID_ENDING;
    if (ended == finding->sides) /* nobody waits any more */
        return 0;
    for (int i = 0; i < finding->sides; i++)
        if (finding->side[i].since_ns && (!since_ns || finding->side[i].since_ns < since_ns))
            since_ns = finding->side[i].since_ns;
    bool is_hang = code_family(finding->code) == FAMILY_HANG;
    return is_hang && since_ns && since_ns < now_ns ? now_ns - since_ns : 0;
}
