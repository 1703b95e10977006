/* job_crash.c: programs that end badly, by name: job_crash NAME. Each has called NCCL before; what
 * the shim does at their end must not keep them from ending as they do without it. Built with
 * SLOW_LOAD it is a library that never finishes loading. */
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#ifdef SLOW_LOAD

__attribute__((constructor)) static void load_for_ever(void)
{
    extern volatile int crash_is_loading;
    crash_is_loading = 1;
    for (;;)
        pause();
}

#else

#undef NDEBUG /* else assert.h does not declare __assert_fail */
#include <assert.h>
#include <dlfcn.h>

#include <cuda_runtime_api.h>
#include <nccl.h>

enum { STACK_BYTES = 1 << 16, STATUS_OF_HANDLER = 5, STATUS_OF_FAILURE = 9 };

extern volatile int crash_is_loading;
volatile int crash_is_loading;

static const char *program;
static float *memory;
static cudaStream_t stream;
static ncclComm_t comm;

static void expect(int condition, const char *what)
{
    if (condition)
        return;
    fprintf(stderr, "not so: %s\n", what);
    _exit(STATUS_OF_FAILURE);
}

static void begin(void)
{
    ncclUniqueId id;
    memset(&id, 7, sizeof id);
    expect(!ncclCommInitRank(&comm, 1, id, 0), "ncclCommInitRank");
    expect(!cudaStreamCreate(&stream), "cudaStreamCreate");
    expect(!cudaMalloc((void **)&memory, 4096), "cudaMalloc");
}

static void reduce(void)
{
    ncclAllReduce(memory, memory, 1, ncclFloat32, ncclSum, comm, stream);
}

static void *wait_for_ever(void *unused)
{
    for (;;)
        pause();
    return unused;
}

static void start_thread(void *(*function)(void *))
{
    pthread_t thread;
    expect(!pthread_create(&thread, NULL, function, NULL), "pthread_create");
}

static void handle(int number, void (*handler)(int), int flags)
{
    struct sigaction action = {.sa_handler = handler, .sa_flags = flags};
    static char stack[STACK_BYTES];
    const stack_t own = {.ss_sp = stack, .ss_size = sizeof stack};
    expect(!(flags & SA_ONSTACK) || !sigaltstack(&own, NULL), "sigaltstack");
    expect(!sigaction(number, &action, NULL), "sigaction");
}

static void abort_on_signal(int number)
{
    (void)number;
    abort();
}

static void exit_on_signal(int number)
{
    (void)number;
    exit(STATUS_OF_HANDLER);
}

static void exit_at_once_on_signal(int number)
{
    (void)number;
    _exit(STATUS_OF_HANDLER);
}

static void assert_on_signal(int number)
{
    assert(number == 0);
}

/* From now on a thread that wants memory waits for malloc's lock: this one has none of its own
 * left. */
static void empty_thread_cache(void)
{
    enum { STEP = 16, SIZES = 65, KEPT_OF_EACH = 16 };
    for (size_t size = 0; size < SIZES; size++)
        for (int i = 0; i < KEPT_OF_EACH; i++)
            expect(malloc(size * STEP) != NULL, "malloc");
}

/* malloc reads a list that is damaged, and takes its lock before: there is a second thread. */
static __attribute__((noinline)) void crash_in_malloc(void)
{
    enum { LARGE = 2000, LARGER = 3000 };
    start_thread(wait_for_ever);
    empty_thread_cache();
    void **freed = malloc(LARGE);
    expect(freed && malloc(16), "malloc");
    void **volatile dangling = freed;
    free(freed);
    dangling[1] = (void *)16;
    expect(malloc(LARGER) != NULL, "a crash in malloc");
}

/* libc finds that the heap is damaged, and calls its own abort with malloc's lock. */
static void damage_heap(void)
{
    enum { BYTES = 100000 };
    start_thread(wait_for_ever);
    empty_thread_cache();
    size_t *volatile last = malloc(BYTES);
    last[BYTES / sizeof *last + 1] = SIZE_MAX;
    expect(malloc(BYTES) != NULL, "an abort in malloc");
}

static void *load_slowly(void *unused)
{
    char path[4096];
    snprintf(path, sizeof path, "%.*s/libinterpose_slow_load.so",
             (int)(strrchr(program, '/') - program), program);
    expect(dlopen(path, RTLD_NOW) != NULL, "dlopen");
    return unused;
}

