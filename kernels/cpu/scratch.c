/* scratch.c: one growing piece of memory per thread. */
#include "kernels/cpu/twins.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

struct scratch {
    size_t floats;
    float *memory;
};

static pthread_once_t once = PTHREAD_ONCE_INIT;
static pthread_key_t key;
static int key_status;

static void release_scratch(void *pointer)
{
    struct scratch *scratch = pointer;

    free(scratch->memory);
    free(scratch);
}

static void make_scratch_key(void)
{
    key_status = pthread_key_create(&key, release_scratch);
}

static struct scratch *scratch_of_thread(void)
{
    struct scratch *scratch;

    pthread_once(&once, make_scratch_key);
    if (key_status)
        return NULL;
    scratch = pthread_getspecific(key);
    if (scratch)
        return scratch;
    scratch = calloc(1, sizeof *scratch);
    if (scratch && pthread_setspecific(key, scratch)) {
        free(scratch);
        return NULL;
    }
    return scratch;
}

float *scratch_take(size_t floats)
{
    struct scratch *scratch = scratch_of_thread();

    if (scratch && scratch->floats < floats) {
        free(scratch->memory);
        scratch->memory = malloc(floats * sizeof *scratch->memory);
        scratch->floats = scratch->memory ? floats : 0;
    }
    if (!scratch || !scratch->memory) {
        fprintf(stderr,
                "ddpcheck emu: no memory for the %zu bytes that a convolution works in; "
                "run fewer emulated ranks or smaller batches\n",
                floats * sizeof(float));
        abort();
    }
    return scratch->memory;
}
