/* faults.c: the table of faults, when a fault strikes, and faults of the emulated hardware. */
#include "trainer/faults.h"

#include <cuda_runtime_api.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "trainer/check.h"

static const struct fault_kind kinds[] = {
    {FAULT_INPLACE_ACTIVATION, "inplace-activation", 1,
     "the generator computes a leaky ReLU in place on a tensor that batch norm saved for backward",
     "autograd's version error on all ranks; with --no-version-check wrong gradients and no error",
     "DC307", "--inplace-clone", 1},
    {FAULT_INPLACE_BUCKET, "inplace-bucket", 2,
     "a rank clips the discriminator's gradients before it waits for their AllReduce",
     "weights differ between ranks, silently", "DC301", "--clip 0.01", 2},
    {FAULT_UNEVEN_UPDATES, "uneven-updates", 4,
     "a rank updates the discriminator once more in an iteration because its loss is still high "
     "there",
     "hang", "DC202", "--discriminator-updates 2", 2},
    {FAULT_PARTIAL_BARRIER, "partial-barrier", 5,
     "after an iteration all ranks but one call a barrier, as around a checkpoint", "hang", "DC201",
     "--barrier-every 5", 2},
    {FAULT_P2P_CYCLE, "p2p-cycle", 6,
     "the ranks pass their losses around a ring, and each sends before it receives, outside a "
     "group",
     "hang", "DC203", "--exchange-every 3", 2},
    {FAULT_MIRRORED_NO_GROUP, "mirrored-no-group", 8,
     "one thread reduces the gradients of its devices one device after the other, without "
     "ncclGroupStart and ncclGroupEnd",
     "hang", "DC201", "--mode mirrored", 2},
    {FAULT_DP_STALE_REPLICA, "dp-stale-replica", 23,
     "a device keeps the parameters of an earlier step: its replica is not refreshed before "
     "forward",
     "learns less, silently", "DC503", "--mode dp", 2},
    {FAULT_PIPELINE_ORDER, "pipeline-order", 26,
     "in a pipeline of two halves the back sends a gradient while the front sends an activation; "
     "one must receive first",
     "hang", "DC203", "--mode pipeline", 2},
    {FAULT_INIT_WORLD, "init-world", 9, "a rank passes one rank too many to ncclCommInitRankConfig",
     "hang or NCCL error at start", "DC109", "", 2},
    {FAULT_INIT_DUPLICATE, "init-duplicate", 9,
     "a rank gives its predecessor's number to ncclCommInitRankConfig",
     "hang or NCCL error at start", "DC109", "", 2},
    {FAULT_INIT_GPU, "init-gpu", 9, "a rank uses the GPU of rank 0",
     "NCCL error at start: invalid usage", "DC405", "", 2},
    {FAULT_INIT_MISSING, "init-missing", 9,
     "a rank never calls ncclCommInitRankConfig: it is still loading data", "hang at start",
     "DC209", "", 2},
    {FAULT_SAME_SHARD, "same-shard", 10,
     "the sampler does not deal out the data: every rank reads the same images in the same order",
     "trains, learns less", "DC501", "", 2},
    {FAULT_UNEVEN_INPUTS, "uneven-inputs", 11,
     "a rank has one batch more; the others leave the loop, destroy their communicators and exit",
     "hang at the end", "DC206", "--fault uneven-inputs --join", 2},
    {FAULT_SHARED_COMM, "shared-comm", 15,
     "two models' reducers share a communicator, and a rank computes the generator's gradients "
     "first",
     "hang, or NCCL adds one model's gradients to the other's", "DC507", "--simultaneous", 2},
    {FAULT_COMM_ORDER, "comm-order", 16,
     "two models with a communicator each; a rank computes the generator's gradients first",
     "hangs now and then, more often the larger the models", "DC204", "--simultaneous", 2},
    {FAULT_OOM_SKIP, "oom-skip", 19,
     "a rank runs out of device memory, catches the error and skips the batch's backward",
     "hang in the next reduction", "DC504", "--fault oom-skip --catch-up", 2},
    {FAULT_ACCUM_MISMATCH, "accum-mismatch", 12,
     "while gradients are accumulated a rank reduces after the first micro-step instead of the "
     "last",
     "sums of different parts of the batch are averaged, weights drift apart", "DC505",
     "--model cnn --accumulate 4", 2},
    {FAULT_ACCUM_EVERY, "accum-every", 12,
     "gradients are accumulated, but no_sync is forgotten: every micro-step reduces", "slow",
     "DC505", "--model cnn --accumulate 4", 1},
    {FAULT_FORWARD_TWICE, "forward-twice", 17,
     "two forward passes before one backward, with find_unused: what the second leaves out counts "
     "as unused, although the first used it, and is reduced before its gradient comes (with "
     "--first-bucket-mb 0 --bucket-mb 0; in a large bucket it only waits)",
     "error on all ranks: the gradient is complete for the second time", "DC301",
     "--model cnn --two-passes --find-unused", 1},
    {FAULT_UNUSED_PARAMS, "unused-params", 18,
     "a rank leaves out a residual block in one iteration (stochastic depth): its parameters get "
     "no gradient",
     "hang; that rank reports that the previous iteration's reduction is not finished", "DC504",
     "--fault unused-params --find-unused", 2},
    {FAULT_BUFFERS_MISMATCH, "buffers-mismatch", 25,
     "a rank does not take part in the broadcast of the batch norm statistics before forward",
     "hang, or statistics that end up in gradients", "DC101", "--no-buffer-broadcast", 2},
    {FAULT_MODEL_MISMATCH, "model-mismatch", 30,
     "a rank registers its parameters in another order, and nothing compares the ranks' parameters "
     "at construction",
     "hang, or weights that end up in other parameters", "DC110", "", 2},
    {FAULT_CRASH, "crash", 21,
     "a rank is killed in the middle of an iteration, as by the kernel's OOM killer; only before a "
     "restart",
     "hang if nothing terminates the others; otherwise the job ends", "DC205",
     "--fault crash --elastic --checkpoint FILE --checkpoint-every 2", 2},
    {FAULT_AMP_SKIP, "amp-skip", 13,
     "an activation of one rank overflows fp16; the ranks do not agree on that, so only this rank "
     "skips the optimizer step",
     "weights differ between ranks, silently", "DC506", "--fault amp-skip --agree-overflow", 2},
    {FAULT_WRONG_DEVICE, "wrong-device", 22,
     "a rank's first convolution has its weights on another GPU than its input",
     "illegal address, far from the cause", "DC403", "", 1},
    {FAULT_FREE_IN_FLIGHT, "free-in-flight", 27,
     "a rank frees the copy of a bucket on the compute stream while the communicator's stream "
     "reduces it",
     "wrong gradients now and then, as the memory of the copy is reused; or an illegal address",
     "DC306", "--reduce-copies", 2},
    {FAULT_MISSING_EVENT, "missing-event", 28,
     "a rank's reduction does not wait for the compute stream to fill the bucket",
     "wrong gradients now and then, the same on all ranks", "DC303", "", 2},
    {FAULT_EARLY_STEP, "early-step", 29,
     "a rank's optimizer steps before the compute stream waits for the reduction",
     "weights differ between ranks, silently", "DC302", "", 2},
    {FAULT_SLOW_HOST, "slow-host", 31,
     "between forward and backward a rank's host is busy for 30 ms in each iteration, as with "
     "logging or metrics in Python; its GPU has nothing queued meanwhile",
     "slow; all GPUs look busy, as the others' wait in the AllReduce", "DC601", "", 2},
    {FAULT_SLOW_LOADER, "slow-loader", 31,
     "a rank waits 30 ms for each batch, as with too few workers or a slow disk", "slow", "DC601",
     "", 2},
    {FAULT_MORE_WORK, "more-work", 32,
     "a rank's batches are three times as large as the others', as with longer sequences that "
     "nobody balances",
     "slow", "DC605", "", 2},
    {FAULT_GC_PAUSE, "gc-pause", 33,
     "in each tenth iteration a rank pauses for 200 ms, as for a garbage collection or a "
     "checkpoint",
     "now and then an iteration is slow", "DC608", "", 2},
    {FAULT_SLOW_DEVICE, "slow-device", 32,
     "a rank's GPU has 0.4 of its speed, as with low clocks or a neighbour on it (emulated GPUs "
     "only)",
     "slow", "DC604", "", 2},
    {FAULT_THROTTLE_AFTER, "throttle-after", 32,
     "from the fifth second on a rank's GPU has 0.4 of its speed, as one that became hot (emulated "
     "GPUs only)",
     "becomes slow", "DC604", "", 2},
    {FAULT_SLOW_LINK, "slow-link", 33,
     "from the fifth second on the link between a rank and the one before it carries 200 KB/s "
     "(emulated GPUs only)",
     "becomes slow", "DC606", "", 2},
    {FAULT_TINY_BUCKETS, "tiny-buckets", 33,
     "gradients are reduced 256 values at a time, as where a reducer calls AllReduce for each "
     "small "
     "tensor",
     "slow", "DC602", "", 2},
};

