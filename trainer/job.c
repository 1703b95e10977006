/* job.c: sets up and ends what a rank needs for training. */
#include "trainer/job.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "kernels/kernels.h"
#include "trainer/check.h"
#include "trainer/data/shapes.h"
#include "trainer/faults.h"
#include "trainer/mistakes.h"
#include "trainer/modes/modes.h"
#include "trainer/store.h"
#include "trainer/trace_ranges.h"

static const double store_patience_s = 60;
enum { STALL_MS = 30, MORE_WORK = 3 }; /* what faults.c says of slow-host and more-work */

/* Wrong input: status 2 distinguishes it from an error while training. */
static void exit_usage_error(const struct error *err)
{
    notice("%s", err->text);
    exit(2);
}

static void open_data(struct training_job *job)
{
    const struct train_options *options = job->options;
    struct error err = {0};
    shapes_open(&job->dataset, (uint64_t)options->seed, 0, (size_t)options->dataset_size,
                options->image);
    int rank = job->environment.rank, ranks = job->environment.size;
    job->images = job->trainee->same_batch ? options->batch : job->devices * options->batch;
    int batch = job->trainee->one_process ? job->images : options->batch;
    if (fault_strikes_rank(&job->fault, FAULT_MORE_WORK, job->environment.rank))
        batch *= MORE_WORK;
    if (job->trainee->same_batch || fault_is(&job->fault, FAULT_SAME_SHARD))
        rank = 0, ranks = 1;
    sampler_open(&job->sampler, job->dataset.count, rank, ranks, (uint64_t)options->seed, true,
                 false);
    if (loader_open(&job->loader, &job->dataset, &job->sampler, &job->device, batch, &err) != 0)
        exit_usage_error(&err);
}

static int device_of_rank(const struct training_job *job)
{
    int devices = 0, rank = job->environment.rank;
    CHECK_CUDA(cudaGetDeviceCount(&devices));
    if (devices == 0)
        fatal("no CUDA device");
    if (fault_strikes_rank(&job->fault, FAULT_INIT_GPU, rank))
        rank = 0;
    else if (job->environment.local_rank >= 0)
        rank = job->environment.local_rank;
    return rank % devices;
}

/* Rank 0 draws the id and puts it into the store, from which all take it. */
static ncclUniqueId exchange_id(const struct environment *environment)
{
    ncclUniqueId id;
    struct error err = {0};
    if (environment->rank == 0) {
        int port = environment->port;
        int listening = environment->store_socket >= 0 ? environment->store_socket
                                                       : store_listen(&port, &err);
        if (listening < 0 || store_serve(listening, &err) != 0)
            fatal("%s", err.text);
    }
    int store = store_connect(environment->host, environment->port, store_patience_s, &err);
    if (store < 0)
        fatal("%s", err.text);
    if (environment->rank == 0) {
        CHECK_NCCL(ncclGetUniqueId(&id));
        if (store_set(store, "nccl-unique-id", &id, sizeof id, &err) != 0)
            fatal("%s", err.text);
    }
    if (store_get(store, "nccl-unique-id", &id, sizeof id, &err) != 0)
        fatal("%s", err.text);
    close(store);
    /* The server goes on until the process ends: ranks may still come for the id. */
    return id;
}

static void connect_ranks(struct training_job *job)
{
    const struct environment *environment = &job->environment;
    int rank = environment->rank, size = environment->size;
    ncclUniqueId id;
    if (size > 1)
        id = exchange_id(environment);
    else
        CHECK_NCCL(ncclGetUniqueId(&id));

    if (fault_strikes_rank(&job->fault, FAULT_INIT_MISSING, rank))
        mistake_load_data_forever();
    if (fault_strikes_rank(&job->fault, FAULT_INIT_WORLD, rank))
        size++;
    if (fault_strikes_rank(&job->fault, FAULT_INIT_DUPLICATE, rank))
        rank = rank > 0 ? rank - 1 : 1;
    communicator_connect(&job->control, "control", &job->device, rank, size, &id, job->watchdog);
}

static const struct trainee *const trainees[] = {&trainee_gan,           &trainee_cnn,
                                                 &trainee_data_parallel, &trainee_mirrored,
                                                 &trainee_pipeline,      &trainee_data_parallel_gan,
                                                 &trainee_mirrored_gan,  &trainee_pipeline_gan};

static const struct trainee *find_trainee(const struct train_options *options)
{
    for (size_t i = 0; i < sizeof trainees / sizeof trainees[0]; i++)
        if (strcmp(trainees[i]->name, options->model) == 0 &&
            strcmp(trainees[i]->mode, options->mode) == 0)
            return trainees[i];
    fatal("--mode %s can't train --model %s", options->mode, options->model);
}

/* How many devices take part, in all ranks together. */
static int count_devices(const struct training_job *job)
{
    const struct trainee *trainee = job->trainee;
    int wanted = job->options->launch.ranks, ranks = job->environment.size, here = 0;
    struct error err = {0};
    if (trainee->ranks && ranks != trainee->ranks)
        error_set(&err, "--mode %s takes %d ranks (--ranks), not %d", trainee->mode, trainee->ranks,
                  ranks);
    else if (trainee->one_process && ranks > 1)
        error_set(&err, "--mode %s is one process that drives all devices, not %d", trainee->mode,
                  ranks);
    if (trainee->one_process && !*err.text) {
        CHECK_CUDA(cudaGetDeviceCount(&here));
        if (wanted > here)
            error_set(&err, "--mode %s with --ranks %d: there are %d CUDA devices", trainee->mode,
                      wanted, here);
    }
    if (*err.text)
        exit_usage_error(&err);
    if (!trainee->one_process)
        return ranks;
    return wanted ? wanted : here;
}

