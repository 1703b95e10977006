/* job_capture.c: what only the emulator can run: graphs with collectives in them, the driver API as
 * frameworks find it, work on streams that are older than the shim, memory that NCCL uses and
 * memory that it does not. job_capture
 * graph|driver|before|host|shapes|selection|blocking|nodes|to-graph|pointers|queries|late|
 * communicators|reset */
#include <dlfcn.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cuda.h>
#include <cuda_runtime_api.h>
#include <nccl.h>

enum { COUNT = 64, BYTES = COUNT * sizeof(float), MEGABYTE = 1 << 20 };

#define TRY(call)                                                           \
    do {                                                                    \
        int result_ = (int)(call);                                          \
        if (result_) {                                                      \
            fprintf(stderr, "line %d: %s: %d\n", __LINE__, #call, result_); \
            exit(9);                                                        \
        }                                                                   \
    } while (0)

static float *from, *to;
static cudaStream_t stream;
static ncclComm_t comm;

static void begin(void)
{
    ncclUniqueId id;
    TRY(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking)); /* before the shim wakes */
    TRY(cudaMalloc((void **)&from, BYTES));
    TRY(cudaMalloc((void **)&to, BYTES));
    TRY(ncclGetUniqueId(&id));
    TRY(ncclCommInitRank(&comm, 1, id, 0));
}

static void end(void)
{
    TRY(cudaStreamSynchronize(stream));
    TRY(ncclCommDestroy(comm));
    puts("ok");
}

static void all_reduce(cudaStream_t on)
{
    TRY(ncclAllReduce(from, to, COUNT, ncclFloat32, ncclSum, comm, on));
}

