/* train.c: the loop that all trainees share: batches, logging, checkpoints, barriers, and what
 * happens when a rank runs out of data. */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "trainer/check.h"
#include "trainer/clock.h"
#include "trainer/job.h"
#include "trainer/mistakes.h"
#include "trainer/neighbours.h"
#include "trainer/trace_ranges.h"
#include "trainer/watchdog.h"

struct training_run {
    struct training_job *job;
    void *trainee;
    int first, limit; /* iterations first .. limit - 1 */
    float *losses;    /* pinned host memory */
    int loss_count;
    double began_s;
    bool progress; /* a line on the terminal */
};

static bool is_first_rank(const struct training_job *job)
{
    return job->environment.rank == 0;
}

/* --- losses and progress --- */

/* The one place of an iteration where the host waits for the device. */
static void wait_for_losses(struct training_run *run, struct tensor *const *losses)
{
    struct device *device = &run->job->device;
    for (int i = 0; i < run->loss_count; i++)
        CHECK_CUDA(cudaMemcpyAsync(&run->losses[i], tensor_data(losses[i]), sizeof(float),
                                   cudaMemcpyDeviceToHost, device->stream));
    device_wait_for_compute(device);
    watchdog_pass(run->job->watchdog);
}

static double images_per_second(const struct training_run *run, int iterations)
{
    const struct training_job *job = run->job;
    double images = (double)iterations * job->images;
    return images / (clock_seconds() - run->began_s);
}

/* After an iteration. */
static void show_progress(const struct training_run *run)
{
    if (!run->progress)
        return;
    int reached = run->job->iteration + 1, done = reached - run->first;
    double left_s = (clock_seconds() - run->began_s) / done *
                    (run->limit > reached ? run->limit - reached : 0);
    fprintf(stderr, "\riteration %d of %d, %.0f images/s, %d:%02d left\033[K", reached, run->limit,
            images_per_second(run, done), (int)left_s / 60, (int)left_s % 60);
}

/* Rank 0 prints the averages over the ranks that have data; all ranks take part. */
static void log_losses(struct training_run *run, bool has_data)
{
    struct training_job *job = run->job;
    double averages[TRAINEE_MAX_LOSSES + 1] = {0}, *with_data = &averages[run->loss_count];
    for (int i = 0; i < run->loss_count; i++)
        averages[i] = has_data ? run->losses[i] : 0;
    *with_data = has_data;
    communicator_sum(&job->control, averages, run->loss_count + 1);
    for (int i = 0; i < run->loss_count; i++)
        averages[i] /= *with_data;
    if (!is_first_rank(job))
        return;
    if (run->progress)
        fputs("\r\033[K", stderr);
    printf("iteration %d:", job->iteration + 1);
    for (int i = 0; i < run->loss_count; i++)
        printf(" %s %.6f", job->trainee->losses[i], averages[i]);
    printf("\n");
    fflush(stdout);
}

/* Each rank receives the losses of its left neighbour in the ring, so that a rank that diverges
 * alone is seen at once. */
static void exchange_losses(struct training_run *run)
{
    struct training_job *job = run->job;
    bool in_group =
        !(fault_is(&job->fault, FAULT_P2P_CYCLE) && job->iteration >= job->fault.iteration);
    float theirs[TRAINEE_MAX_LOSSES];
    for (int i = 0; i < run->loss_count; i++)
        theirs[i] = run->losses[i];
    range_begin("job", "exchange losses");
    neighbours_exchange(&job->control, theirs, run->loss_count, in_group);
    range_end();
    if (!is_first_rank(job))
        return;
    printf("after %d iterations:", job->iteration + 1);
    for (int i = 0; i < run->loss_count; i++)
        printf(" %s %.6f here, %.6f on rank %d%s", job->trainee->losses[i], run->losses[i],
               theirs[i], neighbours_previous(&job->control), i + 1 < run->loss_count ? ";" : "");
    printf("\n");
    fflush(stdout);
}

/* --- checkpoints and barriers --- */

/* What must be the same for a run to go on where another ended. */
static void describe_configuration(const struct training_job *job, char *text, size_t bytes)
{
    const struct train_options *o = job->options;
    snprintf(
        text, bytes,
        "model=%s image=%d width=%d latent=%d batch-norm=%d shortcut=%d seed=%d batch=%d ranks=%d "
        "data=%zu amp=%s",
        o->model, o->image, o->width, o->latent, !o->no_batch_norm,
        o->generator_shortcut || o->inplace_clone, o->seed, o->batch, job->environment.size,
        job->dataset.count, o->precision.amp ? o->precision.amp : "off");
}

