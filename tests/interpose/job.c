/* job.c: small programs for the shim to watch, by name: job NAME. Each prints "ok" at its end. */
#include <errno.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cuda_runtime_api.h>
#include "abi/nccl_later.h"

#define EXPECT(condition)                                                           \
    do {                                                                            \
        if (!(condition)) {                                                         \
            fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #condition); \
            exit(9);                                                                \
        }                                                                           \
    } while (0)

static float *memory;
static cudaStream_t stream;
static ncclComm_t comm;

static void begin(int nranks, int rank)
{
    ncclUniqueId id;
    memset(&id, 7, sizeof id);
    EXPECT(!ncclCommInitRank(&comm, nranks, id, rank));
    EXPECT(!cudaStreamCreate(&stream));
    EXPECT(!cudaMalloc((void **)&memory, 4096));
}

static void collectives(void)
{
    begin(4, 2);
    float *to = memory + 512;
    EXPECT(!ncclAllReduce(memory, to, 10, ncclFloat32, ncclSum, comm, stream));
    EXPECT(!ncclBroadcast(memory, to, 11, ncclFloat64, 1, comm, stream));
    EXPECT(!ncclBcast(memory, 12, ncclInt8, 2, comm, stream));
    EXPECT(!ncclReduce(memory, to, 13, ncclUint8, ncclMax, 3, comm, stream));
    EXPECT(!ncclAllGather(memory, to, 14, ncclInt32, comm, stream));
    EXPECT(!ncclReduceScatter(memory, to, 15, ncclUint32, ncclMin, comm, stream));
    EXPECT(!ncclAlltoAll(memory, to, 16, ncclInt64, comm, stream));
    EXPECT(!ncclGather(memory, to, 17, ncclUint64, 0, comm, stream));
    EXPECT(!ncclScatter(memory, to, 18, ncclFloat16, 1, comm, stream));
    EXPECT(!ncclSend(memory, 19, ncclBfloat16, 3, comm, stream));
    EXPECT(!ncclSend(memory, 20, ncclBfloat16, 3, comm, stream));
    EXPECT(!ncclRecv(to, 21, ncclFloat8e4m3, 3, comm, stream));
    ncclRedOp_t op;
    float scalar = 0.5f;
    EXPECT(!ncclRedOpCreatePreMulSum(&op, &scalar, ncclFloat32, ncclScalarHostImmediate, comm));
    EXPECT(!ncclAllReduce(memory, memory, 22, ncclFloat32, op, comm, stream));
    EXPECT(!ncclRedOpDestroy(op, comm));
    EXPECT(!ncclCommDestroy(comm));
}

/* Calls that came after NCCL 2.28. */
static void newer(void)
{
    begin(4, 2);
    ncclComm_t ended = comm, grown = comm;
    ncclWaitSignalDesc_t waits[] = {{.opCnt = 2, .peer = 1}, {.opCnt = 3, .sigIdx = 5, .ctx = 1}};
    EXPECT(!ncclAllReduceConfig(memory, memory, 10, ncclFloat32, ncclSum, comm, stream, NULL));
    EXPECT(!ncclGatherConfig(memory, memory, 11, ncclInt8, 3, comm, stream, NULL));
    EXPECT(!ncclWaitSignal(2, waits, comm, stream));
    EXPECT(!ncclWaitSignal(1, waits, comm, stream));
    EXPECT(!ncclCommSuspend(comm, 1));
    EXPECT(!ncclCommResume(comm));
    EXPECT(!ncclCommDestroy(ended));
    EXPECT(!ncclCommGrow(NULL, 4, NULL, 2, &grown, NULL)); /* at the same address */
    EXPECT(!ncclAllReduce(memory, memory, 12, ncclFloat32, ncclSum, grown, stream));
}

static void groups(void)
{
    begin(2, 0);
    EXPECT(!ncclGroupStart());
    EXPECT(!ncclAllReduce(memory, memory, 1, ncclFloat32, ncclSum, comm, stream));
    EXPECT(!ncclGroupStart());
    EXPECT(!ncclSend(memory, 2, ncclFloat32, 1, comm, stream));
    EXPECT(!ncclRecv(memory, 2, ncclFloat32, 1, comm, stream));
    EXPECT(!ncclGroupEnd());
    EXPECT(!ncclGroupEnd());
    EXPECT(!ncclAllReduce(memory, memory, 3, ncclFloat32, ncclSum, comm, stream));
    ncclComm_t comms[2];
    ncclUniqueId id;
    memset(&id, 9, sizeof id);
    EXPECT(!ncclGroupStart());
    for (int i = 0; i < 2; i++) {
        EXPECT(!cudaSetDevice(i));
        EXPECT(!ncclCommInitRank(&comms[i], 2, id, i));
    }
    EXPECT(!ncclGroupEnd());
}

