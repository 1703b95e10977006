#include <stdatomic.h>

#include "support.h"

static atomic_int counter;

static void count_up(void *arg)
{
    (void)arg;
    atomic_fetch_add(&counter, 1);
}

static void captured_work_runs_when_launched(void **state)
{
    cudaStream_t stream;
    cudaGraph_t graph;
    cudaGraphExec_t exec;
    enum cudaStreamCaptureStatus status;
    size_t nodes;
    char *memory, back[8];

    (void)state;
    atomic_store(&counter, 0);
    OK(cudaMalloc((void **)&memory, 8));
    OK(cudaStreamCreate(&stream));
    OK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
    OK(cudaStreamIsCapturing(stream, &status));
    assert_int_equal(status, cudaStreamCaptureStatusActive);
    OK(cudaMemsetAsync(memory, 4, 8, stream));
    OK(cudaLaunchHostFunc(stream, count_up, NULL));
    OK(cudaStreamEndCapture(stream, &graph));
    OK(cudaStreamIsCapturing(stream, &status));
    assert_int_equal(status, cudaStreamCaptureStatusNone);
    OK(cudaGraphGetNodes(graph, NULL, &nodes));
    assert_int_equal(nodes, 2);
    OK(cudaStreamSynchronize(stream));
    assert_int_equal(atomic_load(&counter), 0); /* recorded, not done */
    OK(cudaGraphInstantiate(&exec, graph, 0));
    OK(cudaGraphDestroy(graph));
    for (int i = 0; i < 3; i++)
        OK(cudaGraphLaunch(exec, stream));
    OK(cudaStreamSynchronize(stream));
    assert_int_equal(atomic_load(&counter), 3);
    OK(cudaMemcpy(back, memory, 8, cudaMemcpyDeviceToHost));
    assert_int_equal(back[7], 4);
    OK(cudaGraphExecDestroy(exec));
    EXPECT(cudaGraphExecDestroy(exec), cudaErrorInvalidValue);
    EXPECT(cudaGraphDestroy(graph), cudaErrorInvalidValue);
    OK(cudaStreamDestroy(stream));
}

/* Two branches that events fork and join: they overlap, and what follows waits for both. */
static void branches_run_side_by_side(void **state)
{
    struct gate gate = GATE_CLOSED;
    cudaStream_t main_stream, side;
    cudaEvent_t fork, join;
    cudaGraph_t graph;
    cudaGraphExec_t exec;
    cudaGraphNode_t roots[4];
    size_t count = 4;

    (void)state;
    atomic_store(&counter, 0);
    OK(cudaStreamCreateWithFlags(&main_stream, cudaStreamNonBlocking));
    OK(cudaStreamCreateWithFlags(&side, cudaStreamNonBlocking));
    OK(cudaEventCreate(&fork));
    OK(cudaEventCreate(&join));
    OK(cudaStreamBeginCapture(main_stream, cudaStreamCaptureModeThreadLocal));
    OK(cudaLaunchHostFunc(main_stream, count_up, NULL));
    OK(cudaEventRecord(fork, main_stream));
    OK(cudaStreamWaitEvent(side, fork, 0));
    OK(cudaLaunchHostFunc(main_stream, gate_pass, &gate));
    OK(cudaLaunchHostFunc(side, gate_open, &gate));
    OK(cudaEventRecord(join, side));
    EXPECT(cudaEventQuery(join), cudaErrorCapturedEvent);
    OK(cudaStreamWaitEvent(main_stream, join, 0));
    OK(cudaLaunchHostFunc(main_stream, count_up, NULL));
    OK(cudaStreamEndCapture(main_stream, &graph));
    OK(cudaGraphGetRootNodes(graph, roots, &count));
    assert_int_equal(count, 1);
    OK(cudaGraphInstantiate(&exec, graph, 0));
    OK(cudaGraphLaunch(exec, main_stream));
    OK(cudaStreamSynchronize(main_stream));
    assert_false(gate.timed_out); /* one branch freed the other */
    assert_int_equal(atomic_load(&counter), 2);
    OK(cudaLaunchHostFunc(side, count_up, NULL)); /* is an ordinary stream again */
    OK(cudaStreamSynchronize(side));
    OK(cudaGraphExecDestroy(exec));
    OK(cudaGraphDestroy(graph));
    OK(cudaStreamDestroy(main_stream));
    OK(cudaStreamDestroy(side));
    OK(cudaEventDestroy(fork));
    OK(cudaEventDestroy(join));
}

