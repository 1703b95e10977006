/* selection.c: see selection.h. */
#include "interpose/record/selection.h"

#include <stdlib.h>
#include <string.h>

#include <cuda_runtime_api.h>

#include "interpose/record/buffers.h"
#include "interpose/record/emit.h"
#include "interpose/calls/streams.h"

enum {
    PAGE_BITS = 16,
    PAGES = 1 << 20, /* places for pages; two that share one are both told, no harm */
    KEPT_MAX = 8192,
    ALLOCATIONS = 1 << 20,
    RANGES = 4096,
    PAGES_LOOKED_AT = 64, /* of one access; a longer one is told */
    GENERATION =
        1024, /* buffers that NCCL was given: what was not among the last two is forgotten */
    DEVICES = 64
};

enum { ENTRY_FREE, ENTRY_BUSY, ENTRY_FULL };

struct entry {
    _Atomic uint32_t state;
    uint32_t record_number; /* the same in all entries of one record */
    struct touch touch;
    struct record record;
};

static struct {
    _Atomic uint64_t
        used[2][PAGES / 64]; /* pages that NCCL uses: in this generation, in the one before */
    _Atomic uint64_t uses;   /* buffers so far */
    struct {
        _Atomic uint64_t begin, end;
    } range[RANGES];                               /* buffers that NCCL was given before */
    _Atomic uint64_t incomplete[ALLOCATIONS / 64]; /* allocations that untold work may have written,
                                                      nobody knows where */
    _Atomic uint64_t announced[ALLOCATIONS / 64];  /* of which that was told */
    struct handles nonblocking; /* streams that the default stream does not wait for */
    _Atomic uint32_t kept;      /* records so far */
    _Atomic uint32_t anywhere;  /* untold work may have written anything since that was last told */
    _Atomic uint32_t none_told; /* that nothing is told was told */
    _Atomic uint32_t blocking;  /* there are streams that the default stream orders */
    _Atomic uint64_t legacy_told, legacy_kept; /* by device: work on the default stream */
    struct entry entry[KEPT_MAX];
} selection;

enum selection selection_wanted(void)
{
    const char *text = getenv("DDPCHECK_CUDA");
    return !text                   ? SELECT_USED
           : !strcmp(text, "all")  ? SELECT_ALL
           : !strcmp(text, "none") ? SELECT_NONE
                                   : SELECT_USED;
}

void selection_forked(void)
{
    memset((void *)&selection, 0, sizeof selection);
}

static uint64_t hash(uint64_t value)
{
    return (value ^ value >> 29) * 0x9e3779b97f4a7c15u >> 32;
}

static bool bit(_Atomic uint64_t *bits, uint64_t at)
{
    return atomic_load_explicit(&bits[at / 64], memory_order_relaxed) >> at % 64 & 1;
}

static bool set_bit(_Atomic uint64_t *bits, uint64_t at)
{
    return bit(bits, at) || atomic_fetch_or(&bits[at / 64], 1ull << at % 64) >> at % 64 & 1;
}

static void clear_bit(_Atomic uint64_t *bits, uint64_t at)
{
    if (bit(bits, at))
        atomic_fetch_and(&bits[at / 64], ~(1ull << at % 64));
}

static bool page_is_used(uint64_t page)
{
    uint64_t at = hash(page) % PAGES;
    return bit(selection.used[0], at) || bit(selection.used[1], at);
}

/* The generation of a use; the first of a new one clears the marks of the last but one. A page that
 * loses its mark while it is marked is found fresh at its next use, which tells what was kept. */
static _Atomic uint64_t *generation(void)
{
    uint64_t use = atomic_fetch_add_explicit(&selection.uses, 1, memory_order_relaxed);
    _Atomic uint64_t *marks = selection.used[use / GENERATION % 2];
    if (use % GENERATION == 0)
        for (uint32_t i = 0; i < PAGES / 64; i++)
            atomic_store_explicit(&marks[i], 0, memory_order_relaxed);
    return marks;
}

static bool is_used(const struct touch *touch)
{
    uint64_t first = touch->begin >> PAGE_BITS, last = (touch->end - 1) >> PAGE_BITS;
    if (last - first >= PAGES_LOOKED_AT)
        return true;
    for (uint64_t page = first; page <= last; page++)
        if (page_is_used(page))
            return true;
    return false;
}

static bool any_is_used(const struct touch *touch, int count)
{
    for (int i = 0; i < count; i++)
        if (is_used(&touch[i]))
            return true;
    return false;
}

/* Work on the legacy default stream waits for the blocking streams and holds them up: where there
 * are any, it is order, as is their own work. The first work tells the analyzer that there is such
 * a stream. */
