/* Calls that are wrong by themselves: DC108, DC111, DC402, DC404, DC407, and what can't be seen
 * (DC903). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "verdict.h"

#define WORLD UINT64_C(0x1111000000000001)
#define OTHER UINT64_C(0x2222000000000002)

enum { RANKS = 3, INVALID_ARGUMENT = 4, INVALID_HANDLE = 400, STREAM = 0x7000 };

static void send_to(struct job *job, int rank, int peer, uint64_t count)
{
    issue(job, rank,
          (struct call){.api = API_ncclSend, .comm = WORLD, .count = count, .root = peer});
}

static void receive_from(struct job *job, int rank, int peer, uint64_t count)
{
    issue(job, rank,
          (struct call){.api = API_ncclRecv, .comm = WORLD, .count = count, .root = peer});
}

static struct job *world(void)
{
    struct job *job = job_new(RANKS);
    job_init(job, WORLD, 0, RANKS - 1);
    return job;
}

static void destroy(struct job *job, int rank)
{
    comm_call_enter(job, rank, API_ncclCommDestroy, WORLD);
    call_leave(job, rank);
}

/* All ranks leave, and their processes end well. */
static void all_leave(struct job *job)
{
    for (int rank = 0; rank < RANKS; rank++)
        destroy(job, rank);
    for (int rank = 0; rank < RANKS; rank++)
        end(job, rank, END_EXIT, 0, false);
    ticks(job, 2000);
}

static void send_that_nobody_receives(void **state)
{
    (void)state;
    for (int twin = 0; twin < 2; twin++) {
        struct job *job = world();
        send_to(job, 0, 1, 8);
        receive_from(job, 1, 0, 8);
        send_to(job, 0, 1, 8);
        if (twin)
            receive_from(job, 1, 0, 8);
        all_leave(job);
        const struct found *found = expect(job, twin ? NULL : "DC108");
        if (!twin) {
            assert_int_equal(found->certainty, CERTAIN);
            assert_int_equal(found->number, 1);
            assert_string_equal(found->ranks[0], "0");
            assert_string_equal(found->ranks[1], "1");
        }
        for (uint64_t seed = 1; seed < 6; seed++) {
            struct verdict verdict;
            job_analyze(job, seed, &verdict);
            assert_int_equal(verdict.count, !twin);
        }
        job_free(job);
    }
}

static void empty_send_may_pass(void **state)
{
    (void)state;
    for (int receives = 0; receives < 2; receives++) {
        struct job *job = world();
        if (receives)
            receive_from(job, 2, 1, 0);
        else
            send_to(job, 2, 1, 0);
        all_leave(job);
        const struct found *found = expect(job, "DC108");
        assert_int_equal(found->certainty, receives ? CERTAIN : POSSIBLE);
        job_free(job);
    }
}

/* A crash, an abort, lost records, a capture: something else is the fault, or nothing is known. */
static void unmatched_but_not_reported(void **state)
{
    (void)state;
    enum { CRASH, ABORT, LOST, CAPTURED, RUNNING, CASES };
    for (int which = 0; which < CASES; which++) {
        struct job *job = world();
        if (which == LOST) {
            struct record lost = {.api = API_notice_lost};
            lost.lost.control = 3;
            job_record(job, 1, lost);
        }
        if (which == CAPTURED) {
            struct record record = {
                .api = API_ncclSend, .phase = RECORD_ENTER, .flags = RECORD_FLAG_CAPTURE};
            record.op.comm = WORLD;
            record.op.root = 1;
            record.op.count = 8;
            record.op.slot = RECORD_NO_SLOT;
            record.op.datatype = TYPE_FLOAT32;
            job_record(job, 0, record);
            call_leave(job, 0);
        } else {
            send_to(job, 0, 1, 8);
        }
        if (which == ABORT)
            comm_call_enter(job, 0, API_ncclCommAbort, WORLD);
        if (which == ABORT)
            call_leave(job, 0);
        if (which == CRASH)
            end(job, 1, END_SIGNAL, 11, false);
        else if (which != RUNNING)
            destroy(job, 1);
        ticks(job, 2000);
        struct verdict verdict;
        job_analyze(job, 0, &verdict);
        for (int i = 0; i < verdict.count; i++)
            if (!strcmp(verdict.found[i].code, "DC108"))
                fail_msg("case %d: %s", which, verdict.found[i].what);
        job_free(job);
    }
}

