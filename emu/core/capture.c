/* capture.c: records the work of capturing streams into a graph. */
#include "emu/core/capture.h"

#include <driver_types.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "emu/core/device.h"
#include "emu/core/graph.h"
#include "emu/core/stream.h"

struct emu_capture {
    atomic_int references; /* the streams being captured, and points */
    pthread_mutex_t lock;  /* guards the graph, `members` and the members' tips */
    uint64_t id;
    int mode;
    pthread_t thread;
    struct emu_stream *origin;
    struct emu_graph *graph;
    bool is_graph_given;         /* by the program: it stays if the capture fails */
    struct emu_stream **members; /* each with a reference; [0] is the origin */
    size_t member_count;
    atomic_bool broken, over;
    struct emu_capture *next; /* of those under way */
};

struct emu_capture_point {
    struct emu_capture *capture;
    size_t count;
    struct emu_node *tips[];
};

static atomic_int global_captures; /* under way in cudaStreamCaptureModeGlobal */
static struct {
    pthread_mutex_t lock;
    struct emu_capture *first;
} under_way = {.lock = PTHREAD_MUTEX_INITIALIZER};
static _Thread_local int own_captures; /* of this thread, not relaxed */
static _Thread_local int thread_mode = cudaStreamCaptureModeGlobal;

static void capture_release(struct emu_capture *capture)
{
    if (atomic_fetch_sub(&capture->references, 1) > 1)
        return;
    pthread_mutex_destroy(&capture->lock);
    free(capture->members);
    free(capture);
}

static bool set_tips(struct emu_stream *stream, struct emu_node *const *tips, size_t count)
{
    struct emu_node **copy = malloc((count + 1) * sizeof(struct emu_node *));

    if (!copy)
        return false;
    if (count)
        memcpy(copy, tips, count * sizeof(struct emu_node *));
    free(stream->tips);
    stream->tips = copy;
    stream->tip_count = count;
    return true;
}

/* With capture->lock held. */
static bool capture_add_stream(struct emu_capture *capture, struct emu_stream *stream)
{
    struct emu_stream **members =
        realloc(capture->members, (capture->member_count + 1) * sizeof(struct emu_stream *));

    if (!members)
        return false;
    capture->members = members;
    members[capture->member_count++] = emu_stream_hold(stream);
    atomic_fetch_add(&capture->references, 1);
    if (!(stream->flags & cudaStreamNonBlocking))
        atomic_fetch_add(&stream->device->captures, 1);
    atomic_store(&stream->capture, capture);
    return true;
}

static void list_capture(struct emu_capture *capture)
{
    pthread_mutex_lock(&under_way.lock);
    capture->next = under_way.first;
    under_way.first = capture;
    pthread_mutex_unlock(&under_way.lock);
}

static void unlist_capture(const struct emu_capture *capture)
{
    struct emu_capture **link = &under_way.first;

    pthread_mutex_lock(&under_way.lock);
    while (*link && *link != capture)
        link = &(*link)->next;
    if (*link)
        *link = capture->next;
    pthread_mutex_unlock(&under_way.lock);
}

int emu_capture_begin(struct emu_stream *stream, int mode)
{
    return emu_capture_begin_in(stream, mode, NULL, NULL, 0);
}

int emu_capture_begin_in(struct emu_stream *stream, int mode, struct emu_graph *graph,
                         struct emu_node *const *dependencies, size_t count)
{
    static _Atomic uint64_t next_id = 1;
    struct emu_capture *capture;

    if (stream->legacy)
        return cudaErrorStreamCaptureUnsupported;
    if (atomic_load(&stream->capture))
        return cudaErrorIllegalState;
    capture = calloc(1, sizeof(*capture));
    if (!capture)
        return cudaErrorMemoryAllocation;
    pthread_mutex_init(&capture->lock, NULL);
    atomic_init(&capture->references, 1);
    capture->id = atomic_fetch_add(&next_id, 1);
    capture->mode = mode;
    capture->thread = pthread_self();
    capture->origin = stream;
    capture->is_graph_given = graph != NULL;
    capture->graph = graph ? graph : emu_graph_create();
    if (!capture->graph || !set_tips(stream, dependencies, count) ||
        !capture_add_stream(capture, stream)) {
        if (capture->graph && !graph)
            emu_graph_destroy(capture->graph);
        capture_release(capture);
        return cudaErrorMemoryAllocation;
    }
    list_capture(capture);
    capture_release(capture); /* the members' references remain */
    if (mode == cudaStreamCaptureModeGlobal)
        atomic_fetch_add(&global_captures, 1);
    if (mode != cudaStreamCaptureModeRelaxed)
        own_captures++;
    return 0;
}

