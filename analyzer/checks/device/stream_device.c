/* stream_device.c: DC402: an operation is issued on a stream of another device than the
 * communicator's (NCCL user guide, "Using NCCL with CUDA"). NCCL makes the communicator's device
 * current itself, so the default stream is always the right device's. */
#include "analyzer/checks/device/device_report.h"
#include "analyzer/model/process.h"
#include "analyzer/model/timelines.h"
#include "analyzer/model/comm.h"
#include "lib/trace/lacks.h"
#include "lib/trace/names.h"

enum { DEFAULT_STREAMS = 2 };

static void check_stream(struct analyzer *analyzer, const struct event *event)
{
    const struct operation *operation = event->operation;
    const struct stream_state *stream = operation->record.stream > DEFAULT_STREAMS
                                            ? timeline_get(operation->process, &operation->record)
                                            : NULL;
    int device = operation->member->device;
    if (!stream || !stream->known || stream->device < 0 || device < 0 || stream->device == device)
        return;
    struct draft draft = draft_new(&check_stream_device,
                                   operation->process->lost.control ? POSSIBLE : CERTAIN,
                                   operation->member->comm);
    const struct values values = {.value = {stream->device, device}};
    device_report(analyzer, &draft, operation, HEADLINE_STREAM_DEVICE, ADVICE_STREAM_DEVICE,
                  &values);
}

const struct check check_stream_device = {
    .code = DC402,
    .name = "stream-device",
    .severity = SEVERITY_ERROR,
    .scope = SCOPE_PROCESS,
    .weak_without = LOSS_CALLS,
    .needs = LACKS_STREAM | LACKS_CUDA | LACKS_DEVICE,
    .explains = CODES(CODES_HANGS, CODES_HAZARDS),
    .explains_later = CODES(DC402),
    .title = "the stream belongs to another device than the communicator",
    .text = "An operation was issued on a stream that was created while a device other than the "
            "communicator's was current.\n\n"
            "It shows as ncclUnhandledCudaError (\"invalid resource handle\") on this rank and as "
            "a hang on the others.\n\n"
            "The default streams are never reported: NCCL makes the communicator's device current, "
            "so it uses that device's default stream. But work that the program issues on another "
            "device's default stream is not ordered with it. Streams whose creation was not "
            "recorded are not checked.",
    .causes = CAUSES(
        {"A stream from before the device was chosen: created, or the module with it imported, "
         "before set_device.",
         "The stream's device is 0 on every rank, which is right on rank 0 alone."},
        {"Streams created in a loop without cudaSetDevice, or the wrong element of an array of "
         "streams, in a program that drives several GPUs.",
         "One process has several devices; the finding names the stream's and the communicator's."},
        {"A new thread, whose current device is 0, creates the stream.",
         "The thread that created it is not the main thread."}),
    .source = "CUDA 13.0 C++ Programming Guide, \"Multi-Device System\", Stream and Event Behavior",
    .example = "cudaStreamCreate(&stream);      /* device 0 is current */\ncudaSetDevice(1); "
               "ncclCommInitRank(&comm, n, id, rank);\nncclAllReduce(x, x, count, ncclFloat, "
               "ncclSum, comm, stream);\n",
    .fix_c =
        "cudaSetDevice(1); cudaStreamCreate(&stream);\nncclCommInitRank(&comm, n, id, rank);\n",
    .fix_torch = "torch.cuda.set_device(local_rank)\nstream = torch.cuda.Stream()    # after "
                 "set_device; or torch.cuda.Stream(device=local_rank)\n",
    .on = {[EVENT_OPERATION] = check_stream},
};
