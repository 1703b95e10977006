/* Random programs of operations on two communicators, kernels, copies and memsets on five streams,
 * in which every two pieces of work that conflict are ordered, by events or waits that are put in
 * where they are missing: nothing is found. With one of these left out, or one other fault planted,
 * just that is found. What is ordered is computed here a second time, by sets of what comes before
 * each piece of work. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "hazard_stream.h"

enum {
    PROGRAMS = 1000,
    STEPS = 40,
    NODES = 512,
    WORDS = NODES / 64,
    STREAMS = 5,
    COMMS = 2,
    BUFFERS = 6,
    BLOCK = 0x10000,
    SECOND = 0x2222,
    LEGACY = 4
};
static const uint64_t stream_handle[STREAMS] = {COMPUTE, OTHER, COMMUNICATION, 0x90, DEFAULT};
static const bool stream_blocks[STREAMS] = {false, false, false, true, true};
static const uint64_t comm_id[COMMS] = {WORLD, SECOND};

enum kind { OPERATION, IN_PLACE, SET, COPY, KERNEL, KINDS };

struct use {
    uint64_t begin, end;
    bool writes;
};

/* A piece of work, an event's record or a wait for one. */
struct node {
    uint64_t before[WORDS]; /* nodes that are done before it */
    struct use use[2];
    int uses;
    bool is_operation;
    int stream;
};

struct program {
    struct job *job;
    uint64_t seed, event;
    struct node node[NODES];
    int nodes;
    int last[STREAMS], last_of_comm[COMMS]; /* node, -1 none */
    uint64_t seen[WORDS];
    const char *plant; /* the fault to be made, or NULL */
    int plant_at;      /* step from which on it is made where it can be */
    bool planted;
    const char *allowed; /* what it may be called */
};

static bool has(const uint64_t *set, int node)
{
    return set[node / 64] >> node % 64 & 1;
}

static void add_all(uint64_t *set, const struct program *program, int node)
{
    if (node < 0)
        return;
    for (int i = 0; i < WORDS; i++)
        set[i] |= program->node[node].before[i];
    set[node / 64] |= UINT64_C(1) << node % 64;
}

/* What is done before anything that is put on the stream now. */
static void before_next(const struct program *program, int stream, uint64_t *before)
{
    memcpy(before, program->seen, sizeof program->seen);
    add_all(before, program, program->last[stream]);
    for (int other = 0; other < STREAMS && stream_blocks[stream]; other++)
        if (stream_blocks[other] && (stream == LEGACY || other == LEGACY))
            add_all(before, program, program->last[other]);
}

static struct node *node_on(struct program *program, int stream)
{
    assert_true(program->nodes < NODES);
    struct node *node = &program->node[program->nodes];
    before_next(program, stream, node->before);
    node->stream = stream;
    program->last[stream] = program->nodes++;
    return node;
}

static void event_from_to(struct program *program, int from, int to)
{
    uint64_t event = 0x4000 + program->event++ % 64;
    for (int rank = 0; rank < 2; rank++) {
        event_record(program->job, rank, event, stream_handle[from]);
        event_wait(program->job, rank, event, stream_handle[to]);
    }
    node_on(program, from);
    int recorded = program->nodes - 1;
    add_all(node_on(program, to)->before, program, recorded);
}

static void host_wait(struct program *program, int stream)
{
    for (int rank = 0; rank < 2; rank++)
        wait_done(program->job, rank, API_cudaStreamSynchronize, stream_handle[stream]);
    if (stream == LEGACY) /* a wait for it is one for all that it waits for */
        node_on(program, stream);
    add_all(program->seen, program, program->last[stream]);
}

static bool conflicts(const struct node *node, const struct use *use, int uses, bool is_operation)
{
    for (int i = 0; i < node->uses; i++)
        for (int k = 0; k < uses; k++)
            if (node->use[i].begin < use[k].end && use[k].begin < node->use[i].end &&
                (node->use[i].writes || use[k].writes) && (node->is_operation || is_operation))
                return true;
    return false;
}

static const char *code_of(bool earlier_operation, bool is_operation, bool writes)
{
    if (is_operation)
        return earlier_operation ? "DC305" : "DC303";
    return writes ? "DC301" : "DC302";
}

/* Orders new work after all that it conflicts with, but where the fault is to be planted. NCCL
 * itself orders the operations of one communicator. */
