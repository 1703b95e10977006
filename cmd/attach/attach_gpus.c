/* attach_gpus.c: how busy the GPUs of this host are, by NVML, which is loaded where it is. Types
 * and numbers are those of NVIDIA's NVML API reference. */
#include "cmd/attach/attach_sources.h"

#include <dlfcn.h>
#include <stddef.h>

#include "lib/base/rankset.h"

enum { NVML_SUCCESS = 0, RANKS_BYTES = 256, PERCENT = 100 };

struct nvml_utilization {
    unsigned gpu, memory; /* percent of the last second in which a kernel ran */
};

struct nvml {
    void *library;
    int (*start)(void);
    int (*count)(unsigned *count);
    int (*handle)(unsigned index, void **device);
    int (*utilization)(void *device, struct nvml_utilization *utilization);
    int (*stop)(void);
};

/* Returns whether all of it is there. */
static bool load_nvml(struct nvml *nvml)
{
    const struct {
        const char *name;
        void *to;
    } functions[] = {
        {"nvmlInit_v2", &nvml->start},
        {"nvmlDeviceGetCount_v2", &nvml->count},
        {"nvmlDeviceGetHandleByIndex_v2", &nvml->handle},
        {"nvmlDeviceGetUtilizationRates", &nvml->utilization},
        {"nvmlShutdown", &nvml->stop},
    };
    nvml->library = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
    for (size_t i = 0; nvml->library && i < sizeof functions / sizeof *functions; i++) {
        *(void **)functions[i].to = dlsym(nvml->library, functions[i].name);
        if (!*(void **)functions[i].to) {
            dlclose(nvml->library);
            nvml->library = NULL;
        }
    }
    return nvml->library;
}

/* Which GPUs ran kernels all the time, and which none. */
static int sort_gpus(const struct nvml *nvml, struct rankset *busy, struct rankset *idle)
{
    unsigned count = 0;
    int failed = nvml->count(&count) != NVML_SUCCESS;
    for (unsigned i = 0; i < count && !failed; i++) {
        struct nvml_utilization used;
        void *device;
        if (nvml->handle(i, &device) || nvml->utilization(device, &used))
            continue;
        if (used.gpu >= PERCENT)
            failed = rankset_add(busy, (int)i);
        else if (!used.gpu)
            failed = rankset_add(idle, (int)i);
    }
    return failed;
}

/* For people now, and for the trace. */
static void note_gpus(struct attach_sources *sources, const struct rankset *gpus, const char *what)
{
    char text[RANKS_BYTES], line[2 * RANKS_BYTES];
    if (!rankset_count(gpus))
        return;
    snprintf(line, sizeof line, "NVML: GPU%s %s %s\n", rankset_count(gpus) == 1 ? "" : "s",
             rankset_text(gpus, text, sizeof text), what);
    text_add(&sources->read, "%s", line);
    FILE *file = attach_open_own(sources, "gpus.log");
    if (file) {
        fputs(line, file);
        fclose(file);
    }
}

void attach_read_gpus(struct attach_sources *sources, const struct live_job *job)
{
    struct nvml nvml = {0};
    struct rankset busy = {0}, idle = {0};
    (void)job;
    if (!load_nvml(&nvml)) {
        text_add(&sources->absent, "the GPUs' load (there is no libnvidia-ml.so.1 here)\n");
        return;
    }
    int failed = nvml.start();
    if (failed)
        text_add(&sources->absent, "the GPUs' load (NVML does not start: error %d)\n", failed);
    else if (!sort_gpus(&nvml, &busy, &idle)) {
        note_gpus(sources, &busy,
                  "at 100 %: a kernel runs or spins, as a collective's does that waits for a rank");
        note_gpus(sources, &idle, "at 0 %: no kernel runs");
    }
    if (!failed)
        nvml.stop();
    dlclose(nvml.library);
    rankset_free(&busy);
    rankset_free(&idle);
}