static bool orders_others(const struct call *call, uint64_t stream)
{
    int device = call->thread->device;
    if (stream > (uintptr_t)cudaStreamPerThread)
        return !handles_has(&selection.nonblocking, stream);
    if (stream == (uintptr_t)cudaStreamPerThread || device < 0 || device >= DEVICES ||
        atomic_load_explicit(&selection.blocking, memory_order_seq_cst))
        return true;
    if (!(atomic_load_explicit(&selection.legacy_told, memory_order_relaxed) >> device & 1)) {
        atomic_fetch_or(&selection.legacy_told, 1ull << device);
        return true;
    }
    if (!(atomic_load_explicit(&selection.legacy_kept, memory_order_relaxed) >> device & 1))
        atomic_fetch_or(&selection.legacy_kept, 1ull << device);
    return false;
}

/* Of memory that NCCL uses later it must be known whether anything has written it (DC310). How far
 * a kernel goes from its pointer is not known; of a copy it is, as long as it is kept. */
static void note_write(const struct touch *touch)
{
    if (touch->written)
        set_bit(selection.incomplete, hash(touch->base) % ALLOCATIONS);
}

/* The last access to a place by a stream stands for those before it. */
static bool same_place(const struct entry *entry, const struct touch *touch, uint64_t stream)
{
    return entry->touch.begin == touch->begin && entry->touch.end <= touch->end &&
           entry->touch.written == touch->written && entry->record.stream == stream;
}

static void keep(const struct record *record, uint32_t number, const struct touch *touch)
{
    uint64_t key = touch->begin + (record->stream << 1) + touch->written;
    struct entry *entry = &selection.entry[hash(key) % KEPT_MAX];
    uint32_t state = atomic_exchange_explicit(&entry->state, ENTRY_BUSY, memory_order_acquire);
    if (state == ENTRY_BUSY) {
        note_write(touch);
        return;
    }
    if (state == ENTRY_FULL && !same_place(entry, touch, record->stream))
        note_write(&entry->touch);
    entry->touch = *touch;
    entry->record = *record;
    entry->record_number = number;
    atomic_store_explicit(&entry->state, ENTRY_FULL, memory_order_seq_cst);
}

bool selection_keeps(struct call *call, struct record *record, const void *stream,
                     const struct touch *touch, int count)
{
    if (shim.selection != SELECT_USED)
        return shim.selection == SELECT_NONE;
    uint64_t on = !stream && call->per_thread ? (uintptr_t)cudaStreamPerThread : (uintptr_t)stream;
    if (record->result || record->flags & RECORD_FLAG_CAPTURE || any_is_used(touch, count))
        return false;
    streams_tell(call->thread, on);
    if (orders_others(call, on))
        return false;
    emit_describe(call, record, RECORD_POINT, stream);
    record->word[RECORD_ISSUED] = atomic_load(&shim.file->serial) + 1;
    uint32_t number = atomic_fetch_add_explicit(&selection.kept, 1, memory_order_relaxed) + 1;
    bool launch = emit_class(call->api) == CLASS_LAUNCH;
    for (int i = 0; i < count; i++) {
        if (launch)
            note_write(&touch[i]);
        keep(record, number, &touch[i]);
    }
    if (launch && record->launch.known & LAUNCH_PARTLY_KNOWN)
        atomic_store_explicit(&selection.anywhere, 1, memory_order_relaxed);
    /* Whoever made the memory, or a blocking stream, known meanwhile may have looked before the
     * entry was there. */
    return !any_is_used(touch, count) && !orders_others(call, record->stream);
}

static void tell_late(struct thread *thread, const struct entry *entry)
{
    struct record record = entry->record;
    record.flags |= RECORD_FLAG_LATE;
    for (int i = 0; emit_class(record.api) == CLASS_LAUNCH && i < record.launch.count; i++)
        buffers_tell_if_known(thread, record.launch.pointer[i]);
    emit_late(thread, &record);
}

static bool overlaps(const struct entry *entry, uint64_t begin, uint64_t end)
{
    return entry->touch.begin < end && entry->touch.end > begin;
}

/* Frees the entries that overlap. Tells each record of theirs if there is a thread to do it on; of
 * records that have several entries, those that were just told are remembered. */