static void peer_that_is_no_rank(void **state)
{
    (void)state;
    const int peers[] = {-1, RANKS, 77};
    for (size_t i = 0; i < sizeof peers / sizeof *peers; i++) {
        struct job *job = world();
        receive_from(job, 1, peers[i], 8);
        const struct found *found = expect(job, "DC108");
        assert_string_equal(found->ranks[0], "1");
        job_free(job);
    }
}

static void message_to_itself(void **state)
{
    (void)state;
    for (int how = 0; how < 4; how++) { /* 0 no group, 1 send only, 2 receive only, 3 both */
        struct job *job = world();
        if (how)
            group_start(job, 0);
        if (how != 2)
            send_to(job, 0, 0, 8);
        if (how != 1)
            receive_from(job, 0, 0, 8);
        if (how)
            group_end(job, 0);
        expect(job, how == 3 ? NULL : "DC108");
        job_free(job);
    }
}

static void types_of_one_size(void **state)
{
    (void)state;
    for (int halves = 0; halves < 2; halves++) {
        struct job *job = world();
        send_to(job, 0, 1, 8);
        issue(job, 1,
              (struct call){.api = API_ncclRecv,
                            .comm = WORLD,
                            .count = 8,
                            .type = halves ? TYPE_FLOAT16 : TYPE_INT32});
        const struct found *found = expect(job, "DC107");
        assert_int_equal(found->certainty, halves ? CERTAIN : POSSIBLE);
        assert_int_equal(found->severity, halves ? SEVERITY_ERROR : SEVERITY_WARNING);
        job_free(job);
    }
}

static void call_after_the_end(void **state)
{
    (void)state;
    const uint16_t ends[] = {API_ncclCommFinalize, API_ncclCommRevoke, API_ncclCommDestroy,
                             API_ncclCommAbort};
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
        struct job *job = world();
        for (int rank = 0; rank < RANKS; rank++) {
            comm_call_enter(job, rank, ends[i], WORLD);
            call_leave(job, rank);
        }
        struct record record = {.api = API_ncclAllReduce,
                                .phase = RECORD_ENTER,
                                .flags = i >= 2 ? RECORD_FLAG_GONE : 0};
        record.op.comm = WORLD;
        record.op.count = 4;
        record.op.datatype = TYPE_FLOAT32;
        record.op.rank = 1;
        record.op.slot = RECORD_NO_SLOT;
        job_record(job, 1, record);
        const struct found *found = expect(job, "DC111");
        assert_string_equal(found->ranks[0], "1");
        assert_int_equal(found->certainty, CERTAIN);
        job_free(job);
    }
}

/* NCCL refuses it; the trace is not damaged. */
static void call_on_a_null_communicator(void **state)
{
    (void)state;
    struct job *job = world();
    struct record record = {.api = API_ncclAllReduce, .phase = RECORD_ENTER};
    struct verdict verdict;
    record.op.count = 4;
    record.op.datatype = TYPE_FLOAT32;
    record.op.rank = RECORD_NO_RANK;
    record.op.slot = RECORD_NO_SLOT;
    record.op.flags = RECORD_OP_NULL_COMM;
    uint64_t enter = job_record(job, 1, record);
    record = (struct record){
        .api = API_ncclAllReduce, .phase = RECORD_LEAVE, .result = INVALID_ARGUMENT};
    record.leave.enter = enter;
    job_record(job, 1, record);
    const struct found *found = expect_in(job, &verdict, "DC111");
    assert_has(found->what, "with a NULL communicator");
    assert_int_equal(verdict.skipped, 0);
    job_free(job);
}

static void operator_call(struct job *job, int rank, uint16_t api, uint64_t comm, uint64_t handle)
{
    struct record record = {.api = api, .phase = RECORD_ENTER};
    record.redop.comm = comm;
    record.redop.handle = api == API_ncclRedOpDestroy ? handle : 0;
    uint64_t enter = job_record(job, rank, record);
    record = (struct record){.api = api, .phase = RECORD_LEAVE};
    record.leave.enter = enter;
    record.leave.comm = comm;
    record.leave.handle = api == API_ncclRedOpDestroy ? 0 : handle;
    job_record(job, rank, record);
}

