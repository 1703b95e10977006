#include <sched.h>
#include <stdatomic.h>

#include "support.h"

static atomic_int order;

struct step {
    int place; /* 1, 2, ... in the order in which the steps ran */
};

static void take_place(void *arg)
{
    struct step *step = arg;

    step->place = atomic_fetch_add(&order, 1) + 1;
}

static void streams_overlap(void **state)
{
    struct gate gate = GATE_CLOSED;
    cudaStream_t waits, opens;

    (void)state;
    OK(cudaStreamCreate(&waits));
    OK(cudaStreamCreate(&opens));
    OK(cudaLaunchHostFunc(waits, gate_pass, &gate));
    EXPECT(cudaStreamQuery(waits), cudaErrorNotReady);
    OK(cudaLaunchHostFunc(opens, gate_open, &gate)); /* runs although `waits` stands still */
    OK(cudaStreamSynchronize(waits));
    assert_false(gate.timed_out);
    OK(cudaStreamSynchronize(opens));
    OK(cudaStreamQuery(opens));
    OK(cudaStreamDestroy(waits));
    OK(cudaStreamDestroy(opens));
}

static void one_stream_keeps_order(void **state)
{
    struct step steps[100] = {{0}};
    cudaStream_t stream;

    (void)state;
    atomic_store(&order, 0);
    OK(cudaStreamCreate(&stream));
    for (int i = 0; i < 100; i++)
        OK(cudaLaunchHostFunc(stream, take_place, &steps[i]));
    OK(cudaStreamSynchronize(stream));
    for (int i = 0; i < 100; i++)
        assert_int_equal(steps[i].place, i + 1);
    OK(cudaStreamDestroy(stream));
}

enum { MANY = 1500, QUEUE = 1024 };

struct pusher {
    cudaStream_t stream;
    atomic_int pushed, failed;
    struct step step[MANY];
};

static void *push_many(void *arg)
{
    struct pusher *pusher = arg;

    for (int i = 0; i < MANY; i++) {
        atomic_fetch_add(&pusher->failed,
                         cudaLaunchHostFunc(pusher->stream, take_place, &pusher->step[i]) != 0);
        atomic_fetch_add(&pusher->pushed, 1);
    }
    return NULL;
}

/* The queue of a stream that stands still fills up; then the call that would make it longer waits.
 */
static void a_full_queue_blocks(void **state)
{
    static struct pusher pusher;
    struct gate gate = GATE_CLOSED;
    pthread_t thread;

    (void)state;
    OK(cudaStreamCreate(&pusher.stream));
    OK(cudaLaunchHostFunc(pusher.stream, gate_pass, &gate));
    gate_await(&gate);
    assert_int_equal(pthread_create(&thread, NULL, push_many, &pusher), 0);
    while (atomic_load(&pusher.pushed) < QUEUE - 1 && !gate.timed_out)
        sched_yield();
    nanosleep(&(struct timespec){.tv_nsec = 20000000}, NULL);
    assert_true(atomic_load(&pusher.pushed) <= QUEUE);
    gate_open(&gate);
    assert_int_equal(pthread_join(thread, NULL), 0);
    OK(cudaStreamSynchronize(pusher.stream));
    assert_int_equal(atomic_load(&pusher.failed), 0);
    assert_int_equal(pusher.step[MANY - 1].place - pusher.step[0].place, MANY - 1);
    OK(cudaStreamDestroy(pusher.stream));
}

/* Work on the legacy stream waits for blocking streams, not for non-blocking ones. */
static void legacy_waits_for_blocking(void **state)
{
    struct gate gate = GATE_CLOSED, other = GATE_CLOSED;
    struct step legacy = {0}, blocking = {0};
    cudaStream_t a, free_stream;

    (void)state;
    atomic_store(&order, 0);
    OK(cudaStreamCreate(&a));
    OK(cudaStreamCreateWithFlags(&free_stream, cudaStreamNonBlocking));
    OK(cudaLaunchHostFunc(free_stream, gate_pass, &other));
    OK(cudaLaunchHostFunc(a, gate_pass, &gate));
    OK(cudaLaunchHostFunc(a, take_place, &blocking));
    OK(cudaLaunchHostFunc(0, take_place, &legacy));
    EXPECT(cudaStreamQuery(0), cudaErrorNotReady);
    gate_open(&gate);
    OK(cudaStreamSynchronize(0)); /* although free_stream stands still */
    assert_int_equal(blocking.place, 1);
    assert_int_equal(legacy.place, 2);
    EXPECT(cudaStreamQuery(free_stream), cudaErrorNotReady);
    gate_open(&other);
    OK(cudaDeviceSynchronize());
    OK(cudaStreamDestroy(a));
    OK(cudaStreamDestroy(free_stream));
}

/* And blocking streams wait for work issued before on the legacy one. */
static void blocking_waits_for_legacy(void **state)
{
    struct gate gate = GATE_CLOSED;
    struct step step = {0}, free_step = {0};
    cudaStream_t a, free_stream;

    (void)state;
    OK(cudaStreamCreate(&a));
    OK(cudaStreamCreateWithFlags(&free_stream, cudaStreamNonBlocking));
    OK(cudaLaunchHostFunc(cudaStreamLegacy, gate_pass, &gate));
    OK(cudaLaunchHostFunc(free_stream, take_place, &free_step));
    OK(cudaStreamSynchronize(free_stream)); /* although the legacy stream stands still */
    OK(cudaLaunchHostFunc(a, take_place, &step));
    EXPECT(cudaStreamQuery(a), cudaErrorNotReady);
    gate_open(&gate);
    OK(cudaStreamSynchronize(a));
    assert_false(gate.timed_out);
    OK(cudaStreamDestroy(a));
    OK(cudaStreamDestroy(free_stream));
}

