/* attach.c: gives a thread its caches and its segment of the ring file, and takes them back. */
#include "interpose/ring/attach.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "interpose/ring/emit.h"
#include "interpose/ring/segments.h"

/* Survives a fork, as the key does. */
static struct {
    pthread_key_t key;
    bool made;
} attach;

/* The key's destructor: gives the segment back. Whatever the thread still calls passes through. */
static void detach_thread(void *value)
{
    struct shim_thread *thread = value;
    thread->inside = THREAD_ALWAYS_INSIDE;
    thread->attached = false;
    if (thread->writer) {
        struct record record = {0};
        emit_notice_on(thread, &record, API_notice_thread_end, RECORD_NO_DEVICE);
        segments_end(thread->writer);
        thread->writer = NULL;
    }
    if (thread->caches)
        munmap(thread->caches, sizeof *thread->caches);
    thread->caches = NULL;
}

bool attach_start(void)
{
    int error = attach.made ? 0 : pthread_key_create(&attach.key, detach_thread);
    attach.made = !error;
    if (error)
        problem_print(PROBLEM_START, "can't start recording: %s; the job runs on unwatched",
                      strerror(error));
    return attach.made;
}

/* ProcessGroupNCCL.cpp, Watchdog::runLoop, PyTorch 2.3 and later: before the thread's first call.
 */
static bool is_watchdog_named(void)
{
    char name[16] = "";
    return prctl(PR_GET_NAME, name) == 0 && !strcmp(name, "pt_nccl_watchdg");
}

static void attach_segment(struct shim_thread *thread)
{
    thread->segments_seen = segments_ended();
    thread->writer = segments_take(thread->id);
}

bool attach_thread(struct shim_thread *thread)
{
    thread->id = (uint32_t)syscall(SYS_gettid);
    thread->is_watchdog = is_watchdog_named();
    if (!thread->caches) {
        void *memory = mmap(NULL, sizeof *thread->caches, PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (memory == MAP_FAILED)
            return false;
        thread->caches = memory;
    }
    if (pthread_setspecific(attach.key, thread)) {
        munmap(thread->caches, sizeof *thread->caches);
        thread->caches = NULL;
        return false;
    }
    if (!thread->writer)
        attach_segment(thread);
    thread->attached = true;
    return true;
}

void attach_at_end(struct shim_thread *thread)
{
    thread->device_queries = NEVER_QUERY_CUDA;
    if (thread->attached || thread->writer)
        return;
    thread->id = (uint32_t)syscall(SYS_gettid);
    attach_segment(thread);
}

void attach_retry(struct shim_thread *thread)
{
    if (segments_ended() != thread->segments_seen)
        attach_segment(thread);
}

void attach_forked(void)
{
    struct shim_thread *thread = &thread_self;
    if (thread->caches)
        munmap(thread->caches, sizeof *thread->caches);
    *thread = (struct shim_thread){.device = thread->device,
                                   .context_device = RECORD_NO_DEVICE,
                                   .inside = thread->inside,
                                   .inside_site = thread->inside_site};
}
