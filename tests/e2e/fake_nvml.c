/* libnvidia-ml.so.1 for test_attach_sources.py: two GPUs, the first at 100 %, the second idle. */
#include <stddef.h>

struct used {
    unsigned gpu, memory;
};

static unsigned gpus[] = {100, 0};

int nvmlInit_v2(void);
int nvmlInit_v2(void)
{
    return 0;
}

int nvmlShutdown(void);
int nvmlShutdown(void)
{
    return 0;
}

int nvmlDeviceGetCount_v2(unsigned *count);
int nvmlDeviceGetCount_v2(unsigned *count)
{
    *count = sizeof gpus / sizeof *gpus;
    return 0;
}

int nvmlDeviceGetHandleByIndex_v2(unsigned index, void **device);
int nvmlDeviceGetHandleByIndex_v2(unsigned index, void **device)
{
    *device = &gpus[index];
    return 0;
}

int nvmlDeviceGetUtilizationRates(void *device, struct used *used);
int nvmlDeviceGetUtilizationRates(void *device, struct used *used)
{
    *used = (struct used){.gpu = *(unsigned *)device};
    return 0;
}
