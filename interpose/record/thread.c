/* thread.c: a thread's caches and its segment of the ring file. See thread.h. */
#include "interpose/record/thread.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cuda.h>
#include <cuda_runtime_api.h>

#include "interpose/record/files.h"
#include "interpose/progress/gpu.h"
#include "interpose/calls/resolve.h"

_Thread_local struct thread thread_self
    __attribute__((tls_model("initial-exec"))) = {.device = RECORD_NO_DEVICE};

static pthread_key_t key;
static bool key_made; /* survives a fork, as the key does */

/* The key's destructor: gives the segment back. Whatever the thread still calls passes through. */
static void thread_end(void *value)
{
    struct thread *thread = value;
    thread->inside = 1;
    thread->attached = false;
    if (thread->segment) {
        atomic_store_explicit(&thread->segment->state, SEGMENT_ENDED, memory_order_release);
        atomic_fetch_add_explicit(&shim.segments_ended, 1, memory_order_release);
        thread->segment = NULL;
    }
    if (thread->caches)
        munmap(thread->caches, sizeof *thread->caches);
    thread->caches = NULL;
}

int thread_start(void)
{
    if (key_made)
        return 0;
    int error = pthread_key_create(&key, thread_end);
    key_made = !error;
    return error;
}

static void thread_take_segment(struct thread *thread)
{
    thread->segments_seen = atomic_load_explicit(&shim.segments_ended, memory_order_acquire);
    struct ring_segment *segment = files_take_segment(thread->id);
    if (!segment)
        return;
    for (int kind = 0; kind < RING_KINDS; kind++)
        thread->records[kind] = ring_records(shim.file, segment, kind);
    thread->segment = segment;
}

bool thread_attach(struct thread *thread)
{
    thread->id = (uint32_t)syscall(SYS_gettid);
    if (!thread->caches) {
        void *memory = mmap(NULL, sizeof *thread->caches, PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (memory == MAP_FAILED)
            return false;
        thread->caches = memory;
    }
    if (pthread_setspecific(key, thread)) {
        munmap(thread->caches, sizeof *thread->caches);
        thread->caches = NULL;
        return false;
    }
    thread_take_segment(thread);
    thread->attached = true;
    return true;
}

void thread_retry(struct thread *thread)
{
    if (atomic_load_explicit(&shim.segments_ended, memory_order_acquire) != thread->segments_seen)
        thread_take_segment(thread);
}

void thread_forked(struct thread *thread)
{
    struct thread_caches *caches = thread->caches;
    int32_t device = thread->device;
    if (caches)
        munmap(caches, sizeof *caches);
    *thread = (struct thread){.device = device};
}

int32_t thread_device(struct thread *thread)
{
    enum { TRIES = 16 };
    if (__builtin_expect(thread->device >= 0, 1))
        return thread->device;
    if (!atomic_load_explicit(&shim.cuda_used, memory_order_relaxed) ||
        thread->device_asked >= TRIES)
        return RECORD_NO_DEVICE;
    __typeof__(&cuCtxGetDevice) of_context = REAL_HELPER(cuCtxGetDevice);
    CUdevice current;
    if (of_context && of_context(&current) == CUDA_SUCCESS)
        return thread->device = current;
    if (!gpu_may_ask()) {
        thread->device_asked++;
        return RECORD_NO_DEVICE;
    }
    __typeof__(&cudaGetDevice) get_device = REAL_HELPER(cudaGetDevice);
    int device;
    if (get_device && get_device(&device) == cudaSuccess) {
        thread->device = device;
    } else {
        thread->device_asked++;
        gpu_forget_error();
    }
    return thread->device;
}
