/* confined.c: see confined.h. */
#include "interpose/process/confined.h"

#include <dlfcn.h>

#include "interpose/ring/emit.h"
#include "interpose/shim/shim.h"
#include "lib/trace/unseen.h"

static void record_confined(struct shim_thread *thread)
{
    static const char text[] = "calls after the program restricted its system calls (seccomp)";
    struct record record = {
        .range = {.text = emit_string(thread, text, sizeof text - 1), .id = UNSEEN_CONFINED}};
    emit_notice(thread, &record, API_notice_blind);
}

static bool has_nccl(void)
{
    void *handle = dlopen("libnccl.so.2", RTLD_LAZY | RTLD_NOLOAD);
    if (handle)
        dlclose(handle);
    dlerror(); /* the program did not call dlopen */
    return handle != NULL;
}

void confined_stop(void)
{
    struct shim_thread *thread = &thread_self;
    uint32_t before = atomic_load(&shim.state);
    if (before == SHIM_ACTIVE) {
        if (thread->attached && !thread->inside)
            record_confined(thread);
        atomic_fetch_add(&shim.file->lost_threads, 1); /* what follows is not known */
    }
    atomic_store(&shim.state, SHIM_OFF);
    if (before == SHIM_ACTIVE || (before == SHIM_DORMANT && has_nccl()))
        problem_print(PROBLEM_CONFINED,
                      "the program restricts its system calls (seccomp) and would be ended for "
                      "those that recording needs: its calls are not recorded from here on");
}
