/* iteration.c: finds where in its training loop a thread is, from NVTX ranges. */
#include "analyzer/model/iteration.h"

#include <string.h>

#include "analyzer/model/array.h"
#include "analyzer/model/model.h"
#include "analyzer/model/process.h"
#include "lib/base/invariant.h"

static uint32_t kept_ranges(const struct thread *thread)
{
    return thread->ranges < THREAD_RANGES_MAX ? thread->ranges : THREAD_RANGES_MAX;
}

uint64_t thread_phase(const struct thread *thread)
{
    uint32_t kept = kept_ranges(thread);
    return kept ? thread->range[kept - 1].text : 0;
}

/* Whether the thread has a range of this kind open. */
static bool thread_is_in(const struct thread *thread, enum range_kind kind)
{
    for (uint32_t i = 0; i < kept_ranges(thread); i++)
        if (thread->range[i].meaning.kind == kind)
            return true;
    return false;
}

static struct range_meaning meaning_of(const struct thread *thread, uint64_t text)
{
    struct range_meaning meaning = process_range_meaning(thread->process, text);
    if (meaning.kind == RANGE_STEP_OR_ITERATION)
        meaning.kind = thread->loop.open && thread->loop.has_iterations ? RANGE_STEP
                                                                        : RANGE_ITERATION;
    return meaning;
}

static void forget_counts(struct loop *loop)
{
    loop->micro_steps = loop->backwards = loop->backward_models = 0;
    for (uint32_t i = 0; i < loop->steps_count; i++)
        loop->steps[i].count = 0;
}

static void begin_iteration(struct thread *thread, const struct open_range *range, uint64_t time_ns)
{
    struct loop *loop = &thread->loop;
    struct process *process = thread->process;
    if (!loop->ordinal) {
        process->loop.threads++;
        process->loop.thread = thread;
    }
    forget_counts(loop);
    loop->open = true;
    loop->ordinal++;
    loop->begin_ns = time_ns;
    loop->range = range ? *range : (struct open_range){0};
}

static void count_step(const struct event *event, const struct open_range *range)
{
    struct loop *loop = &event->thread->loop;
    uint32_t i = 0;
    while (i < loop->steps_count && loop->steps[i].model != range->meaning.model)
        i++;
    if (i == LOOP_STEPS_MAX)
        return;
    if (i == loop->steps_count)
        loop->steps[loop->steps_count++] =
            (struct loop_steps){.model = range->meaning.model, .text = range->text};
    struct loop_steps *steps = &loop->steps[i];
    steps->count++;
    steps->stack = event->site.stack;
    steps->stack_is_address = event->site.stack_is_address;
    steps->time_ns = event->site.time_ns;
}

static const uint32_t *backwards_of(const struct loop *loop, uint64_t model)
{
    for (uint32_t i = 0; i < loop->backward_models; i++)
        if (loop->backward[i].model == model)
            return &loop->backward[i].count;
    return NULL;
}

static void count_backward(struct loop *loop, uint64_t model)
{
    uint32_t i = 0;
    loop->backwards++;
    while (i < loop->backward_models && loop->backward[i].model != model)
        i++;
    if (!model || i == LOOP_STEPS_MAX)
        return;
    if (i == loop->backward_models) {
        loop->backward[i].model = model;
        loop->backward[i].count = 0;
        loop->backward_models++;
    }
    loop->backward[i].count++;
}

/* Ranges of one kind nest where a library's are inside the program's: the outermost counts. */
static bool begins(const struct event *event, const struct open_range *range)
{
    struct thread *thread = event->thread;
    struct loop *loop = &thread->loop;
    enum range_kind kind = range->meaning.kind;
    if (kind == RANGE_OTHER || thread_is_in(thread, kind))
        return false;
    if (kind == RANGE_ITERATION) {
        loop->has_iterations = true;
        begin_iteration(thread, range, event->site.time_ns);
    } else if (kind == RANGE_MICRO_STEP) {
        loop->micro_steps++;
    } else if (kind == RANGE_BACKWARD) {
        count_backward(loop, range->meaning.model);
    } else if (kind == RANGE_STEP) {
        count_step(event, range);
    }
    return true;
}

static enum loop_event push(const struct event *event)
{
    struct thread *thread = event->thread;
    const struct record *record = event->record;
    struct open_range range = {
        .text = record->range.text,
        .domain = record->range.domain,
        .id = record->api == API_nvtxRangeStart ? record->range.id : 0,
        .meaning = meaning_of(thread, record->range.text),
    };
    begins(event, &range);
    if (thread->ranges < THREAD_RANGES_MAX) {
        struct open_range *grown =
            array_room(thread->range, sizeof *grown, thread->ranges, &thread->range_capacity, 4);
        if (!grown)
            return LOOP_FAILED;
        thread->range = grown;
        thread->range[thread->ranges] = range;
    }
    if (thread->ranges < UINT32_MAX)
        thread->ranges++;
    return LOOP_NOTHING;
}

