/* copy.c: copies and fills on a stream. Which side waits is CUDA's "API synchronization behavior"
 * (runtime API, section 2):
 *
 *   from, to                     cudaMemcpy                     cudaMemcpyAsync
 *   pageable host to device      returns once staged            returns once staged
 *   pinned host to device        waits                          does not wait
 *   device to pageable host      waits                          waits
 *   device to pinned host        waits                          does not wait
 *   device to device             does not wait                  does not wait
 *   host to host                 waits                          waits
 *
 * The synchronous cudaMemset does not wait either, unless it fills pinned or managed memory.
 *
 * A plain copy that touches another device's memory needs peer access here, and fails like a kernel
 * without. CUDA is more lenient: under unified addressing it stages such a copy through the host,
 * as cudaMemcpyPeer does. The device of copy_work is where to change that. */
#include "emu/core/copy.h"

#include <driver_types.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "emu/core.h"
#include "emu/core/activity.h"
#include "emu/core/capture.h"
#include "emu/core/device.h"
#include "emu/core/memory.h"
#include "emu/core/model.h"
#include "emu/core/stream.h"

enum place { PAGEABLE, PINNED, DEVICE, MANAGED, FREED };

/* What is recorded of it. */
struct work_activity {
    uint64_t stream;
    uint32_t correlation;
    int device;
};

struct copy_work {
    struct emu_copy copy;
    int device;
    bool staged; /* copy.from is ours */
    struct work_activity activity;
};

static struct work_activity describe_stream(const struct emu_stream *stream)
{
    return (struct work_activity){stream->id,
                                  emu_stream_is_capturing(stream) ? 0 : emu_activity_launch(),
                                  emu_stream_device(stream)};
}

static size_t extent(size_t width, size_t height, size_t depth, size_t pitch, size_t slice)
{
    return (depth - 1) * slice + (height - 1) * pitch + width;
}

/* Where a pointer lies, and whether `bytes` fit there. */
static enum place copy_side_of(const void *pointer, size_t bytes, bool *fits)
{
    static const enum place of_kind[] = {[EMU_MEMORY_DEVICE] = DEVICE,
                                         [EMU_MEMORY_PINNED] = PINNED,
                                         [EMU_MEMORY_REGISTERED] = PINNED,
                                         [EMU_MEMORY_MANAGED] = MANAGED};
    struct emu_range range;
    int freed;

    *fits = true;
    if (!emu_memory_look_up(pointer, &range, &freed))
        return freed >= 0 ? FREED : PAGEABLE;
    /* A registration may end inside a host buffer; the rest of it is pageable, not missing. */
    if (range.kind != EMU_MEMORY_REGISTERED)
        *fits = bytes <= emu_memory_bytes_from(pointer);
    return of_kind[range.kind];
}

static bool on_device(enum place place)
{
    return place == DEVICE || place == FREED;
}

/* Whether `place` may be called host (or device) memory by cudaMemcpyKind. */
static bool may_be(bool device, enum place place)
{
    return place == MANAGED || (place == PINNED && device) || on_device(place) == device;
}

static int check_kind(int kind, enum place from, enum place to)
{
    static const struct {
        bool from_device, to_device;
    } kinds[] = {
        [cudaMemcpyHostToHost] = {false, false},
        [cudaMemcpyHostToDevice] = {false, true},
        [cudaMemcpyDeviceToHost] = {true, false},
        [cudaMemcpyDeviceToDevice] = {true, true},
    };

    if (kind == cudaMemcpyDefault)
        return 0;
    if (kind < cudaMemcpyHostToHost || kind > cudaMemcpyDeviceToDevice)
        return cudaErrorInvalidMemcpyDirection;
    return may_be(kinds[kind].from_device, from) && may_be(kinds[kind].to_device, to)
               ? 0
               : cudaErrorInvalidValue;
}

static bool host_waits(enum place from, enum place to, bool async)
{
    bool from_host = from == PAGEABLE || from == PINNED, to_host = to == PAGEABLE || to == PINNED;

    if (from_host && to_host)
        return true;
    if (to == PAGEABLE)
        return true;
    return !async && (from == PINNED || to == PINNED || from == MANAGED || to == MANAGED);
}

