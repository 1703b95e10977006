/* finding_fix.c: distinguishes a wrong argument of one call from two calls that met because the
 * control flow of the ranks parted before. */
#include "lib/finding/finding_fix.h"

#include <stdlib.h>
#include <string.h>

#include "lib/finding/finding_origin.h"
#include "lib/trace/site_operation.h"

/* One side's call, as far as the program's sources and PyTorch's names show it. */
struct called_from {
    struct frame frame[SITE_FRAMES_MAX];  /* the program's own */
    struct frame python[SITE_FRAMES_MAX]; /* with those of Python's libraries */
    int frames, pythons;
    char operation[SITE_OPERATION_BYTES];
};

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

static void find_call(struct trace *trace, const struct finding_side *side,
                      struct called_from *from)
{
    from->frames =
        site_frames(trace, side->process, side->stack, side->stack_is_address, from->frame);
    int count = trace_frames(trace, side->process, side->stack, side->stack_is_address,
                             from->python, SITE_FRAMES_MAX);
    from->pythons = 0;
    while (from->pythons < count && !from->python[from->pythons].address)
        from->pythons++;
    site_operation_of(trace, side->process, side->stack, side->stack_is_address, side->call,
                      from->operation, sizeof from->operation);
}

static bool calls_part(const struct called_from *a, const struct called_from *b)
{
    if (*a->operation && *b->operation && strcmp(a->operation, b->operation) != 0)
        return true;
    return fix_lines_part(a->frame, a->frames, b->frame, b->frames) ||
           fix_lines_part(a->python, a->pythons, b->python, b->pythons);
}

static bool calls_any(const struct called_from *from, const char *const *functions)
{
    for (int i = 0; i < from->pythons; i++)
        for (int k = 0; functions[k]; k++)
            if (!strcmp(from->python[i].function, functions[k]) &&
                strstr(from->python[i].file, "/torch/distributed/distributed_c10d.py"))
                return true;
    return false;
}

/* What NCCL does not have, so that PyTorch makes messages of it. */
static bool is_rooted(const struct called_from *from, const struct called_from *other)
{
    static const char *const functions[] = {"gather", "scatter", "gather_object",
                                            "scatter_object_list", NULL};
    (void)other;
    return calls_any(from, functions);
}

static bool is_of_objects(const struct called_from *from, const struct called_from *other)
{
    static const char *const functions[] = {"broadcast_object_list", "scatter_object_list",
                                            "send_object_list", "recv_object_list", NULL};
    (void)other;
    return calls_any(from, functions);
}

static bool is_bucket(const struct called_from *from, const struct called_from *other)
{
    (void)other;
    return !strcmp(from->operation, site_gradient_bucket);
}

/* The first row that applies to side 0 and any other side is the advice. */
static const struct {
    enum code code;
    bool (*applies)(const struct called_from *first, const struct called_from *other);
    enum advice advice;
} fixes[] = {
    {DC102, calls_part, ADVICE_CALLS_PART},     {DC103, calls_part, ADVICE_CALLS_PART},
    {DC104, calls_part, ADVICE_CALLS_PART},     {DC105, calls_part, ADVICE_CALLS_PART},
    {DC102, is_bucket, ADVICE_OTHER_BUCKETS},   {DC102, is_of_objects, ADVICE_OTHER_OBJECTS},
    {DC201, is_rooted, ADVICE_ROOTED_CALLS},    {DC203, is_rooted, ADVICE_ROOTED_CALLS},
    {DC206, is_bucket, ADVICE_FEWER_BACKWARDS},
};

bool finding_calls_part(struct trace *trace, const struct finding *finding)
{
    struct called_from first, other;
    bool part = false;
    if (!trace || finding->code < DC102 || finding->code > DC105)
        return false;
    find_call(trace, &finding->side[0], &first);
    for (int i = 1; i < finding->sides && !part; i++) {
        find_call(trace, &finding->side[i], &other);
        part = calls_part(&first, &other);
    }
    return part;
}

static bool has_fix(enum code code)
{
    for (size_t i = 0; i < sizeof fixes / sizeof *fixes; i++)
        if (fixes[i].code == code)
            return true;
    return false;
}

static bool applies_to_any(struct trace *trace, const struct finding *finding, size_t fix,
                           const struct called_from *first)
{
    struct called_from other;
    bool applies = false;
    for (int i = 1; i < finding->sides && !applies; i++) {
        find_call(trace, &finding->side[i], &other);
        applies = fixes[fix].applies(first, &other);
    }
    return applies;
}

/* That of the way which each side went (origin_branch.h), which costs reading their calls. */
static enum advice find_origin_advice(struct trace *trace, const struct finding *finding)
{
    struct finding_origin origin = {0};
    if (finding->code <= DC105 || finding->code == DC201 || finding->code == DC206)
        origin = finding_origin(trace, finding);
    free(origin.what);
    return origin.advice;
}

const char *finding_fix(struct trace *trace, const struct finding *finding)
{
    struct called_from first;
    enum advice advice = find_origin_advice(trace, finding);
    if (advice)
        return advice_words(advice);
    if (!trace || finding->sides < 2 || !has_fix(finding->code))
        return finding->todo;
    find_call(trace, &finding->side[0], &first);
    for (size_t i = 0; i < sizeof fixes / sizeof *fixes; i++)
        if (fixes[i].code == finding->code && applies_to_any(trace, finding, i, &first))
            return advice_words(fixes[i].advice);
    return finding->todo;
}
