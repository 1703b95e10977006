/* dc4xx_devices.c: DC401 (a buffer on another device than the communicator's), DC402 (a stream of
 * another device), DC403 (a kernel with pointers to memory that its device can't reach), DC404
 * (pageable host memory), DC406 (an operation that reaches past the end of its buffer).
 *
 * NCCL user guide, "Using NCCL with CUDA": buffers and streams are those of the communicator's
 * device. NCCL makes that device current itself, so the default stream is always the right
 * device's. */
#include <stdio.h>
#include <string.h>

#include "analyzer/findings.h"
#include "analyzer/model/memory.h"
#include "analyzer/model/process.h"
#include "analyzer/model/timelines.h"
#include "analyzer/model/order.h"
#include "lib/trace/names.h"
#include "lib/trace/lacks.h"

enum { CALL_BYTES = 256, DEFAULT_STREAMS = 2 };

struct used_buffer {
    const char *name; /* "send" */
    uint64_t pointer, bytes;
};

static void device_report(struct analyzer *analyzer, struct draft *draft,
                          const struct operation *operation, struct text *what, const char *todo)
{
    struct finding_side *side = draft_side_record(draft, &operation->record, &operation->site);
    draft_rank(draft, side, operation->member);
    draft->merges_ranks = true;
    draft->finding.number = operation->record.op.number;
    draft->finding.has_number = true;
    draft->finding.first_ns = draft->finding.last_ns = operation->site.time_ns;
    draft_say(draft, what, todo);
    findings_report(analyzer, draft, NULL);
}

static void check_device(struct analyzer *analyzer, const struct operation *operation,
                         const struct used_buffer *use, const struct allocation *allocation)
{
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
                                   reachable || operation->process->lost_bulk ? POSSIBLE : CERTAIN,
                                   operation->member->comm);
    struct text what = {0};
    char name[16], call[CALL_BYTES];
    text_add(
        &what,
        "rank %d gives %s #%llu of %s a %s buffer on device %d; its communicator is on device %d%s",
        member_shown_rank(operation->member), record_text(&operation->record, call, sizeof call),
        (unsigned long long)operation->record.op.number,
        comm_name(operation->member->comm->id, name), use->name, allocation->device, device,
        mapped      ? " (which may have been given access to it)"
        : reachable ? " (peer access is enabled)"
                    : "");
    device_report(analyzer, &draft, operation, &what,
                  "Allocate the buffer on the communicator's device: cudaSetDevice before the "
                  "allocation, or move the tensor.");
}

static void check_bounds(struct analyzer *analyzer, const struct operation *operation,
                         const struct used_buffer *use, const struct allocation *allocation)
{
    uint64_t room = allocation->base + allocation->bytes - use->pointer;
    /* Memory mapped beside it may belong to it. */
    if (use->bytes <= room || memory_is_pageable(allocation) ||
        allocation->type == MEMORY_DEVICE_MAPPED)
        return;
    struct draft draft = draft_new(&check_buffer_overrun,
                                   operation->process->lost_bulk ? POSSIBLE : CERTAIN,
                                   operation->member->comm);
    struct text what = {0};
    char name[16], call[CALL_BYTES];
    text_add(&what,
             "rank %d: %s #%llu of %s takes %llu bytes at its %s buffer, but only %llu are left of "
             "the allocation",
             member_shown_rank(operation->member),
             record_text(&operation->record, call, sizeof call),
             (unsigned long long)operation->record.op.number,
             comm_name(operation->member->comm->id, name), (unsigned long long)use->bytes,
             use->name, (unsigned long long)room);
    device_report(analyzer, &draft, operation, &what,
                  "Give the count in elements (not bytes) that the buffer holds; AllGather's "
                  "receive and ReduceScatter's send buffer hold nranks times the count.");
}

