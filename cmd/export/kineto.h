/* kineto.h: what torch.profiler (Kineto) calls things, so that scripts for its traces read ours. */
#ifndef DDPCHECK_EXPORT_KINETO_H
#define DDPCHECK_EXPORT_KINETO_H

#include <stdint.h>

#include "lib/trace/record.h"

/* "allreduce", "_allgather_base", "send": the "Collective name" that ProcessGroupNCCL gives to this
 * NCCL call. */
const char *kineto_collective(unsigned api);

/* "Float", "BFloat16": "dtype"; "" where there is none. */
const char *kineto_dtype(unsigned datatype);

/* Elements that one rank gives and gets: "In msg nelems", "Out msg nelems". */
uint64_t kineto_in(const struct record *call, int nranks);
uint64_t kineto_out(const struct record *call, int nranks);

#endif
