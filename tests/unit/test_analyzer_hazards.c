/* Buffers written while an operation uses them (DC301): what orders the write. Each fault has
 * correct twins. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "hazard_stream.h"

/* How the write comes to be ordered after the reduction, or not. */
enum ordering {
    NOTHING,
    EVENT,
    EVENT_OF_BEFORE,
    EVENT_BY_WAY_OF_ANOTHER,
    SAME_STREAM,
    STREAM_SYNC,
    OTHER_STREAM_SYNC,
    EVENT_SYNC,
    DEVICE_SYNC,
    EVENT_QUERY,
    STREAM_QUERY,
    BY_ANOTHER_THREAD,
    SYNC_NOT_RETURNED,
    IN_TIME_BY_CHANCE,
    EVENT_WHEN_DONE,
    UNSEEN_EVENT,
    EVENT_NOT_RECORDED,
    CAPTURED,
    ALLOCATED_ANEW,
    STREAM_GONE,
    COMM_GONE,
    COMM_GONE_FOR_ANOTHER_RANK,
    LOST,
    LOST_HASHES,
    ORDERINGS
};
static const struct {
    bool is_hazard;
    const char *name;
} orderings[ORDERINGS] = {
    [NOTHING] = {true, "nothing"},
    [EVENT] = {false, "event"},
    [EVENT_OF_BEFORE] = {true, "event of before"},
    [EVENT_BY_WAY_OF_ANOTHER] = {false, "event by way of another stream"},
    [SAME_STREAM] = {false, "same stream"},
    [STREAM_SYNC] = {false, "cudaStreamSynchronize"},
    [OTHER_STREAM_SYNC] = {true, "another stream's synchronize"},
    [EVENT_SYNC] = {false, "cudaEventSynchronize"},
    [DEVICE_SYNC] = {false, "cudaDeviceSynchronize"},
    [EVENT_QUERY] = {false, "cudaEventQuery"},
    [STREAM_QUERY] = {false, "cudaStreamQuery"},
    [BY_ANOTHER_THREAD] = {false, "another thread's wait"},
    [SYNC_NOT_RETURNED] = {true, "a wait that goes on"},
    [IN_TIME_BY_CHANCE] = {true, "done by chance"},
    [EVENT_WHEN_DONE] = {false, "event recorded when it was done"},
    [UNSEEN_EVENT] = {false, "event that nobody saw"},
    [EVENT_NOT_RECORDED] = {true, "event never recorded"},
    [CAPTURED] = {false, "captured write"},
    [ALLOCATED_ANEW] = {false, "memory given out anew"},
    [STREAM_GONE] = {true, "stream destroyed, which lets its work go on"},
    [COMM_GONE] = {false, "communicator destroyed"},
    [COMM_GONE_FOR_ANOTHER_RANK] = {true, "communicator destroyed by another rank of the process"},
    [LOST] = {false, "lost records"},
    [LOST_HASHES] = {true, "lost hashes of payloads"},
};

static void query(struct job *job, uint16_t api, uint64_t event, uint64_t stream)
{
    struct record record = {.api = api, .stream = stream};
    record.event.event = event;
    job_record(job, 1, record);
}

