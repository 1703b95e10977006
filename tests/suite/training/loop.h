/* loop.h: what a training loop tells NVTX, for the cases that are about it. The tools under test see no more than this. */
#ifndef DDPCHECK_TESTS_SUITE_LOOP_H
#define DDPCHECK_TESTS_SUITE_LOOP_H

#include <nvtx3/nvToolsExt.h>
#include <stdarg.h>
#include <stdio.h>

#include "tests/suite/suite.h"

/* Opens the range; nvtxRangePop() closes it. */
static inline void range_push(const char *format, ...)
{
    char text[128];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    nvtxRangePushA(text);
}

/* The host knows the result: as where a loss is printed. */
static inline void wait_for_step(struct rank *me)
{
    CUDA(cudaStreamSynchronize(me->stream));
}

#endif
