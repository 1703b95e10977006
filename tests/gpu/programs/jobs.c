/* jobs.c: one rank of small jobs on real NCCL (or the emulated one) that check themselves.
 * gpu_jobs operations|captures|callbacks FOLDER [TIMES]: the ranks, RANK of WORLD_SIZE, find each
 * other by a file in FOLDER. */
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <cuda_runtime_api.h>
#include <nccl.h>

enum { COUNT = 4096, BYTES = COUNT * sizeof(float), REPLAYS = 3 };

#define TRY(call)                                                           \
    do {                                                                    \
        int result_ = (int)(call);                                          \
        if (result_) {                                                      \
            fprintf(stderr, "line %d: %s: %d\n", __LINE__, #call, result_); \
            exit(9);                                                        \
        }                                                                   \
    } while (0)

static float *values;
static cudaStream_t stream;
static ncclComm_t comm;
static int rank, ranks;

static int number_of(const char *name)
{
    const char *text = getenv(name);
    return text ? atoi(text) : -1;
}

/* Rank 0 writes the id beside its place and moves it there: the others see it whole. */
static void exchange_id(const char *folder, ncclUniqueId *id)
{
    char path[4096], temporary[4200];
    FILE *file;
    snprintf(path, sizeof path, "%s/id", folder);
    snprintf(temporary, sizeof temporary, "%s.new", path);
    if (rank == 0) {
        TRY(ncclGetUniqueId(id));
        file = fopen(temporary, "wb");
        TRY(!file || fwrite(id, sizeof *id, 1, file) != 1 || fclose(file));
        TRY(rename(temporary, path));
        return;
    }
    while (!(file = fopen(path, "rb")))
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    TRY(fread(id, sizeof *id, 1, file) != 1 || fclose(file));
}

static void begin(const char *folder)
{
    ncclUniqueId id;
    rank = number_of("RANK");
    ranks = number_of("WORLD_SIZE");
    TRY(cudaSetDevice(0));
    TRY(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    TRY(cudaMalloc((void **)&values, BYTES));
    exchange_id(folder, &id);
    TRY(ncclCommInitRank(&comm, ranks, id, rank));
}

static void reduce_on(cudaStream_t on)
{
    TRY(ncclAllReduce(values, values, COUNT, ncclFloat32, ncclSum, comm, on));
}

static void fill(float value)
{
    float host[COUNT];
    for (int i = 0; i < COUNT; i++)
        host[i] = value;
    TRY(cudaMemcpyAsync(values, host, BYTES, cudaMemcpyHostToDevice, stream));
    TRY(cudaStreamSynchronize(stream));
}

static void expect_value(float value)
{
    float host[COUNT];
    TRY(cudaMemcpyAsync(host, values, BYTES, cudaMemcpyDeviceToHost, stream));
    TRY(cudaStreamSynchronize(stream));
    for (int i = 0; i < COUNT; i++)
        if (host[i] != value) {
            fprintf(stderr, "element %d is %g, not %g\n", i, (double)host[i], (double)value);
            exit(9);
        }
}

static void end(void)
{
    TRY(cudaStreamSynchronize(stream));
    TRY(cudaGetLastError()); /* nothing that another left behind */
    TRY(ncclCommDestroy(comm));
    TRY(cudaFree(values));
}

static void run_operations(int times)
{
    ncclResult_t state;
    fill(1);
    for (int i = 0; i < times; i++) {
        reduce_on(stream);
        fill(1);
        TRY(ncclCommGetAsyncError(comm, &state)); /* a later call: events are queried in it */
    }
}

static _Atomic int gate_is_open;

static void wait_at_gate(void *argument)
{
    (void)argument;
    while (!atomic_load(&gate_is_open))
        sched_yield();
}

/* A collective is pending behind a closed gate while another stream is captured in the mode that
 * forbids most calls to all threads. */
static void run_captures(int times)
{
    cudaStream_t captured;
    cudaGraph_t graph;
    cudaGraphExec_t exec;
    ncclResult_t state;
    float expected = 1;
    TRY(cudaStreamCreateWithFlags(&captured, cudaStreamNonBlocking));
    fill(0);
    reduce_on(stream); /* loads what NCCL loads at first use */
    fill(1);
    for (int i = 0; i < times; i++) {
        atomic_store(&gate_is_open, 0);
        TRY(cudaLaunchHostFunc(stream, wait_at_gate, NULL));
        reduce_on(stream);
        TRY(cudaStreamBeginCapture(captured, cudaStreamCaptureModeGlobal));
        reduce_on(captured);
        TRY(ncclCommGetAsyncError(comm, &state));
        TRY(cudaStreamEndCapture(captured, &graph));
        atomic_store(&gate_is_open, 1);
        TRY(cudaGraphInstantiate(&exec, graph, 0));
        TRY(cudaStreamSynchronize(stream));
        for (int replay = 0; replay < REPLAYS; replay++)
            TRY(cudaGraphLaunch(exec, captured));
        TRY(cudaStreamSynchronize(captured));
        for (int all = 0; all < 1 + REPLAYS; all++)
            expected *= (float)ranks;
        expect_value(expected);
        TRY(cudaGraphExecDestroy(exec));
        TRY(cudaGraphDestroy(graph));
        fill(expected = 1);
    }
}

static void count_call(void *argument)
{
    ++*(int *)argument;
}

/* Host functions between collectives, as data loaders and profilers use them. */
static void run_callbacks(int times)
{
    int count = 0;
    fill(1);
    for (int i = 0; i < times; i++) {
        reduce_on(stream);
        TRY(cudaLaunchHostFunc(stream, count_call, &count));
    }
    TRY(cudaStreamSynchronize(stream));
    TRY(count != times);
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        void (*run)(int times);
    } modes[] = {
        {"operations", run_operations},
        {"captures", run_captures},
        {"callbacks", run_callbacks},
    };
    for (size_t i = 0; argc > 2 && i < sizeof modes / sizeof *modes; i++)
        if (!strcmp(argv[1], modes[i].name)) {
            begin(argv[2]);
            modes[i].run(argc > 3 ? atoi(argv[3]) : 2);
            end();
            return 0;
        }
    fprintf(stderr, "usage: gpu_jobs operations|captures|callbacks FOLDER [TIMES]\n");
    return 2;
}
