/* One fault of each class, planted into each of 1,000 random legal programs of collectives, groups,
 * messages, streams, events, copies and waits over three communicators: exactly that fault is
 * found, and the rank that made it is named. Without the fault nothing is found. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "verdict.h"

#define COMM(i)      (UINT64_C(0x1111000000000000) * ((uint64_t)(i) + 1))
#define BUFFER(rank) (UINT64_C(0x7f0000000000) + (uint64_t)(rank)*0x100000000u)

enum {
    RANKS = 4,
    COMMS = 3,
    PROGRAMS = 1000,
    STEPS = 24,
    WRONG_STREAM = 0x99,
    INVALID_HANDLE = 400,
    ONE_STREAM = 0
};

enum what { COLLECTIVE, GROUP, RING, EVENT, WAIT, COPY, WHATS };

struct step {
    enum what what;
    int comm;
    struct call call[3]; /* GROUP: three; else the first */
};

struct program {
    struct step step[STEPS];
    uint64_t seed;
};

/* Communicator 0 has all ranks, 1 the first two, 2 the last three. */
static bool belongs(int comm, int rank)
{
    return comm == 0 || (comm == 1 ? rank < 2 : rank > 0);
}

static struct call draw_call(uint64_t *state, int comm)
{
    static const uint16_t kinds[] = {
        API_ncclAllReduce,     API_ncclBroadcast, API_ncclReduce, API_ncclAllGather,
        API_ncclReduceScatter, API_ncclAlltoAll,  API_ncclGather, API_ncclScatter,
    };
    static const int types[] = {TYPE_FLOAT32, TYPE_INT32, TYPE_FLOAT16, TYPE_BFLOAT16, TYPE_INT64};
    return (struct call){
        .api = kinds[draw(state) % (sizeof kinds / sizeof *kinds)],
        .comm = COMM(comm),
        .count = 10 + draw(state) % 1000,
        .type = types[draw(state) % (sizeof types / sizeof *types)],
        .redop = (int)(draw(state) % 5),
        .root = (int)(draw(state) % 2),
        .stream = 0x10 * (draw(state) % 3),
        .no_progress = draw(state) % 4 == 0,
    };
}

static void draw_program(uint64_t seed, struct program *program)
{
    uint64_t state = seed * 2654435761u + 88172645463325252u;
    program->seed = seed;
    for (int i = 0; i < STEPS; i++) {
        struct step *step = &program->step[i];
        step->what = (enum what)(draw(&state) % WHATS);
        step->comm = (int)(draw(&state) % COMMS);
        for (int k = 0; k < 3; k++)
            step->call[k] = draw_call(&state, step->comm);
        if (step->what == GROUP &&
            draw(&state) % 2) /* the same calls over again, another buffer each */
            step->call[1] = step->call[2] = step->call[0];
        if (ONE_STREAM)
            step->call[1].stream = step->call[2].stream = step->call[0].stream;
    }
}

/* The fault, and where. */
struct plant {
    const struct fault *fault;
    int step, rank;
};

struct fault {
    const char *code;
    enum certainty certainty;
    enum what what;                     /* of the step that it is planted in */
    void (*prepare)(struct step *step); /* makes the step fit, on every rank; may be NULL */
    void (*change)(struct job *job, int rank, struct step *step); /* spoils it on one */
};

static void ring(struct job *job, int rank, const struct step *step)
{
    struct call send = step->call[0], receive = step->call[1];
    send.api = API_ncclSend;
    receive.api = API_ncclRecv;
    send.comm = receive.comm = COMM(0);
    send.root = (rank + 1) % RANKS;
    receive.root = (rank + RANKS - 1) % RANKS;
    group_start(job, rank);
    issue(job, rank, send);
    issue(job, rank, receive);
    group_end(job, rank);
}

static void act(struct job *job, int rank, const struct step *step, uint64_t local)
{
    if (step->what != RING && step->what < EVENT && !belongs(step->comm, rank))
        return;
    switch (step->what) {
    case GROUP:
        group_start(job, rank);
        for (int i = 0; i < 3; i++)
            issue(job, rank, step->call[i]);
        group_end(job, rank);
        break;
    case RING:
        ring(job, rank, step);
        break;
    case EVENT:
        event_record(job, rank, 0xe0, step->call[0].stream);
        event_wait(job, rank, 0xe0, 0x10 * (local % 3));
        break;
    case WAIT:
        wait_done(job, rank, local % 2 ? API_cudaDeviceSynchronize : API_cudaStreamSynchronize,
                  step->call[0].stream);
        break;
    case COPY:
        memset_async(job, rank, step->call[0].stream, BUFFER(rank) + 0x80000000u + local % 4096,
                     64);
        break;
    default:
        issue(job, rank, step->call[0]);
    }
}

