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
#include "interpose/stacks/exceptions.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
#include <unwind.h>

#include "interpose/ring/emit.h"
#include "interpose/shim/forget.h"
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
    forget_state(&stacks_emitted, sizeof stacks_emitted);
    frames_forked();
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

/* Without the modules that are new: in a signal handler, as it takes no lock. */
static uint64_t emit_addresses(struct shim_thread *thread, const uint64_t *address, uint32_t count)
{
    uint64_t id = string_id((const char *)address, count * sizeof *address);
    if (!known_has(&stacks_emitted, id) && emit_stack(thread, id, address, count))
        known_add(&stacks_emitted, id);
    return id;
}

uint64_t stacks_emit(struct shim_thread *thread, const uint64_t *address, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        modules_cover(thread, address[i]);
    return emit_addresses(thread, address, count);
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

bool stacks_may_look_up(struct shim_thread *thread, uint32_t weight)
{
    uint32_t *debt = &thread->caches->stack_debt;
    if (*debt > DEBT_MAX)
        return false;
    *debt += weight;
    return true;
}

static uint64_t mix_frame(uint64_t one, uint64_t other)
{
    uint64_t mixed = (one ^ other) * 0x9e3779b97f4a7c15u;
    return mixed ^ mixed >> 32;
}

/* The two steps that may be from this frame. */
static struct stack_step *find_steps(struct thread_caches *caches, uint64_t address,
                                     const uint64_t *slot)
{
    uint64_t mixed = (address + (uintptr_t)slot) * 0x9e3779b97f4a7c15u;
    return &caches->stack_step[(mixed >> 40) % STACK_STEPS & ~1ull];
}

static bool is_from(const struct stack_step *step, uint64_t address, const uint64_t *slot)
{
    return step->address == address && step->slot == slot;
}

static void add_step(struct thread_caches *caches, struct stack_step step)
{
    struct stack_step *steps = find_steps(caches, step.address, step.slot);
    if (!is_from(&steps[0], step.address, step.slot))
        steps[1] = steps[0];
    steps[0] = step;
}

static struct stack_known *find_known(struct thread_caches *caches, uint64_t hash)
{
    return &caches->stack_known[hash % STACK_IDS];
}

static void keep_stack(struct thread_caches *caches, const struct stack_walk *walk, uint64_t frame,
                       uint64_t id)
{
    const uint64_t *slot = (const uint64_t *)(uintptr_t)frame;
    uint64_t hash = 0;
    for (uint32_t i = 0; i < walk->count; i++) {
        const uint64_t *caller = i + 1 < walk->count ? walk->slot[i + 1] : NULL;
        if (i + 1 < STACK_FRAMES)
            add_step(caches, (struct stack_step){walk->address[i], slot, caller});
        hash = mix_frame(hash, walk->address[i]);
        slot = caller;
    }
    *find_known(caches, hash) = (struct stack_known){hash, id};
}

__attribute__((noinline)) static uint64_t take_new(struct shim_thread *thread, uint64_t site,
                                                   uint64_t frame)
{
    struct stack_walk walk;
    uint64_t id = unwind(thread, site, &walk);
    if (walk.cacheable)
        keep_stack(thread->caches, &walk, frame, id);
    return id;
}

/* The id of a stack that was unwound before, or 0. */
static uint64_t take_known(struct thread_caches *caches, uint64_t site, uint64_t frame)
{
    const uint64_t *slot = (const uint64_t *)(uintptr_t)frame;
    uint64_t address = site, hash = 0;
    for (int frames = 1;; frames++) {
        hash = mix_frame(hash, address);
        if (frames == STACK_FRAMES)
            break;
        const struct stack_step *step = find_steps(caches, address, slot);
        if (!is_from(step, address, slot) && !is_from(++step, address, slot))
            return 0;
        if (!step->caller)
            break;
        slot = step->caller;
        address = *slot;
    }
    const struct stack_known *known = find_known(caches, hash);
    return known->hash == hash && known_has(&stacks_emitted, known->id) ? known->id : 0;
}

/* 0 if it is in no cache, and `sparing`. */
static uint64_t take_native(struct shim_thread *thread, uint64_t site, uint64_t frame, bool sparing)
{
    uint64_t id = take_known(thread->caches, site, frame);
    if (id || (sparing && !stacks_may_look_up(thread, UNWIND_WEIGHT)))
        return id;
    return take_new(thread, site, frame);
}

/* With the Python frames in front of the native ones. What Python's shutdown calls while it frees
 * objects is no line of the program's: the thread's last one stands for it. */
__attribute__((noinline)) static uint64_t add_python(struct shim_thread *thread, uint64_t native,
                                                     bool sparing)
{
    struct thread_caches *caches = thread->caches;
    uint64_t id = python_stack(thread, native, sparing);
    if (id != native)
        caches->program_stack = id;
    return id == native && caches->program_stack && exceptions_shutting_down()
               ? caches->program_stack
               : id;
}

/* In a Python program the line is Python's: of the native stack the call site is enough, since
 * what is beneath it is different for each of PyTorch's operations. */
static uint64_t take_line(struct shim_thread *thread, uint64_t site, uint64_t frame)
{
    thread->caches->stack_debt -= thread->caches->stack_debt > 0;
    if (python_memory()) {
        uint64_t native = stacks_emit(thread, &site, 1);
        uint64_t id = add_python(thread, native, true);
        if (id != native)
            return id;
    }
    return take_native(thread, site, frame, true);
}

uint64_t stacks_take(struct shim_thread *thread, const void *site, const void *frame,
                     enum stack_depth depth)
{
    uint64_t id = 0;
    if (depth == STACK_LINE && unwinder.backtrace) {
        id = take_line(thread, (uintptr_t)site, (uintptr_t)frame);
    } else if (depth == STACK_WHOLE && unwinder.backtrace) {
        id = take_native(thread, (uintptr_t)site, (uintptr_t)frame, false);
        if (python_memory())
            id = add_python(thread, id, false);
    }
    if (!id)
        modules_cover(thread, (uintptr_t)site);
    return id;
}

/* In a library that was loaded since the last call the walk ends at first. */
static uint32_t walk_in_crash(struct shim_thread *thread, const void *site, const void *frame,
                              uint64_t *address, bool *in_handler)
{
    uint32_t count = 0;
    for (int tries = 0; tries < 2; tries++) {
        count =
            frames_walk_self((uintptr_t)site, (uintptr_t)frame, address, STACK_FRAMES, in_handler);
        if (modules_have(address[count - 1]))
            break;
        modules_record_in_crash(thread);
    }
    return FRAMES_ARE_WALKED ? count : stacks_walk((uintptr_t)site, address, STACK_FRAMES);
}

struct crash_stack stacks_take_in_crash(struct shim_thread *thread, const void *site,
                                        const void *frame, uint64_t library)
{
    uint64_t address[STACK_FRAMES];
    struct crash_stack stack = {0};
    bool in_handler = false;
    if (shim.stacks == STACKS_OFF)
        return stack;
    uint32_t count = walk_in_crash(thread, site, frame, address, &in_handler);
    uint64_t native = count ? emit_addresses(thread, address, count) : 0;
    for (uint32_t i = 0; i < count && !in_handler; i++)
        stack.is_from_library |= modules_are_same(address[i], library);
    uint64_t state = python_this_thread();
    stack.id = state ? python_stack_of(thread, state, native) : native;
    return stack;
}