static void run_graph(void)
{
    cudaStream_t side;
    cudaEvent_t forked, joined;
    cudaGraph_t graph, clone;
    cudaGraphExec_t exec;
    begin();
    TRY(cudaStreamCreateWithFlags(&side, cudaStreamNonBlocking));
    TRY(cudaEventCreateWithFlags(&forked, cudaEventDisableTiming));
    TRY(cudaEventCreateWithFlags(&joined, cudaEventDisableTiming));
    all_reduce(stream);
    TRY(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
    TRY(cudaMemsetAsync(from, 0, BYTES, stream));
    TRY(cudaEventRecord(forked, stream));
    TRY(cudaStreamWaitEvent(side, forked, 0));
    all_reduce(side);
    TRY(ncclGroupStart());
    TRY(ncclSend(from, 1, ncclFloat32, 0, comm, side));
    TRY(ncclRecv(to, 1, ncclFloat32, 0, comm, side));
    TRY(ncclGroupEnd());
    TRY(cudaEventRecord(joined, side));
    TRY(cudaStreamWaitEvent(stream, joined, 0));
    TRY(cudaStreamEndCapture(stream, &graph));
    TRY(cudaGraphClone(&clone, graph));
    TRY(cudaGraphDestroy(graph));
    TRY(cudaGraphInstantiate(&exec, clone, 0));
    TRY(cudaGraphDestroy(clone));
    TRY(cudaGraphLaunch(exec, stream));
    TRY(cudaGraphLaunch(exec, stream));
    all_reduce(stream);
    TRY(cudaStreamSynchronize(stream));
    TRY(cudaGraphExecDestroy(exec));
    end();
}

static void *find(void *handle, const char *name)
{
    void *address = dlsym(handle, name);
    TRY(!address);
    return address;
}

#define FIND(handle, name) __typeof__(&name) do_##name = (__typeof__(&name))find(handle, #name)

/* The driver as Triton and JAX use it: by dlopen, names with their version; and by
 * cuGetProcAddress. */
static void run_driver(void)
{
    static const char ptx[] = ".version 9.0\n.entry _Z10add_scaledfPKfPfi() { ret; }\n";
    void *driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    CUdeviceptr memory;
    CUmodule module;
    CUfunction function, launch_by_name;
    CUstream other;
    int count = COUNT;
    char host[16];
    begin();
    TRY(!driver);
    CUresult (*allocate)(CUdeviceptr *, size_t) =
        (CUresult(*)(CUdeviceptr *, size_t))find(driver, "cuMemAlloc_v2");
    CUresult (*copy)(void *, CUdeviceptr, size_t) =
        (CUresult(*)(void *, CUdeviceptr, size_t))find(driver, "cuMemcpyDtoH_v2");
    CUresult (*give_back)(CUdeviceptr) = (CUresult(*)(CUdeviceptr))find(driver, "cuMemFree_v2");
    CUresult (*get_address)(const char *, void **, int, cuuint64_t, void *) = (CUresult(*)(
        const char *, void **, int, cuuint64_t, void *))find(driver, "cuGetProcAddress_v2");
    FIND(driver, cuStreamCreate);
    FIND(driver, cuStreamSynchronize);
    FIND(driver, cuModuleLoadData);
    FIND(driver, cuModuleGetFunction);
    TRY(get_address("cuLaunchKernel", (void **)&launch_by_name, 13000, 0, NULL));
    __typeof__(&cuLaunchKernel) launch = (__typeof__(&cuLaunchKernel))launch_by_name;
    TRY(allocate(&memory, BYTES));
    TRY(do_cuStreamCreate(&other, CU_STREAM_NON_BLOCKING));
    TRY(do_cuModuleLoadData(&module, ptx));
    TRY(do_cuModuleGetFunction(&function, module, "_Z10add_scaledfPKfPfi"));
    float factor = 1;
    void *args[] = {&factor, &from, &memory, &count};
    TRY(launch(function, 2, 1, 1, 32, 1, 1, 0, other, args, NULL));
    struct {
        float factor;
        float *x;
        CUdeviceptr y;
        int count;
    } block = {factor, from, memory, COUNT};
    size_t bytes = sizeof block;
    void *extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, &block, CU_LAUNCH_PARAM_BUFFER_SIZE, &bytes,
                     CU_LAUNCH_PARAM_END};
    TRY(launch(function, 1, 1, 1, 1, 1, 1, 0, other, NULL, extra));
    TRY(do_cuStreamSynchronize(other));
    FIND(driver, cuModuleUnload);
    for (int i = 0; i < 50; i++) { /* handles come again, of kernels with other parameters */
        TRY(do_cuModuleUnload(module));
        TRY(do_cuModuleLoadData(
            &module, i % 2 ? ptx : ".version 9.0\n.entry _Z8describe3fooPll() { ret; }\n"));
        TRY(do_cuModuleGetFunction(&function, module,
                                   i % 2 ? "_Z10add_scaledfPKfPfi" : "_Z8describe3fooPll"));
        struct {
            int number[3];
        } foo = {{1, 2, 3}};
        long word = 5;
        void *others[] = {&foo, &memory, &word};
        TRY(launch(function, 1, 1, 1, 1, 1, 1, 0, other, i % 2 ? args : others, NULL));
    }
    TRY(do_cuStreamSynchronize(other));
    TRY(copy(host, memory, sizeof host));
    TRY(give_back(memory));
    end();
}

/* A kernel without a twin: a struct with two pointers, and a pointer to what it only reads. */
static void run_struct(void)
{
    static const char ptx[] = ".version 8.0\n.target sm_80\n.visible .entry _Z5apply7functorPKf(\n"
                              "\t.param .align 8 .b8 _Z5apply7functorPKf_param_0[24],\n"
                              "\t.param .u64 _Z5apply7functorPKf_param_1\n) { ret; }\n";
    void *driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    CUmodule module;
    CUfunction function;
    char *memory;
    begin();
    TRY(!driver);
    FIND(driver, cuModuleLoadData);
    FIND(driver, cuModuleGetFunction);
    FIND(driver, cuLaunchKernel);
    TRY(cudaMalloc((void **)&memory, MEGABYTE));
    TRY(do_cuModuleLoadData(&module, ptx));
    TRY(do_cuModuleGetFunction(&function, module, "_Z5apply7functorPKf"));
    struct {
        int count;
        char *to[2];
    } functor = {COUNT, {memory, memory + 64}};
    char *read = memory + 128;
    void *args[] = {&functor, &read};
    TRY(do_cuLaunchKernel(function, 3, 2, 1, 4, 1, 1, 0, (CUstream)stream, args, NULL));
    all_reduce(stream);
    all_reduce(stream);
    end();
}