static void copy_rows(const struct emu_copy *copy)
{
    for (size_t slice = 0; slice < copy->depth; slice++)
        for (size_t row = 0; row < copy->height; row++)
            memmove((char *)copy->to + slice * copy->to_slice + row * copy->to_pitch,
                    (const char *)copy->from + slice * copy->from_slice + row * copy->from_pitch,
                    copy->width);
}

/* The modelled time of the link between the devices on both sides, if they are two. */
static uint64_t link_time_ns(const struct emu_copy *copy)
{
    struct emu_memory to, from;

    if (!emu_model_is_on() || !emu_memory_find(copy->to, &to) ||
        !emu_memory_find(copy->from, &from) || to.device < 0 || from.device < 0 ||
        to.device == from.device)
        return 0;
    return emu_model_transfer_ns(emu_device_get(from.device)->physical,
                                 emu_device_get(to.device)->physical,
                                 (uint64_t)copy->width * copy->height * copy->depth);
}

/* What the copy takes beyond the time of this machine. */
static void wait_as_modelled(const struct copy_work *work, uint64_t began_ns)
{
    uint64_t link_ns = began_ns ? link_time_ns(&work->copy) : 0;
    uint64_t spent_ns = emu_model_now() - began_ns;

    if (work->device >= 0)
        emu_model_work(emu_device_get(work->device), began_ns);
    if (link_ns)
        emu_model_count_transfer(link_ns);
    if (link_ns > spent_ns)
        emu_model_wait(link_ns - spent_ns, NULL, NULL);
}

static void record_copy(const struct copy_work *work, uint64_t begin_ns, uint64_t lasted_ns)
{
    const struct emu_copy *copy = &work->copy;
    struct emu_activity activity = {.kind = EMU_ACTIVITY_COPY,
                                    .device = work->activity.device,
                                    .stream = work->activity.stream,
                                    .correlation = work->activity.correlation,
                                    .copy_kind = copy->kind,
                                    .bytes = copy->width * copy->height * copy->depth};

    emu_activity_lasted(&activity, begin_ns, lasted_ns);
}

static int run_copy(void *arg)
{
    const struct copy_work *work = arg;
    const struct emu_copy *copy = &work->copy;
    size_t to_bytes =
        extent(copy->width, copy->height, copy->depth, copy->to_pitch, copy->to_slice);
    size_t from_bytes =
        extent(copy->width, copy->height, copy->depth, copy->from_pitch, copy->from_slice);
    struct emu_range *to = NULL, *from = NULL;
    uint64_t began_ns = emu_model_now(), activity_ns = emu_activity_begin(),
             processor_ns = emu_model_processor_ns();
    int error = emu_memory_hold(work->device, copy->to, to_bytes, true, &to);

    if (!error && !work->staged)
        error = emu_memory_hold(work->device, copy->from, from_bytes, true, &from);
    if (!error) {
        copy_rows(copy);
        uint64_t ran_ns = emu_model_processor_ns() - processor_ns, copied_ns = emu_model_now();
        wait_as_modelled(work, began_ns);
        record_copy(work, activity_ns, ran_ns + emu_model_now() - copied_ns);
    }
    emu_memory_release(to);
    emu_memory_release(from);
    return error;
}

static void release_copy(void *arg)
{
    struct copy_work *work = arg;

    if (work->staged)
        free((void *)work->copy.from);
    free(work);
}

/* Takes the source's bytes now, so that the program may change them as soon as the call returns. */
static int stage(struct copy_work *work)
{
    struct emu_copy to_buffer = work->copy;
    char *buffer = malloc(work->copy.width * work->copy.height * work->copy.depth);

    if (!buffer)
        return cudaErrorMemoryAllocation;
    to_buffer.to = buffer;
    to_buffer.to_pitch = work->copy.width;
    to_buffer.to_slice = work->copy.width * work->copy.height;
    copy_rows(&to_buffer);
    work->copy.from = buffer;
    work->copy.from_pitch = to_buffer.to_pitch;
    work->copy.from_slice = to_buffer.to_slice;
    work->staged = true;
    return 0;
}

