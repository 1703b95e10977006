#include "trainer/evaluate.h"

#include <stdio.h>

#include "trainer/check.h"
#include "trainer/data/shapes.h"
#include "trainer/operations.h"

enum { TEST_IMAGES = 512 };

/* How many of the data set's first images are classified rightly. */
static int count_correct(struct job *job, struct cnn *cnn, const struct dataset *dataset, int batches)
{
    struct sampler in_order;
    struct loader loader;
    struct error err = {0};
    int correct = 0;
    int32_t *found;         /* device memory */
    CHECK_CUDA(cudaMalloc((void **)&found, sizeof *found));
    sampler_open(&in_order, dataset->count, 0, 1, 0, false, true);
    if (loader_open(&loader, dataset, &in_order, &job->device, job->options->batch, &err) != 0)
        fatal("%s", err.text);
    for (int i = 0; i < batches; i++) {
        int32_t more;
        struct batch batch = loader_read(&loader, i);
        op_cross_entropy(cnn_classify(cnn, batch.images, true), batch.labels, found);
        CHECK_CUDA(cudaMemcpyAsync(&more, found, sizeof more, cudaMemcpyDeviceToHost, job->device.stream));
        device_wait_for_compute(&job->device);
        correct += more;
        device_end_batch(&job->device);
    }
    loader_close(&loader);
    sampler_close(&in_order);
    CHECK_CUDA(cudaFree(found));
    return correct;
}

void evaluate_classifier(struct job *job, struct cnn *cnn)
{
    struct dataset held_out, *dataset = &job->dataset;
    size_t wanted = job->dataset.count < TEST_IMAGES ? job->dataset.count : TEST_IMAGES;
    if (!job->options->images) {
        shapes_open(&held_out, (uint64_t)job->options->seed, job->dataset.count, TEST_IMAGES, job->options->image);
        dataset = &held_out;
        wanted = TEST_IMAGES;
    }
    int batches = (int)(wanted / (size_t)job->options->batch), images = batches * job->options->batch;
    if (images > 0) {
        cnn->module.training = false;
        printf("accuracy %.4f on %d %s images\n", (double)count_correct(job, cnn, dataset, batches) / images, images,
               dataset == &held_out ? "held-out" : "training");
        fflush(stdout);
        cnn->module.training = true;
    }
    if (dataset == &held_out)
        held_out.close(&held_out);
}
