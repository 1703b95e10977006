/* stacks.c: finds the call stack of an intercepted call, and emits each stack once.
 *
 * Unwinding costs microseconds (more under Python), a hash lookup would cost the unwinding first.
 * So the cache remembers for each stack where in memory its return addresses lie: if the call comes
 * from the same call site at the same depth of the stack, and all those words still hold
 * the same addresses, it is the same stack. That is 32 loads at most.
 *
 * The unwinder is libgcc_s's, loaded as glibc's backtrace() loads it: it reports where the
 * return addresses lie as well. */
#include "interpose/stacks/stacks.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
#include <unwind.h>

#include "interpose/ring/emit.h"
#include "interpose/stacks/frames.h"
#include "interpose/stacks/modules.h"
#include "interpose/stacks/python.h"
#include "interpose/real/resolve.h"
#include "interpose/shim/environment.h"

static struct unwinder {
    __typeof__(&_Unwind_Backtrace) backtrace;
    __typeof__(&_Unwind_GetIP) get_ip;
    __typeof__(&_Unwind_GetCFA) get_cfa;
} unwinder;

struct emitted_ids stacks_emitted;

/* Of copies and kernels: a thread's first 1,024 stacks, then at most one in 32 calls. */
enum { UNWIND_WEIGHT = 32, DEBT_MAX = 1024 * UNWIND_WEIGHT };

void stacks_forked(void)
{
    memset((void *)&stacks_emitted, 0, sizeof stacks_emitted);
}

struct stack_walk {
    uint64_t site;
    bool begun; /* past the shim's own frames */
    bool cacheable;
    uint32_t count;
    uint64_t address[STACK_FRAMES];
    const uint64_t *slot[STACK_FRAMES];
};

/* On x86-64 a return address lies right below the frame of the function that it returns from. */
static const uint64_t *slot_of(struct _Unwind_Context *context, uint64_t address)
{
#if defined(__x86_64__)
    const uint64_t *slot = (const uint64_t *)(unwinder.get_cfa(context) - sizeof(uint64_t));
    return *slot == address ? slot : NULL;
#else
    (void)context;
    (void)address;
    return NULL;
#endif
}

static _Unwind_Reason_Code add_call_frame(struct _Unwind_Context *context, void *argument)
{
    struct stack_walk *walk = argument;
    uint64_t address = unwinder.get_ip(context);
    if (!address)
        return _URC_END_OF_STACK;
    walk->begun |= address == walk->site;
    if (!walk->begun)
        return _URC_NO_REASON;
    const uint64_t *slot = slot_of(context, address);
    walk->cacheable &= slot != NULL;
    walk->address[walk->count] = address;
    walk->slot[walk->count++] = slot;
    return walk->count == STACK_FRAMES ? _URC_END_OF_STACK : _URC_NO_REASON;
}

/* Finds the unwinder and runs it once (its first run loads tables). */
static bool find_unwinder(void)
{
    resolve_dlsym_function *find = resolve_dlsym();
    void *library = dlopen("libgcc_s.so.1", RTLD_LAZY);
    if (!library || !find)
        return false;
    unwinder.backtrace = (__typeof__(unwinder.backtrace))find(library, "_Unwind_Backtrace");
    unwinder.get_ip = (__typeof__(unwinder.get_ip))find(library, "_Unwind_GetIP");
    unwinder.get_cfa = (__typeof__(unwinder.get_cfa))find(library, "_Unwind_GetCFA");
    if (!unwinder.backtrace || !unwinder.get_ip || !unwinder.get_cfa)
        return false;
    frames_start(library);
    struct stack_walk walk = {.site = 0};
    unwinder.backtrace(add_call_frame, &walk);
    return true;
}

bool stacks_start(void)
{
    const char *setting = environment_get("DDPCHECK_STACKS");
    shim.stacks = STACKS_LINES;
    if (setting && !strcmp(setting, "nccl"))
        shim.stacks = STACKS_NCCL;
    if (setting && !strcmp(setting, "all"))
        shim.stacks = STACKS_ALL;
    if ((setting && !strcmp(setting, "0")) || !find_unwinder())
        shim.stacks = STACKS_OFF;
    return true;
}

static bool emit_stack(struct shim_thread *thread, uint64_t id, const uint64_t *address,
                       uint32_t count)
{
    bool appended = true;
    enum { PIECE = sizeof((struct record *)0)->frames.address / sizeof(uint64_t) };
    for (uint32_t offset = 0; offset < count; offset += PIECE) {
        struct record record = {.frames = {.id = id, .count = count, .offset = offset}};
        for (uint32_t i = 0; i < PIECE && offset + i < count; i++)
            record.frames.address[i] = address[offset + i];
        appended &= emit_notice(thread, &record, API_notice_stack);
    }
    return appended;
}

