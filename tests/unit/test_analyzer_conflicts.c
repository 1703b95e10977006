/* Work that conflicts with operations (DC302, DC303, DC305), and what orders it: each fault has
 * correct twins. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "hazard_stream.h"

enum { SECOND = 0x2222, FAR = BASE + 64 * BYTES, ELSEWHERE = BASE + 256 * BYTES, PER_THREAD = 2 };

static struct record copy_record(uint64_t stream, uint64_t dst, uint64_t src, uint64_t bytes)
{
    struct record record = {.api = API_cudaMemcpyAsync, .stream = stream, .stack = 0x4712};
    record.copy.dst = dst;
    record.copy.src = src;
    record.copy.bytes = bytes;
    record.copy.kind = 3;
    return record;
}

static void order_streams(struct job *job, uint64_t first, uint64_t then)
{
    event_record(job, 1, REDUCED, first);
    event_wait(job, 1, REDUCED, then);
}

/* A result that is read: by a copy for certain, by a kernel perhaps. */
static void results_read(void **state)
{
    (void)state;
    for (int ordered = 0; ordered < 2; ordered++) {
        struct job *job = hazard_job_new(true);
        reduce(job, COMMUNICATION, BASE, BASE);
        if (ordered)
            order_streams(job, COMMUNICATION, COMPUTE);
        job_record(job, 1, copy_record(COMPUTE, FAR, BASE + BYTES - 4, 4));
        expect_code(job, ordered ? NULL : "DC302", CERTAIN, 1);

        job = hazard_job_new(true);
        reduce(job, COMMUNICATION, BASE, BASE);
        if (ordered)
            wait_done(job, 1, API_cudaStreamSynchronize, COMMUNICATION);
        struct record fetch = {.api = API_cudaMemcpy, .phase = RECORD_ENTER};
        fetch.wait.dst = 0x7000;
        fetch.wait.src = BASE;
        fetch.wait.bytes = 4;
        fetch.wait.kind = 2;
        job_record(job, 1, fetch);
        call_leave(job, 1);
        expect_code(job, ordered ? NULL : "DC302", CERTAIN, 1);

        job = hazard_job_new(true);
        reduce(job, COMMUNICATION, BASE, BASE);
        if (ordered)
            order_streams(job, COMMUNICATION, COMPUTE);
        struct record reader = kernel_record(COMPUTE, clip, BASE);
        reader.launch.written = 0;
        job_record(job, 1, reader);
        expect_code(job, ordered ? NULL : "DC302", POSSIBLE, 1);
    }
    struct job *job = hazard_job_new(true); /* what is only sent may be read */
    reduce(job, COMMUNICATION, BASE, FAR);
    job_record(job, 1, copy_record(COMPUTE, ELSEWHERE, BASE, BYTES));
    expect_code(job, NULL, 0, 0);
}

/* A send buffer that is still being filled. */
static void fills(void **state)
{
    (void)state;
    for (int ordered = 0; ordered < 2; ordered++) {
        struct job *job = hazard_job_new(true);
        memset_async(job, 1, COMPUTE, BASE, BYTES);
        if (ordered)
            order_streams(job, COMPUTE, COMMUNICATION);
        reduce(job, COMMUNICATION, BASE, FAR);
        expect_code(job, ordered ? NULL : "DC303", CERTAIN, 1);

        job = hazard_job_new(true); /* its only pointer that is not const: it must write there */
        kernel(job, 1, COMPUTE, clip, BASE);
        if (ordered)
            order_streams(job, COMPUTE, COMMUNICATION);
        reduce(job, COMMUNICATION, BASE, FAR);
        expect_code(job, ordered ? NULL : "DC303", CERTAIN, 1);

        job = hazard_job_new(true); /* what it receives into is still being read */
        job_record(job, 1, copy_record(COMPUTE, ELSEWHERE, FAR, BYTES));
        if (ordered)
            order_streams(job, COMPUTE, COMMUNICATION);
        reduce(job, COMMUNICATION, BASE, FAR);
        expect_code(job, ordered ? NULL : "DC303", CERTAIN, 1);
    }
    struct job *job = hazard_job_new(true); /* one of two pointers that are not const */
    struct record record = kernel_record(COMPUTE, clip, BASE);
    record.launch.count = 2;
    record.launch.written = 3;
    record.launch.pointer[1] = ELSEWHERE;
    job_record(job, 1, record);
    reduce(job, COMMUNICATION, BASE, FAR);
    expect_code(job, "DC303", POSSIBLE, 1);

    job = hazard_job_new(true); /* which it writes in place: wrong in any case */
    job_record(job, 1, record);
    reduce(job, COMMUNICATION, BASE, BASE);
    expect_code(job, "DC303", CERTAIN, 1);

    job = hazard_job_new(true); /* a guess stays one */
    record.launch.inferred = 3;
    job_record(job, 1, record);
    reduce(job, COMMUNICATION, BASE, BASE);
    expect_code(job, "DC303", POSSIBLE, 1);
}