static void count_up(void *argument)
{
    ++*(int *)argument;
}

static void called_back(cudaStream_t on, cudaError_t status, void *argument)
{
    TRY(on != stream || status);
    ++*(int *)argument;
}

static void run_host(void)
{
    int count = 0;
    begin();
    TRY(cudaLaunchHostFunc(stream, count_up, &count));
    TRY(cudaStreamAddCallback(stream, called_back, &count, 0));
    TRY(cudaStreamSynchronize(stream));
    TRY(count != 2);
    end();
}

/* Work is under way while a stream is captured in the mode that forbids queries to all threads; the
 * second capture is begun past the shim. */
static void run_queries(void)
{
    void *runtime = dlopen("libcudart.so.13", RTLD_LAZY);
    __typeof__(&cudaStreamBeginCapture) begin_unseen =
        (__typeof__(begin_unseen))dlvsym(runtime, "cudaStreamBeginCapture", "libcudart.so.13");
    __typeof__(&cudaStreamBeginCapture) begin_ways[] = {cudaStreamBeginCapture, begin_unseen};
    cudaStream_t captured;
    ncclResult_t state;
    begin();
    TRY(cudaStreamCreateWithFlags(&captured, cudaStreamNonBlocking));
    for (int i = 0; i < 2; i++) {
        cudaGraph_t graph;
        all_reduce(stream);
        TRY(begin_ways[i](captured, cudaStreamCaptureModeGlobal));
        TRY(cudaMemsetAsync(to, 0, BYTES, captured));
        TRY(ncclCommGetAsyncError(comm, &state));
        TRY(cudaStreamEndCapture(captured, &graph));
        TRY(cudaGraphDestroy(graph));
    }
    all_reduce(stream);
    end();
}

static _Atomic int gate_is_open;

static void wait_at_gate(void *argument)
{
    (void)argument;
    while (!gate_is_open)
        sched_yield();
}

/* More operations are pending than the shim has events, but not more than a stream takes; and some
 * are issued while another stream is captured. No further operation covers them. */
static void run_late(void)
{
    enum { MANY = 150 };
    cudaStream_t captured;
    cudaGraph_t graph;
    begin();
    TRY(cudaStreamCreateWithFlags(&captured, cudaStreamNonBlocking));
    TRY(cudaLaunchHostFunc(stream, wait_at_gate, NULL));
    for (int i = 0; i < MANY; i++)
        all_reduce(stream);
    gate_is_open = 1;
    TRY(cudaStreamSynchronize(stream));
    TRY(cudaStreamSynchronize(stream));
    TRY(cudaStreamBeginCapture(captured, cudaStreamCaptureModeGlobal));
    all_reduce(stream);
    TRY(cudaStreamEndCapture(captured, &graph));
    TRY(cudaGraphDestroy(graph));
    TRY(cudaStreamSynchronize(stream));
    end();
}

static void run_before(void)
{
    cudaStream_t blocking;
    cudaGraph_t graph;
    cudaGraphExec_t exec;
    TRY(cudaStreamCreate(&blocking));
    TRY(cudaStreamBeginCapture(blocking, cudaStreamCaptureModeThreadLocal));
    TRY(cudaStreamEndCapture(blocking, &graph));
    TRY(cudaGraphInstantiate(&exec, graph, 0));
    begin();
    all_reduce(stream);
    TRY(cudaMemsetAsync(from, 0, BYTES, blocking));
    TRY(cudaMemsetAsync(from, 0, BYTES, blocking));
    TRY(cudaGraphLaunch(exec, blocking));
    TRY(cudaGraphLaunch(exec, blocking));
    TRY(cudaStreamDestroy(blocking));
    end();
}

static void run_shapes(void)
{
    struct cudaPitchedPtr device = {.ptr = NULL};
    char host[64] = "";
    begin();
    TRY(cudaMalloc3D(&device, (struct cudaExtent){16, 4, 3}));
    struct cudaMemcpy3DParms copy = {.srcPtr = {host, 4, 4, 2},
                                     .dstPtr = device,
                                     .dstPos = {4, 1, 1},
                                     .extent = {4, 2, 2},
                                     .kind = cudaMemcpyHostToDevice};
    TRY(cudaMemcpy3DAsync(&copy, stream));
    TRY(cudaMemset2DAsync(device.ptr, device.pitch, 7, 8, 3, stream));
    TRY(cudaMemcpy2D(host, 4, device.ptr, device.pitch, 4, 3, cudaMemcpyDeviceToHost));
    end();
}

