#include "trainer/trace_ranges.h"

#include <nvtx3/nvToolsExt.h>
#include <stdio.h>

void range_begin_iteration(int iteration)
{
    char text[64];
    snprintf(text, sizeof text, "iteration %d", iteration);
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
