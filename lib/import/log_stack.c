/* log_stack.c: "Stack trace of the failed collective" of PyTorch's watchdog: where in the program
 * a rank called what timed out. */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/import/log_messages.h"
#include "lib/import/scan.h"

enum { STACKS_MAX = 4096, FRAMES_MAX = 48, FUNCTION_BYTES = 96, FILE_BYTES = 200 };

struct stack_frame {
    char function[FUNCTION_BYTES], file[FILE_BYTES];
    uint32_t line;
};

struct log_stack {
    struct log_speaker speaker;
    struct stack_frame *frame;
    int frames;
};

struct log_stacks {
    struct log_stack *stack;
    uint32_t count;
    uint32_t latest; /* the one that began last: lines without a prefix belong to it */
};

static int begin_stack(struct log_job *job, struct log_speaker speaker)
{
    struct log_stacks *all = job->state[LOG_STACK];
    if (!all->stack && !(all->stack = calloc(STACKS_MAX, sizeof *all->stack)))
        return -1;
    if (all->count == STACKS_MAX)
        return 1;
    all->latest = all->count++;
    all->stack[all->latest].speaker = speaker;
    return 1;
}

static struct log_stack *find_stack(const struct log_stacks *all, struct log_speaker speaker)
{
    for (uint32_t i = all->count; i-- > 0;)
        if (all->stack[i].speaker.rank == speaker.rank &&
            all->stack[i].speaker.source == speaker.source)
            return &all->stack[i];
    bool has_prefix = speaker.rank >= 0 || speaker.source;
    return has_prefix || !all->count ? NULL : &all->stack[all->latest];
}

/* "#2 reduce_metrics from /workspace/train/metrics.py:57", perhaps behind a launcher's prefix. */
static bool parse_stack_frame(const char *text, int number, struct stack_frame *frame)
{
    char begin[16];
    snprintf(begin, sizeof begin, "#%d ", number);
    const char *function = strstr(text, begin),
               *from = function ? strstr(function, " from ") : NULL;
    const char *colon = from ? strrchr(from, ':') : NULL;
    if (!colon || !isdigit((unsigned char)colon[1]))
        return false;
    function += strlen(begin);
    const char *file = from + strlen(" from ");
    if (function >= from || file >= colon)
        return false;
    snprintf(frame->function, sizeof frame->function, "%.*s", (int)(from - function), function);
    snprintf(frame->file, sizeof frame->file, "%.*s", (int)(colon - file), file);
    frame->line = (uint32_t)strtoul(colon + 1, NULL, 10);
    return true;
}

static int read_stack_line(struct log_job *job, const char *text, size_t bytes)
{
    struct log_stacks *all = job->state[LOG_STACK];
    struct stack_frame frame;
    if (scan_find(text, "Stack trace of the failed collective:"))
        return begin_stack(job, log_speaker_of(text, bytes));
    if (!all->count)
        return 0;
    struct log_stack *stack = find_stack(all, log_speaker_of(text, bytes));
    if (!stack || stack->frames == FRAMES_MAX || !parse_stack_frame(text, stack->frames, &frame))
        return 0;
    if (!stack->frame && !(stack->frame = calloc(FRAMES_MAX, sizeof *stack->frame)))
        return -1;
    stack->frame[stack->frames++] = frame;
    return 1;
}

/* The speaker's first: what came later waits behind it. */
static const struct log_stack *first_stack(const struct log_job *job, struct log_speaker speaker)
{
    const struct log_stacks *all = job->state[LOG_STACK];
    for (uint32_t i = 0; i < all->count; i++)
        if (all->stack[i].frames && all->stack[i].speaker.rank == speaker.rank &&
            all->stack[i].speaker.source == speaker.source)
            return &all->stack[i];
    return NULL;
}

bool log_stack_place(const struct log_job *job, struct log_speaker speaker, char *to, size_t bytes)
{
    const struct log_stack *stack = first_stack(job, speaker);
    if (!stack)
        return false;
    int shown = 0;
    while (shown < stack->frames && !log_is_users_file(stack->frame[shown].file))
        shown++;
    const struct stack_frame *frame = &stack->frame[shown < stack->frames ? shown : 0];
    const char *name = strrchr(frame->file, '/');
    snprintf(to, bytes, "%s:%u (%s)", name ? name + 1 : frame->file, frame->line, frame->function);
    return true;
}

bool log_place_take(struct log_place *place, const char *text)
{
    struct scanned found;
    char file[sizeof place->file];
    if (!scan(text, "{r:function} at {r:file}:{i:line}", &found) || found.begin != text ||
        found.end[strspn(found.end, " \r")])
        return false;
    snprintf(file, sizeof file, "%.*s", (int)found.field[1].bytes, found.field[1].text);
    if (*place->file || !log_is_users_file(file) || !strncmp(file, "torch/", strlen("torch/")))
        return true;
    memcpy(place->file, file, sizeof file);
    place->line = (int)found.field[2].number;
    snprintf(place->function, sizeof place->function, "%.*s", (int)found.field[0].bytes,
             found.field[0].text);
    return true;
}

uint64_t log_place_import(struct import *import, int process, const struct log_place *place)
{
    const struct import_frame frame = {place->file, place->function, (uint32_t)strlen(place->file),
                                       (uint32_t)strlen(place->function), (uint32_t)place->line};
    return *place->file ? import_stack(import, process, &frame, 1) : 0;
}

uint64_t log_stack_import(struct log_job *job, struct log_speaker speaker, int process)
{
    struct import_frame frames[FRAMES_MAX];
    const struct log_stack *stack = first_stack(job, speaker);
    for (int k = 0; stack && k < stack->frames; k++)
        frames[k] = (struct import_frame){
            stack->frame[k].file, stack->frame[k].function, (uint32_t)strlen(stack->frame[k].file),
            (uint32_t)strlen(stack->frame[k].function), stack->frame[k].line};
    return stack ? import_stack(job->import, process, frames, stack->frames) : 0;
}

static int end_stacks(struct log_job *job)
{
    struct log_stacks *all = job->state[LOG_STACK];
    for (uint32_t i = 0; i < all->count; i++)
        free(all->stack[i].frame);
    free(all->stack);
    return 0;
}

const struct log_reader log_stack = {sizeof(struct log_stacks), read_stack_line, end_stacks};