/* Numbers of bytes tell the memsets apart. */
static void run_selection(void)
{
    char *scratch, *late, *again;
    begin();
    TRY(cudaMalloc((void **)&scratch, MEGABYTE));
    TRY(cudaMalloc((void **)&late, MEGABYTE));
    TRY(cudaMemsetAsync(scratch, 0, 10, stream));    /* never of use to NCCL */
    TRY(cudaMemsetAsync(late + 100, 0, 11, stream)); /* reported late */
    TRY(cudaMemsetAsync(late + MEGABYTE / 2, 0, 12,
                        stream)); /* of the same allocation, but not what NCCL uses */
    TRY(cudaMemcpyAsync(scratch, late + 100, 13, cudaMemcpyDeviceToDevice,
                        stream));                    /* reported late: reads it */
    TRY(cudaMemsetAsync(late + 100, 0, 14, stream)); /* later than the first, on the same stream */
    TRY(ncclAllReduce(late, late, 256, ncclFloat32, ncclSum, comm, stream));
    TRY(cudaMemsetAsync(late, 0, 15, stream)); /* reported at once */
    TRY(cudaMemsetAsync(scratch, 0, 16, 0));   /* the first on the default stream */
    TRY(cudaMemsetAsync(scratch, 0, 17, 0));
    TRY(cudaStreamSynchronize(stream));
    TRY(cudaFree(scratch));
    TRY(cudaMalloc((void **)&again, MEGABYTE));
    TRY(ncclAllReduce(again, again, 256, ncclFloat32, ncclSum, comm, stream));
    end();
}

static void run_blocking(void)
{
    char *scratch;
    cudaStream_t blocking;
    begin();
    TRY(cudaMalloc((void **)&scratch, MEGABYTE));
    TRY(cudaMemsetAsync(scratch, 0, 20, 0));
    TRY(cudaMemsetAsync(scratch, 0, 21, 0)); /* kept */
    TRY(cudaStreamCreate(&blocking));
    TRY(cudaMemsetAsync(scratch, 0, 22, 0)); /* orders the blocking stream */
    TRY(cudaMemsetAsync(scratch, 0, 23, blocking));
    TRY(cudaMemsetAsync(scratch, 0, 24, stream)); /* kept: does not block */
    TRY(cudaStreamDestroy(blocking));
    end();
}

static void run_nodes(void)
{
    cudaGraph_t graph;
    cudaGraphNode_t set, copy;
    cudaGraphExec_t exec;
    begin();
    TRY(cudaGraphCreate(&graph, 0));
    TRY(cudaGraphAddMemsetNode(
        &set, graph, NULL, 0,
        &(struct cudaMemsetParams){.dst = from, .elementSize = 1, .width = 16, .height = 1}));
    TRY(cudaGraphAddMemcpyNode1D(&copy, graph, &set, 1, to, from, 16, cudaMemcpyDeviceToDevice));
    TRY(cudaGraphInstantiate(&exec, graph, 0));
    TRY(cudaGraphLaunch(exec, stream));
    end();
}

/* What CUDA 12's headers call where a program gives edge data. */
static void run_nodes_of_cuda12(void)
{
    cudaGraph_t graph;
    cudaGraphNode_t nodes[2];
    void *runtime = dlopen("libcudart.so.12", RTLD_NOW);
    __typeof__(&cudaGraphAddNode) add;
    TRY(!runtime);
    *(void **)&add = dlsym(runtime, "cudaGraphAddNode_v2");
    begin();
    TRY(cudaGraphCreate(&graph, 0));
    for (int i = 0; i < 2; i++)
        TRY(add(&nodes[i], graph, NULL, NULL, 0,
                &(struct cudaGraphNodeParams){.type = cudaGraphNodeTypeEmpty}));
    end();
}

/* A capture into a graph that has a node already, by the runtime and by the driver; then one into
 * the body of a conditional node, which does not run. Numbers of bytes tell the memsets apart. */
