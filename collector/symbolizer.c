/* symbolizer.c: resolves addresses to functions and lines in a thread of its own. */
#include "collector/symbolizer.h"

#include <stdlib.h>
#include <string.h>

#include "lib/base/clock.h"
#include "lib/trace/names.h"
#include "lib/trace/trace.h"

struct wanted {
    int process;
    uint64_t address;
};

struct symbolizer {
    char *path;
    struct trace *trace;
    struct wanted *queue; /* all that was ever asked for, in order; the first `done` are finished */
    int count, done, room;
    int *slots;     /* hash table over the queue: index + 1 */
    int slot_count; /* power of two, more than twice `count` */
};

struct symbolizer *symbolizer_new(const char *path)
{
    struct symbolizer *symbolizer = calloc(1, sizeof *symbolizer);
    if (!symbolizer || !(symbolizer->path = strdup(path))) {
        free(symbolizer);
        return NULL;
    }
    return symbolizer;
}

void symbolizer_free(struct symbolizer *symbolizer)
{
    if (!symbolizer)
        return;
    trace_close(symbolizer->trace);
    free(symbolizer->path);
    free(symbolizer->queue);
    free(symbolizer->slots);
    free(symbolizer);
}

static int *find_address_slot(const struct symbolizer *symbolizer, int process, uint64_t address)
{
    unsigned mask = (unsigned)symbolizer->slot_count - 1;
    unsigned at =
        (unsigned)((address * 0x9e3779b97f4a7c15u + (unsigned)process * 0xc2b2ae35u) >> 32) & mask;
    while (symbolizer->slots[at]) {
        const struct wanted *wanted = &symbolizer->queue[symbolizer->slots[at] - 1];
        if (wanted->process == process && wanted->address == address)
            break;
        at = (at + 1) & mask;
    }
    return &symbolizer->slots[at];
}

static bool grow_queue(struct symbolizer *symbolizer)
{
    int room = symbolizer->room ? 2 * symbolizer->room : 1024;
    struct wanted *queue = realloc(symbolizer->queue, (size_t)room * sizeof *queue);
    int *slots = calloc((size_t)room * 4, sizeof *slots);
    if (queue)
        symbolizer->queue = queue;
    if (!queue || !slots) {
        free(slots);
        return false;
    }
    free(symbolizer->slots);
    symbolizer->slots = slots;
    symbolizer->slot_count = room * 4;
    symbolizer->room = room;
    for (int i = 0; i < symbolizer->count; i++)
        *find_address_slot(symbolizer, queue[i].process, queue[i].address) = i + 1;
    return true;
}

static void want(struct symbolizer *symbolizer, int process, uint64_t address)
{
    if (address == 0 || (symbolizer->count == symbolizer->room && !grow_queue(symbolizer)))
        return;
    int *slot = find_address_slot(symbolizer, process, address);
    if (*slot)
        return;
    symbolizer->queue[symbolizer->count++] = (struct wanted){process, address};
    *slot = symbolizer->count;
}

void symbolizer_note(struct symbolizer *symbolizer, int process, const struct record *record)
{
    if (record->api == API_notice_stack) {
        for (uint32_t i = 0; i < 8 && record->frames.offset + i < record->frames.count; i++)
            want(symbolizer, process, record->frames.address[i]);
        return;
    }
    enum api_class class = api_class_of(record->api);
    if (record->flags & RECORD_FLAG_ADDRESS && record->phase != RECORD_LEAVE &&
        class >= CLASS_COLLECTIVE && class <= CLASS_WAIT)
        want(symbolizer, process, record->stack);
}

static void look_up_symbol(struct symbolizer *symbolizer, const struct wanted *wanted,
                           struct store *store)
{
    struct frame frame[ADDRESS_FRAMES_MAX];
    int count = trace_frames(symbolizer->trace, wanted->process, wanted->address, true, frame,
                             ADDRESS_FRAMES_MAX);
    if (!count || !frame->module[0])
        return;
    store_symbol(store, wanted->process, wanted->address, frame->module, frame->function,
                 frame->file[0] ? frame->file : NULL, frame->line, NULL);
    for (int i = 1; i < count; i++)
        store_inlined(store, wanted->process, wanted->address, i, frame[i].function, frame[i].file,
                      frame[i].line, NULL);
}

struct trace *symbolizer_trace(struct symbolizer *symbolizer)
{
    const char *path = symbolizer->path;
    bool ready = symbolizer->trace ? trace_refresh(symbolizer->trace, NULL) >= 0
                                   : trace_open(&symbolizer->trace, &path, 1, NULL) == 0;
    if (ready)
        trace_is_own(symbolizer->trace);
    return ready ? symbolizer->trace : NULL;
}

int symbolizer_work(struct symbolizer *symbolizer, struct store *store, uint64_t budget_ns)
{
    if (symbolizer->done == symbolizer->count)
        return 0;
    if (!symbolizer_trace(symbolizer) || store_begin(store, NULL) < 0)
        return symbolizer->count - symbolizer->done;
    uint64_t until = monotonic_now_ns() + budget_ns;
    do
        look_up_symbol(symbolizer, &symbolizer->queue[symbolizer->done++], store);
    while (symbolizer->done < symbolizer->count && monotonic_now_ns() < until);
    if (store_commit(store, NULL) < 0)
        store_rollback(store);
    return symbolizer->count - symbolizer->done;
}
