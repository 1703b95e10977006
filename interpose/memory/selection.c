/* selection.c: decides which kernels and copies are recorded, and keeps the others for later. */
#include "interpose/memory/selection.h"

#include <stdlib.h>
#include <string.h>

#include <cuda_runtime_api.h>

#include "interpose/memory/buffers.h"
#include "interpose/record/emit_call.h"
#include "interpose/ring/emit.h"
#include "interpose/record/streams.h"
#include "interpose/shim/environment.h"
#include "interpose/shim/forget.h"

enum {
    PAGE_BITS = 16,
    PAGES = 1 << 20, /* bits for pages; two that share one are both recorded, no harm */
    KEPT_MAX = 8192,
    ALLOCATIONS = 1 << 20,
    RANGES = 4096,
    PAGES_MAX = 8 << 20, /* of one range: 512 GB */
    PAGES_CHECKED = 64,  /* of one access; a longer one is recorded */
    GENERATION = 1024,   /* buffers that NCCL was given */
    GENERATIONS = 3      /* the previous, this one and the next; older marks are forgotten */
};

enum { ENTRY_FREE, ENTRY_BUSY, ENTRY_FULL };

struct kept_access {
    _Atomic uint32_t state;
    uint32_t record_number; /* the same in all entries of one record */
    struct touch touch;
    struct record record;
};

/* `marked` is what mark_time() was when its pages were marked. */
struct used_range {
    _Atomic uint64_t begin, end, marked;
};

static struct {
    _Atomic uint64_t used[GENERATIONS][PAGES / 64]; /* pages that NCCL uses, by generation */
    _Atomic uint64_t uses;                          /* buffers so far */
    _Atomic uint32_t forgets;                       /* how often memory was given back */
    struct used_range range[RANGES];                /* buffers that NCCL was given before */
    _Atomic uint64_t incomplete[ALLOCATIONS / 64];  /* allocations that unrecorded work may have
                                                      written, nobody knows where */
    _Atomic uint64_t announced[ALLOCATIONS / 64];   /* those that a record has announced */
    _Atomic uint32_t kept;                          /* records so far */
    _Atomic uint32_t anywhere;     /* work that was not recorded may have written anything since the
                                      last     notice of that */
    _Atomic uint32_t none_emitted; /* the notice that nothing is recorded was emitted */
    struct kept_access entry[KEPT_MAX];
    _Atomic uint64_t occupied[KEPT_MAX / 64]; /* entries that are not free */
} selection;

bool selection_start(void)
{
    const char *setting = environment_get("DDPCHECK_CUDA");
    shim.selection = SELECT_USED;
    if (setting && !strcmp(setting, "all"))
        shim.selection = SELECT_ALL;
    if (setting && !strcmp(setting, "none"))
        shim.selection = SELECT_NONE;
    return true;
}

void selection_forked(void)
{
    forget_state(&selection, sizeof selection);
}

static uint64_t hash_value(uint64_t value)
{
    return (value ^ value >> 29) * 0x9e3779b97f4a7c15u >> 32;
}

static bool has_bit(_Atomic uint64_t *bits, uint64_t at)
{
    return atomic_load_explicit(&bits[at / 64], memory_order_relaxed) >> at % 64 & 1;
}

static bool set_bit(_Atomic uint64_t *bits, uint64_t at)
{
    return has_bit(bits, at) || atomic_fetch_or(&bits[at / 64], 1ull << at % 64) >> at % 64 & 1;
}

static void clear_bit(_Atomic uint64_t *bits, uint64_t at)
{
    if (has_bit(bits, at))
        atomic_fetch_and(&bits[at / 64], ~(1ull << at % 64));
}

static bool page_is_used(uint64_t page)
{
    uint64_t at = hash_value(page) % PAGES;
    bool used = false;
    for (int i = 0; i < GENERATIONS; i++)
        used |= has_bit(selection.used[i], at);
    return used;
}

/* Counts a use, whose marks belong to the generation that is returned. Those of the next one are
 * cleared half a generation before they are set: several threads set marks at the same time. A page
 * that loses its mark while it is marked is found fresh at its next use, which emits what was kept.
 */
static uint64_t next_use(void)
{
    uint64_t use = atomic_fetch_add_explicit(&selection.uses, 1, memory_order_relaxed);
    uint64_t now = use / GENERATION;
    if (use % GENERATION == GENERATION / 2)
        for (uint32_t i = 0; i < PAGES / 64; i++)
            atomic_store_explicit(&selection.used[(now + 1) % GENERATIONS][i], 0,
                                  memory_order_relaxed);
    return now;
}

/* Marks that were made at the same time are still there. */
static uint64_t mark_time(uint64_t generation)
{
    return generation << 32 | atomic_load_explicit(&selection.forgets, memory_order_acquire);
}