/* Takes a range off the stack. Returns whether an iteration ends with it. */
static enum loop_event take_off(struct thread *thread, uint32_t place, uint64_t time_ns)
{
    struct loop *loop = &thread->loop;
    invariant(place < kept_ranges(thread), "a range that ends is open");
    struct open_range range = thread->range[place];
    thread->ranges = kept_ranges(thread) - 1;
    memmove(&thread->range[place], &thread->range[place + 1],
            (thread->ranges - place) * sizeof range);
    if (range.meaning.kind == RANGE_ITERATION)
        return loop->open && !thread_is_in(thread, RANGE_ITERATION) ? LOOP_ENDS : LOOP_NOTHING;
    if (range.meaning.kind != RANGE_STEP || loop->has_iterations ||
        thread_is_in(thread, RANGE_STEP))
        return LOOP_NOTHING;
    if (!loop->boundary)
        loop->boundary = range.meaning.model + 1;
    if (loop->boundary != range.meaning.model + 1)
        return LOOP_NOTHING;
    if (loop->open)
        return LOOP_ENDS;
    begin_iteration(thread, NULL, time_ns);
    return LOOP_NOTHING;
}

static enum loop_event pop(const struct event *event)
{
    struct thread *thread = event->thread;
    const struct record *record = event->record;
    if (thread->ranges > THREAD_RANGES_MAX) {
        thread->ranges--;
        return LOOP_NOTHING;
    }
    for (uint32_t i = kept_ranges(thread); i-- > 0;)
        if (!thread->range[i].id && thread->range[i].domain == record->range.domain)
            return take_off(thread, i, event->site.time_ns);
    return LOOP_NOTHING; /* it was pushed before the shim woke */
}

static int find_started(const struct thread *thread, uint64_t id)
{
    for (uint32_t i = kept_ranges(thread); i-- > 0;)
        if (thread->range[i].id == id)
            return (int)i;
    return -1;
}

/* Any thread may end a started range. Another thread's iteration ends silently: its hooks belong to
 * that thread. */
static enum loop_event end_started(const struct event *event)
{
    struct thread *thread = event->thread;
    const struct record *record = event->record;
    int place = record->range.id ? find_started(thread, record->range.id) : -1;
    if (place >= 0)
        return take_off(thread, (uint32_t)place, event->site.time_ns);
    for (struct thread *other = thread->process->threads; other && record->range.id;
         other = other->hh.next) {
        place = other == thread ? -1 : find_started(other, record->range.id);
        if (place < 0)
            continue;
        if (take_off(other, (uint32_t)place, event->site.time_ns) == LOOP_ENDS)
            loop_end(other);
        break;
    }
    return LOOP_NOTHING;
}

enum loop_event loop_feed(const struct event *event)
{
    switch (event->record->api) {
    case API_nvtxRangePush:
    case API_nvtxRangeStart:
        return push(event);
    case API_nvtxRangePop:
        return pop(event);
    case API_nvtxRangeEnd:
        return end_started(event);
    case API_ddpcheck_iteration:
        process_name_iterations(event->process, event->record->range.text);
        return LOOP_NOTHING;
    default:
        return LOOP_NOTHING;
    }
}

void loop_end(struct thread *thread)
{
    struct loop *loop = &thread->loop;
    invariant(loop->open && loop->ordinal, "an iteration that ends has begun");
    forget_counts(loop);
    loop->open = !loop->has_iterations;
    if (loop->open) { /* what one step ends the next begins */
        loop->ordinal++;
        loop->begin_ns = thread->process->last_ns;
    }
}

/* An engine's own thread (autograd, Horovod) works for the loop's thread, which may be elsewhere by
 * then: only while that waits in backward, in the reduction or in its step does it stand where its
 * helper's calls belong. */
/* The thread whose loop this thread's calls belong to; NULL if there is none, or it can't be said.
 */
static const struct thread *loop_thread_of(const struct thread *thread)
{
    const struct process *process = thread->process;
    if (process->lost.bulk)
        return NULL;
    if (thread->loop.ordinal)
        return thread;
    const struct thread *loop = process->loop.threads == 1 ? process->loop.thread : NULL;
    bool stands = loop && (thread_is_in(loop, RANGE_BACKWARD) || thread_is_in(loop, RANGE_REDUCE) ||
                           thread_is_in(loop, RANGE_STEP));
    return stands ? loop : NULL;
}

/* From the innermost range outwards: the first that means something, and the first that names a
 * model. */
static void take_phase(const struct thread *thread, struct loop_place *place)
{
    for (uint32_t i = kept_ranges(thread); i-- > 0;) {
        const struct range_meaning *meaning = &thread->range[i].meaning;
        if (meaning->kind == RANGE_ITERATION || meaning->kind == RANGE_OTHER)
            continue;
        if (!place->phase)
            place->phase = meaning->kind;
        if (!place->model)
            place->model = meaning->model;
        if (meaning->kind == RANGE_BACKWARD && !place->in_backward) {
            place->in_backward = true;
            place->backward = meaning->model;
        }
    }
}

struct loop_place loop_place_of(const struct thread *thread)
{
    struct loop_place place = {0};
    const struct thread *owner = loop_thread_of(thread);
    if (!owner)
        return place;
    const struct loop *loop = &owner->loop;
    place.owner = owner;
    place.iteration = loop->open ? loop->ordinal : 0;
    if (place.iteration && loop->has_iterations) {
        place.numbered = loop->range.meaning.has_number;
        place.number = loop->range.meaning.number;
        place.text = loop->range.text;
    }
    take_phase(thread, &place);
    if (owner != thread)
        take_phase(owner, &place);
    const uint32_t *backwards = place.backward ? backwards_of(loop, place.backward) : NULL;
    if (loop->micro_steps)
        place.micro = loop->micro_steps;
    else
        place.micro = backwards ? *backwards : loop->backwards;
    return place;
}
