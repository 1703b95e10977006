/* launch.c: launches kernels in the name of a math library's functions. */
#include "emu/math/launch.h"

#include <cuda.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "emu/core.h"
#include "emu/core/copy.h"
#include "emu/core/image.h"
#include "emu/core/kernel.h"
#include "emu/core/stream.h"
#include "emu/math/words.h"

enum { NAME_MAX_BYTES = 256 };

struct handle {
    struct handle *next;
    void *stream;
};

/* The kernels belong to no module that is ever unloaded: this is its address. */
static const char module;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct handle *handles;

void math_add_touch(struct math_touches *touches, char letter, void *pointer)
{
    if (touches->count == MATH_TOUCHES_MAX || !pointer)
        return;
    touches->letters[touches->count] = letter;
    touches->pointers[touches->count++] = pointer;
}

/* The mangled name of a C++ function with one pointer parameter for each touch, to const where it
 * is only read, as in the names of real kernels. False: the name is too long. */
static bool name_by_touches(char *text, const char *name, const struct math_touches *touches)
{
    int used = snprintf(text, NAME_MAX_BYTES, "_Z%zu%s", strlen(name), name);

    for (int i = 0; i < touches->count && used < NAME_MAX_BYTES; i++)
        used += snprintf(text + used, NAME_MAX_BYTES - (size_t)used, "%s",
                         touches->letters[i] == 'r' ? "PKv" : "Pv");
    return used < NAME_MAX_BYTES;
}

static struct emu_kernel *kernel_that_touches(const char *mangled, int count)
{
    struct emu_image_kernel image = {.name = mangled, .length = strlen(mangled), .count = count};
    struct emu_kernel *kernel;

    for (int i = 0; i < count; i++)
        image.parameters[i] =
            (struct emu_parameter){.offset = (size_t)i * sizeof(void *), .bytes = sizeof(void *)};
    pthread_mutex_lock(&lock);
    kernel = emu_kernel_named(&module, mangled);
    if (!kernel && !emu_kernel_load(&module, NULL, &image))
        kernel = emu_kernel_named(&module, mangled);
    pthread_mutex_unlock(&lock);
    return kernel;
}

void math_launch(const char *name, const struct math_touches *touches, void *stream)
{
    char mangled[NAME_MAX_BYTES];
    void *arguments[MATH_TOUCHES_MAX];
    struct emu_kernel *kernel = NULL;

    emu_not_computed(name);
    if (touches->count && name_by_touches(mangled, name, touches))
        kernel = kernel_that_touches(mangled, touches->count);
    if (!kernel)
        return;
    for (int i = 0; i < touches->count; i++)
        arguments[i] = (void *)&touches->pointers[i];
    if (!emu_stream_find(stream))
        stream = NULL;
    /* Where it fails there is no device to work on, and the caller's next call says so. */
    cuLaunchKernel((CUfunction)kernel, 1, 1, 1, 1, 1, 1, 0, stream, arguments, NULL);
}

void *math_handle_create(void)
{
    struct handle *handle = calloc(1, sizeof(*handle));

    if (!handle)
        return NULL;
    pthread_mutex_lock(&lock);
    handle->next = handles;
    handles = handle;
    pthread_mutex_unlock(&lock);
    return handle;
}

/* Where the handle is linked; it is NULL there for a pointer that is no handle. */
static struct handle **handle_link(const void *handle)
{
    struct handle **link = &handles;

    while (*link && *link != handle)
        link = &(*link)->next;
    return link;
}

void math_handle_destroy(void *handle)
{
    struct handle **link, *found;

    pthread_mutex_lock(&lock);
    link = handle_link(handle);
    found = *link;
    if (found)
        *link = found->next;
    pthread_mutex_unlock(&lock);
    free(found);
}

void math_handle_set_stream(void *handle, void *stream)
{
    struct handle *found;

    pthread_mutex_lock(&lock);
    found = *handle_link(handle);
    if (found)
        found->stream = stream;
    pthread_mutex_unlock(&lock);
}

void *math_handle_stream(void *handle)
{
    struct handle *found;
    void *stream = NULL;

    pthread_mutex_lock(&lock);
    found = *handle_link(handle);
    if (found)
        stream = found->stream;
    pthread_mutex_unlock(&lock);
    return stream;
}

void math_report_success(void *handle, void *info, int count)
{
    struct emu_stream *stream = emu_stream_find(math_handle_stream(handle));
    struct emu_fill fill = {.to = info,
                            .width = (size_t)count * sizeof(int),
                            .height = 1,
                            .pitch = (size_t)count * sizeof(int),
                            .element_bytes = 1};
    struct emu_memory memory;

    if (!stream) /* it was destroyed */
        stream = emu_stream_find(NULL);
    if (stream && count > 0 && emu_memory_find(info, &memory) &&
        fill.width <= memory.base + memory.bytes - (uintptr_t)info)
        emu_fill(stream, &fill, true, "the result of a factorization");
}

void math_launch_words(const char *name, const char *letters, void *const *words)
{
    struct math_touches touches = {0};
    void *stream = NULL;
    bool given = false;

    for (int i = 0; letters[i] && i < WORD_COUNT; i++) {
        if (letters[i] == 's') {
            stream = words[i];
            given = true;
        } else if (letters[i] != '.') {
            math_add_touch(&touches, letters[i], words[i]);
        }
    }
    math_launch(name, &touches, given ? stream : math_handle_stream(words[0]));
}