static void save_training(struct training_run *run, int reached)
{
    struct training_job *job = run->job;
    struct checkpoint_section sections[TRAINEE_MAX_SECTIONS];
    int count = job->trainee->sections(run->trainee, sections);
    char configuration[256];
    struct error err = {0};
    if (!is_first_rank(job))
        return;
    describe_configuration(job, configuration, sizeof configuration);
    struct checkpoint_progress progress = {
        .iteration = reached,
        .loss_scale = job->scaler.scale,
        .steps_without_overflow = job->scaler.steps_without_overflow};
    if (checkpoint_save(job->options->output.checkpoint, configuration, &progress, sections, count,
                        &err) != 0)
        fatal("%s", err.text);
}

/* The file to go on from; NULL: begin at the beginning. With --elastic that is the job's own
 * checkpoint as soon as there is one: after a restart of the ranks, and when the whole job is
 * started again. */
static const char *file_to_resume(struct training_job *job)
{
    const struct train_options *options = job->options;
    if (options->launch.elastic && options->output.checkpoint) {
        int seen = access(options->output.checkpoint, F_OK) == 0;
        int by_all = communicator_minimum(&job->control, seen),
            by_any = communicator_maximum(&job->control, seen);
        if (by_all != by_any)
            fatal("only some ranks see %s: --elastic needs a checkpoint on a file system that all "
                  "share",
                  options->output.checkpoint);
        if (by_all)
            return options->output.checkpoint;
    }
    return options->output.resume;
}

static void resume(struct training_run *run, const char *path)
{
    struct training_job *job = run->job;
    struct checkpoint_section sections[TRAINEE_MAX_SECTIONS];
    int count = job->trainee->sections(run->trainee, sections);
    char configuration[256];
    struct error err = {0};
    describe_configuration(job, configuration, sizeof configuration);
    struct checkpoint_progress progress;
    if (checkpoint_load(path, configuration, &progress, sections, count, &err) != 0) {
        notice("%s", err.text);
        exit(2);
    }
    run->first = progress.iteration;
    scaler_restore(&job->scaler, progress.loss_scale, progress.steps_without_overflow);
    if (is_first_rank(job))
        notice("resumed from %s at iteration %d", path, run->first);
}

static void meet_in_barrier(struct training_job *job)
{
    if (job_fault_strikes(job, FAULT_PARTIAL_BARRIER))
        return;
    range_begin("job", "barrier");
    communicator_barrier(&job->control);
    range_end();
}

static bool is_multiple(int count, int every)
{
    return every > 0 && count % every == 0;
}

/* A checkpoint is complete before any rank goes on. A rank without data has an old state, which is
 * not saved. */
static void save_and_meet(struct training_run *run, bool has_data)
{
    struct training_job *job = run->job;
    const struct train_options *options = job->options;
    int reached = job->iteration + 1;
    bool save = options->output.checkpoint &&
                (is_multiple(reached, options->output.checkpoint_every) || reached == run->limit);
    bool faulty = fault_is(&job->fault, FAULT_PARTIAL_BARRIER) &&
                  job->iteration == job->fault.iteration;
    if (save && has_data)
        save_training(run, reached);
    if (save || faulty || is_multiple(reached, options->output.barrier_every))
        meet_in_barrier(job);
}

enum { GC_EVERY = 10, GC_PAUSE_MS = 200 }; /* as faults.c says */

/* What all ranks do after an iteration, whether they had data for it or not. */
static void end_iteration(struct training_run *run, bool has_data)
{
    struct training_job *job = run->job;
    scaler_update(&job->scaler, job->iteration);
    if (is_multiple(job->iteration + 1, GC_EVERY) &&
        fault_strikes_rank(&job->fault, FAULT_GC_PAUSE, job->environment.rank))
        mistake_stall(GC_PAUSE_MS);
    if (is_multiple(job->iteration + 1, job->options->output.log_every))
        log_losses(run, has_data);
    if (is_multiple(job->iteration + 1, job->options->output.exchange_every))
        exchange_losses(run);
    save_and_meet(run, has_data);
}

/* --- uneven inputs --- */

