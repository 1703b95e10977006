/* Who waits for whom in copies, by the table at the head of emu/core/copy.c. */
#include <string.h>

#include "support.h"

enum { BYTES = 1 << 16 };

struct bench {
    struct gate gate;
    cudaStream_t stream;
    char *device, *other, *pinned, pageable[BYTES];
};

static void bench_open(struct bench *bench)
{
    memset(bench, 0, sizeof(*bench));
    pthread_mutex_init(&bench->gate.lock, NULL);
    pthread_cond_init(&bench->gate.changed, NULL);
    OK(cudaStreamCreate(&bench->stream));
    OK(cudaMalloc((void **)&bench->device, BYTES));
    OK(cudaMalloc((void **)&bench->other, BYTES));
    OK(cudaMallocHost((void **)&bench->pinned, BYTES));
}

static void bench_close(struct bench *bench)
{
    gate_open(&bench->gate);
    OK(cudaDeviceSynchronize());
    assert_false(bench->gate.timed_out);
    OK(cudaFree(bench->device));
    OK(cudaFree(bench->other));
    OK(cudaFreeHost(bench->pinned));
    OK(cudaStreamDestroy(bench->stream));
}

/* Issues a copy behind a closed gate. A copy that waits returns only once the gate is open. */
static void expect_wait(struct bench *bench, void *to, const void *from, enum cudaMemcpyKind kind,
                        bool async, bool waits)
{
    pthread_t thread;

    bench->gate.open = false;
    OK(cudaLaunchHostFunc(bench->stream, gate_pass, &bench->gate));
    if (waits)
        assert_int_equal(pthread_create(&thread, NULL, gate_open_later, &bench->gate), 0);
    if (async)
        OK(cudaMemcpyAsync(to, from, BYTES, kind, bench->stream));
    else
        OK(cudaMemcpy(to, from, BYTES, kind)); /* behind the gate too: the legacy stream's rule */
    assert_int_equal(gate_is_open(&bench->gate), waits);
    gate_open(&bench->gate);
    if (waits)
        pthread_join(thread, NULL);
    OK(cudaDeviceSynchronize());
}

static void host_waits_as_documented(void **state)
{
    static struct bench bench;
    static char host[BYTES];

    (void)state;
    bench_open(&bench);
    expect_wait(&bench, bench.device, bench.pageable, cudaMemcpyHostToDevice, true, false);
    expect_wait(&bench, bench.device, bench.pageable, cudaMemcpyHostToDevice, false, false);
    expect_wait(&bench, bench.device, bench.pinned, cudaMemcpyHostToDevice, true, false);
    expect_wait(&bench, bench.device, bench.pinned, cudaMemcpyHostToDevice, false, true);
    expect_wait(&bench, bench.pageable, bench.device, cudaMemcpyDeviceToHost, true, true);
    expect_wait(&bench, bench.pageable, bench.device, cudaMemcpyDeviceToHost, false, true);
    expect_wait(&bench, bench.pinned, bench.device, cudaMemcpyDeviceToHost, true, false);
    expect_wait(&bench, bench.pinned, bench.device, cudaMemcpyDeviceToHost, false, true);
    expect_wait(&bench, bench.other, bench.device, cudaMemcpyDeviceToDevice, true, false);
    expect_wait(&bench, bench.other, bench.device, cudaMemcpyDeviceToDevice, false, false);
    expect_wait(&bench, host, bench.pageable, cudaMemcpyHostToHost, true, true);
    bench_close(&bench);
}

/* Pageable memory is the program's again as soon as the call returns; pinned memory is not. */
static void pageable_source_is_staged(void **state)
{
    static struct bench bench;

    (void)state;
    bench_open(&bench);
    memset(bench.pageable, 1, BYTES);
    memset(bench.pinned, 1, BYTES);
    OK(cudaLaunchHostFunc(bench.stream, gate_pass, &bench.gate));
    OK(cudaMemcpyAsync(bench.device, bench.pageable, BYTES, cudaMemcpyHostToDevice, bench.stream));
    OK(cudaMemcpyAsync(bench.other, bench.pinned, BYTES, cudaMemcpyHostToDevice, bench.stream));
    memset(bench.pageable, 2, BYTES);
    memset(bench.pinned, 2, BYTES);
    gate_open(&bench.gate);
    OK(cudaMemcpy(bench.pageable, bench.device, BYTES, cudaMemcpyDefault));
    assert_int_equal(bench.pageable[BYTES - 1], 1);
    OK(cudaMemcpy(bench.pageable, bench.other, BYTES, cudaMemcpyDefault));
    assert_int_equal(bench.pageable[BYTES - 1], 2);
    bench_close(&bench);
}

