/* Buffers written while an operation uses them (DC301): which bytes each of the two uses. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "hazard_stream.h"

static void kernel_pointers(void **state)
{
    (void)state;
    static const struct {
        uint64_t pointer;
        uint8_t written, inferred;
        const char *code;
        enum certainty certainty;
    } cases[] = {
        {BASE, 1, 0, "DC301", CERTAIN},
        {BASE + BYTES - 1, 1, 0, "DC301", CERTAIN},
        {BASE + BYTES, 1, 0, NULL, 0},
        {BASE - 4, 1, 0, NULL, 0},
        {BASE, 0, 0, "DC302", POSSIBLE},
        {BASE, 1, 1, "DC301", POSSIBLE},
        {0, 1, 0, NULL, 0},
        {BASE, 0, 1, "DC302", POSSIBLE},
        {UINT64_MAX, 1, 0, NULL, 0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct job *job = hazard_job_new(true);
        buffer(job, 1, BASE - 256, 2 * BYTES, 1, MEMORY_DEVICE);
        reduce(job, COMMUNICATION, BASE, BASE);
        struct record record = kernel_record(COMPUTE, clip, cases[i].pointer);
        record.launch.written = cases[i].written;
        record.launch.inferred = cases[i].inferred;
        job_record(job, 1, record);
        expect_code(job, cases[i].code, cases[i].certainty, 1);
    }
}

static void copies_and_memsets(void **state)
{
    (void)state;
    static const struct {
        uint64_t pointer, bytes;
        bool is_hazard;
    } cases[] = {
        {BASE - 64, 64, false},    {BASE - 64, 65, true},        {BASE + BYTES - 1, 1, true},
        {BASE + BYTES, 64, false}, {BASE - 64, 4 * BYTES, true}, {BASE, 0, false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct job *job = hazard_job_new(true);
        reduce(job, COMMUNICATION, BASE, BASE);
        memset_async(job, 1, COMPUTE, cases[i].pointer, cases[i].bytes);
        expect_hazard(job, cases[i].is_hazard, CERTAIN, 1);

        static const uint16_t blocking[] = {API_cudaMemcpy, API_cudaMemset};
        for (size_t k = 0; k < 2; k++) {
            job = hazard_job_new(true);
            reduce(job, COMMUNICATION, BASE, BASE);
            blocking_copy(job, 1, blocking[k], cases[i].pointer, cases[i].bytes);
            expect_hazard(job, cases[i].is_hazard, CERTAIN, 1);
        }
    }
    struct job *job = hazard_job_new(false); /* the default stream waits for it */
    reduce(job, COMMUNICATION, BASE, BASE);
    blocking_copy(job, 1, API_cudaMemcpy, BASE, 4);
    expect_hazard(job, false, CERTAIN, 0);
}

