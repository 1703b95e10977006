/* The order of work (analyzer/model/order.h) against its definition: random programs of streams,
 * events and host waits, whose happens-before is computed a second time by following edges. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "analyzer/engine.h"
#include "analyzer/model/order.h"
#include "analyzer/model/process.h"
#include "analyzer/model/timelines.h"
#include "stream.h"

enum { STREAMS = 6, EVENTS = 5, STEPS = 160, PROGRAMS = 400, DEFAULT_STREAM = 0 };

/* A program as a graph of nodes: pieces of work, event records, waits. edge[a][b]: a is done before
 * b. */
struct program {
    struct analyzer *analyzer;
    uint64_t seed, serial;
    bool edge[STEPS][STEPS];
    int nodes;
    bool is_work[STEPS];
    struct place place[STEPS];
    int stream_of[STEPS];
    int last[STREAMS]; /* last node on each stream, -1 none */
    bool blocking[STREAMS];
    int event_node[EVENTS]; /* node of the last record, -1 never */
    bool seen[STEPS];       /* the host has seen it done */
};

static uint64_t handle_of(int stream)
{
    return stream == DEFAULT_STREAM ? 0 : 0x100 + (uint64_t)stream;
}

static void feed(struct program *program, struct record record)
{
    record.serial = ++program->serial;
    record.time_ns = program->serial * 1000;
    record.thread = 7;
    record.device = 0;
    assert_int_equal(analyzer_feed(program->analyzer, 0, &record), 0);
}

/* A new node at the end of a stream: after the last there, after what the host saw, and by the
 * default stream's rule. */
static int node_on(struct program *program, int stream)
{
    int node = program->nodes++;
    program->stream_of[node] = stream;
    for (int i = 0; i < node; i++)
        program->edge[i][node] = program->seen[i];
    if (program->last[stream] >= 0)
        program->edge[program->last[stream]][node] = true;
    for (int other = 0; other < STREAMS && program->blocking[stream]; other++)
        if (program->blocking[other] && (stream == DEFAULT_STREAM || other == DEFAULT_STREAM) &&
            program->last[other] >= 0)
            program->edge[program->last[other]][node] = true;
    program->last[stream] = node;
    return node;
}

static bool reaches(const struct program *program, int from, int to)
{
    bool reached[STEPS] = {false};
    reached[from] = true;
    for (int i = from; i <= to; i++)
        for (int k = i + 1; k <= to && reached[i]; k++)
            reached[k] |= program->edge[i][k];
    return reached[to];
}

static void see(struct program *program, int node)
{
    for (int i = 0; i <= node && node >= 0; i++)
        program->seen[i] |= reaches(program, i, node);
}

static void put_work(struct program *program, int stream)
{
    int node = node_on(program, stream);
    struct record record = {.api = API_cudaMemsetAsync, .stream = handle_of(stream)};
    record.copy.dst = 0x1000;
    record.copy.bytes = 4;
    feed(program, record);
    struct process *process = program->analyzer->process[0];
    const struct thread *thread = process_thread(process, 7);
    program->is_work[node] = true;
    program->place[node] = thread->work.place;
    for (int i = 0; i < node; i++) {
        if (!program->is_work[i])
            continue;
        enum order order = order_before(process, &program->place[i], thread->work.stream);
        if (order != (reaches(program, i, node) ? ORDER_BEFORE : ORDER_NONE))
            fail_msg("work %d on stream %d and work %d on stream %d: said %d", i,
                     program->stream_of[i], node, stream, order);
    }
}

static void wait_for(struct program *program, uint16_t api, uint64_t stream, uint64_t event)
{
    struct record record = {.api = api, .phase = RECORD_ENTER, .stream = stream};
    record.wait.event = event;
    feed(program, record);
    record = (struct record){.api = api, .phase = RECORD_LEAVE};
    feed(program, record);
}