static void run_to_graph(void)
{
    cudaGraph_t graph, made;
    cudaGraphNode_t node;
    cudaGraphExec_t exec;
    struct cudaGraphNodeParams wanted = {.type = cudaGraphNodeTypeConditional};
    FIND(RTLD_DEFAULT, cudaGraphConditionalHandleCreate);
    begin();
    TRY(cudaGraphCreate(&graph, 0));
    TRY(cudaGraphAddEmptyNode(&node, graph, NULL, 0));
    TRY(cudaStreamBeginCaptureToGraph(stream, graph, &node, NULL, 1,
                                      cudaStreamCaptureModeThreadLocal));
    TRY(cudaMemsetAsync(from, 0, 30, stream));
    all_reduce(stream);
    TRY(cudaStreamEndCapture(stream, &made));
    TRY(made != graph);
    TRY(cuStreamBeginCaptureToGraph((CUstream)stream, (CUgraph)graph, NULL, NULL, 0,
                                    CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
    TRY(cudaMemsetAsync(from, 0, 31, stream));
    TRY(cudaStreamEndCapture(stream, &made));
    TRY(do_cudaGraphConditionalHandleCreate(&wanted.conditional.handle, graph, 0, 0));
    wanted.conditional.type = cudaGraphCondTypeIf;
    wanted.conditional.size = 1;
    TRY(cudaGraphAddNode(&node, graph, NULL, NULL, 0, &wanted));
    TRY(cudaStreamBeginCaptureToGraph(stream, wanted.conditional.phGraph_out[0], NULL, NULL, 0,
                                      cudaStreamCaptureModeThreadLocal));
    TRY(cudaMemsetAsync(from, 0, 32, stream));
    all_reduce(stream);
    TRY(cudaStreamEndCapture(stream, &made));
    TRY(cudaGraphInstantiate(&exec, graph, 0));
    TRY(cudaGraphLaunch(exec, stream));
    TRY(cudaMemsetAsync(from, 0, 33, stream));
    all_reduce(stream);
    TRY(cudaStreamSynchronize(stream));
    TRY(cudaGraphExecDestroy(exec));
    TRY(cudaGraphDestroy(graph));
    end();
}

/* Many pointers into few allocations. */
static void run_pointers(void)
{
    enum { POINTERS = 1000 };
    char *scratch;
    begin();
    TRY(cudaMalloc((void **)&scratch, MEGABYTE));
    for (int i = 0; i < POINTERS; i++)
        TRY(cudaMemsetAsync(scratch + i * 16, 0, 16, stream));
    end();
}

/* More communicators, one after the other, than there are progress slots. */
static void run_communicators(void)
{
    enum { COMMUNICATORS = 300 };
    begin();
    all_reduce(stream);
    for (int i = 0; i < COMMUNICATORS; i++) {
        ncclUniqueId id;
        TRY(cudaStreamSynchronize(stream));
        TRY(ncclCommDestroy(comm));
        TRY(ncclGetUniqueId(&id));
        TRY(ncclCommInitRank(&comm, 1, id, 0));
        all_reduce(stream);
    }
    end();
}

/* A program that begins again after cudaDeviceReset. */
static void run_reset(void)
{
    begin();
    all_reduce(stream);
    TRY(cudaStreamSynchronize(stream));
    TRY(ncclCommDestroy(comm));
    TRY(cudaDeviceReset());
    begin();
    all_reduce(stream);
    end();
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        void (*run)(void);
    } modes[] = {
        {"graph", run_graph},         {"driver", run_driver},
        {"struct", run_struct},       {"host", run_host},
        {"before", run_before},       {"shapes", run_shapes},
        {"selection", run_selection}, {"blocking", run_blocking},
        {"nodes", run_nodes},         {"nodes12", run_nodes_of_cuda12},
        {"to-graph", run_to_graph},   {"pointers", run_pointers},
        {"queries", run_queries},     {"late", run_late},
        {"reset", run_reset},         {"communicators", run_communicators},
    };
    for (size_t i = 0; i < sizeof modes / sizeof *modes; i++)
        if (argc > 1 && !strcmp(argv[1], modes[i].name)) {
            modes[i].run();
            return 0;
        }
    return 2;
}