static bool is_used(const struct touch *touch)
{
    uint64_t first = touch->begin >> PAGE_BITS, last = (touch->end - 1) >> PAGE_BITS;
    if (last - first >= PAGES_CHECKED)
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

/* Of memory that NCCL uses later it must be known whether anything has written it (DC310). How far
 * a kernel goes from its pointer is not known; of a copy it is, as long as it is kept. */
static void mark_incomplete(const struct touch *touch)
{
    if (touch->written)
        set_bit(selection.incomplete, hash_value(touch->base) % ALLOCATIONS);
}

/* The last access to a range by a stream stands for those before it. */
static bool is_same_access(const struct kept_access *entry, const struct touch *touch,
                           uint64_t stream)
{
    return entry->touch.begin == touch->begin && entry->touch.end <= touch->end &&
           entry->touch.written == touch->written && entry->record.stream == stream;
}

static void keep_access(const struct record *record, uint32_t number, const struct touch *touch)
{
    uint64_t key = touch->begin + (record->stream << 1) + touch->written;
    uint64_t at = hash_value(key) % KEPT_MAX;
    struct kept_access *entry = &selection.entry[at];
    uint32_t state = atomic_exchange_explicit(&entry->state, ENTRY_BUSY, memory_order_acquire);
    if (state == ENTRY_BUSY) {
        mark_incomplete(touch);
        return;
    }
    if (state == ENTRY_FULL && !is_same_access(entry, touch, record->stream))
        mark_incomplete(&entry->touch);
    entry->touch = *touch;
    entry->record = *record;
    entry->record_number = number;
    set_bit(selection.occupied, at);
    atomic_store_explicit(&entry->state, ENTRY_FULL, memory_order_seq_cst);
}

bool selection_keeps(struct recorded_call *call, struct record *record, const void *stream,
                     const struct touch *touch, int count)
{
    if (shim.selection != SELECT_USED)
        return shim.selection == SELECT_NONE;
    uint64_t on = !stream && call->per_thread ? (uintptr_t)cudaStreamPerThread : (uintptr_t)stream;
    if (record->result || record->flags & RECORD_FLAG_CAPTURE || any_is_used(touch, count))
        return false;
    streams_record(call->thread, on);
    if (streams_orders_others(call->thread, on))
        return false;
    emit_describe(call, record, RECORD_POINT, stream);
    record->word[RECORD_ISSUED] = atomic_load(&shim.file->serial) + 1;
    uint32_t number = atomic_fetch_add_explicit(&selection.kept, 1, memory_order_relaxed) + 1;
    bool launch = emit_class(call->api) == CLASS_LAUNCH;
    for (int i = 0; i < count; i++) {
        if (launch)
            mark_incomplete(&touch[i]);
        keep_access(record, number, &touch[i]);
    }
    if (launch && record->launch.known & LAUNCH_PARTLY_KNOWN)
        atomic_store_explicit(&selection.anywhere, 1, memory_order_relaxed);
    /* A thread that made the memory, or a blocking stream, known meanwhile may have searched before
     * the entry was there. */
    return !any_is_used(touch, count) && !streams_orders_others(call->thread, record->stream);
}

static void emit_kept(struct shim_thread *thread, const struct kept_access *entry)
{
    struct record record = entry->record;
    record.flags |= RECORD_FLAG_LATE;
    for (int i = 0; emit_class(record.api) == CLASS_LAUNCH && i < record.launch.count; i++)
        buffers_record_if_known(thread, record.launch.pointer[i]);
    emit_late(thread, &record);
}

static bool overlaps(const struct kept_access *entry, uint64_t begin, uint64_t end)
{
    return entry->touch.begin < end && entry->touch.end > begin;
}

/* Of records that have several entries, those that were just emitted. */
enum { REMEMBERED = 64 };
typedef uint32_t recently_emitted[REMEMBERED];

/* Frees the entry if it overlaps. Emits its record if there is a thread to do it on. */
static void free_entry(struct shim_thread *thread, uint64_t at, uint64_t begin, uint64_t end,
                       recently_emitted emitted)
{
    struct kept_access *entry = &selection.entry[at];
    uint32_t full = ENTRY_FULL;
    if (atomic_load_explicit(&entry->state, memory_order_relaxed) != ENTRY_FULL ||
        !overlaps(entry, begin, end) ||
        !atomic_compare_exchange_strong(&entry->state, &full, ENTRY_BUSY))
        return;
    bool taken = overlaps(entry, begin, end);
    uint32_t *recent = &emitted[entry->record_number % REMEMBERED];
    if (taken && thread && *recent != entry->record_number) {
        *recent = entry->record_number;
        emit_kept(thread, entry);
    }
    if (taken)
        clear_bit(selection.occupied, at);
    atomic_store_explicit(&entry->state, taken ? ENTRY_FREE : ENTRY_FULL, memory_order_release);
}

static void free_overlapping(struct shim_thread *thread, uint64_t begin, uint64_t end)
{
    recently_emitted emitted = {0};
    for (uint64_t word = 0; word < KEPT_MAX / 64; word++) {
        uint64_t bits = atomic_load(&selection.occupied[word]);
        for (; bits; bits &= bits - 1)
            free_entry(thread, 64 * word + (uint64_t)__builtin_ctzll(bits), begin, end, emitted);
    }
}

static bool is_range(const struct used_range *range, uint64_t begin, uint64_t end)
{
    return atomic_load_explicit(&range->begin, memory_order_relaxed) == begin &&
           atomic_load_explicit(&range->end, memory_order_relaxed) == end;
}

static void emit_unrecorded(struct shim_thread *thread, uint64_t pointer, uint64_t bytes)
{
    struct record record = {.memory = {.pointer = pointer, .bytes = bytes, .type = MEMORY_DEVICE}};
    emit_notice(thread, &record, API_notice_unrecorded);
}

/* A size that is a mistake of the program must not keep it busy. */
static uint64_t last_page(uint64_t begin, uint64_t end)
{
    uint64_t first = begin >> PAGE_BITS, last = (end - 1) >> PAGE_BITS;
    return last - first < PAGES_MAX ? last : first + PAGES_MAX;
}

/* Two pages may share a mark: what was kept about a buffer is searched for when it is new as well.
 */
static void mark_range(struct shim_thread *thread, struct used_range *range, uint64_t begin,
                       uint64_t end, uint64_t generation)
{
    uint64_t time = mark_time(generation);
    bool fresh = !is_range(range, begin, end);
    uint64_t last = last_page(begin, end);
    for (uint64_t page = begin >> PAGE_BITS; page <= last; page++) {
        fresh |= !page_is_used(page);
        set_bit(selection.used[generation % GENERATIONS], hash_value(page) % PAGES);
    }
    atomic_store_explicit(&range->begin, begin, memory_order_relaxed);
    atomic_store_explicit(&range->end, end, memory_order_relaxed);
    atomic_store_explicit(&range->marked, time, memory_order_release);
    /* Whole pages: their other buffers count as used from now on. */
    if (fresh && atomic_load_explicit(&selection.kept, memory_order_relaxed))
        free_overlapping(thread, begin >> PAGE_BITS << PAGE_BITS,
                         (((end - 1) >> PAGE_BITS) + 1) << PAGE_BITS);
}

void selection_used(struct shim_thread *thread, uint64_t begin, uint64_t end)
{
    if ((shim.selection == SELECT_NONE && !atomic_exchange(&selection.none_emitted, 1)) ||
        (atomic_load_explicit(&selection.anywhere, memory_order_relaxed) &&
         atomic_exchange(&selection.anywhere, 0)))
        emit_unrecorded(thread, 0, UINT64_MAX);
    if (shim.selection != SELECT_USED || begin >= end)
        return;
    uint64_t generation = next_use();
    struct used_range *range = &selection.range[hash_value(begin) % RANGES];
    if (atomic_load_explicit(&range->marked, memory_order_acquire) != mark_time(generation) ||
        !is_range(range, begin, end))
        mark_range(thread, range, begin, end, generation);
    struct buffer_fact fact;
    if (!buffers_find(thread, begin, &fact))
        return;
    uint64_t at = hash_value(fact.base) % ALLOCATIONS;
    if (has_bit(selection.incomplete, at) && !set_bit(selection.announced, at))
        emit_unrecorded(thread, begin, end - begin);
}

void selection_forget(uint64_t begin, uint64_t end)
{
    if (shim.selection == SELECT_NONE)
        atomic_store_explicit(&selection.anywhere, 1, memory_order_relaxed);
    if (shim.selection != SELECT_USED || !begin || begin >= end)
        return;
    uint64_t last = last_page(begin, end);
    for (uint64_t page = begin >> PAGE_BITS; page <= last; page++)
        for (int i = 0; i < GENERATIONS; i++)
            clear_bit(selection.used[i], hash_value(page) % PAGES);
    atomic_fetch_add_explicit(&selection.forgets, 1, memory_order_release);
    clear_bit(selection.incomplete, hash_value(begin) % ALLOCATIONS);
    clear_bit(selection.announced, hash_value(begin) % ALLOCATIONS);
    if (atomic_load_explicit(&selection.kept, memory_order_relaxed))
        free_overlapping(NULL, begin, end);
}
