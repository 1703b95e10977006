/* buffer_device.c: DC401: an operation is given a buffer on another device than the communicator's
 * (NCCL user guide, "Using NCCL with CUDA"). */
#include "analyzer/checks/device/device_report.h"
#include "analyzer/model/process.h"
#include "analyzer/model/comm.h"
#include "lib/trace/lacks.h"
#include "lib/trace/names.h"

static void check_memory_device(struct analyzer *analyzer, const struct operation *operation,
                                const struct used_buffer *use)
{
    const struct allocation *allocation = use->allocation;
    int device = operation->member->device >= 0 ? operation->member->device
                                                : operation->record.device;
    bool mapped =
        allocation->type ==
        MEMORY_DEVICE_MAPPED; /* who reaches it was reported to its pool or mapping, unseen */
    if ((allocation->type != MEMORY_DEVICE && !mapped) || allocation->device < 0 || device < 0 ||
        allocation->device == device)
        return;
    bool reachable = mapped || memory_can_access(operation->process, device, allocation->device);
    struct draft draft = draft_new(&check_buffer_device,
                                   reachable || operation->process->lost.bulk ? POSSIBLE : CERTAIN,
                                   operation->member->comm);
    const struct values values = {
        .name = {use->name},
        .value = {allocation->device, device},
        .flag = {mapped, reachable},
    };
    device_report(analyzer, &draft, operation, HEADLINE_BUFFER_DEVICE, ADVICE_BUFFER_DEVICE,
                  &values);
}

static void buffer_device_on_operation(struct analyzer *analyzer, const struct event *event)
{
    struct used_buffer buffers[2];
    int count = device_buffers(event->operation, buffers);
    for (int i = 0; i < count; i++)
        check_memory_device(analyzer, event->operation, &buffers[i]);
}

const struct check check_buffer_device = {
    .code = DC401,
    .name = "buffer-device",
    .severity = SEVERITY_ERROR,
    .scope = SCOPE_PROCESS,
    .weak_without = LOSS_CALLS | LOSS_CUDA,
    .needs = LACKS_ADDRESSES | LACKS_CUDA | LACKS_DEVICE,
    .explains = CODES(CODES_HANGS, CODES_HAZARDS),
    .explains_later = CODES(DC401),
    .title = "a buffer is on another device than the communicator",
    .text = "An operation was given a buffer that was allocated on another GPU than the one that "
            "its communicator uses.\n\n"
            "It shows as an illegal address, reported by a later CUDA call, or as slow transfers "
            "if peer access is enabled (it is then only possible).\n\n"
            "PyTorch's operators and its NCCL group mostly raise an error first; the finding is "
            "then seen in C programs and extensions.\n\n"
            "Pinned host and managed memory are not reported.",
    .causes = CAUSES({"A collective before the device is chosen: barrier() or init_process_group "
                      "without torch.cuda.set_device(local_rank).",
                      "The buffer is on device 0, and it is the job's first operation; "
                      "init_process_group(device_id=...) prevents it. PyTorch itself raises where "
                      "a tensor's device is not the group's."},
                     {"Tensors created on 'cuda' in a thread whose current device is 0.",
                      "The call's thread is not the main thread."}),
    .source = "NCCL 2.29 user guide, \"Data Pointers\"",
    .example =
        "cudaSetDevice(1); cudaMalloc(&x, bytes);\ncudaSetDevice(0); ncclCommInitRank(&comm, n, "
        "id, rank);\nncclAllReduce(x, x, count, ncclFloat, ncclSum, comm, stream);\n",
    .fix_c = "cudaSetDevice(0); cudaMalloc(&x, bytes);\n",
    .fix_torch = "torch.cuda.set_device(local_rank)    # before anything is allocated\n",
    .on = {[EVENT_OPERATION] = buffer_device_on_operation},
};
