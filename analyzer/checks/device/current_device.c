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

static void current_device_report(struct analyzer *analyzer, struct process *process,
                                  const struct record *record, const struct act *act,
                                  struct text *what, const char *todo)
{
    struct thread *thread = process_thread(process, record->thread);
    if (!thread) {
        text_free(what);
        analyzer->failed = true;
        return;
    }
    struct one_call one = {
        .check = &check_current_device,
        .certainty = process->lost_control ? POSSIBLE : CERTAIN,
        .process = process,
        .record = record,
        .act = act,
        .site = thread_site(thread, record),
    };
    one_call_report(analyzer, &one, what, todo);
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
    struct text what = {0};
    char kernel[256];
    const struct act act = kernel_act(process, record, kernel, sizeof kernel);
    text_add(&what, "rank %d launches ", process_shown_rank(process));
    act_add(&what, &act);
    text_add(&what,
             " on a stream of device %d while device %d is current: the launch fails (invalid "
             "resource handle)",
             stream->device, record->device);
    current_device_report(
        analyzer, process, record, &act, &what,
        "Call cudaSetDevice with the stream's device first (each thread has a current "
        "device of its own), and check every launch with cudaGetLastError.");
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
        TABLE_FIND(thread->process->events, &handle, made);
    if (!made || made->device < 0 || made->device == stream->device)
        return;
    struct text what = {0};
    text_add(
        &what,
        "rank %d records an event that was made while device %d was current on a stream of device "
        "%d: it fails (invalid resource handle), and who waits for the event waits for nothing",
        process_shown_rank(thread->process), made->device, stream->device);
    current_device_report(
        analyzer, thread->process, record, NULL, &what,
        "Make the event after cudaSetDevice with the stream's device, and check the "
        "result of cudaEventRecord.");
}

const struct check check_current_device = {
    .code = DC407,
    .name = "current-device",
    .family = FAMILY_DEVICE,
    .severity = SEVERITY_ERROR,
    .scope = SCOPE_PROCESS,
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
