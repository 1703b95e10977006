/* loop_stream.h: what a training loop with NVTX ranges leaves, for the tests of DC504 to DC507 and
 * DC6xx. */
#ifndef DDPCHECK_TEST_LOOP_STREAM_H
#define DDPCHECK_TEST_LOOP_STREAM_H

#include "verdict.h"

#define WORLD UINT64_C(0x5ae7000000000001)

enum { RANKS = 4, BUCKETS = 3, ITERATIONS = 8 };
/* The rank and the iteration that differ from the others. */
enum { ODD = 3, STRIKES = 5 };

#define ALL_RANKS(rank) for (int rank = 0; rank < RANKS; rank++)

struct job *loop_job_new(void);
/* Opens "iteration N"; N < 0: "train_step", without a number. */
void begin(struct job *job, int rank, int number);
void end_of_range(struct job *job, int rank);
/* "MODEL backward" with the buckets first .. last - 1 of the model reduced in it, each in "MODEL
 * reduce bucket B". Bucket b has 1000 + 100 b elements, the same for every model. */
void backward(struct job *job, int rank, const char *model, int first, int last);
/* "MODEL forward", which begins with a Broadcast of 96 elements. */
void forward_with_buffers(struct job *job, int rank, const char *model);
void step(struct job *job, int rank, const char *model);
/* A whole iteration: backward over all buckets, and a step. */
void iterate(struct job *job, int rank, int number);
/* In the order of writing and mixed in several ways: always the one finding, or none. */
const struct found *expect_always(struct job *job, struct verdict *verdict, const char *code);

#endif