static void check_pageable(struct analyzer *analyzer, const struct operation *operation,
                           const struct used_buffer *use, const struct allocation *allocation)
{
    if (!memory_is_pageable(allocation))
        return;
    bool reachable = allocation->type == MEMORY_HOST_SHARED;
    struct draft draft = draft_new(
        &check_pageable_buffer, reachable || operation->process->lost_control ? POSSIBLE : CERTAIN,
        operation->member->comm);
    struct text what = {0};
    char name[16], call[CALL_BYTES];
    if (reachable)
        draft.finding.severity = SEVERITY_WARNING;
    text_add(&what, "rank %d gives %s #%llu of %s a %s buffer in pageable host memory%s",
             member_shown_rank(operation->member),
             record_text(&operation->record, call, sizeof call),
             (unsigned long long)operation->record.op.number,
             comm_name(operation->member->comm->id, name), use->name,
             reachable ? "; this GPU can reach it, page by page and slowly"
                       : ", which the GPU can't reach");
    device_report(analyzer, &draft, operation, &what,
                  "Copy to memory from cudaMalloc first (x.cuda()), or take pinned memory "
                  "(cudaMallocHost, cudaHostRegister).");
}

static void device_check_stream(struct analyzer *analyzer, const struct operation *operation)
{
    const struct stream_state *stream = operation->record.stream > DEFAULT_STREAMS
                                            ? timeline_get(operation->process, &operation->record)
                                            : NULL;
    int device = operation->member->device;
    if (!stream || !stream->known || stream->device < 0 || device < 0 || stream->device == device)
        return;
    struct draft draft = draft_new(&check_stream_device,
                                   operation->process->lost_control ? POSSIBLE : CERTAIN,
                                   operation->member->comm);
    struct text what = {0};
    char name[16], call[CALL_BYTES];
    text_add(
        &what,
        "rank %d issues %s #%llu of %s on a stream of device %d; its communicator is on device %d",
        member_shown_rank(operation->member), record_text(&operation->record, call, sizeof call),
        (unsigned long long)operation->record.op.number,
        comm_name(operation->member->comm->id, name), stream->device, device);
    device_report(analyzer, &draft, operation, &what,
                  "Make the stream after cudaSetDevice with the communicator's device, one for "
                  "each communicator.");
}

static void device_check_use(struct analyzer *analyzer, const struct operation *operation,
                             const struct used_buffer *use)
{
    const struct allocation *allocation = use->bytes ? memory_find(operation->process, use->pointer)
                                                     : NULL;
    if (!allocation)
        return;
    check_device(analyzer, operation, use, allocation);
    check_bounds(analyzer, operation, use, allocation);
    check_pageable(analyzer, operation, use, allocation);
}

static void devices_on_operation(struct analyzer *analyzer, const struct event *event)
{
    const struct operation *operation = event->operation;
    struct op_extent extent;
    device_check_stream(analyzer, operation);

    if (!op_extent_of(&operation->record, operation->member->comm->nranks, &extent))
        return;
    struct used_buffer send = {"send", operation->record.op.sendbuff, extent.send_bytes};
    struct used_buffer recv = {"receive", operation->record.op.recvbuff, extent.recv_bytes};
    device_check_use(analyzer, operation, &send);

    if (recv.pointer != send.pointer || recv.bytes > send.bytes)
        device_check_use(analyzer, operation, &recv);
}

static void launch_say(struct draft *draft, const struct process *process, const char *kernel,
                       int device, int other)
{
    struct text what = {0};
    text_add(&what,
             "rank %d launches %s on device %d with a pointer to memory of device %d, and device "
             "%d has no peer access to it",
             process_shown_rank(process), kernel, device, other, device);
    draft_say(draft, &what,
              "Move both tensors to one device before the kernel (in PyTorch: model and input .to "
              "the same device).");
}

static void report_launch(struct analyzer *analyzer, struct process *process,
                          const struct record *record, int device, int other, bool inferred)
{
    struct draft draft =
        draft_new(&check_kernel_device, inferred || process->lost_bulk ? POSSIBLE : CERTAIN, NULL);
    struct thread *thread = process_thread(process, record->thread);
    if (!thread) {
        analyzer->failed = true;
        return;
    }
    struct site site = thread_site(thread, record);
    char kernel[CALL_BYTES];
    const struct act act = kernel_act(process, record, kernel, sizeof kernel);
    struct finding_side *side = draft_side(&draft, &act, &site);
    int rank = process_shown_rank(process);
    if (rankset_add(&side->ranks, rank >= 0 ? rank : process->index))
        draft.failed = true;
    draft_cover(&draft, process);
    draft.merges_ranks = true;
    draft.finding.first_ns = draft.finding.last_ns = site.time_ns;
    launch_say(&draft, process, side->call ? side->call : "a kernel", device, other);
    findings_report(analyzer, &draft, NULL);
}

