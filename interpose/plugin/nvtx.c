/* nvtx.c: records NVTX ranges. libddpcheck.so is an NVTX injection library (NVTX_INJECTION64_PATH
 * names it): the first NVTX call of each object file passes its table of functions, in which ours
 * are written. They record only while the shim is active; NVTX calls do not start it. */
#include <dlfcn.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <wchar.h>

#define NVTX_NO_IMPL
#include <nvtx3/nvToolsExt.h>

#include "interpose/calls/begin.h"
#include "interpose/record/emit_call.h"
#include "interpose/ring/emit.h"
#include "interpose/shim/shim.h"
#include "interpose/plugin/nvtx_marks.h"
#include "interpose/process/child_polls.h"
#include "interpose/process/confined.h"
#include "interpose/process/start.h"
#include "interpose/real/confine.h"
#include "interpose/real/libc.h"
#include "interpose/shim/environment.h"
#include "interpose/stacks/aborts.h"
#include "interpose/stacks/exceptions.h"

enum { TEXT_BYTES = 256, REGISTERED_BYTES = 1 << 16 };

/* Not reset in the child of a fork, which keeps the parent's handles. */
static struct {
    char registered[REGISTERED_BYTES]; /* strings: the handle is the copy's address */
    _Atomic uint32_t registered_used;
    _Atomic uint64_t ranges_started;
} nvtx;

/* Per-thread depth, as Push and Pop return it. */
static _Thread_local int depth __attribute__((tls_model("initial-exec")));

/* Writes the part of a wide string that is ASCII. */
static void narrow(char *text, const wchar_t *wide)
{
    size_t i = 0;
    for (; wide && wide[i] && i < TEXT_BYTES - 1; i++)
        text[i] = wide[i] < 0x80 ? (char)wide[i] : '?';
    text[i] = 0;
}

struct range {
    enum api api;
    nvtxDomainHandle_t domain;
    const char *text; /* NULL where the call has none */
    uint64_t id;
};

static void record_range(const struct range *range, const void *site, const void *frame)
{
    struct recorded_call call;
    if (!call_begin(&call, range->api, false, false, site, frame))
        return;
    struct record record = {.range = {.domain = (uintptr_t)range->domain, .id = range->id}};
    if (range->text)
        record.range.text = emit_string(call.thread, range->text, strnlen(range->text, TEXT_BYTES));
    emit_point(&call, &record, 0, NULL);
    call_end(&call);
}

/* A mark of ddpcheck's own convention about a tensor's version. */
static void record_tensor(const struct tensor_mark *mark, const void *site, const void *frame)
{
    struct recorded_call call;
    if (!call_begin(&call, mark->api, false, false, site, frame))
        return;
    struct record record = {
        .tensor = {.name = emit_string(call.thread, mark->name, mark->name_bytes),
                   .tensor = mark->tensor,
                   .version = mark->version,
                   .saved = mark->saved}};
    emit_point(&call, &record, 0, NULL);
    call_end(&call);
}

/* The message of an event's attributes; `buffer` holds it if it has to be converted. */
static const char *message_text(const nvtxEventAttributes_t *attributes, char *buffer)
{
    if (!attributes)
        return "";
    switch (attributes->messageType) {
    case NVTX_MESSAGE_TYPE_ASCII:
        return attributes->message.ascii ? attributes->message.ascii : "";
    case NVTX_MESSAGE_TYPE_UNICODE:
        narrow(buffer, attributes->message.unicode);
        return buffer;
    case NVTX_MESSAGE_TYPE_REGISTERED: {
        const char *text = (const char *)attributes->message.registered;
        return text >= nvtx.registered && text < nvtx.registered + REGISTERED_BYTES ? text : "";
    }
    default:
        return "";
    }
}

#define SITE __builtin_return_address(0), __builtin_frame_address(0)

static int push_text(nvtxDomainHandle_t domain, const char *text, const void *site,
                     const void *frame)
{
    record_range(
        &(struct range){.api = API_nvtxRangePush, .domain = domain, .text = text ? text : ""}, site,
        frame);
    return depth++;
}

static void mark_text(nvtxDomainHandle_t domain, const char *text, const void *site,
                      const void *frame)
{
    struct tensor_mark mark;
    if (tensor_mark_parse(text, &mark))
        record_tensor(&mark, site, frame);
    else
        record_range(
            &(struct range){.api = API_nvtxMark, .domain = domain, .text = text ? text : ""}, site,
            frame);
}