static struct job *begin(void)
{
    struct job *job = job_new(RANKS);
    job_init(job, COMM(0), 0, 3);
    job_init(job, COMM(1), 0, 1);
    job_init(job, COMM(2), 1, 3);
    for (int rank = 0; rank < RANKS; rank++) {
        stream_create(job, rank, 0x10, true);
        stream_create(job, rank, 0x20, false);
    }
    return job;
}

static void finish(struct job *job)
{
    for (int comm = COMMS - 1; comm >= 0; comm--)
        for (int rank = 0; rank < RANKS; rank++)
            if (belongs(comm, rank)) {
                comm_call_enter(job, rank, API_ncclCommDestroy, COMM(comm));
                call_leave(job, rank);
            }
    for (int rank = 0; rank < RANKS; rank++)
        end(job, rank, END_EXIT, 0, false);
    ticks(job, 2000);
}

static struct job *run(const struct program *program, const struct plant *plant)
{
    struct job *job = begin();
    uint64_t state = program->seed * 7919 + 3;
    for (int i = 0; i < STEPS; i++) {
        struct step step = program->step[i];
        bool planted = plant && i == plant->step;
        if (planted) {
            step.what = plant->fault->what;
            if (plant->fault->prepare)
                plant->fault->prepare(&step);
        }
        for (int rank = 0; rank < RANKS; rank++) {
            struct step own = step;
            if (planted && rank == plant->rank)
                plant->fault->change(job, rank, &own);
            act(job, rank, &own, draw(&state));
        }
        if (draw(&state) % 8 == 0)
            ticks(job, 250 * (1 + draw(&state) % 8));
    }
    finish(job);
    return job;
}

static void reduction(struct step *step)
{
    step->call[0].api = API_ncclAllReduce;
}

static void rooted(struct step *step)
{
    step->call[0].api = API_ncclBroadcast;
}

static void three_sizes(struct step *step)
{
    for (int i = 0; i < 3; i++)
        step->call[i].count = 100 + (uint64_t)i;
}

/* A ring in which what is sent is what is received. */
static void even_ring(struct step *step)
{
    step->call[1] = step->call[0];
}

/* Each rank's own buffer; reported to be there, and large enough, by change() where it is not. */
static void with_buffer(struct step *step)
{
    step->call[0].api = API_ncclAllReduce;
    step->call[0].type = TYPE_FLOAT32;
    step->call[0].sendbuff = step->call[0].recvbuff = BUFFER(0);
}

static void other_kind(struct job *job, int rank, struct step *step)
{
    (void)job;
    (void)rank;
    step->call[0].api = step->call[0].api == API_ncclAllGather ? API_ncclAllReduce
                                                               : API_ncclAllGather;
}

static void other_count(struct job *job, int rank, struct step *step)
{
    (void)job;
    (void)rank;
    step->call[0].count++;
}

static void other_type(struct job *job, int rank, struct step *step)
{
    (void)job;
    (void)rank;
    step->call[0].type = step->call[0].type == TYPE_FLOAT64 ? TYPE_FLOAT32 : TYPE_FLOAT64;
}

static void other_operator(struct job *job, int rank, struct step *step)
{
    (void)job;
    (void)rank;
    step->call[0].redop = (step->call[0].redop + 1) % 5;
}

static void other_root(struct job *job, int rank, struct step *step)
{
    (void)job;
    (void)rank;
    step->call[0].root = !step->call[0].root;
}

static void other_order(struct job *job, int rank, struct step *step)
{
    (void)job;
    (void)rank;
    struct call first = step->call[0];
    step->call[0] = step->call[2];
    step->call[2] = first;
}

static void receives_less(struct job *job, int rank, struct step *step)
{
    (void)job;
    (void)rank;
    step->call[1].count--;
}

static void sends_past_the_end(struct job *job, int rank, struct step *step)
{
    (void)step;
    issue(job, rank,
          (struct call){.api = API_ncclSend, .comm = COMM(0), .count = 5, .root = RANKS});
}

static void names_no_root(struct job *job, int rank, struct step *step)
{
    (void)job;
    (void)rank;
    step->call[0].root = 9;
}

static void takes_stream_of_other_device(struct job *job, int rank, struct step *step)
{
    struct record record = {
        .api = API_cudaStreamCreateWithFlags, .stream = WRONG_STREAM, .device = rank == 3 ? 1 : 3};
    record.event.flags = 1;
    job_record(job, rank, record);
    step->call[0].stream = WRONG_STREAM;
}

static void takes_buffer_of_other_device(struct job *job, int rank, struct step *step)
{
    (void)step;
    buffer(job, rank, BUFFER(0), 1 << 20, rank == 3 ? 1 : 3, MEMORY_DEVICE);
}

static void takes_host_memory(struct job *job, int rank, struct step *step)
{
    (void)step;
    buffer(job, rank, BUFFER(0), 0, -1, MEMORY_HOST_PAGEABLE);
}