static void synchronizing_legacy_waits_for_blocking(void **state)
{
    struct gate gate = GATE_CLOSED;
    cudaStream_t a;
    pthread_t thread;

    (void)state;
    OK(cudaStreamCreate(&a));
    OK(cudaLaunchHostFunc(a, gate_pass, &gate));
    assert_int_equal(pthread_create(&thread, NULL, gate_open_later, &gate), 0);
    OK(cudaStreamSynchronize(0));
    assert_true(gate_is_open(&gate));
    pthread_join(thread, NULL);
    OK(cudaStreamDestroy(a));
}

static void *use_own_stream(void *arg)
{
    OK(cudaLaunchHostFunc(cudaStreamPerThread, gate_open, arg));
    OK(cudaStreamSynchronize(cudaStreamPerThread));
    return NULL;
}

static void every_thread_has_its_own_stream(void **state)
{
    struct gate gate = GATE_CLOSED;
    pthread_t thread;

    (void)state;
    OK(cudaLaunchHostFunc(cudaStreamPerThread, gate_pass, &gate));
    assert_int_equal(pthread_create(&thread, NULL, use_own_stream, &gate), 0);
    OK(cudaStreamSynchronize(cudaStreamPerThread));
    assert_false(gate.timed_out);
    pthread_join(thread, NULL);
}

static void destroyed_stream_finishes_its_work(void **state)
{
    struct gate gate = GATE_CLOSED;
    struct step step = {0};
    cudaStream_t stream;

    (void)state;
    OK(cudaStreamCreate(&stream));
    OK(cudaLaunchHostFunc(stream, gate_pass, &gate));
    OK(cudaLaunchHostFunc(stream, take_place, &step));
    OK(cudaStreamDestroy(stream));
    EXPECT(cudaStreamSynchronize(stream), cudaErrorInvalidResourceHandle);
    gate_open(&gate);
    OK(cudaDeviceSynchronize());
    assert_int_not_equal(step.place, 0);
}

static void call_cuda(void *arg)
{
    void *pointer;

    *(cudaError_t *)arg = cudaMalloc(&pointer, 1);
}

static void host_functions_may_not_call_cuda(void **state)
{
    cudaError_t error = cudaSuccess;

    (void)state;
    OK(cudaLaunchHostFunc(0, call_cuda, &error));
    OK(cudaDeviceSynchronize());
    EXPECT(error, cudaErrorNotPermitted);
}

static void callback(cudaStream_t stream, cudaError_t error, void *data)
{
    *(bool *)data = error == cudaSuccess && stream != NULL;
}

static void callbacks_get_stream_and_status(void **state)
{
    cudaStream_t stream;
    bool called = false;

    (void)state;
    OK(cudaStreamCreate(&stream));
    OK(cudaStreamAddCallback(stream, callback, &called, 0));
    OK(cudaStreamSynchronize(stream));
    assert_true(called);
    OK(cudaStreamDestroy(stream));
}

static void streams_tell_about_themselves(void **state)
{
    cudaStream_t stream;
    unsigned flags;
    int priority, device;
    unsigned long long id, own;

    (void)state;
    OK(cudaSetDevice(1));
    OK(cudaStreamCreateWithPriority(&stream, cudaStreamNonBlocking, -2));
    OK(cudaSetDevice(0));
    OK(cudaStreamGetFlags(stream, &flags));
    OK(cudaStreamGetPriority(stream, &priority));
    OK(cudaStreamGetDevice(stream, &device));
    OK(cudaStreamGetId(stream, &id));
    OK(cudaStreamGetId(0, &own));
    assert_int_equal(flags, cudaStreamNonBlocking);
    assert_int_equal(priority, -2);
    assert_int_equal(device, 1);
    assert_true(id != own);
    OK(cudaStreamDestroy(stream));
    EXPECT(cudaStreamDestroy(stream), cudaErrorInvalidResourceHandle);
    EXPECT(cudaStreamDestroy(0), cudaErrorInvalidResourceHandle);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(streams_overlap, reset_devices),
        cmocka_unit_test_setup(one_stream_keeps_order, reset_devices),
        cmocka_unit_test_setup(a_full_queue_blocks, reset_devices),
        cmocka_unit_test_setup(legacy_waits_for_blocking, reset_devices),
        cmocka_unit_test_setup(blocking_waits_for_legacy, reset_devices),
        cmocka_unit_test_setup(synchronizing_legacy_waits_for_blocking, reset_devices),
        cmocka_unit_test_setup(every_thread_has_its_own_stream, reset_devices),
        cmocka_unit_test_setup(destroyed_stream_finishes_its_work, reset_devices),
        cmocka_unit_test_setup(host_functions_may_not_call_cuda, reset_devices),
        cmocka_unit_test_setup(callbacks_get_stream_and_status, reset_devices),
        cmocka_unit_test_setup(streams_tell_about_themselves, reset_devices),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