static void wait_for_loading(void)
{
    start_thread(load_slowly);
    while (!crash_is_loading)
        usleep(1000);
}

static __attribute__((noinline)) void read_nowhere(void)
{
    *(volatile int *)8 = 1;
}

static void aborts(void)
{
    abort();
}

static void aborts_in_malloc(void)
{
    handle(SIGSEGV, abort_on_signal, 0);
    crash_in_malloc();
}

static void aborts_in_malloc_on_own_stack(void)
{
    handle(SIGSEGV, abort_on_signal, SA_ONSTACK);
    crash_in_malloc();
}

static void asserts_in_handler(void)
{
    handle(SIGSEGV, assert_on_signal, SA_ONSTACK);
    read_nowhere();
}

static void exits_in_malloc(void)
{
    handle(SIGSEGV, exit_on_signal, 0);
    crash_in_malloc();
}

static void exits_at_once_in_malloc(void)
{
    handle(SIGSEGV, exit_at_once_on_signal, 0);
    crash_in_malloc();
}

static void exits_after_damage(void)
{
    handle(SIGABRT, exit_at_once_on_signal, 0);
    damage_heap();
}

static void aborts_while_loading(void)
{
    wait_for_loading();
    abort();
}

static void asserts_while_loading(void)
{
    wait_for_loading();
    assert(crash_is_loading == 0);
}

static void crashes_while_loading(void)
{
    handle(SIGSEGV, abort_on_signal, SA_ONSTACK);
    wait_for_loading();
    read_nowhere();
}

static void exits_at_once_while_loading(void)
{
    wait_for_loading();
    _exit(STATUS_OF_HANDLER);
}

/* Of a thread that has made no call. */
static void *crash_in_thread(void *unused)
{
    read_nowhere();
    return unused;
}

static void crashes_in_new_thread(void)
{
    handle(SIGSEGV, abort_on_signal, 0);
    wait_for_loading();
    start_thread(crash_in_thread);
    wait_for_ever(NULL);
}

static void child_aborts(void)
{
    int status = 0;
    wait_for_loading();
    pid_t child = fork();
    if (child == 0)
        abort();
    expect(waitpid(child, &status, 0) == child, "waitpid");
    _exit(WIFSIGNALED(status) ? WTERMSIG(status) : STATUS_OF_FAILURE);
}

/* The handler's stack leads to a frame that was overwritten. */
static __attribute__((noinline)) void crash_on_damaged_stack(void)
{
    volatile uintptr_t *frame = __builtin_frame_address(0);
    for (int i = 0; i < 16; i++)
        frame[i] = (uintptr_t)0x4141414141414141;
    read_nowhere();
}

static void crashes_on_damaged_stack(void)
{
    handle(SIGSEGV, abort_on_signal, SA_ONSTACK);
    crash_on_damaged_stack();
}

/* A signal in the midst of what the shim does. */
static void aborted_while_recording(void)
{
    const struct itimerval soon = {.it_value = {.tv_usec = 2000 + getpid() % 64 * 50}};
    handle(SIGALRM, abort_on_signal, 0);
    expect(!setitimer(ITIMER_REAL, &soon, NULL), "setitimer");
    for (;;)
        reduce();
}

static const struct {
    const char *name;
    void (*run)(void);
} programs[] = {
    {"aborts", aborts},
    {"aborts_in_malloc", aborts_in_malloc},
    {"aborts_in_malloc_on_own_stack", aborts_in_malloc_on_own_stack},
    {"asserts_in_handler", asserts_in_handler},
    {"exits_in_malloc", exits_in_malloc},
    {"exits_at_once_in_malloc", exits_at_once_in_malloc},
    {"exits_after_damage", exits_after_damage},
    {"aborts_while_loading", aborts_while_loading},
    {"asserts_while_loading", asserts_while_loading},
    {"crashes_while_loading", crashes_while_loading},
    {"exits_at_once_while_loading", exits_at_once_while_loading},
    {"crashes_in_new_thread", crashes_in_new_thread},
    {"child_aborts", child_aborts},
    {"crashes_on_damaged_stack", crashes_on_damaged_stack},
    {"aborted_while_recording", aborted_while_recording},
};

int main(int argc, char **argv)
{
    program = argv[0];
    begin();
    reduce();
    for (size_t i = 0; argc == 2 && i < sizeof programs / sizeof *programs; i++)
        if (!strcmp(programs[i].name, argv[1]))
            programs[i].run();
    return STATUS_OF_FAILURE;
}

#endif
