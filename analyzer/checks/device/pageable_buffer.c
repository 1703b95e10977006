/* pageable_buffer.c: DC404: an operation is given pageable host memory. */
#include "analyzer/checks/device/device_report.h"
#include "analyzer/model/process.h"
#include "analyzer/model/comm.h"
#include "lib/trace/lacks.h"

static void check_host_memory(struct analyzer *analyzer, const struct operation *operation,
                              const struct used_buffer *use)
{
    const struct allocation *allocation = use->allocation;
    if (!memory_is_pageable(allocation))
        return;
    bool reachable = allocation->type == MEMORY_HOST_SHARED;
    struct draft draft = draft_new(
        &check_pageable_buffer, reachable || operation->process->lost.control ? POSSIBLE : CERTAIN,
        operation->member->comm);
    if (reachable)
        draft.finding.severity = SEVERITY_WARNING;
    const struct values values = {.name = {use->name}, .flag = {reachable}};
    device_report(analyzer, &draft, operation, HEADLINE_PAGEABLE_BUFFER, ADVICE_PAGEABLE_BUFFER,
                  &values);
}

static void pageable_buffer_on_operation(struct analyzer *analyzer, const struct event *event)
{
    struct used_buffer buffers[2];
    int count = device_buffers(event->operation, buffers);
    for (int i = 0; i < count; i++)
        check_host_memory(analyzer, event->operation, &buffers[i]);
}

const struct check check_pageable_buffer = {
    .code = DC404,
    .name = "pageable-buffer",
    .severity = SEVERITY_ERROR,
    .scope = SCOPE_PROCESS,
    .weak_without = LOSS_CALLS,
    .needs = LACKS_ADDRESSES | LACKS_CUDA,
    .explains = CODES(CODES_HANGS),
    .explains_later = CODES(DC404),
    .title = "a collective gets pageable host memory",
    .text = "A buffer of a collective, send or receive is in memory that CUDA does not know: from "
            "malloc, the stack, a NumPy array or a CPU tensor.\n\n"
            "It shows as an illegal address, reported by a later CUDA call, and as a hang on the "
            "other ranks. Pinned host memory (cudaMallocHost, cudaHostRegister) and managed memory "
            "are allowed.\n\n"
            "PyTorch raises first: a group of backend nccl has no operations for CPU tensors.\n\n"
            "If the GPU can translate host addresses (cudaDevAttrPageableMemoryAccess: HMM, or ATS "
            "on Grace Hopper), the operation works, but one page fault after another; the finding "
            "is then a warning and only possible.",
    .causes = CAUSES(
        {"A host pointer is passed where a device pointer is meant: a struct with both, an array "
         "of the host, a tensor without .to(device).",
         "A device buffer of the same size exists beside it."},
        {"Through ctypes or an extension: numpy's memory, or the data_ptr() of a CPU tensor.",
         "The call is not torch.distributed's, which raises."},
        {"Memory that was pinned in one configuration only (pin_memory=True, cudaHostRegister that "
         "failed unnoticed).",
         "The same line works elsewhere; check the result of the registration."}),
    .source = "NCCL 2.29 user guide, \"Data Pointers\"",
    .example = "float *x = malloc(n * sizeof *x);\nncclAllReduce(x, x, n, ncclFloat, ncclSum, "
               "comm, stream);\n",
    .fix_c = "float *x; cudaMalloc((void **)&x, n * sizeof *x);\nncclAllReduce(x, x, n, ncclFloat, "
             "ncclSum, comm, stream);\n",
    .fix_torch = "x = x.to(device)    # NCCL has no CPU tensors; use a gloo group for "
                 "those\ndist.all_reduce(x)\n",
    .on = {[EVENT_OPERATION] = pageable_buffer_on_operation},
};