static void choose_fault(struct training_job *job)
{
    const struct train_options *options = job->options;
    struct fault *fault = &job->fault;
    struct error err = {0};
    int ranks = job->devices;
    fault->kind = fault_find(options->fault.name);
    fault->rank = options->fault.rank >= 0 ? options->fault.rank : ranks - 1;
    fault->iteration = options->fault.iteration;
    if (ranks < fault->kind->least_ranks)
        error_set(&err, "--fault %s needs at least %d ranks (--ranks)", fault->kind->name,
                  fault->kind->least_ranks);
    else if (fault->rank >= ranks)
        error_set(&err, "--fault-rank %d: there are ranks 0 to %d", fault->rank, ranks - 1);
    else
        hardware_make_faulty(fault, &err);
    if (*err.text)
        exit_usage_error(&err);
}

/* bf16 has the exponents of fp32: nothing overflows or vanishes there that would not in fp32. */
static void open_scaler(struct training_job *job)
{
    const struct train_options *options = job->options;
    enum precision precision = !options->precision.amp                       ? PRECISION_FP32
                               : strcmp(options->precision.amp, "fp16") == 0 ? PRECISION_FP16
                                                                             : PRECISION_BF16;
    struct scaler_settings settings = {
        .on = precision == PRECISION_FP16,
        .first_scale = (float)options->precision.loss_scale,
        .growth_interval = options->precision.scale_growth,
        .agrees = !fault_is(&job->fault, FAULT_AMP_SKIP) || options->precision.agree_overflow,
    };
    scaler_open(&job->scaler, &job->device, &job->control, precision, &settings);
}

static enum kernels_math math_named(const char *name)
{
    return strcmp(name, "tf32") == 0   ? KERNELS_TF32
           : strcmp(name, "bf16") == 0 ? KERNELS_BF16
                                       : KERNELS_FP32;
}

void job_open(struct training_job *job, const struct train_options *options,
              const struct environment *environment)
{
    *job = (struct training_job){
        .options = options, .environment = *environment, .trainee = find_trainee(options)};
    job->devices = count_devices(job);
    kernels_set_math(math_named(options->precision.math));
    if (options->fault.name)
        choose_fault(job);
    range_begin("job", "construction");
    device_open(&job->device, device_of_rank(job));
    job->device.check_versions = !options->no_version_check;
    open_data(job);
    if (options->launch.timeout_s > 0)
        job->watchdog = watchdog_start(job->device.index, options->launch.timeout_s);
    if (options->verbose)
        notice("one of %d ranks, on device %d, started by %s%s", environment->size,
               job->device.index,
               options->launch.ranks   ? "ddptrain"
               : environment->launcher ? environment->launcher
                                       : "nobody",
               environment->restart ? " again" : "");
    connect_ranks(job);
    open_scaler(job);
    range_end();
}

void job_close(struct training_job *job)
{
    scaler_close(&job->scaler);
    communicator_close(&job->control);
    watchdog_stop(job->watchdog);
    loader_close(&job->loader);
    sampler_close(&job->sampler);
    job->dataset.close(&job->dataset);
    device_close(&job->device);
}

static enum reducer_average average_named(const char *name)
{
    if (strcmp(name, "premulsum") == 0)
        return REDUCER_AVERAGE_PREMULTIPLY;
    return strcmp(name, "divide") == 0 ? REDUCER_AVERAGE_DIVIDE : REDUCER_AVERAGE_NCCL;
}

struct distributed_settings job_distributed(const struct training_job *job)
{
    enum { MEGABYTE = 1024 * 1024 };
    const struct train_options *options = job->options;
    return (struct distributed_settings){
        .reducer = {.limits = {.first_bytes =
                                   (size_t)(options->gradients.first_bucket_mb * MEGABYTE),
                               .other_bytes = (size_t)(options->gradients.bucket_mb * MEGABYTE)},
                    .average = average_named(options->gradients.average),
                    .find_unused = options->gradients.find_unused ||
                                   fault_is(&job->fault, FAULT_FORWARD_TWICE),
                    .static_graph = options->gradients.static_graph,
                    .is_in_pieces = fault_is(&job->fault, FAULT_TINY_BUCKETS),
                    .copies = options->gradients.reduce_copies ||
                              fault_is(&job->fault, FAULT_FREE_IN_FLIGHT)},
        .trust_parameters = fault_is(&job->fault, FAULT_MODEL_MISMATCH),
        .keep_own_buffers =
            options->gradients.keep_own_buffers ||
            fault_strikes_rank(&job->fault, FAULT_BUFFERS_MISMATCH, job->environment.rank),
    };
}

struct adam_settings job_adam(const struct training_job *job, float beta1)
{
    float rate = job->options->learning_rate > 0 ? (float)job->options->learning_rate
                                                 : job->trainee->rate;
    return (struct adam_settings){.rate = rate, .beta1 = beta1, .beta2 = 0.999f, .epsilon = 1e-8f};
}

bool job_fault_strikes(const struct training_job *job, enum fault_id id)
{
    return fault_strikes(&job->fault, id, job->environment.rank, job->iteration);
}

void job_stall_if(const struct training_job *job, enum fault_id id)
{
    if (fault_strikes_rank(&job->fault, id, job->environment.rank))
        mistake_stall(STALL_MS);
}

enum fault_id job_fault_now(const struct training_job *job)
{
    const struct fault_kind *kind = job->fault.kind;
    return kind && job_fault_strikes(job, kind->id) ? kind->id : FAULT_NONE;
}
