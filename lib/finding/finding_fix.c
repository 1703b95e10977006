/* finding_fix.c: distinguishes a wrong argument of one call from two calls that met because the
 * control flow of the ranks parted before. */
#include "lib/finding/finding_fix.h"

#include <string.h>

#include "lib/trace/site_operation.h"

/* Mismatches of an argument: what the sides called is the same kind of operation. */
static const char *const argument_codes[] = {"DC102", "DC103", "DC104", "DC105"};

static const char parted[] =
    "The ranks are at different calls of the program: look for a condition on the rank or on local "
    "data, or for a call that one side skips or repeats, before the lines shown. If these lines "
    "are meant to be one operation, pass the same arguments at each.";

static const char other_buckets[] =
    "The ranks reduce different gradient buckets: look for a backward pass that only some ranks "
    "make (a step of one of several models, a skipped batch), for parameters that only some ranks "
    "use, or for models that differ between ranks.";

/* Of DC206, where gradients wait: a rank that left early need not have had less data. */
static const char fewer_backwards[] =
    "Give every rank the same number of backward passes that reduce gradients: the same iterations "
    "(drop the last partial batch, pad, or use Join), the same steps of accumulation, and "
    "no_sync() on all ranks or on none.";

static const char objects[] =
    "The lists of objects have different lengths: give the function as many objects on every rank, "
    "or look for a call that one side skips or repeats.";

static const char roots[] =
    "PyTorch's gather and scatter are sends to or from one rank: call them on every rank, and give "
    "all ranks the same root (dst, src).";

static const char bucket[] = "gradient bucket of DDP"; /* site_operation.c */

/* One side's call, as far as the program's sources and PyTorch's names tell it. */
struct called_from {
    struct frame frame[SITE_FRAMES_MAX];  /* the program's own */
    struct frame python[SITE_FRAMES_MAX]; /* with those of Python's libraries */
    int frames, pythons;
    char operation[SITE_OPERATION_BYTES];
};

static bool is_about_arguments(const char *code)
{
    for (size_t i = 0; i < sizeof argument_codes / sizeof *argument_codes; i++)
        if (!strcmp(code, argument_codes[i]))
            return true;
    return false;
}

bool fix_lines_part(const struct frame *a, int count, const struct frame *b, int other_count)
{
    for (int i = 0; i < count && i < other_count; i++) {
        if (!a[i].line || !b[i].line || !*a[i].file || !*b[i].file)
            return false;
        if (a[i].line != b[i].line || strcmp(a[i].file, b[i].file) != 0)
            return true;
    }
    return false;
}

static void find_call(struct trace *trace, const struct fix_place *place, struct called_from *from)
{
    from->frames =
        site_frames(trace, place->process, place->stack, place->stack_is_address, from->frame);
    int count = trace_frames(trace, place->process, place->stack, place->stack_is_address,
                             from->python, SITE_FRAMES_MAX);
    from->pythons = 0;
    while (from->pythons < count && !from->python[from->pythons].address)
        from->pythons++;
    site_operation_of(trace, place->process, place->stack, place->stack_is_address, from->operation,
                      sizeof from->operation);
}

static bool calls_part(const struct called_from *a, const struct called_from *b)
{
    if (*a->operation && *b->operation && strcmp(a->operation, b->operation) != 0)
        return true;
    return fix_lines_part(a->frame, a->frames, b->frame, b->frames) ||
           fix_lines_part(a->python, a->pythons, b->python, b->pythons);
}

/* What NCCL does not have, so that PyTorch makes messages of it. */
static bool is_rooted(const struct called_from *from)
{
    static const char *const rooted[] = {"gather", "scatter", "gather_object",
                                         "scatter_object_list"};
    for (int i = 0; i < from->pythons; i++)
        for (size_t k = 0; k < sizeof rooted / sizeof *rooted; k++)
            if (!strcmp(from->python[i].function, rooted[k]) &&
                strstr(from->python[i].file, "/torch/distributed/distributed_c10d.py"))
                return true;
    return false;
}

const char *fix_of_places(struct trace *trace, const char *code, const char *todo,
                          const struct fix_place *place, int places)
{
    struct called_from first, other;
    bool is_message = !strcmp(code, "DC201") || !strcmp(code, "DC203");
    bool left_early = !strcmp(code, "DC206");
    if (!trace || places < 2 || (!is_about_arguments(code) && !is_message && !left_early))
        return todo;
    find_call(trace, &place[0], &first);
    if (left_early)
        return strcmp(first.operation, bucket) ? todo : fewer_backwards;
    if (is_message)
        return is_rooted(&first) ? roots : todo;
    for (int i = 1; i < places; i++) {
        find_call(trace, &place[i], &other);
        if (calls_part(&first, &other))
            return parted;
    }
    if (!strcmp(code, "DC102") && !strcmp(first.operation, bucket))
        return other_buckets;
    if (!strcmp(code, "DC102") && strstr(first.operation, "_object_list()"))
        return objects;
    return todo;
}

const char *finding_fix(struct trace *trace, const struct finding *finding)
{
    struct fix_place place[FINDING_SIDES_MAX];
    for (int i = 0; i < finding->sides; i++)
        place[i] = (struct fix_place){
            .process = finding->side[i].process,
            .stack = finding->side[i].stack,
            .stack_is_address = finding->side[i].stack_is_address,
        };
    return fix_of_places(trace, finding->code, finding->todo, place, finding->sides);
}
