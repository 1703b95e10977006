/* transfers.c: how long the transfers of a class of operations take, and what they carry. */
#include <math.h>
#include <stdlib.h>

#include "analyzer/speed/slowdown.h"
#include "lib/trace/names.h"
#include "lib/trace/kinds.h"

/* The least duration of a step of the histogram, in nanoseconds. */
static double step_ns(uint32_t step)
{
    uint32_t octave = step < 2 * TRANSFER_STEPS ? 0 : step / TRANSFER_STEPS - 1;
    return (double)((uint64_t)(step - octave * TRANSFER_STEPS) << octave);
}

/* Within a step durations are taken to be evenly spread. */
double speed_class_quantile(const struct speed_class *class, uint32_t percent)
{
    double wanted = (double)class->count * percent / 100, below = 0;
    uint32_t step = 0;
    while (step + 1 < TRANSFER_STEPS * TRANSFER_OCTAVES && below + class->histogram[step] < wanted)
        below += class->histogram[step++];
    double here = class->histogram[step], part = here > 0 ? fmin((wanted - below) / here, 1) : 0;
    return (step_ns(step) + part * (step_ns(step + 1) - step_ns(step))) / 1e9;
}

double speed_class_quartile(const struct speed_class *class)
{
    return speed_class_quantile(class, 25);
}

double speed_transfer_quantile(const struct speed_comm *comm, uint64_t first, uint64_t end,
                               uint32_t percent)
{
    double *value = malloc((end - first + 1) * sizeof *value), found = 0;
    size_t count = 0;
    for (uint64_t n = first; value && n < end; n++)
        value[count++] = speed_comm_transfer(comm, n);
    if (count) {
        speed_median(value, count);
        found = value[(count - 1) * percent / 100];
    }
    free(value);
    return found;
}

double speed_moved_bytes(uint64_t api, uint64_t nranks, double bytes, double *by_link)
{
    const struct kind *kind = kind_find((int)api);
    double ranks = (double)nranks, factor = 1;
    bool gathers = kind && (kind->recv == KIND_ALL || kind->send == KIND_ALL);
    *by_link = 0;
    if (!kind || nranks < 1)
        return 0;
    if (gathers) {
        bytes *= ranks;
        factor = (ranks - 1) / ranks;
    } else if (api == API_ncclAllReduce) {
        factor = 2 * (ranks - 1) / ranks;
    }
    *by_link = bytes * factor;
    return bytes;
}