static void launches_are_ordered_with_the_stream(void **state)
{
    struct gate gate = GATE_CLOSED;
    cudaStream_t stream, other;
    cudaGraph_t graph;
    cudaGraphExec_t exec;

    (void)state;
    atomic_store(&counter, 0);
    OK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    OK(cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking));
    OK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed));
    OK(cudaLaunchHostFunc(stream, count_up, NULL));
    OK(cudaStreamEndCapture(stream, &graph));
    OK(cudaGraphInstantiateWithFlags(&exec, graph, 0));
    OK(cudaLaunchHostFunc(stream, gate_pass, &gate));
    OK(cudaGraphLaunch(exec, stream));
    OK(cudaGraphLaunch(exec, other)); /* the same instance: after the first launch */
    EXPECT(cudaStreamQuery(other), cudaErrorNotReady);
    assert_int_equal(atomic_load(&counter), 0);
    gate_open(&gate);
    OK(cudaDeviceSynchronize());
    assert_int_equal(atomic_load(&counter), 2);
    OK(cudaGraphExecDestroy(exec));
    OK(cudaGraphDestroy(graph));
    OK(cudaStreamDestroy(stream));
    OK(cudaStreamDestroy(other));
}

static void waiting_breaks_a_capture(void **state)
{
    cudaStream_t stream;
    cudaGraph_t graph;
    void *memory;

    (void)state;
    OK(cudaStreamCreate(&stream));
    OK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
    EXPECT(cudaMalloc(&memory, 10), cudaErrorStreamCaptureUnsupported);
    EXPECT(cudaLaunchHostFunc(0, count_up, NULL), cudaErrorStreamCaptureImplicit);
    EXPECT(cudaStreamSynchronize(stream), cudaErrorStreamCaptureUnsupported);
    EXPECT(cudaLaunchHostFunc(stream, count_up, NULL), cudaErrorStreamCaptureInvalidated);
    EXPECT(cudaStreamEndCapture(stream, &graph), cudaErrorStreamCaptureInvalidated);
    assert_null(graph);
    OK(cudaLaunchHostFunc(0, count_up, NULL));
    OK(cudaDeviceSynchronize());
    OK(cudaMalloc(&memory, 10));
    EXPECT(cudaStreamEndCapture(stream, &graph), cudaErrorIllegalState);
    EXPECT(cudaStreamBeginCapture(0, cudaStreamCaptureModeGlobal),
           cudaErrorStreamCaptureUnsupported);
    OK(cudaStreamDestroy(stream));
}

/* What may not be called beside a capture in global mode breaks it, from any thread whose mode is
 * global; in the relaxed mode nothing is forbidden. */
static void queries_break_global_captures(void **state)
{
    enum cudaStreamCaptureMode mode = cudaStreamCaptureModeRelaxed;
    cudaStream_t stream;
    cudaEvent_t event;
    cudaGraph_t graph;
    void *memory;

    (void)state;
    OK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    OK(cudaEventCreate(&event));
    OK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
    OK(cudaThreadExchangeStreamCaptureMode(&mode));
    OK(cudaEventQuery(event));
    OK(cudaMalloc(&memory, 10));
    OK(cudaThreadExchangeStreamCaptureMode(&mode));
    OK(cudaLaunchHostFunc(stream, count_up, NULL));
    EXPECT(cudaEventQuery(event), cudaErrorStreamCaptureUnsupported);
    EXPECT(cudaLaunchHostFunc(stream, count_up, NULL), cudaErrorStreamCaptureInvalidated);
    EXPECT(cudaStreamEndCapture(stream, &graph), cudaErrorStreamCaptureInvalidated);
    OK(cudaEventQuery(event));
    OK(cudaFree(memory));
    OK(cudaEventDestroy(event));
    OK(cudaStreamDestroy(stream));
}

