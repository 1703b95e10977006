/* Device memory that two processes use. The other process is forked before CUDA is used, as it must
 * be. */
#include <cuda.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support.h"

enum { COUNT = 10000 };

static int to_other[2], from_other[2];
static pid_t other;

static void tell(int end, const void *what, size_t bytes)
{
    assert_int_equal(write(end, what, bytes), (ssize_t)bytes);
}

static void hear(int end, void *what, size_t bytes)
{
    assert_int_equal(read(end, what, bytes), (ssize_t)bytes);
}

/* Adds 1 to what it finds in the memory, and says what the calls returned. */
static int be_other(void)
{
    cudaIpcMemHandle_t handle;
    cudaError_t result[4];
    struct cudaPointerAttributes attributes;
    int *memory = NULL, *host = malloc(COUNT * sizeof(int));

    hear(to_other[0], &handle, sizeof(handle));
    result[0] = cudaIpcOpenMemHandle((void **)&memory, handle, cudaIpcMemLazyEnablePeerAccess);
    result[1] = cudaMemcpy(host, memory, COUNT * sizeof(int), cudaMemcpyDeviceToHost);
    for (int i = 0; i < COUNT; i++)
        host[i]++;
    result[2] = cudaMemcpy(memory, host, COUNT * sizeof(int), cudaMemcpyHostToDevice);
    result[3] = cudaPointerGetAttributes(&attributes, memory + 5);
    if (attributes.type != cudaMemoryTypeDevice || attributes.device != 1 ||
        cudaFree(memory) != cudaErrorInvalidValue || cudaIpcCloseMemHandle(memory) ||
        cudaIpcCloseMemHandle(memory) != cudaErrorInvalidValue)
        result[3] = cudaErrorUnknown;
    tell(from_other[1], result, sizeof(result));
    return 0;
}

static void another_process_reads_and_writes(void **state)
{
    cudaIpcMemHandle_t handle, again, next;
    cudaError_t result[4];
    int *memory, *host = malloc(COUNT * sizeof(int)), status;
    void *mapped;

    (void)state;
    OK(cudaSetDevice(1));
    for (int i = 0; i < COUNT; i++)
        host[i] = i;
    OK(cudaMalloc((void **)&memory, COUNT * sizeof(int)));
    OK(cudaMemcpy(memory, host, COUNT * sizeof(int), cudaMemcpyHostToDevice));
    OK(cudaIpcGetMemHandle(&handle, memory));
    OK(cudaIpcGetMemHandle(&again, memory));
    assert_memory_equal(&handle, &again, sizeof(handle));
    EXPECT(cudaIpcGetMemHandle(&again, memory + 1), cudaErrorInvalidValue);
    EXPECT(cudaIpcOpenMemHandle(&mapped, handle, cudaIpcMemLazyEnablePeerAccess),
           cudaErrorInvalidResourceHandle);
    tell(to_other[1], &handle, sizeof(handle));
    hear(from_other[0], result, sizeof(result));
    for (int i = 0; i < 4; i++)
        OK(result[i]);
    assert_int_equal(waitpid(other, &status, 0), other);
    assert_int_equal(status, 0);
    OK(cudaMemcpy(host, memory, COUNT * sizeof(int), cudaMemcpyDeviceToHost));
    for (int i = 0; i < COUNT; i++)
        assert_int_equal(host[i], i + 1);
    OK(cudaFree(memory));
    OK(cudaMalloc((void **)&memory, COUNT * sizeof(int)));
    OK(cudaIpcGetMemHandle(&next, memory));
    assert_memory_not_equal(&handle, &next, sizeof(handle));
    memset(&next, 1, sizeof(next));
    EXPECT(cudaIpcOpenMemHandle(&mapped, next, cudaIpcMemLazyEnablePeerAccess),
           cudaErrorInvalidResourceHandle);
    OK(cudaFree(memory));
    free(host);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(another_process_reads_and_writes)};

    if (pipe(to_other) || pipe(from_other))
        return 1;
    other = fork();
    if (!other)
        _exit(be_other());
    return cmocka_run_group_tests(tests, NULL, NULL);
}
