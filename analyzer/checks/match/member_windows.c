/* member_windows.c: remembers the windows of each member, by the records that register and remove
 * them. */
#include "analyzer/checks/match/member_windows.h"

#include <stdlib.h>

#include "analyzer/model/array.h"
#include "analyzer/model/comm.h"
#include "analyzer/states.h"

enum { MEMBER_WINDOWS_MAX = 1 << 16 };

void member_windows_end(void *state)
{
    free(((struct member_windows *)state)->list);
}

static struct member *windows_owner(struct analyzer *analyzer, const struct record *entered)
{
    bool concerns = entered->api == API_ncclCommWindowRegister ||
                    entered->api == API_ncclCommWindowDeregister;
    return concerns && entered->comm.comm && !(entered->flags & RECORD_FLAG_GONE)
               ? member_find(analyzer, entered->comm.comm, entered->comm.rank)
               : NULL;
}

static void window_add(struct analyzer *analyzer, struct member_windows *windows,
                       const struct known_window *window)
{
    struct known_window *grown =
        windows->count < MEMBER_WINDOWS_MAX
            ? array_room(windows->list, sizeof *grown, windows->count, &windows->capacity, 2)
            : NULL;
    if (!grown) {
        analyzer->failed |= windows->count < MEMBER_WINDOWS_MAX;
        return;
    }
    windows->list = grown;
    windows->list[windows->count++] = *window;
}

/* The one of that handle, else those whose handle is not known: one of them it is. */
static void window_remove(struct member_windows *windows, uint64_t handle)
{
    bool is_known = false;
    uint32_t kept = 0;
    for (uint32_t i = 0; i < windows->count; i++)
        is_known |= windows->list[i].handle == handle;
    for (uint32_t i = 0; i < windows->count; i++)
        if (windows->list[i].handle != (is_known ? handle : 0))
            windows->list[kept++] = windows->list[i];
    windows->count = kept;
}

void member_windows_enter(struct analyzer *analyzer, const struct event *event)
{
    const struct record *record = event->record;
    struct member *member = windows_owner(analyzer, record);
    if (!member || member->process != event->process)
        return;
    struct member_windows *windows =
        state_get(analyzer, &check_one_sided, OWNER_MEMBER, &member->states);
    if (!windows)
        return;
    const struct known_window window = {
        .begin = record->comm.pointer,
        .bytes = record->comm.bytes,
        .number = member->made[WAIT_WINDOW] - 1,
        .is_symmetric = record->comm.flags & RECORD_COMM_SYMMETRIC,
        .site = event->site,
    };
    if (record->api == API_ncclCommWindowDeregister)
        window_remove(windows, record->comm.pointer);
    else if (member->made[WAIT_WINDOW])
        window_add(analyzer, windows, &window);
}

void member_windows_leave(struct analyzer *analyzer, const struct event *event)
{
    struct thread *thread = event->thread;
    if (!thread->in_call || thread->enter.api != API_ncclCommWindowRegister ||
        event->record->api != thread->enter.api)
        return;
    struct member *member = windows_owner(analyzer, &thread->enter);
    struct member_windows *windows =
        member ? state_find(analyzer, &check_one_sided, OWNER_MEMBER, member->states) : NULL;
    if (!windows || !windows->count || member->process != event->process)
        return;
    struct known_window *newest = &windows->list[windows->count - 1];
    if (newest->begin != thread->enter.comm.pointer || newest->handle)
        return;
    if (event->record->result && event->record->result != RESULT_IN_PROGRESS)
        windows->count--;
    else
        newest->handle = event->record->leave.handle;
}

const struct member_windows *member_windows_of(const struct analyzer *analyzer,
                                               const struct member *member)
{
    return state_find(analyzer, &check_one_sided, OWNER_MEMBER, member->states);
}

const struct known_window *member_window_by_handle(const struct analyzer *analyzer,
                                                   const struct member *member, uint64_t handle)
{
    const struct member_windows *windows = member_windows_of(analyzer, member);
    for (uint32_t i = 0; windows && handle && i < windows->count; i++)
        if (windows->list[i].handle == handle)
            return &windows->list[i];
    return NULL;
}

const struct known_window *member_window_by_number(const struct analyzer *analyzer,
                                                   const struct member *member, uint32_t number)
{
    const struct member_windows *windows = member_windows_of(analyzer, member);
    for (uint32_t i = 0; windows && i < windows->count; i++)
        if (windows->list[i].number == number)
            return &windows->list[i];
    return NULL;
}

bool member_window_use(const struct analyzer *analyzer, const struct member *member,
                       uint64_t address, struct window_use *use)
{
    const struct member_windows *windows = member_windows_of(analyzer, member);
    *use = (struct window_use){.is_inside = false};
    for (uint32_t i = 0; windows && i < windows->count; i++) {
        const struct known_window *window = &windows->list[i];
        if (!window->is_symmetric || address - window->begin >= window->bytes)
            continue;
        if (use->is_inside)
            return false;
        *use = (struct window_use){true, window->number, address - window->begin};
    }
    return true;
}