/* Start and End may be on different threads, and need not nest. */
static nvtxRangeId_t start_text(nvtxDomainHandle_t domain, const char *text, const void *site,
                                const void *frame)
{
    uint64_t id = atomic_fetch_add(&nvtx.ranges_started, 1) + 1;
    record_range(
        &(struct range){
            .api = API_nvtxRangeStart, .domain = domain, .text = text ? text : "", .id = id},
        site, frame);
    return id;
}

/* A text comes plain, wide, and in attributes, of a domain or not. `act` begins with return if
 * there is a result. */
#define TEXT_FORMS(name, result, act)                                    \
    static result name##_a(const char *text)                             \
    {                                                                    \
        act(NULL, text, SITE);                                           \
    }                                                                    \
    static result name##_w(const wchar_t *wide)                          \
    {                                                                    \
        char text[TEXT_BYTES];                                           \
        narrow(text, wide);                                              \
        act(NULL, text, SITE);                                           \
    }                                                                    \
    static result name##_ex(const nvtxEventAttributes_t *attributes)     \
    {                                                                    \
        char text[TEXT_BYTES];                                           \
        act(NULL, message_text(attributes, text), SITE);                 \
    }                                                                    \
    static result domain_##name(nvtxDomainHandle_t domain,               \
                                const nvtxEventAttributes_t *attributes) \
    {                                                                    \
        char text[TEXT_BYTES];                                           \
        act(domain, message_text(attributes, text), SITE);               \
    }

TEXT_FORMS(push, int, return push_text)
TEXT_FORMS(mark, void, mark_text)
TEXT_FORMS(start, nvtxRangeId_t, return start_text)

static int pop_range(nvtxDomainHandle_t domain, const void *site, const void *frame)
{
    record_range(&(struct range){.api = API_nvtxRangePop, .domain = domain}, site, frame);
    return depth > 0 ? --depth : -1;
}

static int pop_thread_range(void)
{
    return pop_range(NULL, SITE);
}

static int domain_pop(nvtxDomainHandle_t domain)
{
    return pop_range(domain, SITE);
}

static void end_range(nvtxRangeId_t id)
{
    record_range(&(struct range){.api = API_nvtxRangeEnd, .id = id}, SITE);
}

static void domain_end(nvtxDomainHandle_t domain, nvtxRangeId_t id)
{
    record_range(&(struct range){.api = API_nvtxRangeEnd, .domain = domain, .id = id}, SITE);
}

/* A domain is its name: two that are created with one name are the same. */
static nvtxDomainHandle_t create_domain(const char *name)
{
    return (nvtxDomainHandle_t)(uintptr_t)string_id(name ? name : "",
                                                    name ? strnlen(name, TEXT_BYTES) : 0);
}

static nvtxDomainHandle_t domain_create_a(const char *name)
{
    return create_domain(name);
}

static nvtxDomainHandle_t domain_create_w(const wchar_t *wide)
{
    char name[TEXT_BYTES];
    narrow(name, wide);
    return create_domain(name);
}

/* A copy that lives as long as the process, NULL when there is no room (its ranges then have no
 * text). */
static nvtxStringHandle_t register_text(const char *text)
{
    size_t bytes = text ? strnlen(text, TEXT_BYTES - 1) + 1 : 1;
    uint32_t at = atomic_load(&nvtx.registered_used);
    do {
        if (at + bytes > REGISTERED_BYTES)
            return NULL;
    } while (!atomic_compare_exchange_weak(&nvtx.registered_used, &at, at + (uint32_t)bytes));
    memcpy(nvtx.registered + at, text ? text : "", bytes - 1);
    return (nvtxStringHandle_t)(void *)(nvtx.registered + at);
}

static nvtxStringHandle_t domain_register_a(nvtxDomainHandle_t domain, const char *text)
{
    (void)domain;
    return register_text(text);
}

static nvtxStringHandle_t domain_register_w(nvtxDomainHandle_t domain, const wchar_t *wide)
{
    (void)domain;
    char text[TEXT_BYTES];
    narrow(text, wide);
    return register_text(text);
}