/* cudaMemset and copies inside of a device do not wait; copies from the host do. */
static void blocking_calls_that_do_not_block(void **state)
{
    (void)state;
    for (int known = 0; known < 2; known++)
        for (int synced = 0; synced < 2; synced++) {
            struct job *job = hazard_job_new(true);
            if (known)
                buffer(job, 1, BASE, 2 * BYTES, 1, MEMORY_DEVICE);
            blocking_copy(job, 1, API_cudaMemset, BASE, BYTES);
            if (synced)
                wait_done(job, 1, API_cudaDeviceSynchronize, 0);
            reduce(job, COMMUNICATION, BASE, BASE);
            expect_code(job, known && !synced ? "DC303" : NULL, CERTAIN, 1);
        }
}

static void all_reduce_of(struct job *job, uint64_t comm, uint64_t stream, uint64_t send,
                          uint64_t recv)
{
    for (int rank = 0; rank < 2; rank++)
        ALL_REDUCE(job, rank, comm, COUNT, .stream = stream, .sendbuff = rank ? send : 0,
                   .recvbuff = rank ? recv : 0);
}

/* Two operations on one buffer. NCCL itself orders those of one communicator. */
static void operations_that_overlap(void **state)
{
    (void)state;
    static const struct {
        uint64_t second_comm, second_stream, send, recv;
        bool ordered;
        const char *code;
    } cases[] = {
        {SECOND, OTHER, BASE, BASE, false, "DC305"},
        {SECOND, OTHER, BASE, BASE, true, NULL},
        {SECOND, COMMUNICATION, BASE, BASE, false, NULL},
        {WORLD, OTHER, BASE, BASE, false, NULL},
        {SECOND, OTHER, FAR, ELSEWHERE, false, NULL},
        {SECOND, OTHER, BASE + BYTES - 4, ELSEWHERE, false, "DC305"},
        {SECOND, OTHER, ELSEWHERE, BASE + BYTES, false, NULL},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct job *job = hazard_job_new(true);
        job_init(job, SECOND, 0, 1);
        all_reduce_of(job, WORLD, COMMUNICATION, BASE, BASE);
        if (cases[i].ordered)
            order_streams(job, COMMUNICATION, OTHER);
        all_reduce_of(job, cases[i].second_comm, cases[i].second_stream, cases[i].send,
                      cases[i].recv);
        wait_done(job, 1, API_cudaDeviceSynchronize, 0);
        for (int rank = 0; rank < 2; rank++)
            end(job, rank, END_EXIT, 0, false);
        struct verdict verdict;
        expect_in(job, &verdict, cases[i].code);
        job_free(job);
    }
}

/* One launch: what a group's calls share is used at the same time; two communicators are two
 * launches. */
