/* hardware.c: see hardware.h. Rank and device are the same, as in a job on one host. */
#include "trainer/hardware.h"

#include <cuda_runtime_api.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "trainer/check.h"

static const char emulated_name[] = "ddpcheck emulated GPU";
/* Kernels of a small model end in microseconds, of which other programs on the machine would take
 * more than the fault. */
static const char kernel_time[] = "all=0.002";

static const struct hardware_fault {
    enum fault_id id;
    const char *variable;
    bool is_link;
    const char *value; /* as faults.c says */
} hardware_faults[] = {
    {FAULT_SLOW_DEVICE, "DDPCHECK_EMU_DEVICE_SPEED", false, "0.4"},
    {FAULT_THROTTLE_AFTER, "DDPCHECK_EMU_DEVICE_SPEED", false, "0.4@5"},
    {FAULT_SLOW_LINK, "DDPCHECK_EMU_LINK_RATE", true, "200K@5"},
};

int hardware_make_faulty(const struct fault *fault, struct error *err)
{
    for (size_t i = 0; i < sizeof hardware_faults / sizeof hardware_faults[0]; i++) {
        const struct hardware_fault *hardware = &hardware_faults[i];
        struct cudaDeviceProp device;
        char setting[64];
        int first = fault->rank ? fault->rank - 1 : 0; /* of a link */
        if (!fault_is(fault, hardware->id))
            continue;
        CHECK_CUDA(cudaGetDeviceProperties(&device, 0));
        if (strcmp(device.name, emulated_name) != 0)
            return error_set(err, "--fault %s: a %s can't be slowed down; run it on emulated GPUs",
                             fault->kind->name, device.name);
        if (hardware->is_link)
            snprintf(setting, sizeof setting, "%d-%d=%s", first, first + 1, hardware->value);
        else
            snprintf(setting, sizeof setting, "%d=%s", fault->rank, hardware->value);
        setenv(hardware->variable, setting, 0);
        setenv("DDPCHECK_EMU_KERNEL_TIME", kernel_time, 0);
    }
    return 0;
}