static void devices_on_launch(struct analyzer *analyzer, const struct event *event)
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
            report_launch(analyzer, process, record, device, allocation->device, inferred);
            return;
        }
}

const struct check check_buffer_device = {
    .code = DC401,
    .name = "buffer-device",
    .family = FAMILY_DEVICE,
    .severity = SEVERITY_ERROR,
    .scope = SCOPE_PROCESS,
    .needs = LACKS_ADDRESSES | LACKS_CUDA | LACKS_DEVICE,
    .explains = CODES(CODES_HANGS, CODES_HAZARDS),
    .explains_later = CODES(DC401),
    .title = "a buffer is on another device than the communicator",
    .text = "An operation was given a buffer that was allocated on another GPU than the one that "
            "its communicator uses.\n\n"
            "It shows as an illegal address, reported by a later CUDA call, or as slow transfers "
            "if peer access is enabled (it is then only possible).\n\n"
            "Pinned host and managed memory are not reported.",
    .example =
        "cudaSetDevice(1); cudaMalloc(&x, bytes);\ncudaSetDevice(0); ncclCommInitRank(&comm, n, "
        "id, rank);\nncclAllReduce(x, x, count, ncclFloat, ncclSum, comm, stream);\n",
    .fix_c = "cudaSetDevice(0); cudaMalloc(&x, bytes);\n",
    .fix_torch = "torch.cuda.set_device(local_rank)    # before anything is allocated\n",
    .on = {[EVENT_OPERATION] = devices_on_operation, [EVENT_LAUNCH] = devices_on_launch},
};

const struct check check_stream_device = {
    .code = DC402,
    .name = "stream-device",
    .family = FAMILY_DEVICE,
    .severity = SEVERITY_ERROR,
    .scope = SCOPE_PROCESS,
    .needs = LACKS_STREAM | LACKS_CUDA | LACKS_DEVICE,
    .explains = CODES(CODES_HANGS, CODES_HAZARDS),
    .explains_later = CODES(DC402),
    .title = "the stream belongs to another device than the communicator",
    .text = "An operation was issued on a stream that was created while a device other than the "
            "communicator's was current.\n\n"
            "It shows as ncclUnhandledCudaError (\"invalid resource handle\") on this rank and as "
            "a hang on the others. Usual causes: streams created in a loop without cudaSetDevice, "
            "a stream kept from before the device was chosen, the wrong element of an array of "
            "streams in a program that drives several GPUs.\n\n"
            "The default streams are never reported: NCCL makes the communicator's device current, "
            "so it uses that device's default stream. But work that the program issues on another "
            "device's default stream is not ordered with it. Streams whose creation was not "
            "recorded are not checked.",
    .example = "cudaStreamCreate(&stream);      /* device 0 is current */\ncudaSetDevice(1); "
               "ncclCommInitRank(&comm, n, id, rank);\nncclAllReduce(x, x, count, ncclFloat, "
               "ncclSum, comm, stream);\n",
    .fix_c =
        "cudaSetDevice(1); cudaStreamCreate(&stream);\nncclCommInitRank(&comm, n, id, rank);\n",
    .fix_torch = "torch.cuda.set_device(local_rank)\nstream = torch.cuda.Stream()    # after "
                 "set_device; or torch.cuda.Stream(device=local_rank)\n",
};