static void make_ordered(struct program *program, int stream, int comm, const struct use *use,
                         int uses, int step)
{
    uint64_t before[WORDS] = {0};
    bool is_operation = comm >= 0, skip = false, others = false;
    for (int pass = 0; pass < 2; pass++) /* the first looks what is missing */
        for (int i = 0; i < program->nodes; i++) {
            before_next(program, stream, before);
            if (is_operation)
                add_all(before, program, program->last_of_comm[comm]);
            const struct node *node = &program->node[i];
            if (!conflicts(node, use, uses, is_operation) || has(before, i))
                continue;
            bool writes = false;
            for (int k = 0; k < uses; k++)
                writes |= use[k].writes && conflicts(node, &use[k], 1, is_operation);
            const char *code = code_of(node->is_operation, is_operation, writes);
            if (pass == 0) {
                bool wanted = program->plant && !program->planted && step >= program->plant_at &&
                              !strcmp(code, program->plant);
                skip |= wanted;
                others |= !wanted;
            } else if (!skip) {
                if (draw(&program->seed) % 4)
                    event_from_to(program, node->stream, stream);
                else
                    host_wait(program, node->stream);
            }
        }
    if (skip) {
        program->planted = true;
        program->allowed =
            others
                ? "DC30"
                : program->plant; /* it conflicts in several ways: which is reported is a choice */
    }
}

static void enter(struct program *program, int stream, int comm, const struct use *use, int uses)
{
    struct node *node = node_on(program, stream);
    memcpy(node->use, use, (size_t)uses * sizeof *use);
    node->uses = uses;
    node->is_operation = comm >= 0;
    if (comm >= 0) {
        add_all(node->before, program, program->last_of_comm[comm]);
        program->last_of_comm[comm] = program->nodes - 1;
    }
}

static uint64_t draw_buffer(struct program *program)
{
    return BASE + draw(&program->seed) % BUFFERS * BLOCK + draw(&program->seed) % 2 * (BYTES / 2);
}

static void operate(struct program *program, int step, int stream, bool in_place)
{
    int comm = (int)(draw(&program->seed) % COMMS);
    uint64_t recv = draw_buffer(program),
             send = in_place ? recv : draw_buffer(program) + BUFFERS * BLOCK;
    struct use use[2] = {{recv, recv + BYTES, true}, {send, send + BYTES, false}};
    make_ordered(program, stream, comm, use, 2 - in_place, step);
    for (int rank = 0; rank < 2; rank++)
        ALL_REDUCE(program->job, rank, comm_id[comm], COUNT, .stream = stream_handle[stream],
                   .sendbuff = send, .recvbuff = recv);
    enter(program, stream, comm, use, 2 - in_place);
}

static void work(struct program *program, int step, int stream, enum kind kind)
{
    uint64_t dst = draw_buffer(program) + draw(&program->seed) % 2 * BUFFERS * BLOCK,
             bytes = 4 + draw(&program->seed) % BYTES;
    uint64_t src = draw_buffer(program);
    struct record record = {.api = kind == SET ? API_cudaMemsetAsync : API_cudaMemcpyAsync,
                            .stream = stream_handle[stream],
                            .stack = 0x5000 + (uint64_t)step};
    record.copy.dst = dst;
    record.copy.bytes = bytes;
    if (kind == COPY) {
        record.copy.src = src;
        record.copy.kind = 3;
        record.copy.dst = dst = BASE + 4 * BUFFERS * BLOCK; /* a result that is looked at */
    }
    if (kind == KERNEL) {
        record = kernel_record(stream_handle[stream], clip, dst);
        bytes = 1;
    }
    struct use use[2] = {{dst, dst + bytes, true}, {src, src + bytes, false}};
    make_ordered(program, stream, -1, use, kind == COPY ? 2 : 1, step);
    for (int rank = 0; rank < 2; rank++)
        job_record(program->job, rank, record);
    enter(program, stream, -1, use, kind == COPY ? 2 : 1);
}

/* Faults that are no missing order. */
static void plant_other(struct program *program, int step, int stream)
{
    bool overlap = program->plant && !strcmp(program->plant, "DC304"),
         unwritten = program->plant && !strcmp(program->plant, "DC310");
    if (program->planted || step < program->plant_at || !(overlap || unwritten))
        return;
    uint64_t at = BASE + 8 * BUFFERS * BLOCK;
    struct record allocation = {.api = API_cudaMalloc};
    allocation.memory.pointer = at;
    allocation.memory.bytes = 4 * BYTES;
    for (int rank = 0; rank < 2; rank++) {
        if (unwritten)
            job_record(program->job, rank, allocation);
        ALL_REDUCE(program->job, rank, WORLD, COUNT, .stream = stream_handle[stream],
                   .sendbuff = at, .recvbuff = overlap ? at + 4 : BASE + 6 * BUFFERS * BLOCK);
    }
    program->planted = true;
    program->allowed = program->plant;
}

