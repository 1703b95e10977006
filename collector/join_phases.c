/* join_phases.c: sends the hub in which NVTX ranges the calls were made. Ranges are too many to be
 * kept with the calls: instead each call that is sent has a range of its own around it, unless the
 * call before it was in the same. */
#include "collector/join_internal.h"
#include "lib/trace/names.h"

static struct join_thread *thread_find(const struct join_process *process, uint32_t tid)
{
    struct join_thread *thread;
    TABLE_FIND(process->threads, &tid, thread);
    return thread;
}

uint64_t join_phase_of(struct join_process *process, const struct analyzer *analyzer, int number,
                       const struct record *record)
{
    bool is_range = api_class_of(record->api) == CLASS_RANGE;
    if (!is_range && record->phase != RECORD_ENTER)
        return 0;
    uint64_t phase = analyzer_phase(analyzer, number, record->thread);
    struct join_thread *thread = is_range ? thread_find(process, record->thread) : NULL;
    if (thread) {
        thread->phase = phase;
        thread->phase_ns = record->time_ns;
    }
    return phase;
}

/* The text comes first. named_by: its place is the range's. */
static void write_range(struct join *join, int number, const struct record *named_by, uint16_t api,
                        uint64_t text)
{
    struct record range = {.api = api,
                           .phase = RECORD_POINT,
                           .time_ns = named_by->time_ns,
                           .serial = named_by->serial,
                           .thread = named_by->thread,
                           .device = RECORD_NO_DEVICE};
    range.range.text = text;
    join_write_text(join, number, text, &range);
    join_write_record(join, number, &range);
}

static void write_change(struct join *join, int number, struct join_thread *thread,
                         const struct record *place, uint64_t phase)
{
    if (thread->sent_phase == phase && !thread->is_doubtful)
        return;
    if (thread->sent_phase || thread->is_doubtful)
        write_range(join, number, place, API_nvtxRangePop, 0);
    if (phase)
        write_range(join, number, place, API_nvtxRangePush, phase);
    thread->has_sent |= phase != 0;
    thread->sent_phase = phase;
    thread->is_doubtful = false;
}

void join_write_phase(struct join *join, int number, const struct record *record, uint64_t phase)
{
    struct join_thread *thread = thread_find(join->process[number], record->thread);
    if (thread)
        write_change(join, number, thread, record, phase);
}

void join_write_phases(struct join *join, int number, uint64_t position, uint64_t time_ns)
{
    for (struct join_thread *thread = join->process[number]->threads; thread;
         thread = thread->hh.next) {
        if (thread->position >= position || thread->phase_ns > time_ns)
            continue;
        /* Without a serial it does not show that the program goes on. */
        const struct record place = {.time_ns = thread->phase_ns > thread->last.time_ns
                                                    ? thread->phase_ns
                                                    : thread->last.time_ns,
                                     .thread = thread->thread};
        write_change(join, number, thread, &place, thread->phase);
    }
}

void join_doubt_phases(struct join_process *process)
{
    for (struct join_thread *thread = process->threads; thread; thread = thread->hh.next)
        thread->is_doubtful = thread->has_sent;
}
