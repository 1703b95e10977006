/* evaluate.c: measures the trained model: accuracy, or the distance of generated images from real
 * ones. */
#include "trainer/evaluate.h"

#include <stdio.h>
#include <stdlib.h>

#include "trainer/check.h"
#include "trainer/data/shapes.h"
#include "trainer/distance.h"
#include "trainer/models/dcgan.h"
#include "trainer/operations.h"
#include "trainer/png_file.h"

enum {
    TEST_IMAGES = 512,
    SAMPLES = 128,
    SAMPLES_AT_ONCE = 64,
    SAMPLES_DRAWN = 64,
    SAMPLE_COLUMNS = 8
};

/* Images that follow the training set. */
static void open_held_out(struct dataset *dataset, const struct training_job *job)
{
    shapes_open(dataset, (uint64_t)job->options->seed, job->dataset.count, TEST_IMAGES,
                job->dataset.image);
}

/* --- a classifier --- */

/* How many of the data set's first images are classified rightly. */
static int count_correct(struct training_job *job, struct cnn *cnn, const struct dataset *dataset,
                         int batches)
{
    struct sampler in_order;
    struct loader loader;
    struct error err = {0};
    int correct = 0;
    int32_t *found; /* device memory */
    CHECK_CUDA(cudaMalloc((void **)&found, sizeof *found));
    sampler_open(&in_order, dataset->count, 0, 1, 0, false, true);
    if (loader_open(&loader, dataset, &in_order, &job->device, job->options->batch, &err) != 0)
        fatal("%s", err.text);
    for (int i = 0; i < batches; i++) {
        int32_t more;
        struct data_batch batch = loader_read(&loader, i);
        op_cross_entropy(cnn_classify(cnn, batch.images, true), batch.labels, found);
        CHECK_CUDA(
            cudaMemcpyAsync(&more, found, sizeof more, cudaMemcpyDeviceToHost, job->device.stream));
        device_wait_for_compute(&job->device);
        correct += more;
        device_end_batch(&job->device);
    }
    loader_close(&loader);
    sampler_close(&in_order);
    CHECK_CUDA(cudaFree(found));
    return correct;
}

void evaluate_classifier(struct training_job *job, struct cnn *cnn)
{
    struct dataset held_out;
    open_held_out(&held_out, job);
    int batches = TEST_IMAGES / job->options->batch, images = batches * job->options->batch;
    if (images > 0) {
        cnn->module.training = false;
        printf("accuracy %.4f on %d held-out images\n",
               (double)count_correct(job, cnn, &held_out, batches) / images, images);
        fflush(stdout);
        cnn->module.training = true;
    }
    held_out.close(&held_out);
}

/* --- a generator --- */

/* Fills in SAMPLES images. */
static void draw_samples(struct training_job *job, struct dcgan_generator *generator, float *pixels)
{
    struct noise noise;
    noise_open(&noise, (uint64_t)job->options->seed, job->options->latent, SAMPLES_AT_ONCE);
    generator->module.training = false;
    for (int first = 0; first < SAMPLES; first += SAMPLES_AT_ONCE) {
        struct tensor *images = dcgan_generate(
            generator,
            noise_draw(&noise, &job->device, RANDOM_SAMPLES, SAMPLES_AT_ONCE, (uint64_t)first, 1));
        tensor_download(images,
                        pixels + (size_t)first * shape_count(&images->shape) / SAMPLES_AT_ONCE);
        device_end_batch(&job->device);
    }
    generator->module.training = true;
    noise_close(&noise);
}

static void print_distance(const struct training_job *job, const float *samples)
{
    struct dataset held_out;
    open_held_out(&held_out, job);
    int pixels = job->dataset.image * job->dataset.image;
    size_t floats = (size_t)SAMPLES * (size_t)pixels;
    float *images = allocate(2 * floats, sizeof *images);
    for (int i = 0; i < 2 * SAMPLES; i++) {
        int32_t label;
        held_out.read(&held_out, (size_t)i, images + (size_t)i * (size_t)pixels, &label);
    }
    printf(
        "distance %.4f of %d generated images to held-out ones (of these to one another: %.4f)\n",
        image_distance(samples, images, SAMPLES, pixels), SAMPLES,
        image_distance(images + floats, images, SAMPLES, pixels));
    fflush(stdout);
    free(images);
    held_out.close(&held_out);
}

void evaluate_generator(struct training_job *job, struct dcgan_generator *generator)
{
    const char *path = job->options->output.samples;
    int image = job->options->image;
    float *pixels = allocate((size_t)SAMPLES * (size_t)image * (size_t)image, sizeof *pixels);
    struct error err = {0};
    draw_samples(job, generator, pixels);
    print_distance(job, pixels);
    if (path && samples_png_write(path, pixels, SAMPLES_DRAWN, SAMPLE_COLUMNS, image, &err) != 0)
        fatal("%s", err.text);
    free(pixels);
}