/* Gives back memory that an operation on it may still be using. */
static void plant_free(struct program *program, int step)
{
    if (program->planted || step < program->plant_at || !program->plant ||
        strcmp(program->plant, "DC306"))
        return;
    for (int i = program->nodes - 1; i >= 0; i--)
        for (int stream = 0; stream < STREAMS; stream++) {
            uint64_t before[WORDS] = {0};
            before_next(program, stream, before);
            const struct node *node = &program->node[i];
            if (!node->is_operation || has(before, i))
                continue;
            struct record record = {.api = API_cudaFreeAsync, .stream = stream_handle[stream]};
            record.memory.pointer = node->use[0].begin;
            for (int rank = 0; rank < 2; rank++)
                job_record(program->job, rank, record);
            program->planted = true;
            program->allowed = program->plant;
            return;
        }
}

/* Runs it; false if there was no place for the fault. */
static bool run(uint64_t seed, const char *plant)
{
    struct program *program = calloc(1, sizeof *program);
    assert_non_null(program);
    *program = (struct program){.job = hazard_job_new(true),
                                .seed = seed * UINT64_C(0x9e3779b97f4a7c15) + 1,
                                .plant = plant};
    memset(program->last, -1, sizeof program->last);
    memset(program->last_of_comm, -1, sizeof program->last_of_comm);
    job_init(program->job, SECOND, 0, 1);
    for (int rank = 0; rank < 2; rank++) {
        stream_create(program->job, rank, stream_handle[3], false);
        intern(program->job, rank, clip);
    }
    program->plant_at = (int)(draw(&program->seed) % (STEPS / 2));
    for (int step = 0; step < STEPS && !program->planted; step++) {
        int stream = (int)(draw(&program->seed) % STREAMS);
        enum kind kind = (enum kind)(draw(&program->seed) % KINDS);
        plant_other(program, step, stream);
        plant_free(program, step);
        if (program->planted)
            break;
        if (kind <= IN_PLACE)
            operate(program, step, stream, kind == IN_PLACE);
        else
            work(program, step, stream, kind);
        if (draw(&program->seed) % 16 == 0)
            ticks(program->job, 250);
    }
    for (int rank = 0; rank < 2; rank++) {
        wait_done(program->job, rank, API_cudaDeviceSynchronize, 0);
        end(program->job, rank, END_EXIT, 0, false);
    }
    struct verdict verdict;
    job_analyze(program->job, seed % 2 ? seed : 0, &verdict);
    bool planted = program->planted;
    const char *allowed = program->allowed;
    if (verdict.count != planted ||
        (planted && strncmp(verdict.found[0].code, allowed, strlen(allowed))) ||
        (planted && strcmp(verdict.found[0].ranks[0], "0-1"))) {
        for (int i = 0; i < verdict.count; i++)
            print_message("  %s on ranks %s: %s\n", verdict.found[i].code,
                          verdict.found[i].ranks[0], verdict.found[i].what);
        fail_msg("program %d: planted %s, got %d findings", (int)seed, planted ? plant : "nothing",
                 verdict.count);
    }
    job_free(program->job);
    free(program);
    return planted;
}

static void nothing_in_correct_programs(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= PROGRAMS; seed++)
        assert_false(run(seed, NULL));
}

static void planted_faults_are_found(void **state)
{
    (void)state;
    static const char *const codes[] = {"DC301", "DC302", "DC303", "DC304",
                                        "DC305", "DC306", "DC310"};
    for (size_t i = 0; i < sizeof codes / sizeof *codes; i++) {
        int planted = 0;
        uint64_t seed = 0;
        while (planted < PROGRAMS && seed < 3 * PROGRAMS)
            planted += run(++seed, codes[i]);
        print_message("%s: planted in %d of %d programs, and found\n", codes[i], planted,
                      (int)seed);
        assert_int_equal(planted, PROGRAMS);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_in_correct_programs),
        cmocka_unit_test(planted_faults_are_found),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
