/* Hazards in graphs: inside of one while it is captured, and around its launches. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "hazard_stream.h"

enum { GRAPH = 0x6001, EXEC = 0x6002, FORK = 0xf1, JOIN = 0xf2 };

static void graph_call(struct job *job, uint16_t api, uint64_t stream, uint64_t graph,
                       uint64_t exec)
{
    struct record record = {.api = api, .stream = stream, .stack = 0x4720 + api};
    record.graph.graph = graph;
    record.graph.exec = exec;
    job_record(job, 1, record);
}

static void captured_event(struct job *job, uint16_t api, uint64_t event, uint64_t stream)
{
    struct record record = {.api = api, .stream = stream, .flags = RECORD_FLAG_CAPTURE};
    record.event.event = event;
    job_record(job, 1, record);
}

static void captured_memset(struct job *job, uint64_t stream, uint64_t pointer)
{
    struct record record = {.api = API_cudaMemsetAsync,
                            .stream = stream,
                            .flags = RECORD_FLAG_CAPTURE,
                            .stack = 0x4731};
    record.copy.dst = pointer;
    record.copy.bytes = BYTES;
    job_record(job, 1, record);
}

/* An AllReduce in place, on rank 1 captured. */
static void captured_reduce(struct job *job, uint64_t stream, uint64_t pointer)
{
    struct record record = {.api = API_ncclAllReduce,
                            .phase = RECORD_ENTER,
                            .stream = stream,
                            .flags = RECORD_FLAG_CAPTURE,
                            .stack = 0x4730};
    record.op.comm = WORLD;
    record.op.rank = 1;
    record.op.count = COUNT;
    record.op.datatype = TYPE_FLOAT32;
    record.op.root = -1;
    record.op.slot = RECORD_NO_SLOT;
    record.op.sendbuff = record.op.recvbuff = pointer;
    job_record(job, 1, record);
    call_leave(job, 1);
}

static void begin(struct job *job)
{
    graph_call(job, API_cudaStreamBeginCapture, COMPUTE, 0, 0);
}

static void finish(struct job *job)
{
    graph_call(job, API_cudaStreamEndCapture, COMPUTE, GRAPH, 0);
    graph_call(job, API_cudaGraphInstantiate, 0, GRAPH, EXEC);
}

/* A branch of the graph: from COMPUTE to COMMUNICATION and back. */
static void inside_of_a_graph(void **state)
{
    (void)state;
    for (int forked = 0; forked < 2; forked++) /* the branch begins before or after the memset */
        for (int joined = 0; joined < 2;
             joined++) { /* the second memset comes before or after the join */
            struct job *job = hazard_job_new(true);
            begin(job);
            if (!forked)
                captured_event(job, API_cudaEventRecord, FORK, COMPUTE);
            captured_memset(job, COMPUTE, BASE);
            if (forked)
                captured_event(job, API_cudaEventRecord, FORK, COMPUTE);
            captured_event(job, API_cudaStreamWaitEvent, FORK, COMMUNICATION);
            captured_reduce(job, COMMUNICATION, BASE);
            captured_event(job, API_cudaEventRecord, JOIN, COMMUNICATION);
            if (joined)
                captured_event(job, API_cudaStreamWaitEvent, JOIN, COMPUTE);
            captured_memset(job, COMPUTE, BASE);
            if (!joined)
                captured_event(job, API_cudaStreamWaitEvent, JOIN, COMPUTE);
            finish(job);
            expect_code(job, !forked ? "DC303" : !joined ? "DC301" : NULL, CERTAIN, 1);
        }
}

/* A launch is one piece of work on its stream, again and again. */
static void launches(void **state)
{
    (void)state;
    enum { BEFORE, AFTER, ORDERED, DESTROYED, UPDATED, CASES };
    for (int order = 0; order < CASES; order++) {
        struct job *job = hazard_job_new(true);
        begin(job);
        captured_reduce(job, COMPUTE, BASE);
        finish(job);
        if (order == DESTROYED) /* the handle means nothing that is known */
            graph_call(job, API_cudaGraphExecDestroy, 0, 0, EXEC);
        if (order == UPDATED) {
            graph_call(job, API_cudaStreamBeginCapture, COMPUTE, 0, 0);
            captured_reduce(job, COMPUTE, BASE + 64 * BYTES);
            graph_call(job, API_cudaStreamEndCapture, COMPUTE, GRAPH + 8, 0);
            graph_call(job, API_cudaGraphExecUpdate, 0, GRAPH + 8, EXEC);
        }
        for (int step = 0; step < 3; step++) {
            if (order == BEFORE)
                memset_async(job, 1, OTHER, BASE, 4);
            graph_call(job, API_cudaGraphLaunch, COMPUTE, 0, EXEC);
            if (order == ORDERED) {
                event_record(job, 1, REDUCED, COMPUTE);
                event_wait(job, 1, REDUCED, OTHER);
            }
            if (order != BEFORE)
                memset_async(job, 1, OTHER, BASE, 4);
            wait_done(job, 1, API_cudaDeviceSynchronize, 0);
        }
        static const char *const code[CASES] = {[BEFORE] = "DC303", [AFTER] = "DC301"};
        wait_done(job, 1, API_cudaDeviceSynchronize, 0);
        for (int rank = 0; rank < 2; rank++)
            end(job, rank, END_EXIT, 0, false);
        struct verdict verdict;
        const struct found *found = expect_in(job, &verdict, code[order]);
        if (code[order])
            assert_int_equal(found->times, 3);
        job_free(job);
    }
}

/* The operations that the shim issues again for a launch are the graph's, which were looked at in
 * the capture: that they share a buffer one after the other is no hazard. */
static void replayed_operations(void **state)
{
    (void)state;
    struct job *job = hazard_job_new(true);
    begin(job);
    captured_reduce(job, COMPUTE, BASE);
    captured_reduce(job, COMPUTE, BASE);
    finish(job);
    for (int rank = 0; rank < 2; rank++) {
        group_start(job, rank);
        for (int i = 0; i < 2; i++)
            ALL_REDUCE(job, rank, WORLD, COUNT, .stream = COMPUTE, .recvbuff = rank ? BASE : 0,
                       .flags = RECORD_FLAG_REPLAY);
        if (rank)
            graph_call(job, API_cudaGraphLaunch, COMPUTE, 0, EXEC);
        group_end(job, rank);
    }
    expect_code(job, NULL, 0, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(inside_of_a_graph),
        cmocka_unit_test(launches),
        cmocka_unit_test(replayed_operations),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