static void mark_ancestors(const struct emu_node *node, bool *marks)
{
    if (marks[node->number])
        return;
    marks[node->number] = true;
    for (size_t i = 0; i < node->dependency_count; i++)
        mark_ancestors(node->dependencies[i], marks);
}

/* True if everything that was captured comes before what the origin recorded last. */
static bool all_joined(const struct emu_capture *capture)
{
    bool *marks = calloc(capture->graph->count + 1, sizeof(*marks));
    bool joined = marks != NULL;

    for (size_t i = 0; marks && i < capture->origin->tip_count; i++)
        mark_ancestors(capture->origin->tips[i], marks);
    for (size_t m = 1; joined && m < capture->member_count; m++)
        for (size_t i = 0; i < capture->members[m]->tip_count; i++)
            joined = joined && marks[capture->members[m]->tips[i]->number];
    free(marks);
    return joined;
}

static void dismiss(struct emu_capture *capture)
{
    for (size_t m = 0; m < capture->member_count; m++) {
        struct emu_stream *stream = capture->members[m];

        if (!(stream->flags & cudaStreamNonBlocking))
            atomic_fetch_sub(&stream->device->captures, 1);
        atomic_store(&stream->capture, NULL);
        free(stream->tips);
        stream->tips = NULL;
        stream->tip_count = 0;
        emu_stream_release(stream);
        capture_release(capture);
    }
}

int emu_capture_end(struct emu_stream *stream, struct emu_graph **graph)
{
    struct emu_capture *capture = atomic_load(&stream->capture);
    int error = 0;

    *graph = NULL;
    if (!capture)
        return cudaErrorIllegalState;
    if (capture->origin != stream)
        return cudaErrorStreamCaptureUnmatched;
    if (capture->mode != cudaStreamCaptureModeRelaxed &&
        !pthread_equal(capture->thread, pthread_self()))
        return cudaErrorStreamCaptureWrongThread;
    atomic_fetch_add(&capture->references, 1);
    pthread_mutex_lock(&capture->lock);
    if (atomic_load(&capture->broken))
        error = cudaErrorStreamCaptureInvalidated;
    else if (!all_joined(capture))
        error = cudaErrorStreamCaptureUnjoined;
    atomic_store(&capture->over, true);
    unlist_capture(capture);
    dismiss(capture);
    pthread_mutex_unlock(&capture->lock);
    if (capture->mode == cudaStreamCaptureModeGlobal)
        atomic_fetch_sub(&global_captures, 1);
    if (capture->mode != cudaStreamCaptureModeRelaxed)
        own_captures--;
    if (error && !capture->is_graph_given)
        emu_graph_destroy(capture->graph);
    else if (!error)
        *graph = capture->graph;
    capture_release(capture);
    return error;
}

int emu_capture_add(struct emu_stream *stream, const char *name, emu_work *run, void *arg,
                    void (*release)(void *))
{
    struct emu_capture *capture = atomic_load(&stream->capture);
    struct emu_node *node;
    int error = 0;

    if (atomic_load(&capture->broken))
        return cudaErrorStreamCaptureInvalidated;
    pthread_mutex_lock(&capture->lock);
    node = emu_graph_add(capture->graph, stream->tips, stream->tip_count, name, run, arg, release);
    if (node) {
        stream->tips[0] = node; /* set_tips leaves room for one */
        stream->tip_count = 1;
    } else {
        error = cudaErrorMemoryAllocation;
    }
    pthread_mutex_unlock(&capture->lock);
    return error;
}

int emu_capture_point(struct emu_stream *stream, struct emu_capture_point **made)
{
    struct emu_capture *capture = atomic_load(&stream->capture);
    struct emu_capture_point *point;

    pthread_mutex_lock(&capture->lock);
    point = malloc(sizeof(*point) + stream->tip_count * sizeof(struct emu_node *));
    if (point) {
        point->capture = capture;
        point->count = stream->tip_count;
        memcpy(point->tips, stream->tips, stream->tip_count * sizeof(struct emu_node *));
        atomic_fetch_add(&capture->references, 1);
    }
    pthread_mutex_unlock(&capture->lock);
    *made = point;
    return point ? 0 : cudaErrorMemoryAllocation;
}

