/* The classifier as a replica of one process: one model, one turn. */
#include <stdlib.h>

#include "trainer/check.h"
#include "trainer/evaluate.h"
#include "trainer/modes/local_replicas.h"
#include "trainer/operations.h"
#include "trainer/trace_ranges.h"
#include "trainer/train_cnn.h"

enum { CLASSIFIER }; /* its model and turn */

struct classifier {
    struct cnn cnn;
    int32_t *correct; /* device memory, of the loss */
};

static void open_classifier(struct local_replica *replica, struct job *job)
{
    struct classifier *classifier = allocate(1, sizeof *classifier);
    struct cnn_shape shape = job_cnn_shape(job);
    cnn_open(&classifier->cnn, replica->device, &shape, (uint64_t)job->options->seed);
    CHECK_CUDA(cudaMalloc((void **)&classifier->correct, sizeof *classifier->correct));
    replica->models = classifier;
    replica->modules[CLASSIFIER] = &classifier->cnn.module;
}

static void close_classifier(struct local_replica *replica)
{
    struct classifier *classifier = replica->models;
    CHECK_CUDA(cudaFree(classifier->correct));
    module_close(&classifier->cnn.module);
    free(classifier);
}

static void learn(struct local_replica *replica, int turn)
{
    struct classifier *classifier = replica->models;
    range_begin("classifier", "forward");
    struct tensor *logits = cnn_classify(&classifier->cnn, replica->part.images, true);
    replica->losses[turn] = op_cross_entropy(logits, replica->part.labels, classifier->correct);
    range_end();
    local_replica_backward(replica, turn, replica->losses[turn]);
}

static void finish(struct local_replica *master, struct job *job)
{
    struct classifier *classifier = master->models;
    evaluate_classifier(job, &classifier->cnn);
}

const struct local_kind local_classifier = {
    .name = "cnn",
    .turns = 1,
    .runs = {1u << CLASSIFIER},
    .open = open_classifier,
    .close = close_classifier,
    .learn = learn,
    .finish = finish,
    .adam = job_cnn_adam,
};