static void operators(void **state)
{
    (void)state;
    enum { FOREIGN, DESTROYED, NONE, ALIVE, CASES };
    static const char *const why[] = {"made for another communicator", "was destroyed before",
                                      "neither one of NCCL's own"};
    for (int which = 0; which < CASES; which++) {
        struct job *job = world();
        job_init(job, OTHER, 0, RANKS - 1);
        for (int rank = 0; rank < RANKS; rank++) {
            if (which != NONE)
                operator_call(job, rank, API_ncclRedOpCreatePreMulSum,
                              which == FOREIGN ? OTHER : WORLD, 7);
            if (which == DESTROYED)
                operator_call(job, rank, API_ncclRedOpDestroy, WORLD, 7);
            ALL_REDUCE(job, rank, WORLD, 4, .redop = REDOP_UNKNOWN, .scalar = 7);
        }
        const struct found *found = expect(job, which == ALIVE ? NULL : "DC111");
        if (which != ALIVE && !strstr(found->what, why[which]))
            fail_msg("expected '%s' in: %s", why[which], found->what);
        if (which != ALIVE)
            assert_string_equal(found->ranks[0], "0-2");
        if (which == FOREIGN) /* named as in other findings, not by its id alone */
            assert_non_null(strstr(found->what, " ranks))"));
        job_free(job);
    }
}

static void arguments_that_are_none(void **state)
{
    (void)state;
    const struct call calls[] = {
        {.api = API_ncclBroadcast, .comm = WORLD, .count = 4, .root = RANKS},
        {.api = API_ncclReduce, .comm = WORLD, .count = 4, .root = -1},
        {.api = API_ncclAllReduce, .comm = WORLD, .count = 4, .type = TYPE_COUNT},
    };
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
        struct job *job = world();
        for (int rank = 0; rank < RANKS; rank++)
            issue(job, rank, calls[i]);
        assert_string_equal(expect(job, "DC111")->ranks[0], "0-2");
        job_free(job);
    }
}

/* What NCCL refuses is one finding, whether the call or its group's end says so. */
static void refused_calls(void **state)
{
    (void)state;
    for (int in_group = 0; in_group < 2; in_group++) {
        struct job *job = world();
        if (in_group)
            group_start(job, 1);
        struct record record = {.api = API_ncclCommSplit, .phase = RECORD_ENTER};
        record.comm.parent = WORLD;
        record.comm.rank = 1;
        record.comm.color = -2;
        uint64_t enter = job_record(job, 1, record);
        record = (struct record){
            .api = API_ncclCommSplit, .phase = RECORD_LEAVE, .result = INVALID_ARGUMENT};
        record.leave.enter = enter;
        job_record(job, 1, record);
        if (in_group) {
            record = (struct record){.api = API_ncclGroupEnd, .phase = RECORD_ENTER};
            record.group.depth = 1;
            enter = job_record(job, 1, record);
            record = (struct record){
                .api = API_ncclGroupEnd, .phase = RECORD_LEAVE, .result = INVALID_ARGUMENT};
            record.leave.enter = enter;
            job_record(job, 1, record);
        }
        assert_int_equal(expect(job, "DC111")->times, 1);
        job_free(job);
    }
}

static void group_end_alone(void **state)
{
    (void)state;
    struct job *job = world();
    job_record(job, 2, (struct record){.api = API_ncclGroupEnd, .phase = RECORD_ENTER});
    assert_string_equal(expect(job, "DC111")->ranks[0], "2");
    job_free(job);
}

/* A stream made while `device` is current; job_record takes device 0 for the rank's own. */
static void stream_on(struct job *job, int rank, uint64_t stream, int device)
{
    struct record record = {
        .api = API_cudaStreamCreateWithFlags, .stream = stream, .device = device};
    record.event.flags = 1;
    job_record(job, rank, record);
}

static void stream_of_another_device(void **state)
{
    (void)state;
    for (int how = 0; how < 3; how++) { /* 0 wrong, 1 right, 2 never seen */
        struct job *job = world();
        if (how < 2)
            stream_on(job, 1, STREAM, how == 0 ? 2 : 1);
        ALL_REDUCE(job, 1, WORLD, 4, .stream = STREAM);
        struct verdict verdict;
        job_analyze(job, 0, &verdict);
        assert_int_equal(verdict.count, how == 0);
        if (how == 0)
            assert_string_equal(verdict.found[0].code, "DC402");
        job_free(job);
    }
}

static void pageable_memory(void **state)
{
    (void)state;
    const enum memory_type types[] = {MEMORY_HOST_PAGEABLE, MEMORY_HOST_SHARED, MEMORY_HOST_PINNED,
                                      MEMORY_UNKNOWN};
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        struct job *job = world();
        buffer(job, 1, 0x10000, types[i] == MEMORY_HOST_PINNED ? 4096 : 0, -1, types[i]);
        for (int rank = 0; rank < RANKS; rank++)
            ALL_REDUCE(job, rank, WORLD, 1000, .sendbuff = 0x10000, .recvbuff = 0x10000);
        const struct found *found = expect(job, i < 2 ? "DC404" : NULL);
        if (i < 2) {
            assert_int_equal(found->certainty, i == 0 ? CERTAIN : POSSIBLE);
            assert_int_equal(found->severity, i == 0 ? SEVERITY_ERROR : SEVERITY_WARNING);
        }
        job_free(job);
    }
}

