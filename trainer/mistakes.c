/* mistakes.c: the code of faults that no correct program contains. */
#include "trainer/mistakes.h"

#include <signal.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "kernels/kernels.h"
#include "trainer/check.h"

void mistake_load_data_forever(void)
{
    notice("still loading data (--fault init-missing)");
    for (;;)
        sleep(1000);
}

void mistake_stall(int milliseconds)
{
    const struct timespec time = {.tv_sec = milliseconds / 1000,
                                  .tv_nsec = milliseconds % 1000 * 1000000L};
    clock_nanosleep(CLOCK_MONOTONIC, 0, &time, NULL);
}

void mistake_crash(void)
{
    usleep(500 * 1000); /* by then the others wait for this rank */
    raise(SIGKILL);
    abort(); /* not reached: nothing stops SIGKILL */
}

bool mistake_run_out_of_memory(int iteration)
{
    size_t free_bytes, total_bytes;
    void *memory = NULL;
    CHECK_CUDA(cudaMemGetInfo(&free_bytes, &total_bytes));
    cudaError_t result = cudaMalloc(&memory, 4 * total_bytes);
    if (result == cudaSuccess) {
        notice("the device gave %zu bytes although it has %zu: --fault oom-skip can't run out of "
               "memory",
               4 * total_bytes, total_bytes);
        CHECK_CUDA(cudaFree(memory));
        return false;
    }
    if (result != cudaErrorMemoryAllocation)
        CHECK_CUDA(result);
    cudaGetLastError(); /* caught: later launches must not see it */
    notice("iteration %d: out of device memory (%zu bytes wanted, %zu free); this batch is lost",
           iteration, 4 * total_bytes, free_bytes);
    return true;
}

void mistake_reverse_parameters(struct module *module)
{
    struct tensor **parameters = module->parameters;
    for (int i = 0, last = module->parameter_count - 1; i < last; i++, last--) {
        struct tensor *kept = parameters[i];
        parameters[i] = parameters[last];
        parameters[last] = kept;
    }
}

void mistake_overflow_half(struct device *device)
{
    enum { TOO_LARGE = 65520 }; /* the largest fp16 is 65504; this is rounded to infinity */
    struct tensor *activation = tensor_new_on_tape(device, shape_1d(1));
    tensor_fill(activation, TOO_LARGE);
    CHECK_CUDA(kernels_round_to_f16(1, tensor_data(activation), tensor_data(activation),
                                    device->overflow, device->stream));
    notice("an activation of %d became infinite in fp16 (--fault amp-skip)", TOO_LARGE);
}

void mistake_move_first_weights(struct module *module)
{
    int devices = 0, own = module->device->index;
    CHECK_CUDA(cudaGetDeviceCount(&devices));
    if (devices < 2)
        fatal("--fault wrong-device needs a second CUDA device");
    tensor_move_to_device(module->parameters[0], (own + 1) % devices);
    notice("%s is now on device %d, its input stays on device %d", module->parameters[0]->name,
           (own + 1) % devices, own);
}
