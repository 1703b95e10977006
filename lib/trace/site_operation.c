/* site_operation.c: names what PyTorch was doing as it made a call. Several of its operations look
 * alike to NCCL: a barrier, a gradient bucket and the length of a pickled object are an AllReduce,
 * an AllReduce and a Broadcast. */
#include "lib/trace/site_operation.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

const char site_gradient_bucket[] = "gradient bucket of DDP";

/* By the function's name and a part of its file; of native code, by a part of the mangled name. The
 * innermost frame that is here counts, of those the first line. */
static const struct operation_name {
    const char *function, *file, *words;
} native_names[] =
    {
        {"4c10d7Reducer19sync_bucket_indices", "", "DDP's agreement on its buckets"},
        {"4c10d7Reducer", "", site_gradient_bucket},
        {"30verify_params_across_processes", "", "DDP's comparison of parameter shapes"},
        {"4c10d19broadcast_coalesced", "", "DDP's broadcast of parameters or buffers"},
},
  python_names[] = {
      {"foreach_all_gather", "/fsdp/", "FSDP's all-gather of parameters"},
      {"foreach_reduce", "/fsdp/", "FSDP's reduction of gradients"},
      {"_all_gather_flat_param", "/fsdp/", "FSDP's all-gather of parameters"},
      {"_reduce_grad", "/fsdp/", "FSDP's reduction of gradients"},
      {"_reduce_grad_no_shard", "/fsdp/", "FSDP's reduction of gradients"},
      {"redistribute_local_tensor", "/distributed/tensor/", "redistribution of a DTensor"},
      {"forward", "/nn/modules/_functions.py", "SyncBatchNorm's statistics"},
      {"backward", "/nn/modules/_functions.py", "SyncBatchNorm's gradients"},
      {"notify_join_context", "/algorithms/join.py", "join()"},
      {"_find_num_nonjoined_procs", "/nn/parallel/", "join()"},
      {"_allgather_tensor", "/distributed/optim/", "ZeroRedundancyOptimizer"},
      {"clip_grad_norm_", "/nn/utils/clip_grad.py", "clip_grad_norm_()"},
      {"_step_microbatches", "/pipelining/schedules.py", "pipeline schedule"},
};

/* What these do is what NCCL's call is named, where PyTorch makes this one of it. */
static const char *const plain_calls[] = {
    "all_reduce",
    "all_gather",
    "all_gather_into_tensor",
    "reduce_scatter",
    "reduce",
    "broadcast",
    "reduce_scatter_tensor",
    "all_to_all",
    "send",
    "all_to_all_single",
    "recv",
    "isend",
    "irecv",
    "gather",
    "scatter",
};

/* Whether it is the call that the function is named after: "ncclAllGather(count=3)" of
 * "all_gather_into_tensor", "ncclSend" of "isend". */
static bool is_named_alike(const char *call, const char *function)
{
    static const char *const forms[] = {"", "_into_tensor", "_tensor", "_single"};
    const char *at = call + strlen("nccl");
    function += !strcmp(function, "isend") || !strcmp(function, "irecv");
    for (; *at && *at != '('; at++, function++) {
        function += *function == '_';
        if (tolower((unsigned char)*at) != *function)
            return false;
    }
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++)
        if (!strcmp(function, forms[i]))
            return true;
    return false;
}

/* Whether NCCL's call (NULL: not known) says as much as the function's name. */
static bool is_plain(const char *function, const char *call)
{
    for (size_t i = 0; i < sizeof plain_calls / sizeof *plain_calls; i++)
        if (!strcmp(plain_calls[i], function))
            return !call || strncmp(call, "nccl", strlen("nccl")) != 0 ||
                   is_named_alike(call, function);
    return false;
}

/* From Python 3.11 on methods have their class before them: "SyncBatchNorm.forward". */
static const char *method_name(const char *function)
{
    const char *dot = strrchr(function, '.');
    return dot ? dot + 1 : function;
}

static const char *find_operation_name(const struct operation_name *names, size_t count,
                                       const struct frame *frame, bool is_native)
{
    for (size_t i = 0; i < count; i++)
        if (is_native ? strstr(frame->function, names[i].function) != NULL
                      : !strcmp(method_name(frame->function), names[i].function) &&
                            strstr(frame->file, names[i].file))
            return names[i].words;
    return NULL;
}

/* The outermost function of torch.distributed that the program called, but for what wraps it. */
static const char *find_called(const struct frame *frames, int count, const char *call)
{
    static const char distributed[] = "/torch/distributed/";
    const char *called = NULL;
    for (int i = 0; i < count && !frames[i].address; i++) {
        const char *function = frames[i].function;
        if (!strstr(frames[i].file, "/torch/")) /* the program's own */
            break;
        if (strstr(frames[i].file, distributed) && !strstr(frames[i].file, "c10d_logger") &&
            *function != '<' && !strstr(function, ".<locals>"))
            called = function;
    }
    return called && *called != '_' && !is_plain(called, call) ? called : NULL;
}

char *site_operation(const struct frame *frames, int count, const char *call, char *text,
                     size_t bytes)
{
    const char *words = NULL;
    *text = '\0';
    for (int i = 0; i < count && !words; i++)
        if (frames[i].address)
            words = find_operation_name(native_names, sizeof native_names / sizeof *native_names,
                                        &frames[i], true);
    for (int i = 0; i < count && !words && !frames[i].address; i++)
        words = find_operation_name(python_names, sizeof python_names / sizeof *python_names,
                                    &frames[i], false);
    if (words)
        snprintf(text, bytes, "%s", words);
    else if ((words = find_called(frames, count, call)))
        snprintf(text, bytes, "%s()", words);
    return text;
}

char *site_operation_of(struct trace *trace, int process, uint64_t stack, bool is_address,
                        const char *call, char *text, size_t bytes)
{
    struct frame frames[SITE_FRAMES_MAX];
    *text = '\0';
    if (!trace || !stack || process < 0)
        return text;
    return site_operation(frames,
                          trace_frames(trace, process, stack, is_address, frames, SITE_FRAMES_MAX),
                          call, text, bytes);
}