static void children(void)
{
    begin(4, 1);
    ncclComm_t child = NULL, none = NULL;
    int excluded = 3;
    EXPECT(!ncclCommSplit(comm, 5, 1, &child, NULL));
    EXPECT(!ncclAllReduce(memory, memory, 1, ncclFloat32, ncclSum, child, stream));
    EXPECT(!ncclCommSplit(comm, NCCL_SPLIT_NOCOLOR, 0, &none, NULL));
    EXPECT(!none);
    if (!getenv("EXCLUDED")) /* the rank that is left out does not call it */
        EXPECT(!ncclCommShrink(comm, &excluded, 1, &child, NULL, 0));
    EXPECT(!ncclCommSplit(comm, 6, 1, &child, NULL));
    excluded = 2;
    EXPECT(!ncclCommShrink(comm, &excluded, 1, &child, NULL, 0));
    ncclComm_t all[3];
    EXPECT(!ncclCommInitAll(all, 3, NULL));
    EXPECT(!ncclAllReduce(memory, memory, 1, ncclFloat32, ncclSum, all[2], stream));
    ncclUniqueId ids[2];
    memset(ids, 3, sizeof ids);
    EXPECT(!ncclCommInitRankScalable(&all[0], 4, 3, 2, ids, NULL));
}

/* Communicators come and go, more than the shim's table holds; the handles are often the same
 * again. */
static void reuse(void)
{
    begin(2, 0);
    ncclUniqueId id;
    memset(&id, 1, sizeof id);
    for (int i = 0; i < 3000; i++) {
        ncclComm_t other;
        memcpy(id.internal, &i, sizeof i);
        EXPECT(!ncclCommInitRank(&other, 3, id, 1));
        if (i >= 2990)
            EXPECT(!ncclAllReduce(memory, memory, 1, ncclFloat32, ncclSum, other, stream));
        EXPECT(!ncclCommDestroy(other));
        usleep(i % 100 ? 0 : 1000);
    }
}

static void nonblocking(void)
{
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    config.blocking = 0;
    ncclUniqueId id;
    memset(&id, 7, sizeof id);
    EXPECT(ncclCommInitRankConfig(&comm, 2, id, 1, &config) == ncclInProgress);
    ncclResult_t state;
    for (int i = 0; i < 5; i++)
        EXPECT(!ncclCommGetAsyncError(comm, &state));
    EXPECT(state == ncclSuccess);
    EXPECT(!cudaStreamCreate(&stream) && !cudaMalloc((void **)&memory, 64));
    EXPECT(!ncclAllReduce(memory, memory, 1, ncclFloat32, ncclSum, comm, stream));
}

static void nonblocking_abort(void)
{
    nonblocking();
    EXPECT(!ncclCommAbort(comm));
}

static void nonblocking_destroy(void)
{
    nonblocking();
    EXPECT(!ncclCommDestroy(comm));
}