/* Rows beside the buffer, and one in it. */
static void copies_of_rows(void **state)
{
    (void)state;
    static const struct {
        uint64_t pointer, width, pitch, height;
        bool is_hazard;
    } cases[] = {
        {BASE - 64, 64, 2 * BYTES, 4, false},
        {BASE - 64, 65, 2 * BYTES, 4, true},
        {BASE - 2 * BYTES, 64, 2 * BYTES, 1, false},
        {BASE - 2 * BYTES, 64, 2 * BYTES, 2, true},
        {BASE - 64, 64, 64 + BYTES, 3, false},
        {BASE - 64, 64, 64 + BYTES - 1, 3, true},
        {BASE, 64, 64, 0, false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct job *job = hazard_job_new(true);
        reduce(job, COMMUNICATION, BASE, BASE);
        struct record record = {.api = API_cudaMemcpy2DAsync, .stream = COMPUTE};
        record.copy.dst = cases[i].pointer;
        record.copy.bytes = cases[i].width;
        record.copy.dst_pitch = cases[i].pitch;
        record.copy.height = cases[i].height;
        job_record(job, 1, record);
        expect_hazard(job, cases[i].is_hazard, CERTAIN, 1);
    }
}

/* What is only read by the operation: one of several pointers that are not const is no proof that
 * the kernel writes through it; a single one is. */
static void send_buffers(void **state)
{
    (void)state;
    enum { RECV = BASE + 16 * BYTES };
    struct job *job = hazard_job_new(true);
    reduce(job, COMMUNICATION, BASE, RECV);
    kernel(job, 1, COMPUTE, clip, BASE);
    expect_hazard(job, true, CERTAIN, 1);
    job = hazard_job_new(true);
    reduce(job, COMMUNICATION, BASE, RECV);
    struct record record = kernel_record(COMPUTE, clip, BASE);
    record.launch.count = 2;
    record.launch.written = 3;
    record.launch.pointer[1] = BASE + 64 * BYTES;
    job_record(job, 1, record);
    expect_hazard(job, true, POSSIBLE, 1);
    job = hazard_job_new(true);
    reduce(job, COMMUNICATION, BASE, RECV);
    memset_async(job, 1, COMPUTE, BASE, 4);
    expect_hazard(job, true, CERTAIN, 1);
    job = hazard_job_new(true);
    reduce(job, COMMUNICATION, BASE, RECV);
    kernel(job, 1, COMPUTE, clip, RECV);
    expect_hazard(job, true, CERTAIN, 1);
}

/* AllGather in place sends from inside of what it receives; only a root of a Reduce is written to.
 */
static void extents_by_kind(void **state)
{
    (void)state;
    static const struct {
        uint16_t api;
        int root;
        uint64_t offset; /* of the write from the receive buffer */
        bool is_hazard;
    } cases[] = {
        {API_ncclAllGather, 0, 2 * BYTES - 4, true},
        {API_ncclAllGather, 0, 2 * BYTES, false},
        {API_ncclReduceScatter, 0, BYTES - 4, true},
        {API_ncclReduceScatter, 0, BYTES, false},
        {API_ncclReduce, 0, 0, false},
        {API_ncclReduce, 1, 0, true},
        {API_ncclRecv, 0, 0, true},
        {API_ncclRecv, 0, BYTES, false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct job *job = hazard_job_new(true);
        bool p2p = cases[i].api == API_ncclRecv;
        for (int rank = 0; rank < 2; rank++) {
            struct call call = {.api = cases[i].api,
                                .comm = WORLD,
                                .count = COUNT,
                                .root = cases[i].root,
                                .stream = COMMUNICATION,
                                .recvbuff = BASE};
            if (p2p && rank == 0)
                call = (struct call){.api = API_ncclSend,
                                     .comm = WORLD,
                                     .count = COUNT,
                                     .root = 1,
                                     .stream = COMMUNICATION,
                                     .sendbuff = BASE};
            if (cases[i].api == API_ncclAllGather)
                call.sendbuff = BASE + (uint64_t)rank * BYTES;
            issue(job, rank, call);
        }
        kernel(job, 1, COMPUTE, clip, BASE + cases[i].offset);
        expect_hazard(job, cases[i].is_hazard, CERTAIN, 1);
    }
}

static void send_to_root(struct job *job, uint64_t comm, uint64_t stream, uint64_t sendbuff,
                         uint64_t count)
{
    for (int rank = 0; rank < 2; rank++)
        issue(job, rank,
              (struct call){.api = API_ncclReduce,
                            .comm = comm,
                            .count = count,
                            .stream = stream,
                            .sendbuff = sendbuff});
}

/* A buffer of one operation around those of others, each ordered in another way. NCCL orders what
 * is on one communicator. */
static void ranges_that_overlap(void **state)
{
    (void)state;
    enum { SECOND = 0x2222 };
    for (int inner = 0; inner < 2; inner++) {
        struct job *job = hazard_job_new(true);
        job_init(job, SECOND, 0, 1);
        send_to_root(job, inner ? SECOND : WORLD, inner ? COMPUTE : COMMUNICATION, BASE,
                     16 * COUNT);
        for (uint64_t i = 0; i < 16; i++) {
            bool other = inner && i == 7;
            send_to_root(job, other ? WORLD : SECOND, other ? COMMUNICATION : COMPUTE,
                         BASE + i * BYTES, COUNT);
        }
        kernel(job, 1, COMPUTE, clip, BASE + 6 * BYTES);
        kernel(job, 1, COMPUTE, clip, BASE + 7 * BYTES);
        kernel(job, 1, COMPUTE, clip, BASE + 8 * BYTES);
        expect_hazard(job, true, CERTAIN, 1);
    }
}

/* Far more buffers than are kept, then a write into the last and one into the first of them. */
static void many_buffers(void **state)
{
    (void)state;
    for (int seen = 0; seen < 2; seen++) {
        struct job *job = hazard_job_new(true);
        enum { MANY = 20000 };
        for (uint64_t i = 0; i < MANY; i++) {
            reduce(job, COMMUNICATION, BASE + i * BYTES, BASE + i * BYTES);
            if (seen && i % 100 == 0)
                wait_done(job, 1, API_cudaStreamSynchronize, COMMUNICATION);
        }
        if (seen)
            wait_done(job, 1, API_cudaStreamSynchronize, COMMUNICATION);
        kernel(job, 1, COMPUTE, clip, BASE + (uint64_t)(MANY - 1) * BYTES);
        kernel(job, 1, COMPUTE, clip, BASE);
        expect_hazard(job, !seen, CERTAIN, 1);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(kernel_pointers), cmocka_unit_test(copies_and_memsets),
        cmocka_unit_test(copies_of_rows),  cmocka_unit_test(send_buffers),
        cmocka_unit_test(extents_by_kind), cmocka_unit_test(ranges_that_overlap),
        cmocka_unit_test(many_buffers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