struct hook {
    unsigned id;
    NvtxFunctionPointer function;
};

#define HOOK(id, function)                \
    {                                     \
        id, (NvtxFunctionPointer)function \
    }

static const struct hook core[] = {
    HOOK(NVTX_CBID_CORE_MarkEx, mark_ex),
    HOOK(NVTX_CBID_CORE_MarkA, mark_a),
    HOOK(NVTX_CBID_CORE_MarkW, mark_w),
    HOOK(NVTX_CBID_CORE_RangeStartEx, start_ex),
    HOOK(NVTX_CBID_CORE_RangeStartA, start_a),
    HOOK(NVTX_CBID_CORE_RangeStartW, start_w),
    HOOK(NVTX_CBID_CORE_RangeEnd, end_range),
    HOOK(NVTX_CBID_CORE_RangePushEx, push_ex),
    HOOK(NVTX_CBID_CORE_RangePushA, push_a),
    HOOK(NVTX_CBID_CORE_RangePushW, push_w),
    HOOK(NVTX_CBID_CORE_RangePop, pop_thread_range),
};

static const struct hook core2[] = {
    HOOK(NVTX_CBID_CORE2_DomainMarkEx, domain_mark),
    HOOK(NVTX_CBID_CORE2_DomainRangeStartEx, domain_start),
    HOOK(NVTX_CBID_CORE2_DomainRangeEnd, domain_end),
    HOOK(NVTX_CBID_CORE2_DomainRangePushEx, domain_push),
    HOOK(NVTX_CBID_CORE2_DomainRangePop, domain_pop),
    HOOK(NVTX_CBID_CORE2_DomainRegisterStringA, domain_register_a),
    HOOK(NVTX_CBID_CORE2_DomainRegisterStringW, domain_register_w),
    HOOK(NVTX_CBID_CORE2_DomainCreateA, domain_create_a),
    HOOK(NVTX_CBID_CORE2_DomainCreateW, domain_create_w),
};

static bool hook_module(const NvtxExportTableCallbacks *callbacks, NvtxCallbackModule module,
                        const struct hook *hooks, size_t count)
{
    NvtxFunctionTable table = NULL;
    unsigned size = 0;
    if (!callbacks->GetModuleFunctionTable(module, &table, &size) || !table)
        return false;
    for (size_t i = 0; i < count; i++)
        if (hooks[i].id < size && table[hooks[i].id])
            *table[hooks[i].id] = hooks[i].function;
    return true;
}

EXPORT int InitializeInjectionNvtx2(NvtxGetExportTableFunc_t get_table);

/* Called by NVTX. Returns 1 if the ranges of this object file are ours. */
EXPORT int InitializeInjectionNvtx2(NvtxGetExportTableFunc_t get_table)
{
    const NvtxExportTableCallbacks *callbacks = get_table ? get_table(NVTX_ETID_CALLBACKS) : NULL;
    if (!callbacks || callbacks->struct_size < sizeof *callbacks)
        return 0;
    bool hooked = hook_module(callbacks, NVTX_CB_MODULE_CORE, core, sizeof core / sizeof *core);
    hooked |= hook_module(callbacks, NVTX_CB_MODULE_CORE2, core2, sizeof core2 / sizeof *core2);
    return hooked;
}

/* With a bare LD_PRELOAD nothing points NVTX to us. Each object file reads the environment at its
 * own first NVTX call; this runs when the process is loaded, before main. A profiler that was named
 * stays. */
static void set_injection_path(void)
{
    static const char variable[] = "NVTX_INJECTION64_PATH";
    const char *named = getenv(variable);
    Dl_info self;
    char path[PATH_MAX];
    if ((named && named[0]) || !dladdr((const void *)&set_injection_path, &self) ||
        !self.dli_fname || !realpath(self.dli_fname, path))
        return;
    setenv(variable, path, 1);
}

/* glibc gives constructors what main gets; musl does not. */
__attribute__((constructor)) static void begin_process(int argc, char **argv, char **environment)
{
    (void)argc;
    (void)argv;
    if (!libc_is_glibc()) {
        atomic_store(&shim.state, SHIM_OFF);
        return;
    }
    environment_remember(environment);
    aborts_find();
    child_polls_find();
    confine_load(confined_stop);
    set_injection_path();
    exceptions_watch_from_load(shim_start);
}