static void operations_of_a_group(void **state)
{
    (void)state;
    for (int two_comms = 0; two_comms < 2; two_comms++)
        for (int overlap = 0; overlap < 2; overlap++) {
            struct job *job = hazard_job_new(true);
            job_init(job, SECOND, 0, 1);
            for (int rank = 0; rank < 2; rank++) {
                uint64_t recv = rank ? (overlap ? BASE : ELSEWHERE) : 0;
                group_start(job, rank);
                ALL_REDUCE(job, rank, WORLD, COUNT, .stream = COMMUNICATION,
                           .recvbuff = rank ? BASE : 0);
                ALL_REDUCE(job, rank, two_comms ? SECOND : WORLD, COUNT, .stream = COMMUNICATION,
                           .recvbuff = recv);
                group_end(job, rank);
            }
            expect_code(job, overlap && !two_comms ? "DC305" : NULL, CERTAIN, 1);
        }
}

/* A group on several streams joins them. */
static void group_on_two_streams(void **state)
{
    (void)state;
    for (int grouped = 0; grouped < 2; grouped++) {
        struct job *job = hazard_job_new(true);
        memset_async(job, 1, OTHER, BASE, BYTES);
        for (int rank = 0; rank < 2; rank++) {
            if (grouped)
                group_start(job, rank);
            ALL_REDUCE(job, rank, WORLD, COUNT, .stream = COMMUNICATION,
                       .recvbuff = rank ? BASE : 0);
            ALL_REDUCE(job, rank, WORLD, COUNT, .stream = OTHER, .recvbuff = rank ? FAR : 0);
            if (grouped)
                group_end(job, rank);
        }
        expect_code(job, grouped ? NULL : "DC303", CERTAIN, 1);

        job = hazard_job_new(true);
        for (int rank = 0; rank < 2; rank++) {
            if (grouped)
                group_start(job, rank);
            ALL_REDUCE(job, rank, WORLD, COUNT, .stream = OTHER, .recvbuff = rank ? FAR : 0);
            ALL_REDUCE(job, rank, WORLD, COUNT, .stream = COMMUNICATION,
                       .recvbuff = rank ? BASE : 0);
            if (grouped)
                group_end(job, rank);
        }
        memset_async(job, 1, OTHER, BASE, BYTES);
        expect_code(job, grouped ? NULL : "DC301", CERTAIN, 1);
    }
}

/* The default stream of a thread is ordered with the legacy one, and with no other thread's. */
static void streams_of_threads(void **state)
{
    (void)state;
    for (int other_thread = 0; other_thread < 2; other_thread++) {
        struct job *job = hazard_job_new(true);
        memset_async(job, 1, PER_THREAD, BASE, BYTES);
        if (other_thread)
            job_thread(job, 1, 900);
        for (int rank = 0; rank < 2; rank++)
            ALL_REDUCE(job, rank, WORLD, COUNT, .stream = PER_THREAD, .recvbuff = rank ? BASE : 0);
        job_thread(job, 1, 101);
        expect_code(job, other_thread ? "DC303" : NULL, CERTAIN, 1);

        job = hazard_job_new(true);
        memset_async(job, 1, DEFAULT, BASE, BYTES);
        if (other_thread)
            job_thread(job, 1, 900);
        for (int rank = 0; rank < 2; rank++)
            ALL_REDUCE(job, rank, WORLD, COUNT, .stream = PER_THREAD, .recvbuff = rank ? BASE : 0);
        job_thread(job, 1, 101);
        expect_code(job, NULL, 0, 0);
    }
}

/* A host function is a wait when it runs; without a record of its run it may run at any time. */
static void host_functions(void **state)
{
    (void)state;
    for (int tells = 0; tells < 2; tells++)
        for (int ran = 0; ran < 2; ran++) {
            struct job *job = hazard_job_new(true);
            reduce(job, COMMUNICATION, BASE, BASE);
            struct record function = {.api = API_cudaLaunchHostFunc, .stream = COMMUNICATION};
            function.launch.known = tells ? LAUNCH_REPORTS_RUN : 0;
            uint64_t serial = job_record(job, 1, function);
            struct record notice = {.api = API_notice_host_function};
            notice.leave.enter = serial;
            if (ran)
                job_record(job, 1, notice);
            memset_async(job, 1, COMPUTE, BASE, 4);
            expect_code(job, tells && !ran ? "DC301" : NULL, CERTAIN, 1);
        }
}