static void memset_does_not_wait(void **state)
{
    static struct bench bench;

    (void)state;
    bench_open(&bench);
    OK(cudaLaunchHostFunc(bench.stream, gate_pass, &bench.gate));
    OK(cudaMemset(bench.device, 7, BYTES));
    assert_false(gate_is_open(&bench.gate));
    gate_open(&bench.gate);
    OK(cudaMemcpy(bench.pageable, bench.device, BYTES, cudaMemcpyDeviceToHost));
    assert_int_equal(bench.pageable[0], 7);
    assert_int_equal(bench.pageable[BYTES - 1], 7);
    bench_close(&bench);
}

static void rows_and_boxes(void **state)
{
    char host[4][6], back[4][6];
    struct cudaPitchedPtr box;
    struct cudaMemcpy3DParms parameters = {.kind = cudaMemcpyHostToDevice};
    char *device;
    size_t pitch;

    (void)state;
    for (int i = 0; i < 24; i++)
        host[i / 6][i % 6] = (char)i;
    OK(cudaMallocPitch((void **)&device, &pitch, 6, 4));
    assert_true(pitch >= 6);
    OK(cudaMemcpy2D(device, pitch, host, 6, 6, 4, cudaMemcpyHostToDevice));
    memset(back, 0, sizeof(back));
    OK(cudaMemcpy2D(back, 6, device + pitch + 1, pitch, 3, 2, cudaMemcpyDeviceToHost));
    assert_int_equal(back[0][0], host[1][1]);
    assert_int_equal(back[1][2], host[2][3]);
    assert_int_equal(back[0][3], 0);
    EXPECT(cudaMemcpy2D(device, 5, host, 6, 6, 4, cudaMemcpyHostToDevice),
           cudaErrorInvalidPitchValue);

    OK(cudaMalloc3D(&box, (struct cudaExtent){6, 2, 2}));
    parameters.srcPtr = (struct cudaPitchedPtr){host, 6, 6, 2};
    parameters.dstPtr = box;
    parameters.extent = (struct cudaExtent){6, 2, 2};
    OK(cudaMemcpy3D(&parameters));
    OK(cudaMemcpy(back, (char *)box.ptr + 3 * box.pitch, 6, cudaMemcpyDeviceToHost));
    assert_memory_equal(back[0], host[3], 6);
}

static void wrong_calls_are_refused(void **state)
{
    char host[16], *device;

    (void)state;
    OK(cudaMalloc((void **)&device, 16));
    EXPECT(cudaMemcpy(device, host, 16, cudaMemcpyDeviceToHost), cudaErrorInvalidValue);
    EXPECT(cudaMemcpy(device, host, 16, (enum cudaMemcpyKind)9), cudaErrorInvalidMemcpyDirection);
    EXPECT(cudaMemcpy(NULL, host, 16, cudaMemcpyDefault), cudaErrorInvalidValue);
    EXPECT(cudaMemset(host, 0, 16), cudaErrorInvalidValue);
    EXPECT(cudaMemcpy(device, host, 17, cudaMemcpyHostToDevice), cudaErrorInvalidValue);
    EXPECT(cudaGetLastError(), cudaErrorInvalidValue);
    EXPECT(cudaGetLastError(), cudaSuccess); /* none of them is sticky */
    OK(cudaMemcpy(device, host, 0, cudaMemcpyHostToDevice));
    OK(cudaDeviceSynchronize());
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(host_waits_as_documented, reset_devices),
        cmocka_unit_test_setup(pageable_source_is_staged, reset_devices),
        cmocka_unit_test_setup(memset_does_not_wait, reset_devices),
        cmocka_unit_test_setup(rows_and_boxes, reset_devices),
        cmocka_unit_test_setup(wrong_calls_are_refused, reset_devices),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
