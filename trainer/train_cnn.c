/* Training a classifier: the plain case of one replicated model. */
#include <stdio.h>
#include <stdlib.h>

#include "trainer/check.h"
#include "trainer/data/shapes.h"
#include "trainer/job.h"
#include "trainer/mistakes.h"
#include "trainer/models/cnn.h"
#include "trainer/operations.h"
#include "trainer/replicas.h"
#include "trainer/trace_ranges.h"

enum { CHANNELS = 1, TEST_IMAGES = 512 };
static const float beta1 = 0.9f;

struct classifier {
    struct cnn cnn;
    struct communicator communicator;
    struct distributed ranks;
    struct optimizer optimizer;
    int32_t *correct;           /* device memory */
};

static void *classifier_open(struct job *job)
{
    struct classifier *classifier = allocate(1, sizeof *classifier);
    struct cnn_shape shape = {.image = job->options->image, .channels = CHANNELS, .width = job->options->width,
                              .classes = job->dataset.classes, .batch_norm = !job->options->no_batch_norm};
    struct distributed_settings settings = job_distributed(job);
    struct adam_settings adam = job_adam(job, beta1);

    cnn_open(&classifier->cnn, &job->device, &shape, (uint64_t)job->options->seed);
    if (fault_strikes_rank(&job->fault, FAULT_MODEL_MISMATCH, job->environment.rank))
        mistake_reverse_parameters(&classifier->cnn.module);
    communicator_split(&job->control, &classifier->communicator, "classifier");
    distributed_open(&classifier->ranks, &classifier->cnn.module, &classifier->communicator, &settings);
    optimizer_open(&classifier->optimizer, &classifier->cnn.module, &adam);
    CHECK_CUDA(cudaMalloc((void **)&classifier->correct, sizeof *classifier->correct));
    return classifier;
}

static void classifier_close(void *self)
{
    struct classifier *classifier = self;
    CHECK_CUDA(cudaFree(classifier->correct));
    optimizer_close(&classifier->optimizer);
    distributed_close(&classifier->ranks);
    communicator_close(&classifier->communicator);
    module_close(&classifier->cnn.module);
    free(classifier);
}

static struct tensor *forward(struct classifier *classifier, const struct batch *batch)
{
    range_begin("classifier", "forward");
    distributed_begin_forward(&classifier->ranks);
    struct tensor *logits = cnn_classify(&classifier->cnn, batch->images);
    distributed_end_forward(&classifier->ranks, &logits, 1);
    struct tensor *loss = op_cross_entropy(logits, batch->labels, classifier->correct);
    range_end();
    return loss;
}

static void step(struct classifier *classifier, struct job *job)
{
    struct distributed *ranks = &classifier->ranks;
    if (job_fault_strikes(job, FAULT_INPLACE_BUCKET))
        reducer_clip_gradients(&ranks->reducer, 0.01f);     /* too early: the AllReduce is in flight */
    distributed_finish_reduction(ranks);
    range_begin("classifier", "step");
    if (job->options->clip > 0)
        reducer_clip_gradients(&ranks->reducer, (float)job->options->clip);
    optimizer_step(&classifier->optimizer);
    replicas_announce(ranks);
    range_end();
}

static bool classifier_iterate(void *self, struct job *job, const struct batch *batch, struct tensor **losses)
{
    struct classifier *classifier = self;
    if (job_fault_strikes(job, FAULT_WRONG_DEVICE))
        mistake_move_first_weights(&classifier->cnn.module);
    distributed_zero_gradients(&classifier->ranks);
    losses[0] = forward(classifier, batch);
    if (job_fault_strikes(job, FAULT_OOM_SKIP) && mistake_run_out_of_memory(job->iteration)) {
        if (!job->options->catch_up)
            return false;
        distributed_shadow_backward(&classifier->ranks);
    } else {
        distributed_backward(&classifier->ranks, losses[0]);
    }
    step(classifier, job);
    return true;
}

static void classifier_shadow(void *self, struct job *job)
{
    struct classifier *classifier = self;
    (void)job;
    distributed_shadow_forward(&classifier->ranks);
    distributed_shadow_backward(&classifier->ranks);
}

static void classifier_take_state_of(void *self, int root)
{
    struct classifier *classifier = self;
    distributed_take_state_of(&classifier->ranks, root);
}

static int classifier_sections(void *self, struct checkpoint_section *sections)
{
    struct classifier *classifier = self;
    sections[0] = (struct checkpoint_section){&classifier->cnn.module, &classifier->optimizer};
    return 1;
}

/* How many of the data set's first images are classified rightly. */
static int count_correct(struct classifier *classifier, struct job *job, const struct dataset *dataset, int batches)
{
    struct sampler in_order;
    struct loader loader;
    struct error err = {0};
    int correct = 0;
    sampler_open(&in_order, dataset->count, 0, 1, 0, false, true);
    if (loader_open(&loader, dataset, &in_order, &job->device, job->options->batch, &err) != 0)
        fatal("%s", err.text);
    for (int i = 0; i < batches; i++) {
        int32_t more;
        struct batch batch = loader_read(&loader, i);
        op_cross_entropy(cnn_classify(&classifier->cnn, batch.images), batch.labels, classifier->correct);
        CHECK_CUDA(cudaMemcpyAsync(&more, classifier->correct, sizeof more, cudaMemcpyDeviceToHost, job->device.stream));
        device_wait_for_compute(&job->device);
        correct += more;
        device_end_batch(&job->device);
    }
    loader_close(&loader);
    sampler_close(&in_order);
    return correct;
}

/* Generated shapes go on beyond the training set; of a file nothing is held back. */
static void classifier_finish(void *self, struct job *job)
{
    struct classifier *classifier = self;
    struct dataset held_out, *dataset = &job->dataset;
    size_t wanted = job->dataset.count < TEST_IMAGES ? job->dataset.count : TEST_IMAGES;
    if (!job->options->images) {
        shapes_open(&held_out, (uint64_t)job->options->seed, job->dataset.count, TEST_IMAGES, job->options->image);
        dataset = &held_out;
        wanted = TEST_IMAGES;
    }
    int batches = (int)(wanted / (size_t)job->options->batch), images = batches * job->options->batch;
    if (images > 0) {
        classifier->cnn.module.training = false;
        printf("accuracy %.4f on %d %s images\n",
               (double)count_correct(classifier, job, dataset, batches) / images, images,
               dataset == &held_out ? "held-out" : "training");
        fflush(stdout);
        classifier->cnn.module.training = true;
    }
    if (dataset == &held_out)
        held_out.close(&held_out);
}

const struct trainee trainee_cnn = {
    .name = "cnn", .losses = {"classifier"}, .rate = 1e-3f, .open = classifier_open, .iterate = classifier_iterate,
    .shadow = classifier_shadow, .take_state_of = classifier_take_state_of, .finish = classifier_finish,
    .sections = classifier_sections, .close = classifier_close,
};