static void launch_on_another_device(void **state)
{
    (void)state;
    for (int failed = 0; failed < 2; failed++) {
        struct job *job = world();
        stream_on(job, 1, STREAM, 2);
        struct record record = kernel_record(STREAM, "_Z5scalePf", 0);
        record.result = failed ? INVALID_HANDLE : 0;
        job_record(job, 1, record);
        expect(job, failed ? "DC407" : NULL);
        job_free(job);
    }
}

static void event_of_another_device(void **state)
{
    (void)state;
    for (int right = 0; right < 2; right++) {
        struct job *job = world();
        struct record record = {.api = API_cudaEventCreateWithFlags, .device = right ? 1 : 2};
        record.event.event = 0x55;
        job_record(job, 1, record);
        stream_on(job, 1, STREAM, 1);
        record =
            (struct record){.api = API_cudaEventRecord, .stream = STREAM, .result = INVALID_HANDLE};
        record.event.event = 0x55;
        job_record(job, 1, record);
        expect(job, right ? NULL : "DC407"); /* failed for another reason */
        job_free(job);
    }
}

static int notes;
static void count_note(void *context, const struct finding *finding)
{
    (void)context;
    notes += finding->code == DC903 && finding->severity == SEVERITY_NOTE;
}

static int notes_of(int nccl, int runtime, bool sees_runtime)
{
    const struct analyzer_options options = {.on_finding = count_note};
    struct analyzer *analyzer = analyzer_new(&options);
    struct process_info info = {.pid = 1, .nccl_version = nccl, .cuda_runtime_version = runtime};
    notes = 0;
    assert_int_equal(analyzer_add_process(analyzer, 0, &info), 0);
    struct record record = {.api = API_notice_member, .serial = 1, .time_ns = 1};
    record.comm.comm = WORLD;
    record.comm.nranks = 1;
    assert_int_equal(analyzer_feed(analyzer, 0, &record), 0);
    record =
        (struct record){.api = API_ncclAllReduce, .phase = RECORD_ENTER, .serial = 2, .time_ns = 2};
    record.op.comm = WORLD;
    record.op.count = 4;
    record.op.sendbuff = record.op.recvbuff = 0x1000;
    record.op.slot = RECORD_NO_SLOT;
    record.op.datatype = TYPE_FLOAT32;
    assert_int_equal(analyzer_feed(analyzer, 0, &record), 0);
    record = (struct record){.api = API_cudaEventRecord, .serial = 3, .time_ns = 3};
    if (sees_runtime)
        assert_int_equal(analyzer_feed(analyzer, 0, &record), 0);
    assert_int_equal(analyzer_finish(analyzer), 0);
    analyzer_free(analyzer);
    return notes;
}

static void what_is_not_seen(void **state)
{
    (void)state;
    assert_int_equal(notes_of(22809, 13000, true), 0);
    assert_int_equal(notes_of(23203, 13000, true), 0);
    assert_int_equal(notes_of(23300, 13000, true), 1); /* a newer NCCL */
    assert_int_equal(notes_of(22809, -1, false), 1);   /* no call of the runtime */
    assert_int_equal(notes_of(22809, -1, true), 0);
    assert_int_equal(notes_of(0, -1, false), 0); /* not from the shim */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(send_that_nobody_receives),
        cmocka_unit_test(empty_send_may_pass),
        cmocka_unit_test(unmatched_but_not_reported),
        cmocka_unit_test(peer_that_is_no_rank),
        cmocka_unit_test(message_to_itself),
        cmocka_unit_test(types_of_one_size),
        cmocka_unit_test(call_after_the_end),
        cmocka_unit_test(call_on_a_null_communicator),
        cmocka_unit_test(operators),
        cmocka_unit_test(arguments_that_are_none),
        cmocka_unit_test(refused_calls),
        cmocka_unit_test(group_end_alone),
        cmocka_unit_test(stream_of_another_device),
        cmocka_unit_test(pageable_memory),
        cmocka_unit_test(launch_on_another_device),
        cmocka_unit_test(event_of_another_device),
        cmocka_unit_test(what_is_not_seen),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