uint64_t stacks_emit(struct shim_thread *thread, const uint64_t *address, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        modules_cover(thread, address[i]);
    return stacks_emit_addresses(thread, address, count);
}

uint64_t stacks_emit_addresses(struct shim_thread *thread, const uint64_t *address, uint32_t count)
{
    uint64_t id = string_id((const char *)address, count * sizeof *address);
    if (!known_has(&stacks_emitted, id) && emit_stack(thread, id, address, count))
        known_add(&stacks_emitted, id);
    return id;
}

struct plain_walk {
    uint64_t from;
    uint64_t *address;
    uint32_t count, max;
    bool begun;
};

static _Unwind_Reason_Code add_plain_frame(struct _Unwind_Context *context, void *argument)
{
    struct plain_walk *walk = argument;
    uint64_t address = unwinder.get_ip(context);
    walk->begun |= address == walk->from;
    if (!address || walk->count == walk->max)
        return _URC_END_OF_STACK;
    if (walk->begun)
        walk->address[walk->count++] = address;
    return _URC_NO_REASON;
}

uint32_t stacks_walk(uint64_t from, uint64_t *address, uint32_t max)
{
    struct plain_walk walk = {.from = from, .address = address, .max = max};
    if (unwinder.backtrace)
        unwinder.backtrace(add_plain_frame, &walk);
    return walk.count;
}

static uint64_t unwind(struct shim_thread *thread, uint64_t site, struct stack_walk *walk)
{
    *walk = (struct stack_walk){.site = site, .cacheable = true};
    unwinder.backtrace(add_call_frame, walk);
    if (!walk->count) { /* the caller has no unwind tables */
        walk->address[walk->count++] = walk->site;
        walk->cacheable = false;
    }
    return stacks_emit(thread, walk->address, walk->count);
}

static bool is_unchanged(const struct stack_entry *entry)
{
    for (uint32_t i = 0; i < entry->count; i++)
        if (*entry->slot[i] != entry->address[i])
            return false;
    return true;
}

bool stacks_may_look_up(struct shim_thread *thread, uint32_t weight)
{
    uint32_t *debt = &thread->caches->stack_debt;
    if (*debt > DEBT_MAX)
        return false;
    *debt += weight;
    return true;
}

/* 0 if it is in no cache, and `sparing`. */
static uint64_t take_native(struct shim_thread *thread, uint64_t site, uint64_t frame, bool sparing)
{
    uint32_t set = (uint32_t)((site ^ frame >> 4) * 0x9e3779b97f4a7c15u >> 40) % STACK_SETS;
    for (uint32_t way = 0; way < STACK_WAYS; way++) {
        const struct stack_entry *entry = &thread->caches->stack[set][way];
        if (entry->site == site && entry->frame == frame && is_unchanged(entry) &&
            known_has(&stacks_emitted, entry->id))
            return entry->id;
    }
    if (sparing && !stacks_may_look_up(thread, UNWIND_WEIGHT))
        return 0;
    struct stack_walk walk;
    uint64_t id = unwind(thread, site, &walk);
    if (walk.cacheable) {
        struct stack_entry *entry =
            &thread->caches->stack[set][thread->caches->stack_next[set]++ % STACK_WAYS];
        entry->id = id;
        entry->site = site;
        entry->frame = frame;
        entry->count = walk.count;
        for (uint32_t i = 0; i < walk.count; i++) {
            entry->address[i] = walk.address[i];
            entry->slot[i] = walk.slot[i];
        }
    }
    return id;
}

/* In a Python program the line is Python's: of the native stack the call site is enough, since
 * what is beneath it is different for each of PyTorch's operations. */
static uint64_t take_line(struct shim_thread *thread, uint64_t site, uint64_t frame)
{
    thread->caches->stack_debt -= thread->caches->stack_debt > 0;
    if (python_memory()) {
        uint64_t native = stacks_emit(thread, &site, 1);
        uint64_t id = python_stack(thread, native, true);
        if (id != native)
            return id;
    }
    return take_native(thread, site, frame, true);
}

uint64_t stacks_take(struct shim_thread *thread, const void *site, const void *frame,
                     enum stack_depth depth)
{
    uint64_t id = 0;
    if (depth == STACK_LINE && unwinder.backtrace)
        id = take_line(thread, (uintptr_t)site, (uintptr_t)frame);
    else if (depth == STACK_WHOLE && unwinder.backtrace)
        id = python_stack(thread, take_native(thread, (uintptr_t)site, (uintptr_t)frame, false),
                          false);
    if (!id)
        modules_cover(thread, (uintptr_t)site);
    return id;
}