/* What is not known stays quiet, and only that: order through foreign events, waits for memory,
 * streams made unseen. */
static void unknown_order(void **state)
{
    (void)state;
    for (int kind = 0; kind < 3; kind++)
        for (int before = 0; before < 2; before++) {
            struct job *job = hazard_job_new(true);
            if (before)
                reduce(job, COMMUNICATION, BASE, BASE);
            struct record record = {.api = API_cuStreamWaitValue, .stream = COMPUTE};
            if (kind == 1)
                record.api = API_cudaEventCreateWithFlags;
            record.event.event = 0x77;
            record.event.flags = 4; /* shared with other processes */
            if (kind < 2)
                job_record(job, 1, record);
            if (kind > 0)
                event_wait(job, 1, 0x77, COMPUTE);
            if (!before)
                reduce(job, COMMUNICATION, BASE, BASE);
            memset_async(job, 1, COMPUTE, BASE, 4);
            expect_code(job, before ? NULL : "DC301", CERTAIN,
                        1); /* what was issued later can't be ahead */
        }
    enum { UNSEEN = 0x99 };
    for (int reported = 0; reported < 2; reported++) { /* with its flags, the stream is known */
        struct job *job = hazard_job_new(true);
        reduce(job, COMMUNICATION, BASE, BASE);
        struct record notice = {.api = API_notice_stream, .stream = UNSEEN};
        notice.event.flags = 1;
        if (reported)
            job_record(job, 1, notice);
        memset_async(job, 1, DEFAULT, ELSEWHERE, 4);
        memset_async(job, 1, UNSEEN, BASE, 4);
        expect_code(job, reported ? "DC301" : NULL, CERTAIN, 1);
    }
}

/* Two buffers by turns, each waited for before it is filled again, and the loop of a job that waits
 * for nothing. */
static void loops(void **state)
{
    (void)state;
    for (int correct = 0; correct < 2; correct++) {
        struct job *job = hazard_job_new(true);
        for (uint64_t step = 0; step < 40; step++) {
            uint64_t half = step % 2, bucket = BASE + half * 2 * BYTES, filled = 0x500 + half,
                     reduced = 0x600 + half;
            if (step >= 2 && correct)
                event_wait(job, 1, reduced, COMPUTE);
            kernel(job, 1, COMPUTE, clip, bucket);
            event_record(job, 1, filled, COMPUTE);
            event_wait(job, 1, filled, COMMUNICATION);
            reduce(job, COMMUNICATION, bucket, bucket);
            event_record(job, 1, reduced, COMMUNICATION);
        }
        expect_code(job, correct ? NULL : "DC301", CERTAIN, 38);
    }
}

/* Work that the shim kept back until the memory was used by an operation stands where it was
 * issued. */
static void reported_late(void **state)
{
    (void)state;
    for (int ordered = 0; ordered < 2; ordered++) {
        struct job *job = hazard_job_new(true);
        uint64_t issued =
            job_record(job, 1, (struct record){.api = API_nvtxRangePop}); /* stands for it */
        if (ordered)
            order_streams(job, COMPUTE, COMMUNICATION);
        struct record late = kernel_record(COMPUTE, clip, BASE);
        late.flags = RECORD_FLAG_LATE;
        late.word[RECORD_ISSUED] = issued;
        job_record(job, 1, late);
        if (!ordered)
            order_streams(job, OTHER, COMMUNICATION);
        reduce(job, COMMUNICATION, BASE, BASE);
        expect_code(job, ordered ? NULL : "DC303", CERTAIN, 1);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(results_read),
        cmocka_unit_test(fills),
        cmocka_unit_test(blocking_calls_that_do_not_block),
        cmocka_unit_test(operations_that_overlap),
        cmocka_unit_test(operations_of_a_group),
        cmocka_unit_test(group_on_two_streams),
        cmocka_unit_test(streams_of_threads),
        cmocka_unit_test(host_functions),
        cmocka_unit_test(unknown_order),
        cmocka_unit_test(loops),
        cmocka_unit_test(reported_late),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