enum { KIND_COUNT = sizeof kinds / sizeof kinds[0] };

const struct fault_kind *fault_find(const char *name)
{
    for (int i = 0; i < KIND_COUNT; i++)
        if (strcmp(kinds[i].name, name) == 0)
            return &kinds[i];
    return NULL;
}

bool fault_is(const struct fault *fault, enum fault_id id)
{
    return fault->kind && fault->kind->id == id;
}

bool fault_strikes_rank(const struct fault *fault, enum fault_id id, int rank)
{
    return fault_is(fault, id) && fault->rank == rank;
}

bool fault_strikes(const struct fault *fault, enum fault_id id, int rank, int iteration)
{
    return fault_strikes_rank(fault, id, rank) && fault->iteration == iteration;
}

void faults_print_names(FILE *file)
{
    enum { INDENT = 2 };
    int column = INDENT;
    fprintf(file, "%*s", INDENT, "");
    for (int i = 0; i < KIND_COUNT; i++) {
        int length = (int)strlen(kinds[i].name);
        bool fits = column + length + 2 <= HELP_WIDTH;
        const char *separator = fits ? ", " : ",\n  ";
        fprintf(file, "%s%s", i ? separator : "", kinds[i].name);
        column = length + (fits ? column + 2 : INDENT);
    }
    putc('\n', file);
}

