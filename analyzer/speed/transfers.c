/* transfers.c: how long the transfers of a class of operations take, and what they carry. */
#include "analyzer/speed/speed.h"
#include "lib/trace/names.h"
#include "lib/trace/kinds.h"

double speed_class_quantile(const struct speed_class *class, uint32_t percent)
{
    uint64_t below = 0;
    uint32_t step = 0;
    while (step + 1 < TRANSFER_STEPS * TRANSFER_OCTAVES &&
           (below += class->histogram[step]) * 100 < percent * class->count)
        step++;
    uint32_t octave = step < 2 * TRANSFER_STEPS ? 0 : step / TRANSFER_STEPS - 1;
    return (double)((uint64_t)(step - octave * TRANSFER_STEPS) << octave) / 1e9;
}

double speed_class_quartile(const struct speed_class *class)
{
    return speed_class_quantile(class, 25);
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
