/* Many threads on many streams with events between them: for the thread sanitizer, and for sums. */
#include <stdatomic.h>
#include <stdlib.h>

#include "support.h"

enum { THREADS = 4, STREAMS = 3, ROUNDS = 200, WORDS = 64 };

static atomic_int passed;

static void pass(void *arg)
{
    (void)arg;
    atomic_fetch_add(&passed, 1);
}

/* One chain of copies around three streams; the events alone keep it in order. */
static void *run_chain(void *arg)
{
    int device = *(int *)arg, host[WORDS], back[WORDS];
    cudaStream_t streams[STREAMS];
    cudaEvent_t event;
    int *memory[STREAMS];

    OK(cudaSetDevice(device));
    OK(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
    for (int i = 0; i < STREAMS; i++) {
        OK(cudaStreamCreateWithFlags(&streams[i], i ? cudaStreamNonBlocking : cudaStreamDefault));
        OK(cudaMalloc((void **)&memory[i], sizeof(host)));
    }
    for (int round = 0; round < ROUNDS; round++) {
        for (int i = 0; i < WORDS; i++)
            host[i] = round * WORDS + i;
        OK(cudaMemcpyAsync(memory[0], host, sizeof(host), cudaMemcpyHostToDevice, streams[0]));
        for (int i = 1; i < STREAMS; i++) {
            OK(cudaEventRecord(event, streams[i - 1]));
            OK(cudaStreamWaitEvent(streams[i], event, 0));
            OK(cudaMemcpyAsync(memory[i], memory[i - 1], sizeof(host), cudaMemcpyDeviceToDevice,
                               streams[i]));
            OK(cudaLaunchHostFunc(streams[i], pass, NULL));
        }
        OK(cudaMemcpyAsync(back, memory[STREAMS - 1], sizeof(back), cudaMemcpyDeviceToHost,
                           streams[STREAMS - 1]));
        for (int i = 0; i < WORDS; i++)
            assert_int_equal(back[i], host[i]);
        if (round % 50 == 0)
            OK(cudaMemset(memory[0], 0, 4)); /* the legacy stream, across all threads */
        OK(cudaEventRecord(event, streams[STREAMS - 1]));
        OK(cudaStreamWaitEvent(streams[0], event, 0));
    }
    for (int i = 0; i < STREAMS; i++) {
        OK(cudaFree(memory[i]));
        OK(cudaStreamDestroy(streams[i]));
    }
    OK(cudaEventDestroy(event));
    return NULL;
}

static void chains_keep_their_order(void **state)
{
    pthread_t threads[THREADS];
    int devices[THREADS];

    (void)state;
    for (int i = 0; i < THREADS; i++) {
        devices[i] = i % 2;
        assert_int_equal(pthread_create(&threads[i], NULL, run_chain, &devices[i]), 0);
    }
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    assert_int_equal(atomic_load(&passed), THREADS * ROUNDS * (STREAMS - 1));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(chains_keep_their_order, reset_devices)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