static void print_field(FILE *file, const char *name, const char *text)
{
    enum { INDENT = 15 };
    fprintf(file, "      %-8s ", name);
    print_wrapped(file, text, INDENT, HELP_WIDTH);
}

static void print_fault(FILE *file, const struct fault_kind *kind)
{
    fprintf(file, "  %s (scenario %d)\n", kind->name, kind->scenario);
    print_field(file, "what:", kind->what);
    print_field(file, "symptom:", kind->symptom);
    print_field(
        file, "finding:", *kind->finding ? kind->finding : "none: ddptrain's own check reports it");
    print_field(file, "correct:", *kind->twin ? kind->twin : "the same without --fault");
}

void faults_print(FILE *file, bool tabs)
{
    if (tabs)
        fprintf(file, "name\tscenario\tfinding\ttwin\twhat\tsymptom\n");
    for (int i = 0; i < KIND_COUNT; i++) {
        const struct fault_kind *kind = &kinds[i];
        if (tabs)
            fprintf(file, "%s\t%d\t%s\t%s\t%s\t%s\n", kind->name, kind->scenario, kind->finding,
                    kind->twin, kind->what, kind->symptom);
        else
            print_fault(file, kind);
    }
}

/* --- faults of the emulated hardware --- */

static const char emulated_name[] = "ddpcheck emulated GPU";
/* Kernels of a small model end in microseconds: noise of other programs on the machine would be
 * larger than the fault. */
static const char kernel_time[] = "all=0.002";

static const struct hardware_fault {
    enum fault_id id;
    const char *variable;
    bool is_link;
    const char *value; /* as faults.c says */
} hardware_faults[] = {
    {FAULT_SLOW_DEVICE, "DDPCHECK_EMU_DEVICE_SPEED", false, "0.4"},
    {FAULT_THROTTLE_AFTER, "DDPCHECK_EMU_DEVICE_SPEED", false, "0.4@5"},
    {FAULT_SLOW_LINK, "DDPCHECK_EMU_LINK_RATE", true, "200K@5"},
};

int hardware_make_faulty(const struct fault *fault, struct error *err)
{
    for (size_t i = 0; i < sizeof hardware_faults / sizeof hardware_faults[0]; i++) {
        const struct hardware_fault *hardware = &hardware_faults[i];
        struct cudaDeviceProp device;
        char setting[64];
        int first = fault->rank ? fault->rank - 1 : 0; /* of a link */
        if (!fault_is(fault, hardware->id))
            continue;
        CHECK_CUDA(cudaGetDeviceProperties(&device, 0));
        if (strcmp(device.name, emulated_name) != 0)
            return error_set(err, "--fault %s: a %s can't be slowed down; run it on emulated GPUs",
                             fault->kind->name, device.name);
        if (hardware->is_link)
            snprintf(setting, sizeof setting, "%d-%d=%s", first, first + 1, hardware->value);
        else
            snprintf(setting, sizeof setting, "%d=%s", fault->rank, hardware->value);
        setenv(hardware->variable, setting, 0);
        setenv("DDPCHECK_EMU_KERNEL_TIME", kernel_time, 0);
    }
    return 0;
}
