/* Buffers by themselves: those of one call that overlap (DC304), what is freed while or before it
 * is used (DC306), and memory that nothing wrote (DC310). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "hazard_stream.h"

enum { FAR = BASE + 64 * BYTES, OLD = 0x900000 };

/* On rank 1 of two. */
static void buffers_of_one_call(void **state)
{
    (void)state;
    static const struct {
        uint16_t api;
        int root;
        uint64_t send, recv;
        const char *code;
        enum certainty certainty;
    } cases[] = {
        {API_ncclAllReduce, 0, BASE, BASE, NULL, 0},
        {API_ncclAllReduce, 0, BASE, BASE + 4, "DC304", CERTAIN},
        {API_ncclAllReduce, 0, BASE, BASE + BYTES, NULL, 0},
        {API_ncclAllReduce, 0, BASE + BYTES - 4, BASE, "DC304", CERTAIN},
        {API_ncclAllGather, 0, BASE + BYTES, BASE, NULL, 0},
        {API_ncclAllGather, 0, BASE, BASE, "DC304", CERTAIN},
        {API_ncclAllGather, 0, BASE + 2 * BYTES, BASE, NULL, 0},
        {API_ncclReduceScatter, 0, BASE, BASE + BYTES, NULL, 0},
        {API_ncclReduceScatter, 0, BASE, BASE, "DC304", CERTAIN},
        {API_ncclGather, 1, BASE + BYTES, BASE, NULL, 0},
        {API_ncclGather, 1, BASE, BASE, "DC304", CERTAIN},
        {API_ncclGather, 0, BASE, BASE, NULL, 0}, /* not the root: receives nothing */
        {API_ncclScatter, 1, BASE, BASE + BYTES, NULL, 0},
        {API_ncclScatter, 1, BASE, BASE, "DC304", CERTAIN},
        {API_ncclScatter, 0, BASE, BASE, NULL, 0},
        {API_ncclAlltoAll, 0, BASE, BASE + 2 * BYTES, NULL, 0},
        {API_ncclAlltoAll, 0, BASE, BASE, "DC304", POSSIBLE},
        {API_ncclAlltoAll, 0, BASE, BASE + BYTES, "DC304", CERTAIN},
        {API_ncclReduce, 1, BASE, BASE + 4, "DC304", CERTAIN},
        {API_ncclReduce, 0, BASE, BASE + 4, NULL, 0},
        {API_ncclBroadcast, 1, BASE, BASE + 4, "DC304", CERTAIN},
        {API_ncclBroadcast, 0, BASE, BASE + 4, NULL, 0},
        {API_ncclBroadcast, 1, BASE, BASE, NULL, 0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct job *job = hazard_job_new(true);
        for (int rank = 0; rank < 2; rank++)
            issue(job, rank,
                  (struct call){.api = cases[i].api,
                                .comm = WORLD,
                                .count = COUNT,
                                .root = cases[i].root,
                                .stream = COMMUNICATION,
                                .sendbuff = rank ? cases[i].send : 0,
                                .recvbuff = rank ? cases[i].recv : 0});
        expect_code(job, cases[i].code, cases[i].certainty, 1);
    }
}

static void memory_call(struct job *job, uint16_t api, uint64_t stream, uint64_t pointer,
                        uint64_t bytes)
{
    struct record record = {.api = api, .stream = stream, .stack = 0x4740};
    record.memory.pointer = pointer;
    record.memory.bytes = bytes;
    job_record(job, 1, record);
}

static void free_enter_leave(struct job *job, uint16_t api, uint64_t pointer)
{
    struct record record = {.api = api, .phase = RECORD_ENTER, .stack = 0x4741};
    if (api == API_ncclMemFree)
        record.memory.pointer = pointer;
    else
        record.wait.dst = pointer;
    job_record(job, 1, record);
    call_leave(job, 1);
}

/* A bucket of rank 1 that was allocated on COMPUTE, filled there, and reduced on COMMUNICATION
 * behind that. */
static struct job *job_with_bucket(uint16_t allocation)
{
    struct job *job = hazard_job_new(true);
    memory_call(job, allocation, COMPUTE, BASE, BYTES);
    memset_async(job, 1, COMPUTE, BASE, BYTES);
    event_record(job, 1, FILLED, COMPUTE);
    event_wait(job, 1, FILLED, COMMUNICATION);
    reduce(job, COMMUNICATION, BASE, BASE);
    return job;
}

static void wait_for_reduction(struct job *job)
{
    event_record(job, 1, REDUCED, COMMUNICATION);
    event_wait(job, 1, REDUCED, COMPUTE);
}

/* cudaFree returns when all streams of the device are done: the reduction reads what was filled. */
static void filled_before_free(void **state)
{
    (void)state;
    for (int freed = 0; freed < 2; freed++) {
        struct job *job = hazard_job_new(true);
        memory_call(job, API_cudaMalloc, 0, BASE, BYTES);
        memory_call(job, API_cudaMalloc, 0, BASE + 16 * BYTES, BYTES);
        memset_async(job, 1, COMPUTE, BASE, BYTES);
        if (freed)
            free_enter_leave(job, API_cudaFree, BASE + 16 * BYTES);
        reduce(job, COMMUNICATION, BASE, BASE);
        expect_code(job, freed ? NULL : "DC303", CERTAIN, 1);
    }
}

static void freed_in_use(void **state)
{
    (void)state;
    for (int ordered = 0; ordered < 2; ordered++) {
        struct job *job = job_with_bucket(API_cudaMallocAsync);
        if (ordered)
            wait_for_reduction(job);
        memory_call(job, API_cudaFreeAsync, COMPUTE, BASE, 0);
        expect_code(job, ordered ? NULL : "DC306", CERTAIN, 1);

        job = job_with_bucket(API_cudaMallocAsync); /* does not wait for the device */
        if (ordered)
            wait_done(job, 1, API_cudaStreamSynchronize, COMMUNICATION);
        free_enter_leave(job, API_cudaFree, BASE);
        expect_code(job, ordered ? NULL : "DC306", CERTAIN, 1);

        job = job_with_bucket(API_cudaMalloc);
        if (ordered)
            wait_done(job, 1, API_cudaStreamSynchronize, COMMUNICATION);
        free_enter_leave(job, API_ncclMemFree, BASE);
        expect_code(job, ordered ? NULL : "DC306", CERTAIN, 1);
    }
    struct job *job = job_with_bucket(API_cudaMalloc); /* cudaFree waits for the device */
    free_enter_leave(job, API_cudaFree, BASE);
    expect_code(job, NULL, 0, 0);
    job = job_with_bucket(API_cudaMallocAsync); /* on the operation's stream */
    memory_call(job, API_cudaFreeAsync, COMMUNICATION, BASE, 0);
    expect_code(job, NULL, 0, 0);
}

/* The pool gives memory that was freed in order to another stream: it may, and its new owner may
 * use it. */
static void recycled_by_a_pool(void **state)
{
    (void)state;
    for (int ordered = 0; ordered < 2; ordered++) {
        struct job *job = hazard_job_new(true);
        for (int step = 0; step < 5; step++) {
            memory_call(job, API_cudaMallocAsync, step % 2 ? OTHER : COMPUTE, BASE, BYTES);
            memset_async(job, 1, step % 2 ? OTHER : COMPUTE, BASE, BYTES);
            event_record(job, 1, FILLED, step % 2 ? OTHER : COMPUTE);
            event_wait(job, 1, FILLED, COMMUNICATION);
            reduce(job, COMMUNICATION, BASE, BASE);
            event_record(job, 1, REDUCED, COMMUNICATION);
            if (ordered)
                event_wait(job, 1, REDUCED, step % 2 ? OTHER : COMPUTE);
            memory_call(job, API_cudaFreeAsync, step % 2 ? OTHER : COMPUTE, BASE, 0);
        }
        expect_code(job, ordered ? NULL : "DC306", CERTAIN, 5);
    }
}

/* What is used before it is there, or after it is gone. */
static void outside_of_its_life(void **state)
{
    (void)state;
    struct job *job = hazard_job_new(true); /* allocated on another stream */
    memory_call(job, API_cudaMallocAsync, COMPUTE, BASE, BYTES);
    for (int rank = 0; rank < 2; rank++)
        ALL_REDUCE(job, rank, WORLD, COUNT, .stream = COMMUNICATION, .recvbuff = rank ? BASE : 0);
    expect_code(job, "DC306", CERTAIN, 1);

    for (int anew = 0; anew < 2; anew++) { /* freed before */
        job = hazard_job_new(true);
        memory_call(job, API_cudaMalloc, 0, BASE, BYTES);
        free_enter_leave(job, API_cudaFree, BASE);
        if (anew)
            buffer(job, 1, BASE, BYTES, 1, MEMORY_DEVICE); /* by a call that nobody saw */
        for (int rank = 0; rank < 2; rank++)
            ALL_REDUCE(job, rank, WORLD, COUNT, .stream = COMMUNICATION,
                       .recvbuff = rank ? BASE : 0);
        expect_code(job, anew ? NULL : "DC306", CERTAIN, 1);
    }
    for (int anew = 0; anew < 2; anew++) { /* a stream */
        job = hazard_job_new(true);
        job_record(job, 1, (struct record){.api = API_cudaStreamDestroy, .stream = COMMUNICATION});
        if (anew)
            stream_create(job, 1, COMMUNICATION, true);
        reduce(job, COMMUNICATION, BASE, BASE);
        expect_code(job, anew ? NULL : "DC306", CERTAIN, 1);
    }
}

/* Another thread got the address before the first one's free was recorded. */
static void free_that_is_recorded_late(void **state)
{
    (void)state;
    struct job *job = hazard_job_new(true);
    memory_call(job, API_cudaMalloc, 0, BASE, BYTES);
    job_thread(job, 1, 900);
    memory_call(job, API_cudaMalloc, 0, BASE, BYTES);
    job_thread(job, 1, 101);
    memory_call(job, API_cudaFreeAsync, COMPUTE, BASE, 0);
    for (int rank = 0; rank < 2; rank++)
        ALL_REDUCE(job, rank, WORLD, COUNT, .stream = COMMUNICATION, .recvbuff = rank ? BASE : 0);
    expect_code(job, NULL, 0, 0);
}

/* How memory comes to be written, or may have. */
static void unwritten_memory(void **state)
{
    (void)state;
    enum {
        NOTHING,
        MEMSET,
        OTHER_BYTES,
        COPY,
        COPY_FROM,
        RECEIVED,
        KERNEL,
        KERNEL_ELSEWHERE,
        READING_KERNEL,
        UNKNOWN_KERNEL,
        SHARED,
        MANAGED,
        GRAPH,
        NOT_SEEN,
        CASES
    };
    for (int kind = 0; kind < CASES; kind++) {
        struct job *job = hazard_job_new(true);
        struct record record = kernel_record(COMMUNICATION, clip, BASE + 2 * BYTES);
        if (kind != NOT_SEEN)
            memory_call(job, kind == MANAGED ? API_cudaMallocManaged : API_cudaMalloc, 0, BASE,
                        4 * BYTES);
        if (kind == MEMSET || kind == OTHER_BYTES)
            memset_async(job, 1, COMMUNICATION, kind == MEMSET ? BASE : BASE + BYTES, 4);
        if (kind == COPY || kind == COPY_FROM) {
            record = (struct record){.api = API_cudaMemcpyAsync, .stream = COMMUNICATION};
            record.copy.dst = kind == COPY ? BASE + BYTES - 4 : FAR;
            record.copy.src = kind == COPY ? FAR : BASE;
            record.copy.bytes = 4;
            job_record(job, 1, record);
        }
        if (kind == RECEIVED)
            for (int rank = 0; rank < 2; rank++)
                ALL_REDUCE(job, rank, WORLD, COUNT, .stream = COMMUNICATION,
                           .recvbuff = rank ? BASE : 0);
        record.launch.written = kind != READING_KERNEL;
        record.launch.known = kind == UNKNOWN_KERNEL ? LAUNCH_PARTLY_KNOWN : 0;
        if (kind == KERNEL_ELSEWHERE || kind == UNKNOWN_KERNEL)
            record.launch.pointer[0] = FAR;
        if (kind >= KERNEL && kind <= UNKNOWN_KERNEL)
            job_record(job, 1, record);
        if (kind == SHARED)
            memory_call(job, API_cudaIpcGetMemHandle, 0, BASE, 0);
        if (kind == GRAPH) {
            record = (struct record){.api = API_cudaGraphLaunch, .stream = COMMUNICATION};
            record.graph.exec = 0x1234;
            job_record(job, 1, record);
        }
        for (int rank = 0; rank < 2; rank++)
            ALL_REDUCE(job, rank, WORLD, COUNT, .stream = COMMUNICATION,
                       .sendbuff = rank ? BASE : 0, .recvbuff = rank ? OLD : 0);
        bool is_found = kind == NOTHING || kind == OTHER_BYTES || kind == COPY_FROM ||
                        kind == KERNEL_ELSEWHERE || kind == READING_KERNEL;
        print_message("unwritten memory, case %d\n", kind);
        for (int rank = 0; rank < 2; rank++) {
            wait_done(job, rank, API_cudaDeviceSynchronize, 0);
            end(job, rank, END_EXIT, 0, false);
        }
        struct verdict verdict;
        const struct found *found = expect_in(job, &verdict, is_found ? "DC310" : NULL);
        if (is_found) {
            assert_int_equal(found->certainty, POSSIBLE);
            assert_int_equal(found->severity, SEVERITY_WARNING);
        }
        job_free(job);
    }
}

/* Before its first communicator a process is recorded only from its first call of NCCL on, which is
 * at another point on each rank: rank 0 calls ncclGetUniqueId first. So memory that it allocated
 * before is named on none. */
static void unwritten_memory_before_a_communicator(void **state)
{
    (void)state;
    for (int is_before = 0; is_before < 2; is_before++) {
        struct job *job = job_new(2);
        struct verdict verdict;
        if (is_before)
            memory_call(job, API_cudaMalloc, 0, BASE, 4 * BYTES);
        job_init(job, WORLD, 0, 1);
        if (!is_before)
            memory_call(job, API_cudaMalloc, 0, BASE, 4 * BYTES);
        for (int rank = 0; rank < 2; rank++)
            ALL_REDUCE(job, rank, WORLD, COUNT, .stream = COMMUNICATION,
                       .sendbuff = rank ? BASE : 0, .recvbuff = rank ? OLD : 0);
        for (int rank = 0; rank < 2; rank++) {
            wait_done(job, rank, API_cudaDeviceSynchronize, 0);
            end(job, rank, END_EXIT, 0, false);
        }
        expect_in(job, &verdict, is_before ? NULL : "DC310");
        job_free(job);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(buffers_of_one_call),
        cmocka_unit_test(filled_before_free),
        cmocka_unit_test(freed_in_use),
        cmocka_unit_test(recycled_by_a_pool),
        cmocka_unit_test(outside_of_its_life),
        cmocka_unit_test(free_that_is_recorded_late),
        cmocka_unit_test(unwritten_memory),
        cmocka_unit_test(unwritten_memory_before_a_communicator),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
