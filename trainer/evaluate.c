/* evaluate.c: measures the trained model: accuracy, or the distance of generated images from real
 * ones. */
#include "trainer/evaluate.h"

#include <stdio.h>
#include <stdlib.h>

#include "trainer/check.h"
#include "trainer/data/shapes.h"
#include "trainer/distance.h"
#include "trainer/noise.h"
#include "trainer/operations.h"
#include "trainer/samples_png.h"

enum {
    TEST_IMAGES = 512,
    SAMPLES = 128,
    SAMPLES_AT_ONCE = 64,
    SAMPLES_DRAWN = 64,
    SAMPLE_COLUMNS = 8
};

/* What models are measured by. */
struct reference {
    struct dataset dataset;
    bool held_out;
    size_t count; /* images of it to take */
};

static void reference_open(struct reference *reference, const struct training_job *job)
{
    const struct dataset *training = &job->dataset;
    *reference = (struct reference){
        .dataset = *training, .held_out = !job->options->images, .count = TEST_IMAGES};
    if (reference->held_out)
        shapes_open(&reference->dataset, (uint64_t)job->options->seed, training->count, TEST_IMAGES,
                    training->image);
    else if (training->count < TEST_IMAGES)
        reference->count = training->count;
}

static void reference_close(struct reference *reference)
{
    if (reference->held_out)
        reference->dataset.close(&reference->dataset);
}

static const char *reference_name(const struct reference *reference)
{
    return reference->held_out ? "held-out" : "training";
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
    struct reference reference;
    reference_open(&reference, job);
    int batches = (int)(reference.count / (size_t)job->options->batch),
        images = batches * job->options->batch;
    if (images > 0) {
        cnn->module.training = false;
        printf("accuracy %.4f on %d %s images\n",
               (double)count_correct(job, cnn, &reference.dataset, batches) / images, images,
               reference_name(&reference));
        fflush(stdout);
        cnn->module.training = true;
    }
    reference_close(&reference);
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
    struct reference reference;
    reference_open(&reference, job);
    int count = reference.count / 2 < SAMPLES ? (int)reference.count / 2 : SAMPLES,
        pixels = job->dataset.image * job->dataset.image;
    size_t floats = (size_t)count * (size_t)pixels;
    float *images = allocate(2 * floats, sizeof *images);
    for (int i = 0; i < 2 * count; i++) {
        int32_t label;
        reference.dataset.read(&reference.dataset, (size_t)i, images + (size_t)i * (size_t)pixels,
                               &label);
    }
    if (count > 0)
        printf("distance %.4f of %d generated images to %s ones (of these to one another: %.4f)\n",
               image_distance(samples, images, count, pixels), count, reference_name(&reference),
               image_distance(images + floats, images, count, pixels));
    fflush(stdout);
    free(images);
    reference_close(&reference);
}

void evaluate_generator(struct training_job *job, struct dcgan_generator *generator)
{
    const char *path = job->options->samples;
    int image = job->options->image;
    float *pixels = allocate((size_t)SAMPLES * (size_t)image * (size_t)image, sizeof *pixels);
    struct error err = {0};
    draw_samples(job, generator, pixels);
    print_distance(job, pixels);
    if (path && samples_png_write(path, pixels, SAMPLES_DRAWN, SAMPLE_COLUMNS, image, &err) != 0)
        fatal("%s", err.text);
    free(pixels);
}
