/* current_device.c: DC407: a CUDA call failed because the current device is not the one it
 * needs.
 *
 * CUDA programming guide, "Stream and Event Behavior" (multi-device system): a kernel launch fails
 * on a stream that is not of the current device; cudaEventRecord fails where event and stream are
 * of different devices; copies, memsets, waits and queries do not. NCCL's own calls switch to their
 * communicator's device (DC402 is about their streams). Only calls that did fail are reported. */
#include "analyzer/match/one_call.h"
#include "analyzer/model/process.h"
#include "analyzer/model/timelines.h"
#include "lib/trace/lacks.h"

enum { INVALID_RESOURCE_HANDLE = 400, DEFAULT_STREAMS = 2 };

static void current_device_report(struct analyzer *analyzer, const struct event *event,
                                  const struct act *act, enum headline headline, enum advice advice,
                                  int device, int other)
{
    struct one_call one = {
        .check = &check_current_device,
        .certainty = event->process->lost.control ? POSSIBLE : CERTAIN,
        .process = event->process,
        .record = event->record,
        .act = act,
        .site = event->site,
    };
    const struct values values = {.value = {device, other}};
    one_call_headline(analyzer, &one, headline, advice, &values);
}

/* The stream of a call that failed, if its creation was seen; default streams are of the current
 * device. */
static const struct stream_state *stream_of_failed(struct process *process,
                                                   const struct record *record)
{
    if (record->result != INVALID_RESOURCE_HANDLE || record->stream <= DEFAULT_STREAMS ||
        record->flags & RECORD_FLAG_MORE)
        return NULL;
    const struct stream_state *stream = timeline_get(process, record);
    return stream && stream->known && stream->device >= 0 ? stream : NULL;
}

static void current_device_on_launch(struct analyzer *analyzer, const struct event *event)
{
    struct process *process = event->process;
    const struct record *record = event->record;
    const struct stream_state *stream = stream_of_failed(process, record);
    if (!stream || record->device < 0 || stream->device == record->device)
        return;
    char kernel[256];
    const struct act act = kernel_act(process, record, kernel, sizeof kernel);
    current_device_report(analyzer, event, &act, HEADLINE_LAUNCH_ELSEWHERE, ADVICE_LAUNCH_ELSEWHERE,
                          stream->device, record->device);
}

static void current_device_on_call(struct analyzer *analyzer, const struct event *event)
{
    struct thread *thread = event->thread;
    const struct record *record = event->record;
    if (record->api != API_cudaEventRecord && record->api != API_cudaEventRecordWithFlags)
        return;
    const struct stream_state *stream = stream_of_failed(thread->process, record);
    struct event_state *made = NULL;
    uint64_t handle = record->event.event;
    if (stream)
        TABLE_FIND(thread->process->order.events, &handle, made);
    if (!made || made->device < 0 || made->device == stream->device)
        return;
    current_device_report(analyzer, event, NULL, HEADLINE_EVENT_ELSEWHERE, ADVICE_EVENT_ELSEWHERE,
                          made->device, stream->device);
}

const struct check check_current_device = {
    .code = DC407,
    .name = "current-device",
    .severity = SEVERITY_ERROR,
    .scope = SCOPE_PROCESS,
    .weak_without = LOSS_CALLS,
    .needs = LACKS_CUDA | LACKS_DEVICE,
    .explains = CODES(CODES_HANGS, CODES_HAZARDS),
    .explains_later = CODES(DC407),
    .title = "the current device is not the one that the call needs",
    .text = "A kernel was launched on a stream of a device that is not the current one, or an "
            "event was recorded on a stream of a device that is not the event's. CUDA refuses both "
            "with cudaErrorInvalidResourceHandle; the work, or the dependency, is then missing.\n\n"
            "It shows as wrong values and races if the program does not check the result (a launch "
            "with <<< >>> has none), otherwise as an error.\n\n"
            "PyTorch's own operators make the right device current; extensions need a guard.\n\n"
            "It is certain: only calls that failed are reported, and only for streams and events "
            "whose creation was recorded. Copies, memsets, cudaStreamWaitEvent, "
            "cudaEventSynchronize and NCCL's calls work with any current device. If "
            "ncclCommInitRank used a wrong current device, that shows as DC405, DC401 or DC402.",
    .causes = CAUSES(
        {"A new thread, whose current device is 0: a worker, a callback, a thread of a pool.",
         "The call's thread is not the one that chose the device; device 0 is current."},
        {"A library or a branch changes the current device and does not restore it.",
         "The thread is right, and works until a certain call: print cudaGetDevice around it."},
        {"An event or a stream that was created once and is used for every device.",
         "Only the ranks or devices other than the first fail."}),
    .source = "CUDA 13.0 C++ Programming Guide, \"Multi-Device System\", Stream and Event Behavior",
    .example = "cudaSetDevice(1); cudaStreamCreate(&stream);\ncudaSetDevice(0); scale<<<grid, "
               "block, 0, stream>>>(x, n);      /* fails */\n",
    .fix_c = "cudaSetDevice(1); scale<<<grid, block, 0, stream>>>(x, n);\nif (cudaGetLastError() "
             "!= cudaSuccess) abort();\n",
    .fix_torch = "with torch.cuda.device(x.device): my_extension.scale(x)    # extensions: "
                 "c10::cuda::CUDAGuard\n",
    .on = {[EVENT_LAUNCH] = current_device_on_launch, [EVENT_CALL] = current_device_on_call},
};
