#include "support.h"

static void event_orders_streams(void **state)
{
    struct gate gate = GATE_CLOSED;
    cudaStream_t first, second;
    cudaEvent_t event;

    (void)state;
    OK(cudaStreamCreateWithFlags(&first, cudaStreamNonBlocking));
    OK(cudaStreamCreateWithFlags(&second, cudaStreamNonBlocking));
    OK(cudaEventCreate(&event));
    OK(cudaStreamWaitEvent(second, event, 0)); /* never recorded: nothing to wait for */
    OK(cudaStreamSynchronize(second));
    OK(cudaLaunchHostFunc(first, gate_pass, &gate));
    OK(cudaEventRecord(event, first));
    OK(cudaStreamWaitEvent(second, event, 0));
    EXPECT(cudaEventQuery(event), cudaErrorNotReady);
    EXPECT(cudaStreamQuery(second), cudaErrorNotReady);
    gate_open(&gate);
    OK(cudaStreamSynchronize(second));
    OK(cudaEventQuery(event));
    assert_false(gate.timed_out);
    OK(cudaStreamDestroy(first));
    OK(cudaStreamDestroy(second));
    OK(cudaEventDestroy(event));
    EXPECT(cudaEventDestroy(event), cudaErrorInvalidResourceHandle);
}

/* A wait is for the record that was latest when it was issued, also after the event is gone. */
static void wait_keeps_its_record(void **state)
{
    struct gate early = GATE_CLOSED, late = GATE_CLOSED;
    cudaStream_t first, second;
    cudaEvent_t event;

    (void)state;
    OK(cudaStreamCreateWithFlags(&first, cudaStreamNonBlocking));
    OK(cudaStreamCreateWithFlags(&second, cudaStreamNonBlocking));
    OK(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
    OK(cudaLaunchHostFunc(first, gate_pass, &early));
    OK(cudaEventRecord(event, first));
    OK(cudaStreamWaitEvent(second, event, 0));
    OK(cudaLaunchHostFunc(first, gate_pass, &late));
    OK(cudaEventRecord(event, first));
    OK(cudaEventDestroy(event));
    EXPECT(cudaStreamQuery(second), cudaErrorNotReady);
    gate_open(&early);
    OK(cudaStreamSynchronize(second)); /* although `late` is closed */
    EXPECT(cudaStreamQuery(first), cudaErrorNotReady);
    gate_open(&late);
    OK(cudaDeviceSynchronize());
    OK(cudaStreamDestroy(first));
    OK(cudaStreamDestroy(second));
}

static void event_synchronize_waits(void **state)
{
    struct gate gate = GATE_CLOSED;
    cudaEvent_t event;
    pthread_t thread;

    (void)state;
    OK(cudaEventCreate(&event));
    OK(cudaEventSynchronize(event));
    OK(cudaLaunchHostFunc(0, gate_pass, &gate));
    OK(cudaEventRecord(event, 0));
    assert_int_equal(pthread_create(&thread, NULL, gate_open_later, &gate), 0);
    OK(cudaEventSynchronize(event));
    assert_true(gate_is_open(&gate));
    pthread_join(thread, NULL);
    OK(cudaEventDestroy(event));
}

static void pause_50_ms(void *arg)
{
    const struct timespec pause = {0, 50000000};

    (void)arg;
    nanosleep(&pause, NULL);
}

static void elapsed_time(void **state)
{
    cudaEvent_t start, end, silent, never;
    float milliseconds = -1;

    (void)state;
    OK(cudaEventCreate(&start));
    OK(cudaEventCreate(&end));
    OK(cudaEventCreate(&never));
    OK(cudaEventCreateWithFlags(&silent, cudaEventDisableTiming));
    OK(cudaEventRecord(start, 0));
    OK(cudaLaunchHostFunc(0, pause_50_ms, NULL));
    OK(cudaEventRecord(end, 0));
    OK(cudaEventRecord(silent, 0));
    OK(cudaEventSynchronize(end));
    OK(cudaEventElapsedTime(&milliseconds, start, end));
    assert_true(milliseconds >= 49); /* the device slept; how much longer is the host's affair */
    EXPECT(cudaEventElapsedTime(&milliseconds, start, silent), cudaErrorInvalidResourceHandle);
    EXPECT(cudaEventElapsedTime(&milliseconds, start, never), cudaErrorInvalidResourceHandle);
}

static void events_belong_to_devices(void **state)
{
    cudaStream_t elsewhere;
    cudaEvent_t event;

    (void)state;
    OK(cudaEventCreate(&event));
    OK(cudaSetDevice(1));
    OK(cudaStreamCreate(&elsewhere));
    EXPECT(cudaEventRecord(event, elsewhere), cudaErrorInvalidResourceHandle);
    OK(cudaStreamWaitEvent(elsewhere, event, 0)); /* waiting across devices is allowed */
    OK(cudaStreamDestroy(elsewhere));
    OK(cudaEventDestroy(event));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(event_orders_streams, reset_devices),
        cmocka_unit_test_setup(wait_keeps_its_record, reset_devices),
        cmocka_unit_test_setup(event_synchronize_waits, reset_devices),
        cmocka_unit_test_setup(elapsed_time, reset_devices),
        cmocka_unit_test_setup(events_belong_to_devices, reset_devices),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