static void make_order(struct job *job, enum ordering ordering)
{
    struct record record = {0};
    switch (ordering) {
    case EVENT_WHEN_DONE:
        gpu_done(job, 1, WORLD, COMMUNICATION);
        /* fall through */
    case EVENT:
        event_record(job, 1, REDUCED, COMMUNICATION);
        event_wait(job, 1, REDUCED, COMPUTE);
        break;
    case EVENT_OF_BEFORE:
        event_wait(job, 1, FILLED, COMPUTE);
        break;
    case EVENT_BY_WAY_OF_ANOTHER:
        event_record(job, 1, REDUCED, COMMUNICATION);
        event_wait(job, 1, REDUCED, OTHER);
        event_record(job, 1, REDUCED, OTHER);
        event_wait(job, 1, REDUCED, COMPUTE);
        break;
    case STREAM_SYNC:
    case OTHER_STREAM_SYNC:
        wait_done(job, 1, API_cudaStreamSynchronize,
                  ordering == STREAM_SYNC ? COMMUNICATION : OTHER);
        break;
    case EVENT_SYNC:
        event_record(job, 1, REDUCED, COMMUNICATION);
        wait_done(job, 1, API_cudaEventSynchronize, REDUCED);
        break;
    case DEVICE_SYNC:
        wait_done(job, 1, API_cudaDeviceSynchronize, 0);
        break;
    case EVENT_QUERY:
        event_record(job, 1, REDUCED, COMMUNICATION);
        query(job, API_cudaEventQuery, REDUCED, 0);
        break;
    case STREAM_QUERY:
        query(job, API_cudaStreamQuery, 0, COMMUNICATION);
        break;
    case BY_ANOTHER_THREAD:
        job_thread(job, 1, 900);
        wait_done(job, 1, API_cudaStreamSynchronize, COMMUNICATION);
        job_thread(job, 1, 101);
        break;
    case SYNC_NOT_RETURNED:
        job_thread(job, 1, 900);
        wait_enter(job, 1, API_cudaStreamSynchronize, COMMUNICATION);
        job_thread(job, 1, 101);
        break;
    case IN_TIME_BY_CHANCE:
        gpu_done(job, 1, WORLD, COMMUNICATION);
        break;
    case UNSEEN_EVENT:
        event_wait(job, 1, NEVER_MADE, COMPUTE);
        break;
    case EVENT_NOT_RECORDED:
        record = (struct record){.api = API_cudaEventCreateWithFlags};
        record.event.event = REDUCED;
        job_record(job, 1, record);
        event_wait(job, 1, REDUCED, COMPUTE);
        break;
    case ALLOCATED_ANEW:
        record = (struct record){.api = API_cudaMallocAsync, .stream = COMPUTE};
        record.memory.pointer = BASE - 256;
        record.memory.bytes = 2 * BYTES;
        job_record(job, 1, record);
        break;
    case STREAM_GONE:
        record = (struct record){.api = API_cudaStreamDestroy, .stream = COMMUNICATION};
        job_record(job, 1, record);
        break;
    case COMM_GONE:
        for (int rank = 0; rank < 2; rank++) {
            comm_call_enter(job, rank, API_ncclCommDestroy, WORLD);
            call_leave(job, rank);
        }
        break;
    case COMM_GONE_FOR_ANOTHER_RANK:
        record = (struct record){.api = API_ncclCommDestroy, .phase = RECORD_ENTER};
        record.comm.comm = WORLD;
        record.comm.rank = 0;
        job_thread(job, 1, 900);
        job_record(job, 1, record);
        job_thread(job, 1, 101);
        break;
    default:
        break;
    }
}

static void write_in_order_or_not(void **state)
{
    (void)state;
    for (int ordering = 0; ordering < ORDERINGS; ordering++)
        for (int no_progress = 0; no_progress < 2; no_progress++) {
            if (no_progress &&
                (ordering == IN_TIME_BY_CHANCE || ordering == EVENT_WHEN_DONE || ordering == LOST))
                continue;
            print_message("ordered by %s%s\n", orderings[ordering].name,
                          no_progress ? ", without progress" : "");
            struct job *job = hazard_job_new(true);
            event_record(job, 1, FILLED, COMPUTE);
            event_wait(job, 1, FILLED, COMMUNICATION);
            for (int rank = 0; rank < 2; rank++)
                ALL_REDUCE(job, rank, WORLD, COUNT, .stream = COMMUNICATION, .sendbuff = BASE,
                           .recvbuff = BASE, .no_progress = no_progress);
            make_order(job, (enum ordering)ordering);
            struct record write =
                kernel_record(ordering == SAME_STREAM ? COMMUNICATION : COMPUTE, clip, BASE);
            write.flags = ordering == CAPTURED ? RECORD_FLAG_CAPTURE : 0;
            job_record(job, 1, write);
            if (ordering == SYNC_NOT_RETURNED) {
                job_thread(job, 1, 900);
                call_leave(job, 1);
                job_thread(job, 1, 101);
            }
            if (ordering == LOST || ordering == LOST_HASHES) {
                struct record lost = {.api = API_notice_lost};
                lost.lost.bulk = ordering == LOST;
                lost.lost.hashes = ordering == LOST_HASHES;
                job_record(job, 1, lost);
            }
            expect_hazard(job, orderings[ordering].is_hazard, CERTAIN, 1);
        }
}

/* What the default stream orders: not streams made with cudaStreamNonBlocking. */
static void default_stream(void **state)
{
    (void)state;
    for (int non_blocking = 0; non_blocking < 2; non_blocking++) {
        struct job *job = hazard_job_new(non_blocking); /* the write on it */
        reduce(job, COMMUNICATION, BASE, BASE);
        kernel(job, 1, DEFAULT, clip, BASE);
        expect_hazard(job, non_blocking, CERTAIN, 1);

        job = hazard_job_new(non_blocking); /* the operation on it */
        reduce(job, DEFAULT, BASE, BASE);
        kernel(job, 1, COMPUTE, clip, BASE);
        expect_hazard(job, non_blocking, CERTAIN, 1);

        job = hazard_job_new(non_blocking); /* work between the two on it */
        reduce(job, COMMUNICATION, BASE, BASE);
        memset_async(job, 1, DEFAULT, 64 * BASE, 4);
        kernel(job, 1, COMPUTE, clip, BASE);
        expect_hazard(job, non_blocking, CERTAIN, 1);
    }
}

