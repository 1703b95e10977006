/* python_calls.c: the calls that bench/python_calls.py times: calls of CUDA in a loop of C, so that
 * Python's own time is not in the figure, while the Python frames of the caller are on the thread's
 * stack. */
#include <cuda_runtime_api.h>
#include <stdint.h>
#include <time.h>

__attribute__((visibility("default"))) double synchronize_ns(int calls);

static uint64_t python_clock_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* ns per call of cudaStreamSynchronize on an idle stream. */
double synchronize_ns(int calls)
{
    uint64_t begin = python_clock_ns();
    for (int i = 0; i < calls; i++)
        cudaStreamSynchronize(cudaStreamPerThread);
    return (double)(python_clock_ns() - begin) / calls;
}