static void runtime(void)
{
    begin(2, 0);
    struct {
        void *pointer;
        long number;
    } pair = {memory + 4, 77};
    float *to = memory + 8;
    int number = 3;
    struct capture {
        float *from;
    } capture = {memory + 12};
    unsigned long address = (unsigned long)(memory + 2); /* but a number by its type */
    void *arguments[] = {&memory, &to, &number, &pair, &capture, &address};
    /* The fake runtime takes the function for its own name. */
    EXPECT(!cudaLaunchKernel("_Z3addPKfPfi4Pair7Capturem", (dim3){4, 2, 1}, (dim3){32, 1, 1},
                             arguments, 0, stream));
    EXPECT(!cudaLaunchKernel("_Z3addPKfPfi4Pair7Capturem", (dim3){1, 1, 1}, (dim3){1, 1, 1},
                             arguments, 0, stream));
    EXPECT(!cudaLaunchKernel("extern_c", (dim3){1, 1, 1}, (dim3){1, 1, 1}, arguments, 0, stream));
    cudaEvent_t event;
    EXPECT(!cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
    EXPECT(!cudaEventRecord(event, stream));
    EXPECT(!cudaStreamWaitEvent(stream, event, 0));
    EXPECT(!cudaMemcpyAsync(to, memory, 16, cudaMemcpyDeviceToDevice, stream));
    char pageable[8];
    EXPECT(!cudaMemcpyAsync(pageable, memory, sizeof pageable, cudaMemcpyDeviceToHost, stream));
    EXPECT(!cudaMemcpyAsync(pageable, memory, sizeof pageable, cudaMemcpyDefault, stream));
    EXPECT(!cudaMemcpy(to, memory, 8, cudaMemcpyDeviceToHost));
    EXPECT(!cudaStreamSynchronize(stream));
    EXPECT(!cudaFree(memory));
    char host[64];
    EXPECT(!ncclAllReduce(host, host, 1, ncclFloat32, ncclSum, comm, stream));
}

static void *one_call(void *argument)
{
    EXPECT(!ncclAllReduce(memory, memory, (size_t)(uintptr_t)argument, ncclFloat32, ncclSum, comm,
                          stream));
    return NULL;
}

/* One thread after the other: their segments are used again. */
static void threads(void)
{
    begin(2, 0);
    for (int i = 0; i < 40; i++) {
        pthread_t thread;
        EXPECT(!pthread_create(&thread, NULL, one_call, (void *)(uintptr_t)(100 + i)));
        EXPECT(!pthread_join(thread, NULL));
    }
}

static pthread_barrier_t barrier;

static void *call_and_stay(void *argument)
{
    one_call(argument);
    pthread_barrier_wait(&barrier);
    return NULL;
}

/* At one time. */
static void many_threads(void)
{
    enum { THREADS = 300 };
    static pthread_t thread[THREADS];
    begin(2, 0);
    pthread_attr_t small;
    pthread_attr_init(&small);
    pthread_attr_setstacksize(&small, 128 * 1024);
    pthread_barrier_init(&barrier, NULL, THREADS);
    for (int i = 0; i < THREADS; i++)
        EXPECT(!pthread_create(&thread[i], &small, call_and_stay, (void *)(uintptr_t)1));
    for (int i = 0; i < THREADS; i++)
        pthread_join(thread[i], NULL);
}

static void forks(void)
{
    begin(2, 0);
    pid_t child = fork();
    if (!child) { /* without NCCL of its own it is not watched */
        cudaStreamSynchronize(stream);
        _exit(0);
    }
    int status;
    EXPECT(waitpid(child, &status, 0) == child && status == 0);
    child = fork();
    if (!child) { /* with, it is a process of its own */
        begin(2, 1);
        EXPECT(!ncclAllReduce(memory, memory, 8, ncclFloat32, ncclSum, comm, stream));
        exit(3);
    }
    EXPECT(waitpid(child, &status, 0) == child && WEXITSTATUS(status) == 3);
    EXPECT(!ncclAllReduce(memory, memory, 4, ncclFloat32, ncclSum, comm, stream));
}

static void overflow(void)
{
    begin(2, 0);
    for (int i = 0; i < 80000; i++)
        EXPECT(!cudaStreamSynchronize(stream));
}

static void keeps_errno(void)
{
    begin(2, 0);
    errno = 1234;
    EXPECT(!ncclAllReduce(memory, memory, 4, ncclFloat32, ncclSum, comm, stream));
    EXPECT(errno == 1234);
}

int cuda_fake_questions(void);

/* A launcher that makes the unique id and then forks must not find CUDA initialised. */
static void unique_id(void)
{
    ncclUniqueId id;
    EXPECT(!ncclGetUniqueId(&id));
    EXPECT(cuda_fake_questions() == 0);
    EXPECT(!cudaMalloc((void **)&memory, 64));
    EXPECT(cuda_fake_questions() > 0);
}

static void fails(void)
{
    begin(2, 0);
    EXPECT(ncclAllReduce(memory, memory, 4, ncclFloat32, ncclSum, comm, stream) ==
           ncclInternalError);
}

/* Whatever the shim asks CUDA may fail: that is no error of the program, and the program's own
 * stays until it asks for it. */
static void errors(void)
{
    static float host[64];
    float *other;
    begin(2, 0);
    cudaGetLastError(); /* of NCCL's own calls */
    EXPECT(!ncclAllReduce(host, host, 3, ncclFloat32, ncclSum, comm, stream));
    EXPECT(cudaPeekAtLastError() == cudaSuccess);
    EXPECT(!ncclAllReduce(memory, memory, 4, ncclFloat32, ncclSum, comm, stream));
    EXPECT(cudaPeekAtLastError() == cudaSuccess);
    EXPECT(!cudaSetDevice(1)); /* another device than the communicator's, which can't be chosen */
    EXPECT(!ncclAllReduce(memory, memory, 5, ncclFloat32, ncclSum, comm, stream));
    EXPECT(cudaPeekAtLastError() == cudaSuccess);
    EXPECT(cudaSetDevice(0) == cudaErrorDevicesUnavailable);
    EXPECT(!cudaMalloc((void **)&other, 4096));
    EXPECT(!ncclAllReduce(other, other, 6, ncclFloat32, ncclSum, comm, stream));
    EXPECT(cudaGetLastError() == cudaErrorDevicesUnavailable);
    EXPECT(cudaGetLastError() == cudaSuccess);
}

static const struct {
    const char *name;
    void (*run)(void);
} jobs[] = {
    {"collectives", collectives},
    {"newer", newer},
    {"groups", groups},
    {"children", children},
    {"reuse", reuse},
    {"nonblocking", nonblocking},
    {"nonblocking_abort", nonblocking_abort},
    {"nonblocking_destroy", nonblocking_destroy},
    {"runtime", runtime},
    {"threads", threads},
    {"many_threads", many_threads},
    {"forks", forks},
    {"overflow", overflow},
    {"keeps_errno", keeps_errno},
    {"fails", fails},
    {"unique_id", unique_id},
    {"errors", errors},
};

int main(int argc, char **argv)
{
    for (size_t i = 0; argc == 2 && i < sizeof jobs / sizeof *jobs; i++)
        if (!strcmp(argv[1], jobs[i].name)) {
            jobs[i].run();
            puts("ok");
            return 0;
        }
    fprintf(stderr, "usage: job NAME\n");
    return 2;
}