static void take(struct thread *thread, uint64_t begin, uint64_t end)
{
    enum { REMEMBERED = 64 };
    uint32_t told[REMEMBERED] = {0};
    for (int i = 0; i < KEPT_MAX; i++) {
        struct entry *entry = &selection.entry[i];
        uint32_t full = ENTRY_FULL;
        if (atomic_load_explicit(&entry->state, memory_order_relaxed) != ENTRY_FULL ||
            !overlaps(entry, begin, end) ||
            !atomic_compare_exchange_strong(&entry->state, &full, ENTRY_BUSY))
            continue;
        bool taken = overlaps(entry, begin, end);
        if (taken && thread && told[entry->record_number % REMEMBERED] != entry->record_number) {
            told[entry->record_number % REMEMBERED] = entry->record_number;
            tell_late(thread, entry);
        }
        atomic_store_explicit(&entry->state, taken ? ENTRY_FREE : ENTRY_FULL, memory_order_release);
    }
}

/* Two pages may share a mark: what was kept about a buffer is looked for when it is new as well. */
static bool is_new_range(uint64_t begin, uint64_t end)
{
    __typeof__(&selection.range[0]) range = &selection.range[hash(begin) % RANGES];
    if (atomic_load_explicit(&range->begin, memory_order_relaxed) == begin &&
        atomic_load_explicit(&range->end, memory_order_relaxed) == end)
        return false;
    atomic_store_explicit(&range->begin, begin, memory_order_relaxed);
    atomic_store_explicit(&range->end, end, memory_order_relaxed);
    return true;
}

static void tell_untold(struct thread *thread, uint64_t pointer, uint64_t bytes)
{
    struct record record = {.memory = {.pointer = pointer, .bytes = bytes, .type = MEMORY_DEVICE}};
    emit_notice(thread, &record, API_notice_untold);
}

void selection_used(struct thread *thread, uint64_t begin, uint64_t end)
{
    if ((shim.selection == SELECT_NONE && !atomic_exchange(&selection.none_told, 1)) ||
        (atomic_load_explicit(&selection.anywhere, memory_order_relaxed) &&
         atomic_exchange(&selection.anywhere, 0)))
        tell_untold(thread, 0, UINT64_MAX);
    if (shim.selection != SELECT_USED || begin >= end)
        return;
    bool fresh = false;
    _Atomic uint64_t *marks = generation();
    for (uint64_t page = begin >> PAGE_BITS; page <= (end - 1) >> PAGE_BITS; page++) {
        fresh |= !page_is_used(page);
        set_bit(marks, hash(page) % PAGES);
    }
    /* Whole pages: their other buffers are taken for used from now on. */
    if ((is_new_range(begin, end) || fresh) &&
        atomic_load_explicit(&selection.kept, memory_order_relaxed))
        take(thread, begin >> PAGE_BITS << PAGE_BITS, (((end - 1) >> PAGE_BITS) + 1) << PAGE_BITS);
    struct buffer_fact fact;
    if (!buffers_look(thread, begin, &fact))
        return;
    uint64_t at = hash(fact.base) % ALLOCATIONS;
    if (bit(selection.incomplete, at) && !set_bit(selection.announced, at))
        tell_untold(thread, begin, end - begin);
}

void selection_forget(uint64_t begin, uint64_t end)
{
    if (shim.selection == SELECT_NONE)
        atomic_store_explicit(&selection.anywhere, 1, memory_order_relaxed);
    if (shim.selection != SELECT_USED || begin >= end)
        return;
    for (uint64_t page = begin >> PAGE_BITS; page <= (end - 1) >> PAGE_BITS; page++) {
        clear_bit(selection.used[0], hash(page) % PAGES);
        clear_bit(selection.used[1], hash(page) % PAGES);
    }
    clear_bit(selection.incomplete, hash(begin) % ALLOCATIONS);
    clear_bit(selection.announced, hash(begin) % ALLOCATIONS);
    if (atomic_load_explicit(&selection.kept, memory_order_relaxed))
        take(NULL, begin, end);
}

/* What was kept of the default stream comes before all that a blocking stream is given from now on:
 * a launch of nothing on it says so. */
void selection_stream(struct thread *thread, uint64_t stream, unsigned flags)
{
    if (flags & cudaStreamNonBlocking)
        handles_add(&selection.nonblocking, stream);
    if (flags & cudaStreamNonBlocking || shim.selection != SELECT_USED ||
        atomic_exchange_explicit(&selection.blocking, 1, memory_order_seq_cst))
        return;
    uint64_t devices = atomic_load(&selection.legacy_kept);
    for (int device = 0; devices; device++, devices >>= 1) {
        struct record record = {.launch = {.known = 0}};
        if (devices & 1)
            emit_notice_on(thread, &record, API_cudaLaunchKernel, device);
    }
}

void selection_stream_gone(uint64_t stream)
{
    handles_remove(&selection.nonblocking, stream);
}
