/* trace_ranges.c: opens and closes NVTX ranges. */
#include "trainer/trace_ranges.h"

#include <nvtx3/nvToolsExt.h>
#include <stdbool.h>
#include <stdio.h>

void range_begin_iteration(int iteration)
{
    char text[64];
    snprintf(text, sizeof text, "iteration %d", iteration);
    nvtxRangePushA(text);
}

void range_begin_micro_step(int micro)
{
    char text[64];
    snprintf(text, sizeof text, "micro_step %d", micro);
    nvtxRangePushA(text);
}

void range_begin(const char *model, const char *phase)
{
    char text[128];
    snprintf(text, sizeof text, "%s %s", model, phase);
    nvtxRangePushA(text);
}

void range_begin_bucket(const char *model, int bucket)
{
    char text[128];
    snprintf(text, sizeof text, "%s reduce bucket %d", model, bucket);
    nvtxRangePushA(text);
}

void range_end(void)
{
    nvtxRangePop();
}

/* Without a tool NVTX tracks no depth (nvtxRangePushA, "Returns"); marks then need not be made up.
 */
static bool is_watched(void)
{
    static _Thread_local int watched = -1;
    if (watched < 0) {
        watched = nvtxRangePushA("ddptrain looks for a tool") >= 0;
        nvtxRangePop();
    }
    return watched;
}

enum { MARK_BYTES = 256 };

void mark_saved(const void *tensor, uint32_t version, const char *producer, const char *operation)
{
    char text[MARK_BYTES];
    if (!is_watched())
        return;
    snprintf(text, sizeof text, "ddpcheck:save tensor=%p version=%u name=the output of %s (for %s)",
             tensor, version, producer, operation);
    nvtxMarkA(text);
}

void mark_modified(const void *tensor, uint32_t version)
{
    char text[MARK_BYTES];
    if (!is_watched())
        return;
    snprintf(text, sizeof text, "ddpcheck:modify tensor=%p version=%u", tensor, version);
    nvtxMarkA(text);
}

void mark_used(const void *tensor, uint32_t version, uint32_t saved, const char *producer,
               const char *operation)
{
    char text[MARK_BYTES];
    if (!is_watched())
        return;
    snprintf(text, sizeof text,
             "ddpcheck:use tensor=%p version=%u saved=%u name=the output of %s (for %s)", tensor,
             version, saved, producer, operation);
    nvtxMarkA(text);
}