/* The lowest rank that still has data, or INT_MAX: all ranks agree on it before each iteration
 * (--join). */
static int agree_who_has_data(struct training_job *job, bool has_data)
{
    return communicator_minimum(&job->control, has_data ? job->environment.rank : INT_MAX);
}

/* This rank has no data: it takes part in the others' collectives until they have none either. Then
 * all take the state of a rank that trained to the end, as their optimizers made more steps. */
static void shadow_others(struct training_run *run)
{
    struct training_job *job = run->job;
    while (agree_who_has_data(job, false) != INT_MAX) {
        range_begin_iteration(job->iteration);
        job->trainee->shadow(run->trainee, job);
        end_iteration(run, false);
        range_end();
        device_end_batch(&job->device);
        job->iteration++;
    }
}

static void take_state_of_last(struct training_run *run, int trained)
{
    struct training_job *job = run->job;
    int most = communicator_maximum(&job->control, trained);
    int root =
        communicator_minimum(&job->control, trained == most ? job->environment.rank : INT_MAX);
    job->trainee->take_state_of(run->trainee, root);
}

/* --- the loop --- */

static void train_on_batch(struct training_run *run)
{
    struct training_job *job = run->job;
    struct tensor *losses[TRAINEE_MAX_LOSSES] = {NULL};
    range_begin_iteration(job->iteration);
    job_stall_if(job, FAULT_SLOW_LOADER);
    struct data_batch batch = loader_read(&job->loader, job->iteration);
    if (job_fault_strikes(job, FAULT_CRASH) && job->environment.restart == 0)
        mistake_crash();
    bool trained = job->trainee->iterate(run->trainee, job, &batch, losses);
    if (trained) {
        wait_for_losses(run, losses);
        end_iteration(run, true);
    } else {
        device_wait_for_compute(
            &job->device); /* the next batch overwrites this one's host memory */
        watchdog_pass(job->watchdog);
    }
    range_end();
    device_end_batch(&job->device);
}

/* How many iterations this rank has data for. */
static int iterations_of_rank(const struct training_run *run)
{
    const struct training_job *job = run->job;
    int one_more = fault_strikes_rank(&job->fault, FAULT_UNEVEN_INPUTS, job->environment.rank);
    return run->limit + one_more;
}

static void run_training_loop(struct training_run *run)
{
    struct training_job *job = run->job;
    int end = iterations_of_rank(run);
    run->began_s = clock_seconds();
    for (job->iteration = run->first; job->iteration < end; job->iteration++) {
        if (job->options->join)
            agree_who_has_data(job, true);
        train_on_batch(run);
        show_progress(run);
    }
    if (job->options->join) {
        shadow_others(run);
        take_state_of_last(run, end - run->first);
    }
}

static void say_how_it_went(const struct training_run *run)
{
    const struct training_job *job = run->job;
    if (run->progress)
        fputs("\r\033[K", stderr);
    printf("%d iterations on %d rank%s in %.1f s, %.1f images/s\n", job->iteration - run->first,
           job->devices, job->devices == 1 ? "" : "s", clock_seconds() - run->began_s,
           images_per_second(run, job->iteration - run->first));
    fflush(stdout);
}

static int iteration_limit(const struct training_job *job)
{
    const struct train_options *options = job->options;
    int by_epochs = options->epochs * loader_batches_per_epoch(&job->loader);
    if (options->epochs == 0)
        return options->iterations;
    return options->iterations && options->iterations < by_epochs ? options->iterations : by_epochs;
}

int job_train(struct training_job *job)
{
    struct training_run run = {.job = job, .limit = iteration_limit(job)};
    while (job->trainee->losses[run.loss_count])
        run.loss_count++;
    run.progress = is_first_rank(job) && isatty(STDERR_FILENO);
    run.trainee = job->trainee->open(job);
    CHECK_CUDA(cudaMallocHost((void **)&run.losses, sizeof(float) * TRAINEE_MAX_LOSSES));
    const char *path = file_to_resume(job);
    if (path)
        resume(&run, path);

    run_training_loop(&run);
    if (is_first_rank(job)) {
        say_how_it_went(&run);
        if (job->trainee->finish)
            job->trainee->finish(run.trainee, job);
    }
    device_end_batch(&job->device);
    CHECK_CUDA(cudaFreeHost(run.losses));
    job->trainee->close(run.trainee);
    return 0;
}