void emu_capture_point_free(struct emu_capture_point *point)
{
    if (!point)
        return;
    capture_release(point->capture);
    free(point);
}

/* With capture->lock held: the stream's next node also comes after the point's. */
static bool add_tips(struct emu_stream *stream, const struct emu_capture_point *point)
{
    size_t count = stream->tip_count;
    struct emu_node **tips =
        realloc(stream->tips, (count + point->count + 1) * sizeof(struct emu_node *));

    if (!tips)
        return false;
    stream->tips = tips;
    for (size_t i = 0; i < point->count; i++) {
        size_t known = 0;

        while (known < count && tips[known] != point->tips[i])
            known++;
        if (known == count)
            tips[count++] = point->tips[i];
    }
    stream->tip_count = count;
    return true;
}

int emu_capture_join(struct emu_stream *stream, const struct emu_capture_point *point)
{
    struct emu_capture *capture = point->capture, *own = atomic_load(&stream->capture);
    bool done;

    if (atomic_load(&capture->over))
        return own ? cudaErrorStreamCaptureIsolation : cudaErrorCapturedEvent;
    if (stream->legacy)
        return cudaErrorStreamCaptureImplicit;
    if (own && own != capture) {
        atomic_store(&own->broken, true);
        atomic_store(&capture->broken, true);
        return cudaErrorStreamCaptureMerge;
    }
    pthread_mutex_lock(&capture->lock);
    done = own || (set_tips(stream, NULL, 0) && capture_add_stream(capture, stream));
    done = done && add_tips(stream, point);
    pthread_mutex_unlock(&capture->lock);
    return done ? 0 : cudaErrorMemoryAllocation;
}

int emu_capture_forbids(const struct emu_stream *stream)
{
    return stream->legacy &&
                   atomic_load_explicit(&stream->device->captures, memory_order_relaxed) > 0
               ? cudaErrorStreamCaptureImplicit
               : 0;
}

int emu_capture_forbids_wait(struct emu_stream *stream)
{
    struct emu_capture *capture = atomic_load(&stream->capture);

    if (!capture)
        return emu_capture_forbids(stream);
    atomic_store(&capture->broken, true);
    return cudaErrorStreamCaptureUnsupported;
}

/* Whether a call of this thread that a capture forbids meets this one. */
static bool capture_meets(const struct emu_capture *capture)
{
    bool own = pthread_equal(capture->thread, pthread_self());

    if (capture->mode == cudaStreamCaptureModeRelaxed)
        return false;
    return own || (thread_mode == cudaStreamCaptureModeGlobal &&
                   capture->mode == cudaStreamCaptureModeGlobal);
}

int emu_capture_forbids_call(void)
{
    bool others = thread_mode == cudaStreamCaptureModeGlobal && atomic_load(&global_captures) > 0;

    if (thread_mode == cudaStreamCaptureModeRelaxed || (own_captures == 0 && !others))
        return 0;
    pthread_mutex_lock(&under_way.lock);
    for (struct emu_capture *one = under_way.first; one; one = one->next)
        if (capture_meets(one))
            atomic_store(&one->broken, true);
    pthread_mutex_unlock(&under_way.lock);
    return cudaErrorStreamCaptureUnsupported;
}

int emu_capture_exchange_mode(int mode)
{
    int before = thread_mode;

    thread_mode = mode;
    return before;
}

bool emu_stream_is_capturing(const struct emu_stream *stream)
{
    return atomic_load(&stream->capture) != NULL;
}

void emu_capture_state(struct emu_stream *stream, struct emu_capture_state *state)
{
    const struct emu_capture *capture = atomic_load(&stream->capture);

    *state = (struct emu_capture_state){.status = cudaStreamCaptureStatusNone};
    if (!capture)
        return;
    state->status = atomic_load(&capture->broken) ? cudaStreamCaptureStatusInvalidated
                                                  : cudaStreamCaptureStatusActive;
    state->id = capture->id;
    state->graph = capture->graph;
    state->tips = stream->tips;
    state->tip_count = stream->tip_count;
}