static void takes_short_buffer(struct job *job, int rank, struct step *step)
{
    buffer(job, rank, BUFFER(0), 4 * step->call[0].count - 4, rank, MEMORY_DEVICE);
}

static void launches_on_other_device(struct job *job, int rank, struct step *step)
{
    (void)step;
    struct record record = {
        .api = API_cudaStreamCreateWithFlags, .stream = WRONG_STREAM, .device = rank == 3 ? 1 : 3};
    record.event.flags = 1;
    job_record(job, rank, record);
    record = kernel_record(WRONG_STREAM, "_Z5scalePf", 0);
    record.result = INVALID_HANDLE;
    job_record(job, rank, record);
}

static const struct fault faults[] = {
    {"DC101", CERTAIN, COLLECTIVE, NULL, other_kind},
    {"DC102", CERTAIN, COLLECTIVE, NULL, other_count},
    {"DC103", CERTAIN, COLLECTIVE, NULL, other_type},
    {"DC104", CERTAIN, COLLECTIVE, reduction, other_operator},
    {"DC105", CERTAIN, COLLECTIVE, rooted, other_root},
    {"DC106", CERTAIN, GROUP, three_sizes, other_order},
    {"DC107", CERTAIN, RING, even_ring, receives_less},
    {"DC108", CERTAIN, WAIT, NULL, sends_past_the_end},
    {"DC111", CERTAIN, COLLECTIVE, rooted, names_no_root},
    {"DC401", CERTAIN, COLLECTIVE, with_buffer, takes_buffer_of_other_device},
    {"DC402", CERTAIN, COLLECTIVE, NULL, takes_stream_of_other_device},
    {"DC404", CERTAIN, COLLECTIVE, with_buffer, takes_host_memory},
    {"DC406", CERTAIN, COLLECTIVE, with_buffer, takes_short_buffer},
    {"DC407", CERTAIN, WAIT, NULL, launches_on_other_device},
};

/* Ranks of COMMs 1 and 2 only where the step is theirs; of DC107 the receiver is the odd one. */
static int draw_rank(uint64_t *state, const struct step *step, const struct fault *fault)
{
    bool on_comm = fault->what == COLLECTIVE || fault->what == GROUP;
    for (;;) {
        int rank = (int)(draw(state) % RANKS);
        if (!on_comm || belongs(step->comm, rank))
            return rank;
    }
}

static void make_legal(struct program *program)
{
    for (int i = 0; i < STEPS; i++)
        if (program->step[i].what == RING)
            even_ring(&program->step[i]);
}

static bool names_rank(const struct found *found, int rank)
{
    char text[8];
    snprintf(text, sizeof text, "%d", rank);
    for (int i = 0; i < found->sides; i++)
        if (!strcmp(found->ranks[i], text))
            return true;
    return false;
}

static void check(const struct program *program, const struct plant *plant, uint64_t order)
{
    struct job *job = run(program, plant);
    struct verdict verdict;
    job_analyze(job, order, &verdict);
    const struct found *found = &verdict.found[0];
    /* Where two ranks differ nobody can say which is wrong; then either side may be named. */
    bool right = verdict.count == 1 && !strcmp(found->code, plant->fault->code) &&
                 found->certainty == plant->fault->certainty && names_rank(found, plant->rank);
    if (!right) {
        for (int i = 0; i < verdict.count; i++)
            print_message("  %s: %s\n", verdict.found[i].code, verdict.found[i].what);
        fail_msg("program %d: planted %s in step %d of rank %d, got %d findings",
                 (int)program->seed, plant->fault->code, plant->step, plant->rank, verdict.count);
    }
    job_free(job);
}

static void planted_faults_are_found(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= PROGRAMS; seed++) {
        uint64_t random = seed * 48271 + 11;
        struct program program;
        draw_program(seed, &program);
        make_legal(&program);
        for (size_t i = 0; i < sizeof faults / sizeof *faults; i++) {
            struct plant plant = {.fault = &faults[i], .step = (int)(draw(&random) % STEPS)};
            plant.rank = draw_rank(&random, &program.step[plant.step], &faults[i]);
            check(&program, &plant, draw(&random) % 2 ? seed * 31 + i : 0);
        }
    }
}

static void without_fault_nothing_is_found(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= PROGRAMS; seed++) {
        struct program program;
        struct verdict verdict;
        draw_program(seed, &program);
        make_legal(&program);
        struct job *job = run(&program, NULL);
        job_analyze(job, seed % 2 ? seed : 0, &verdict);
        if (verdict.count)
            fail_msg("program %d: %s: %s", (int)seed, verdict.found[0].code, verdict.found[0].what);
        assert_int_equal(verdict.skipped, 0);
        job_free(job);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(without_fault_nothing_is_found),
        cmocka_unit_test(planted_faults_are_found),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