/* A stream that was made before the shim woke may be a blocking one. */
static void unseen_streams(void **state)
{
    (void)state;
    enum { UNSEEN = 0x99 };
    for (int default_work = 0; default_work < 2; default_work++) {
        struct job *job = hazard_job_new(true);
        reduce(job, COMMUNICATION, BASE, BASE);
        if (default_work)
            memset_async(job, 1, DEFAULT, 64 * BASE, 4);
        kernel(job, 1, UNSEEN, clip, BASE);
        expect_hazard(job, !default_work, CERTAIN, 1);
    }
    struct job *job = hazard_job_new(true);
    reduce(job, UNSEEN, BASE, BASE);
    kernel(job, 1, DEFAULT, clip, BASE);
    expect_hazard(job, false, CERTAIN, 0);
    job = hazard_job_new(true);
    reduce(job, DEFAULT, BASE, BASE);
    kernel(job, 1, UNSEEN, clip, BASE);
    expect_hazard(job, false, CERTAIN, 0);
}

/* One place that writes into several buffers, again and again, is one finding. */
static void one_finding_per_place(void **state)
{
    (void)state;
    struct job *job = hazard_job_new(true);
    for (int step = 0; step < 5; step++) {
        for (int bucket = 0; bucket < 3; bucket++)
            for (int rank = 0; rank < 2; rank++)
                ALL_REDUCE(job, rank, WORLD, COUNT + (uint64_t)bucket, .stream = COMMUNICATION,
                           .sendbuff = BASE + (uint64_t)bucket * 2 * BYTES,
                           .recvbuff = BASE + (uint64_t)bucket * 2 * BYTES);
        for (int bucket = 0; bucket < 3; bucket++)
            kernel(job, 1, COMPUTE, clip, BASE + (uint64_t)bucket * 2 * BYTES);
        for (int rank = 0; rank < 2; rank++)
            wait_done(job, rank, API_cudaDeviceSynchronize, 0);
        ticks(job, 250);
    }
    for (int rank = 0; rank < 2; rank++)
        end(job, rank, END_EXIT, 0, false);
    struct verdict verdict;
    const struct found *found = expect_in(job, &verdict, "DC301");
    assert_int_equal(found->times, 15);
    assert_int_equal(found->number, 0);
    assert_string_equal(found->call[0], "kernel ddpcheck_clip");
    assert_string_equal(found->call[1], "ncclAllReduce(count=1024, float32, sum)");
    job_free(job);
}

/* The calls of a group are issued at its end: a write before that comes first, and is not waited
 * for. */
static void write_inside_of_a_group(void **state)
{
    (void)state;
    for (int after = 0; after < 2; after++) {
        struct job *job = hazard_job_new(true);
        for (int rank = 0; rank < 2; rank++) {
            group_start(job, rank);
            ALL_REDUCE(job, rank, WORLD, COUNT, .stream = COMMUNICATION, .sendbuff = BASE,
                       .recvbuff = BASE);
            if (rank && !after)
                kernel(job, 1, COMPUTE, clip, BASE);
            group_end(job, rank);
            if (rank && after)
                kernel(job, 1, COMPUTE, clip, BASE);
        }
        expect_code(job, after ? "DC301" : "DC303", CERTAIN, 1);
    }
}

/* However the processes' records interleave. */
static void interleavings(void **state)
{
    (void)state;
    struct job *job = hazard_job_new(true);
    for (int step = 0; step < 20; step++) {
        reduce(job, COMMUNICATION, BASE, BASE);
        gpu_done(job, 1, WORLD, COMMUNICATION);
        kernel(job, 1, COMPUTE, clip, BASE);
        ticks(job, 250);
    }
    for (uint64_t seed = 1; seed < 20; seed++) {
        struct verdict verdict;
        job_analyze(job, seed, &verdict);
        assert_int_equal(verdict.count, 1);
        assert_string_equal(verdict.found[0].code, "DC301");
        assert_int_equal(verdict.found[0].times, 20);
    }
    job_free(job);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(write_in_order_or_not),   cmocka_unit_test(default_stream),
        cmocka_unit_test(unseen_streams),          cmocka_unit_test(one_finding_per_place),
        cmocka_unit_test(write_inside_of_a_group), cmocka_unit_test(interleavings),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