static void step(struct program *program)
{
    int stream = (int)(draw(&program->seed) % STREAMS),
        event = (int)(draw(&program->seed) % EVENTS);
    struct record record = {.stream = handle_of(stream)};
    record.event.event = 0x900 + (uint64_t)event;
    switch (draw(&program->seed) % 16) {
    case 0:
    case 1:
    case 2:
        record.api = API_cudaEventRecord;
        program->event_node[event] = node_on(program, stream);
        feed(program, record);
        break;
    case 3:
    case 4:
    case 5: {
        record.api = API_cudaStreamWaitEvent;
        int node = node_on(program, stream);
        if (program->event_node[event] >= 0)
            program->edge[program->event_node[event]][node] = true;
        feed(program, record);
        break;
    }
    case 6:
        if (draw(&program->seed) % 4)
            break;
        record.api = API_cudaEventQuery;
        feed(program, record);
        see(program, program->event_node[event]);
        break;
    case 7:
        if (draw(&program->seed) % 4)
            break;
        wait_for(program, API_cudaEventSynchronize, 0, record.event.event);
        see(program, program->event_node[event]);
        break;
    case 8:
        if (draw(&program->seed) % 4)
            break;
        if (stream == DEFAULT_STREAM) /* a wait for it is one for all that it waits for */
            node_on(program, stream);
        wait_for(program, API_cudaStreamSynchronize, handle_of(stream), 0);
        see(program, program->last[stream]);
        break;
    case 9:
        if (draw(&program->seed) % 8)
            break;
        wait_for(program, API_cudaDeviceSynchronize, 0, 0);
        for (int i = 0; i < program->nodes; i++)
            program->seen[i] = true;
        break;
    default:
        put_work(program, stream);
    }
}

static void run_program(uint64_t seed)
{
    struct program *program = calloc(1, sizeof *program);
    assert_non_null(program);
    program->seed = seed;
    program->analyzer = analyzer_new(NULL);
    const struct process_info info = {
        .pid = 1, .rank = 0, .realtime_ns = 1, .boot_id = "test", .host = "test"};
    assert_int_equal(analyzer_add_process(program->analyzer, 0, &info), 0);
    for (int stream = 0; stream < STREAMS; stream++) {
        program->last[stream] = -1;
        program->blocking[stream] = stream == DEFAULT_STREAM || stream % 2;
        struct record record = {.api = API_cudaStreamCreateWithFlags, .stream = handle_of(stream)};
        record.event.flags = !program->blocking[stream];
        if (stream != DEFAULT_STREAM)
            feed(program, record);
    }
    for (int event = 0; event < EVENTS; event++) {
        program->event_node[event] = -1;
        struct record record = {.api = API_cudaEventCreate};
        record.event.event = 0x900 + (uint64_t)event;
        feed(program, record);
    }
    while (program->nodes < STEPS - 1)
        step(program);
    assert_int_equal(analyzer_skipped(program->analyzer), 0);
    analyzer_free(program->analyzer);
    free(program);
}

static void random_programs(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= PROGRAMS; seed++)
        run_program(seed * UINT64_C(0x9e3779b97f4a7c15));
}

/* Streams and events that come and go for long leave nothing behind. */
static void bounded_memory(void **state)
{
    (void)state;
    struct program program = {.analyzer = analyzer_new(NULL)};
    const struct process_info info = {
        .pid = 1, .rank = 0, .realtime_ns = 1, .boot_id = "test", .host = "test"};
    assert_int_equal(analyzer_add_process(program.analyzer, 0, &info), 0);
    struct process *process = program.analyzer->process[0];
    for (uint64_t i = 0; i < 20000; i++) {
        struct record record = {.api = API_cudaStreamCreateWithFlags, .stream = 0x1000 + i};
        record.event.flags = 1;
        feed(&program, record);
        record.api = API_cudaMemsetAsync;
        feed(&program, record);
        record.api = API_cudaEventCreate;
        record.event.event = 0x100000 + i;
        feed(&program, record);
        record.api = API_cudaEventRecord;
        feed(&program, record);
        struct record wait = {.api = API_cudaStreamWaitEvent, .stream = 0x1000 + i};
        wait.event.event = 0x100000 + i;
        feed(&program, wait);
        record.api = API_cudaEventDestroy;
        feed(&program, record);
        record.api = API_cudaStreamDestroy;
        feed(&program, record);
        if (i % 2000 == 1999)
            wait_for(&program, API_cudaDeviceSynchronize, 0, 0);
        assert_true(process->order.timelines <= 2 * 1024 + 8);
    }
    wait_for(&program, API_cudaDeviceSynchronize, 0, 0);
    assert_int_equal(process->order.gone_streams, 0);
    assert_int_equal(HASH_COUNT(process->order.events), 0);
    analyzer_free(program.analyzer);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_programs),
        cmocka_unit_test(bounded_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