static void branches_must_join(void **state)
{
    cudaStream_t stream, side;
    cudaEvent_t event;
    cudaGraph_t graph;

    (void)state;
    OK(cudaStreamCreate(&stream));
    OK(cudaStreamCreate(&side));
    OK(cudaEventCreate(&event));
    OK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
    OK(cudaEventRecord(event, stream));
    OK(cudaStreamWaitEvent(side, event, 0));
    OK(cudaLaunchHostFunc(side, count_up, NULL));
    EXPECT(cudaStreamEndCapture(side, &graph), cudaErrorStreamCaptureUnmatched);
    EXPECT(cudaStreamEndCapture(stream, &graph), cudaErrorStreamCaptureUnjoined);
    OK(cudaStreamDestroy(stream));
    OK(cudaStreamDestroy(side));
    OK(cudaEventDestroy(event));
}

static void add_one(void *number)
{
    ++*(int *)number;
}

static void nodes_are_added_by_hand(void **state)
{
    cudaGraph_t graph, child, clone;
    cudaGraphNode_t set, copy, host, empty, end;
    cudaGraphExec_t exec;
    char *memory, back[16] = "";
    int runs = 0;
    size_t count = 0;
    cudaStream_t stream;

    (void)state;
    OK(cudaMalloc((void **)&memory, sizeof(back)));
    OK(cudaStreamCreate(&stream));
    OK(cudaGraphCreate(&graph, 0));
    OK(cudaGraphCreate(&child, 0));
    OK(cudaGraphAddMemsetNode(
        &set, graph, NULL, 0,
        &(struct cudaMemsetParams){
            .dst = memory, .value = 7, .elementSize = 1, .width = 16, .height = 1}));
    OK(cudaGraphAddMemcpyNode1D(&copy, child, NULL, 0, back, memory, sizeof(back),
                                cudaMemcpyDeviceToHost));
    OK(cudaGraphAddHostNode(&host, child, &copy, 1, &(struct cudaHostNodeParams){add_one, &runs}));
    OK(cudaGraphAddChildGraphNode(&end, graph, &set, 1, child));
    OK(cudaGraphAddEmptyNode(&empty, graph, &end, 1));
    EXPECT(cudaGraphAddEmptyNode(&empty, graph, NULL, 1), cudaErrorInvalidValue);
    EXPECT(cudaGraphAddMemsetNode(
               &set, graph, NULL, 0,
               &(struct cudaMemsetParams){
                   .dst = memory, .value = 7, .elementSize = 4, .width = 4, .height = 1}),
           cudaErrorNotSupported);
    OK(cudaGraphClone(&clone, graph));
    OK(cudaGraphDestroy(graph));
    OK(cudaGraphDestroy(child));
    OK(cudaGraphGetNodes(clone, NULL, &count));
    assert_int_equal(count, 5);
    OK(cudaGraphInstantiate(&exec, clone, 0));
    OK(cudaGraphDestroy(clone));
    for (int i = 0; i < 3; i++)
        OK(cudaGraphLaunch(exec, stream));
    OK(cudaStreamSynchronize(stream));
    assert_int_equal(runs, 3);
    assert_int_equal(back[0] + back[15], 14);
    OK(cudaGraphExecDestroy(exec));
    OK(cudaStreamDestroy(stream));
    OK(cudaFree(memory));
}

/* A capture into a graph that exists goes behind the nodes it is given; if it fails, the graph
 * stays. */
static void captures_into_a_graph(void **state)
{
    cudaStream_t stream;
    cudaGraph_t graph, other, made;
    cudaGraphNode_t node, foreign;
    cudaGraphExec_t exec;
    size_t nodes;
    int runs = 0;

    (void)state;
    OK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    OK(cudaGraphCreate(&graph, 0));
    OK(cudaGraphCreate(&other, 0));
    OK(cudaGraphAddEmptyNode(&node, graph, NULL, 0));
    OK(cudaGraphAddEmptyNode(&foreign, other, NULL, 0));
    EXPECT(cudaStreamBeginCaptureToGraph(stream, graph, &foreign, NULL, 1,
                                         cudaStreamCaptureModeGlobal),
           cudaErrorInvalidValue);
    OK(cudaStreamBeginCaptureToGraph(stream, graph, &node, NULL, 1, cudaStreamCaptureModeGlobal));
    EXPECT(cudaStreamSynchronize(stream), cudaErrorStreamCaptureUnsupported);
    EXPECT(cudaStreamEndCapture(stream, &made), cudaErrorStreamCaptureInvalidated);
    OK(cudaStreamBeginCaptureToGraph(stream, graph, &node, NULL, 1, cudaStreamCaptureModeGlobal));
    OK(cudaLaunchHostFunc(stream, add_one, &runs));
    OK(cudaStreamEndCapture(stream, &made));
    assert_ptr_equal(made, graph);
    OK(cudaGraphGetNodes(graph, NULL, &nodes));
    assert_int_equal(nodes, 2);
    OK(cudaGraphGetRootNodes(graph, NULL, &nodes));
    assert_int_equal(nodes, 1);
    assert_int_equal(runs, 0);
    OK(cudaGraphInstantiate(&exec, graph, 0));
    OK(cudaGraphLaunch(exec, stream));
    OK(cudaStreamSynchronize(stream));
    assert_int_equal(runs, 1);
    OK(cudaGraphExecDestroy(exec));
    OK(cudaGraphDestroy(graph));
    OK(cudaGraphDestroy(other));
    EXPECT(cudaStreamBeginCaptureToGraph(stream, graph, NULL, NULL, 0, cudaStreamCaptureModeGlobal),
           cudaErrorInvalidValue);
    OK(cudaStreamDestroy(stream));
}