/* Looks at the places and checks the call. */
static int check_copy(const struct emu_copy *copy, enum place *from, enum place *to)
{
    bool from_fits, to_fits;

    if (!copy->to || !copy->from || copy->width > copy->to_pitch || copy->width > copy->from_pitch)
        return copy->width > copy->to_pitch || copy->width > copy->from_pitch
                   ? cudaErrorInvalidPitchValue
                   : cudaErrorInvalidValue;
    *to = copy_side_of(
        copy->to, extent(copy->width, copy->height, copy->depth, copy->to_pitch, copy->to_slice),
        &to_fits);
    *from = copy_side_of(
        copy->from,
        extent(copy->width, copy->height, copy->depth, copy->from_pitch, copy->from_slice),
        &from_fits);
    return to_fits && from_fits ? check_kind(copy->kind, *from, *to) : cudaErrorInvalidValue;
}

int emu_copy(struct emu_stream *stream, const struct emu_copy *copy, bool async, const char *name)
{
    bool capturing = emu_stream_is_capturing(stream);
    enum place from, to;
    struct copy_work *work;
    int error = async ? 0 : emu_capture_forbids_wait(stream);

    if (error || !copy->width || !copy->height || !copy->depth)
        return error;
    error = check_copy(copy, &from, &to);
    if (error)
        return error;
    work = malloc(sizeof(*work));
    if (!work)
        return cudaErrorMemoryAllocation;
    *work = (struct copy_work){.copy = *copy,
                               .device = copy->peer ? -1 : emu_stream_device(stream),
                               .activity = describe_stream(stream)};
    if (from == PAGEABLE && (on_device(to) || to == MANAGED) && !capturing)
        error = stage(work);
    if (!error)
        error = emu_stream_push(stream, name, run_copy, work, release_copy);
    if (error) {
        release_copy(work);
        return error;
    }
    return !capturing && host_waits(from, to, async) ? emu_stream_synchronize(stream) : 0;
}

struct emu_copy emu_copy_plain(void *to, const void *from, size_t bytes, int kind)
{
    return (struct emu_copy){.to = to,
                             .from = from,
                             .width = bytes,
                             .height = 1,
                             .depth = 1,
                             .to_pitch = bytes,
                             .from_pitch = bytes,
                             .kind = kind};
}

struct fill_work {
    struct emu_fill fill;
    int device;
    struct work_activity activity;
};

static void fill_row(char *row, const struct emu_fill *fill)
{
    if (fill->element_bytes == 1) {
        memset(row, (int)fill->value, fill->width);
        return;
    }
    for (size_t at = 0; at + fill->element_bytes <= fill->width; at += fill->element_bytes)
        memcpy(row + at, &fill->value,
               fill->element_bytes); /* the low bytes: x86 and Arm are little-endian */
}

static int run_fill(void *arg)
{
    const struct fill_work *work = arg;
    const struct emu_fill *fill = &work->fill;
    struct emu_activity activity = {.kind = EMU_ACTIVITY_FILL,
                                    .device = work->device,
                                    .stream = work->activity.stream,
                                    .correlation = work->activity.correlation,
                                    .bytes = fill->width * fill->height};
    uint64_t activity_ns = emu_activity_begin(), processor_ns = emu_model_processor_ns();
    struct emu_range *range;
    int error = emu_memory_hold(work->device, fill->to,
                                extent(fill->width, fill->height, 1, fill->pitch, 0), false,
                                &range);

    for (size_t row = 0; !error && row < fill->height; row++)
        fill_row((char *)fill->to + row * fill->pitch, fill);
    emu_memory_release(range);
    if (!error)
        emu_activity_lasted(&activity, activity_ns, emu_model_processor_ns() - processor_ns);
    return error;
}

int emu_fill(struct emu_stream *stream, const struct emu_fill *fill, bool async, const char *name)
{
    enum place place;
    struct fill_work *work;
    bool fits;
    int error = async ? 0 : emu_capture_forbids_wait(stream);

    if (error || !fill->width || !fill->height)
        return error;
    place = copy_side_of(fill->to, extent(fill->width, fill->height, 1, fill->pitch, 0), &fits);
    if (!fits || place == PAGEABLE || fill->width > fill->pitch)
        return cudaErrorInvalidValue;
    work = malloc(sizeof(*work));
    if (!work)
        return cudaErrorMemoryAllocation;
    *work = (struct fill_work){*fill, emu_stream_device(stream), describe_stream(stream)};
    error = emu_stream_push(stream, name, run_fill, work, free);
    if (error) {
        free(work);
        return error;
    }
    return !async && (place == PINNED || place == MANAGED) ? emu_stream_synchronize(stream) : 0;
}