const struct check check_kernel_device = {
    .code = DC403,
    .name = "kernel-device",
    .family = FAMILY_DEVICE,
    .severity = SEVERITY_ERROR,
    .scope = SCOPE_PROCESS,
    .needs = LACKS_ADDRESSES | LACKS_CUDA | LACKS_DEVICE,
    .explains = CODES(CODES_HANGS, CODES_HAZARDS, DC401),
    .explains_later = CODES(DC403),
    .title = "a kernel gets a pointer to memory that its device can't access",
    .text =
        "A kernel was launched on one GPU with a pointer to memory of another, and peer access "
        "between the two is not enabled: for example weights on one device, input on the other.\n\n"
        "It shows as an illegal address, reported by a later call far from the cause; the process "
        "can't use CUDA any more after that.\n\n"
        "It is certain for pointers that are parameters themselves, and possible for values inside "
        "of structures that look like such a pointer.",
    .example = "cudaSetDevice(0); cudaMalloc(&weights, bytes);\ncudaSetDevice(1); "
               "cudaMalloc(&input, bytes);\nconvolve<<<grid, block>>>(input, weights);\n",
    .fix_c = "cudaSetDevice(1); cudaMemcpyPeer(weights_here, 1, weights, 0, "
             "bytes);\nconvolve<<<grid, block>>>(input, weights_here);\n",
    .fix_torch = "model = model.to(device); x = x.to(device)    # one device for both\n",
};

const struct check check_pageable_buffer = {
    .code = DC404,
    .name = "pageable-buffer",
    .family = FAMILY_DEVICE,
    .severity = SEVERITY_ERROR,
    .scope = SCOPE_PROCESS,
    .needs = LACKS_ADDRESSES | LACKS_CUDA,
    .explains = CODES(CODES_HANGS),
    .explains_later = CODES(DC404),
    .title = "a collective gets pageable host memory",
    .text = "A buffer of a collective, send or receive is in memory that CUDA does not know: from "
            "malloc, the stack, a NumPy array or a CPU tensor.\n\n"
            "It shows as an illegal address, reported by a later CUDA call, and as a hang on the "
            "other ranks. Pinned host memory (cudaMallocHost, cudaHostRegister) and managed memory "
            "are allowed.\n\n"
            "If the GPU can translate host addresses (cudaDevAttrPageableMemoryAccess: HMM, or ATS "
            "on Grace Hopper), it works, page fault by page fault; it is then a warning and only "
            "possible.",
    .example = "float *x = malloc(n * sizeof *x);\nncclAllReduce(x, x, n, ncclFloat, ncclSum, "
               "comm, stream);\n",
    .fix_c = "float *x; cudaMalloc((void **)&x, n * sizeof *x);\nncclAllReduce(x, x, n, ncclFloat, "
             "ncclSum, comm, stream);\n",
    .fix_torch = "x = x.to(device)    # NCCL has no CPU tensors; use a gloo group for "
                 "those\ndist.all_reduce(x)\n",
};

const struct check check_buffer_overrun = {
    .code = DC406,
    .name = "buffer-overrun",
    .family = FAMILY_DEVICE,
    .severity = SEVERITY_ERROR,
    .scope = SCOPE_PROCESS,
    .needs = LACKS_ADDRESSES | LACKS_CUDA,
    .explains = CODES(CODES_HANGS, DC304, DC305),
    .title = "an operation accesses memory past the end of its buffer",
    .text = "The count times the size of the datatype (times the number of ranks for AllGather's "
            "receive buffer, ReduceScatter's send buffer, AlltoAll and the roots of Gather and "
            "Scatter) is more than the rest of the allocation.\n\n"
            "It shows as an illegal address, or as overwritten data. Usual causes: a count in "
            "bytes instead of elements, a receive buffer without the factor nranks.\n\n"
            "The end is that of the whole allocation: if a program or framework takes many buffers "
            "from one allocation, an overrun within it is not detected.",
    .example = "cudaMalloc(&all, n * sizeof(float));                 /* room for one rank "
               "*/\nncclAllGather(x, all, n, ncclFloat, comm, stream);\n",
    .fix_c = "cudaMalloc(&all, nranks * n * sizeof(float));\n",
    .fix_torch = "out = torch.empty(world_size * x.numel(), device=x.device); "
                 "dist.all_gather_into_tensor(out, x)\n",
};