/* The body of a conditional node is a graph of the node's, filled by a capture; the handle's
 * default value decides whether it runs. */
static void bodies_of_conditional_nodes_are_captured(void **state)
{
    char *memory, back[2] = "";

    (void)state;
    OK(cudaMalloc((void **)&memory, 2));
    OK(cudaMemset(memory, 0, 2));
    OK(cudaDeviceSynchronize()); /* the streams below do not wait for the default stream */
    for (unsigned value = 0; value < 2; value++) {
        struct cudaGraphNodeParams wanted = {.type = cudaGraphNodeTypeConditional};
        cudaStream_t stream;
        cudaGraph_t graph, made;
        cudaGraphNode_t node;
        cudaGraphExec_t exec;
        enum cudaGraphNodeType type;

        OK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
        OK(cudaGraphCreate(&graph, 0));
        wanted.conditional.type = cudaGraphCondTypeIf;
        EXPECT(cudaGraphAddNode(&node, graph, NULL, NULL, 0, &wanted), cudaErrorInvalidValue);
        OK(cudaGraphConditionalHandleCreate(&wanted.conditional.handle, graph, value,
                                            cudaGraphCondAssignDefault));
        wanted.conditional.size = 1;
        OK(cudaGraphAddNode(&node, graph, NULL, NULL, 0, &wanted));
        OK(cudaGraphNodeGetType(node, &type));
        assert_int_equal(type, cudaGraphNodeTypeConditional);
        EXPECT(cudaGraphDestroy(wanted.conditional.phGraph_out[0]), cudaErrorInvalidValue);
        OK(cudaStreamBeginCaptureToGraph(stream, wanted.conditional.phGraph_out[0], NULL, NULL, 0,
                                         cudaStreamCaptureModeRelaxed));
        OK(cudaMemsetAsync(memory + value, 7, 1, stream));
        OK(cudaStreamEndCapture(stream, &made));
        assert_ptr_equal(made, wanted.conditional.phGraph_out[0]);
        OK(cudaGraphInstantiate(&exec, graph, 0));
        OK(cudaGraphDestroy(graph));
        OK(cudaGraphLaunch(exec, stream));
        OK(cudaStreamSynchronize(stream));
        OK(cudaGraphExecDestroy(exec));
        OK(cudaStreamDestroy(stream));
    }
    OK(cudaMemcpy(back, memory, 2, cudaMemcpyDeviceToHost));
    assert_int_equal(back[0], 0);
    assert_int_equal(back[1], 7);
    OK(cudaFree(memory));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(captured_work_runs_when_launched, reset_devices),
        cmocka_unit_test_setup(branches_run_side_by_side, reset_devices),
        cmocka_unit_test_setup(launches_are_ordered_with_the_stream, reset_devices),
        cmocka_unit_test_setup(waiting_breaks_a_capture, reset_devices),
        cmocka_unit_test_setup(queries_break_global_captures, reset_devices),
        cmocka_unit_test_setup(branches_must_join, reset_devices),
        cmocka_unit_test_setup(nodes_are_added_by_hand, reset_devices),
        cmocka_unit_test_setup(captures_into_a_graph, reset_devices),
        cmocka_unit_test_setup(bodies_of_conditional_nodes_are_captured, reset_devices),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
