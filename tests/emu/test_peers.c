#include <string.h>

#include "support.h"

static char *allocate_on(int device)
{
    char *memory;

    OK(cudaSetDevice(device));
    OK(cudaMalloc((void **)&memory, 100));
    OK(cudaMemset(memory, device + 1, 100));
    OK(cudaDeviceSynchronize());
    return memory;
}

static void foreign_memory_is_illegal(void **state)
{
    char *own = allocate_on(0), *foreign = allocate_on(1);

    (void)state;
    OK(cudaSetDevice(0));
    OK(cudaMemcpyAsync(own, foreign, 100, cudaMemcpyDeviceToDevice, 0));
    EXPECT(cudaDeviceSynchronize(), cudaErrorIllegalAddress);
    EXPECT(cudaStreamSynchronize(0), cudaErrorIllegalAddress);
    OK(cudaSetDevice(1));
    OK(cudaDeviceSynchronize());
}

static void peer_access_makes_it_legal(void **state)
{
    char *own = allocate_on(0), *foreign = allocate_on(1), back[100];
    int can;

    (void)state;
    OK(cudaSetDevice(0));
    OK(cudaDeviceCanAccessPeer(&can, 0, 1));
    assert_int_equal(can, 1);
    OK(cudaDeviceCanAccessPeer(&can, 0, 0));
    assert_int_equal(can, 0);
    EXPECT(cudaDeviceDisablePeerAccess(1), cudaErrorPeerAccessNotEnabled);
    OK(cudaDeviceEnablePeerAccess(1, 0));
    EXPECT(cudaDeviceEnablePeerAccess(1, 0), cudaErrorPeerAccessAlreadyEnabled);
    OK(cudaMemcpyAsync(own, foreign, 100, cudaMemcpyDeviceToDevice, 0));
    OK(cudaMemcpy(back, own, 100, cudaMemcpyDeviceToHost));
    assert_int_equal(back[99], 2);
    OK(cudaSetDevice(1)); /* access goes one way */
    OK(cudaMemsetAsync(own, 0, 100, 0));
    EXPECT(cudaDeviceSynchronize(), cudaErrorIllegalAddress);
}

static void peer_copies_need_no_access(void **state)
{
    char *own = allocate_on(0), *foreign = allocate_on(2), back[100];
    struct gate gate = GATE_CLOSED;
    cudaStream_t busy;

    (void)state;
    OK(cudaStreamCreateWithFlags(&busy, cudaStreamNonBlocking));
    OK(cudaLaunchHostFunc(busy, gate_pass, &gate));
    OK(cudaMemsetAsync(foreign, 3, 100, busy));
    OK(cudaSetDevice(1)); /* waits for the streams of 2, and those of 0 wait for it */
    OK(cudaMemcpyPeer(own, 0, foreign, 2, 100));
    assert_false(gate_is_open(&gate)); /* the host does not wait */
    OK(cudaSetDevice(0));
    EXPECT(cudaStreamQuery(0), cudaErrorNotReady);
    gate_open(&gate);
    OK(cudaDeviceSynchronize());
    OK(cudaMemcpy(back, own, 100, cudaMemcpyDeviceToHost));
    assert_int_equal(back[0], 3);
    OK(cudaMemcpyPeerAsync(foreign, 2, own, 0, 100, 0));
    OK(cudaDeviceSynchronize());
    EXPECT(cudaMemcpyPeer(own, 0, foreign, 7, 100), cudaErrorInvalidDevice);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(foreign_memory_is_illegal, reset_devices),
        cmocka_unit_test_setup(peer_access_makes_it_legal, reset_devices),
        cmocka_unit_test_setup(peer_copies_need_no_access, reset_devices),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
