/* local_classifier.c: the classifier as a replica of one process: one model, one turn. */
#include <stdlib.h>

#include "trainer/check.h"
#include "trainer/evaluate.h"
#include "trainer/modes/local_replicas.h"
#include "trainer/operations.h"
#include "trainer/trace_ranges.h"
#include "trainer/train_cnn.h"

enum { CLASSIFIER }; /* its model and turn */

struct replica_classifier {
    struct cnn cnn;
    int32_t *correct; /* device memory, of the loss */
};

static void open_classifier(struct local_replica *replica, struct training_job *job)
{
    struct replica_classifier *classifier = allocate(1, sizeof *classifier);
    struct cnn_shape shape = job_cnn_shape(job);
    cnn_open(&classifier->cnn, replica->device, &shape, (uint64_t)job->options->seed);
    CHECK_CUDA(cudaMalloc((void **)&classifier->correct, sizeof *classifier->correct));
    replica->models = classifier;
    replica->modules[CLASSIFIER] = &classifier->cnn.module;
}

static void close_classifier(struct local_replica *replica)
{
    struct replica_classifier *classifier = replica->models;
    CHECK_CUDA(cudaFree(classifier->correct));
    module_close(&classifier->cnn.module);
    free(classifier);
}

static void replica_learn_to_classify(struct local_replica *replica, int turn)
{
    struct replica_classifier *classifier = replica->models;
    range_begin("classifier", "forward");
    struct tensor *logits = cnn_classify(&classifier->cnn, replica->part.images, true);
    replica->losses[turn] = op_cross_entropy(logits, replica->part.labels, classifier->correct);
    range_end();
    local_replica_backward(replica, turn, replica->losses[turn]);
}

static void replica_evaluate_classifier(struct local_replica *master, struct training_job *job)
{
    struct replica_classifier *classifier = master->models;
    evaluate_classifier(job, &classifier->cnn);
}

const struct local_kind local_classifier = {
    .name = "cnn",
    .turns = 1,
    .runs = {1u << CLASSIFIER},
    .open = open_classifier,
    .close = close_classifier,
    .learn = replica_learn_to_classify,
    .finish = replica_evaluate_classifier,
    .adam = job_cnn_adam,
};
