/* modes.h: --mode, the ways to spread training over devices.
 *
 *   ddp        a process for each device, each with its replica and its shard of the data;
 *              gradients are reduced while backward goes on (distributed.h, reducer.h: what
 *              DistributedDataParallel does)
 *   dp         one process, one set of models; before each forward the other devices get their
 *              parameters, a thread for each computes gradients, which go back to it
 *              (data_parallel.c: DataParallel)
 *   mirrored   one process, one thread; replicas that stay and reduce their gradients in one
 *              ncclGroup (mirrored.c: MirroredStrategy)
 *   pipeline   two processes with half of the model each (model parallelism): of the classifier its
 *              first and its last layers (pipeline.c), of the GAN the generator and the
 *              discriminator (pipeline_gan.c)
 *
 * A mode is a struct trainee (job.h) of its own; job.c finds it by mode and model. */
#ifndef DDPTRAIN_MODES_H
#define DDPTRAIN_MODES_H

#include "trainer/faults.h"
#include "trainer/options.h"

extern const struct trainee trainee_data_parallel, trainee_mirrored, trainee_pipeline;
extern const struct trainee trainee_data_parallel_gan, trainee_mirrored_gan, trainee_pipeline_gan;

/* True if one process drives all devices. */
bool mode_is_one_process(const char *mode);
/* The mode in which a fault can be made. */
const char *mode_of_fault(enum fault_id id);
/* Returns 0, or -1 with a message if the options ask for what their mode does not do. */
int mode_check(const struct train_options *options, struct error *err);

#endif
