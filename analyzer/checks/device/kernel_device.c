/* kernel_device.c: DC403: a kernel is launched with pointers to memory that its device can't
 * reach. */
#include "analyzer/findings.h"
#include "analyzer/model/memory.h"
#include "analyzer/model/order.h"
#include "analyzer/model/process.h"
#include "lib/trace/lacks.h"
#include "lib/trace/names.h"

enum { CALL_BYTES = 256 };

static void report_launch(struct analyzer *analyzer, const struct event *event, int device,
                          int other, bool inferred)
{
    const struct process *process = event->process;
    struct draft draft =
        draft_new(&check_kernel_device, inferred || process->lost.bulk ? POSSIBLE : CERTAIN, NULL);
    char kernel[CALL_BYTES];
    const struct act act = kernel_act(process, event->record, kernel, sizeof kernel);
    struct finding_side *side = draft_side(&draft, &act, &event->site);
    int rank = process_shown_rank(process);
    if (rankset_add(&side->ranks, rank >= 0 ? rank : process->index))
        draft.failed = true;
    draft_cover(&draft, process);
    draft.merges_ranks = true;
    draft.finding.first_ns = draft.finding.last_ns = event->site.time_ns;
    const struct values values = {.value = {device, other}};
    draft_headline(&draft, HEADLINE_KERNEL_DEVICE, ADVICE_KERNEL_DEVICE, &values);
    findings_report(analyzer, &draft, NULL);
}

static void check_launch(struct analyzer *analyzer, const struct event *event)
{
    struct process *process = event->process;
    const struct record *record = event->record;
    struct stream_state *stream;
    if (order_stream(process, record, &stream)) {
        analyzer->failed = true;
        return;
    }
    int device = stream && stream->known && stream->device >= 0 ? stream->device : record->device;
    int count = record->launch.count < 6 ? record->launch.count : 6;
    for (int guesses = 0; guesses < 2; guesses++) /* what is certain goes first */
        for (int i = 0; i < count; i++) {
            bool inferred = record->launch.inferred >> i & 1;
            const struct allocation *allocation = memory_find(process, record->launch.pointer[i]);
            /* Pools and mappings have access rights of their own. */
            if (inferred != (guesses == 1) || !allocation || allocation->type != MEMORY_DEVICE ||
                memory_can_access(process, device, allocation->device))
                continue;
            report_launch(analyzer, event, device, allocation->device, inferred);
            return;
        }
}

const struct check check_kernel_device = {
    .code = DC403,
    .name = "kernel-device",
    .severity = SEVERITY_ERROR,
    .scope = SCOPE_PROCESS,
    .weak_without = LOSS_CALLS | LOSS_CUDA,
    .needs = LACKS_ADDRESSES | LACKS_CUDA | LACKS_DEVICE,
    .explains = CODES(CODES_HANGS, CODES_HAZARDS, DC401),
    .explains_later = CODES(DC403),
    .title = "a kernel gets a pointer to memory that its device can't access",
    .text =
        "A kernel was launched on one GPU with a pointer to memory of another, and peer access "
        "between the two is not enabled.\n\n"
        "It shows as an illegal address, reported by a later call far from the cause; the process "
        "can't use CUDA any more after that.\n\n"
        "PyTorch's own operators raise first (\"Expected all tensors to be on the same device\"); "
        "custom kernels do not.\n\n"
        "It is certain for pointers that are parameters themselves, and possible for values inside "
        "of structures that look like such a pointer.",
    .causes = CAUSES(
        {"Weights on one device, input on the other: a module that was moved late, a buffer or a "
         "lookup table that is no registered parameter.",
         "The memory's device is 0, the kernel's is the rank's: where was the tensor created?"},
        {"An extension or a custom kernel that takes raw pointers (data_ptr()) and launches on the "
         "current device.",
         "The kernel is not PyTorch's; its launcher has no device guard."},
        {"A program that was written for GPUs with peer access (NVLink) runs where there is none.",
         "cudaDeviceCanAccessPeer is 0 for the two devices, or cudaDeviceEnablePeerAccess failed "
         "unnoticed."}),
    .source = "CUDA 13.0 C++ Programming Guide, \"Peer-to-Peer Memory Access\"",
    .example = "cudaSetDevice(0); cudaMalloc(&weights, bytes);\ncudaSetDevice(1); "
               "cudaMalloc(&input, bytes);\nconvolve<<<grid, block>>>(input, weights);\n",
    .fix_c = "cudaSetDevice(1); cudaMemcpyPeer(weights_here, 1, weights, 0, "
             "bytes);\nconvolve<<<grid, block>>>(input, weights_here);\n",
    .fix_torch = "model = model.to(device); x = x.to(device)    # one device for both\n",
    .on = {[EVENT_LAUNCH] = check_launch},
};
