/* origin_place.c: writes the lines at which two members made their calls. */
#include "lib/finding/origin_place.h"

#include <string.h>

#include "lib/finding/finding_details.h"
#include "lib/trace/site_operation.h"

static void name_side(const struct rankset *ranks, bool is_rest, char *name, size_t bytes)
{
    if (is_rest && rankset_count(ranks) > 1)
        snprintf(name, bytes, "the others");
    else
        rankset_words(ranks, name, bytes);
}

void origin_name_sides(struct origin_pair *pair, int odd, int other)
{
    struct origin_names *names = &pair->names;
    const struct rankset *ranks = &pair->finding->side[odd].ranks;
    const struct rankset *others = &pair->finding->side[other].ranks;
    names->is_one = rankset_count(ranks) == 1;
    names->other_is_one = rankset_count(others) == 1;
    name_side(ranks, false, names->odd, sizeof names->odd);
    name_side(others, pair->finding->sides == 2, names->other, sizeof names->other);
}

static bool has_same_line(const struct frame *a, const struct frame *b)
{
    return a->line == b->line && strcmp(a->file, b->file) == 0;
}

/* The line that people look at; where both sides read the same, the outermost at which they differ.
 * False: there is none. */
static bool find_shown_lines(struct origin_place place[2])
{
    if (!has_same_line(&place[0].frame[place[0].shown], &place[1].frame[place[1].shown]))
        return true;
    for (int out = 1; out <= place[0].frames && out <= place[1].frames; out++) {
        for (int i = 0; i < 2; i++)
            place[i].shown = place[i].frames - out;
        const struct frame *a = &place[0].frame[place[0].shown];
        const struct frame *b = &place[1].frame[place[1].shown];
        if (!has_same_line(a, b))
            return *a->file && *b->file;
    }
    return false;
}

/* Both call another function there, from the same one. */
static bool call_others(const struct origin_place place[2])
{
    const struct frame *a = &place[0].frame[place[0].shown], *b = &place[1].frame[place[1].shown];
    return place[0].shown && place[1].shown && strcmp(a->function, b->function) == 0 &&
           strcmp(a[-1].function, b[-1].function) != 0;
}

bool origin_read_place(struct origin_place *place, struct trace *trace,
                       const struct member_calls *calls, const struct made_at *at)
{
    *place->where = '\0';
    place->frames = site_frames(trace, calls->process, at->stack, at->is_address, place->frame);
    place->shown = site_user_frame(place->frame, place->frames);
    return place->shown >= 0;
}

void origin_write_place(struct origin_place *place, struct trace *trace,
                        const struct member_calls *calls, const struct made_at *at, bool is_caller)
{
    const struct frame *frame = &place->frame[place->shown];
    char function[sizeof frame->function + 8], line[FINDING_LOCATION_WIDTH + 8];
    char operation[SITE_OPERATION_BYTES];
    site_operation_of(trace, calls->process, at->stack, at->is_address, NULL, operation,
                      sizeof operation);
    frame_place(frame, FINDING_LOCATION_WIDTH, line, sizeof line);
    frame_function(frame - is_caller, function, sizeof function);
    if (*operation)
        snprintf(place->where, sizeof place->where, "in %s at %s", operation, line);
    else if (*function && *function != '<')
        snprintf(place->where, sizeof place->where, "at %s %s%s", function,
                 is_caller ? "called at " : "", line);
    else
        snprintf(place->where, sizeof place->where, "at %s", line);
}

bool origin_read_places(struct origin_place place[2], const struct origin_pair *pair, size_t index)
{
    const struct member_calls *calls[] = {pair->odd, pair->other};
    for (int i = 0; i < 2; i++)
        if (!origin_read_place(&place[i], pair->trace, calls[i], &calls[i]->at[index]))
            return false;
    if (!find_shown_lines(place))
        return false;
    bool are_callers = call_others(place);
    for (int i = 0; i < 2; i++)
        origin_write_place(&place[i], pair->trace, calls[i], &calls[i]->at[index], are_callers);
    return true;
}
