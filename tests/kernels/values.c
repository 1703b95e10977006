#include "tests/kernels/values.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "kernels/kernels.h"

enum { VALUES_MOST = 64, AROUND = 4 }; /* floats before and after an array */

static const float untouched = 12345.678f;

cudaStream_t stream;
static struct values all[VALUES_MOST];
static size_t used;
static int shift;
static unsigned failed, compared;
static uint64_t random_state = 0x2545f4914f6cdd1d;

double random_uniform(void)
{
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return (double)(random_state >> 11) / (double)(UINT64_C(1) << 53);
}

void must(cudaError_t status, const char *call, const char *file, int line)
{
    if (status == cudaSuccess)
        return;
    fprintf(stderr, "%s:%d: %s: %s\n", file, line, call, cudaGetErrorString(status));
    exit(1);
}

/* All kernels are built alike: if one can't run here, none can. */
void launched(cudaError_t status, const char *call)
{
    char why[512];

    if (status == cudaSuccess)
        return;
    if (kernels_explain(status, why, sizeof why)) {
        printf("FAILED %s: %s: %s\n", call, cudaGetErrorString(status), why);
        exit(1);
    }
    fail("%s: %s", call, cudaGetErrorString(status));
}

void fail(const char *format, ...)
{
    va_list arguments;

    failed++;
    printf("FAILED ");
    va_start(arguments, format);
    vprintf(format, arguments);
    va_end(arguments);
    putchar('\n');
}

unsigned failures(void)
{
    return failed;
}

unsigned comparisons(void)
{
    return compared;
}

void copy_to_device(void *device, const void *host, size_t bytes)
{
    MUST(cudaMemcpyAsync(device, host, bytes, cudaMemcpyHostToDevice, stream));
    MUST(cudaStreamSynchronize(stream));
}

/* With AROUND + shift floats before it, and AROUND after. */
static void place_on_device(struct values *values)
{
    const size_t before = AROUND + (size_t)(used * (size_t)shift % AROUND),
                 whole = before + values->count + AROUND;
    float *around = malloc(whole * sizeof *around);

    if (!around) {
        fprintf(stderr, "no memory for %zu values\n", whole);
        exit(1);
    }
    for (size_t i = 0; i < whole; i++)
        around[i] = untouched;
    MUST(cudaMalloc((void **)&values->base, whole * sizeof *around));
    copy_to_device(values->base, around, whole * sizeof *around);
    values->device = values->base + before;
    free(around);
}

static bool around_is_untouched(const struct values *values)
{
    float around[2][AROUND];

    MUST(cudaMemcpy(around[0], values->device - AROUND, sizeof around[0], cudaMemcpyDeviceToHost));
    MUST(cudaMemcpy(around[1], values->device + values->count, sizeof around[1],
                    cudaMemcpyDeviceToHost));
    for (int i = 0; i < AROUND; i++)
        if (around[0][i] != untouched || around[1][i] != untouched)
            return false;
    return true;
}

struct values *values_random(size_t count, double low, double high)
{
    struct values *values = &all[used++];

    if (used > VALUES_MOST) {
        fprintf(stderr, "a case may use %d arrays at most\n", VALUES_MOST);
        exit(1);
    }
    values->count = count;
    values->truth = malloc(count * sizeof *values->truth);
    values->host = malloc(count * sizeof *values->host);
    if (!values->truth || !values->host) {
        fprintf(stderr, "no memory for %zu values\n", count);
        exit(1);
    }
    for (size_t i = 0; i < count; i++) {
        values->host[i] = (float)(low + (high - low) * random_uniform());
        values->truth[i] = values->host[i];
    }
    place_on_device(values);
    copy_to_device(values->device, values->host, count * sizeof *values->device);
    return values;
}

void values_shift(int step)
{
    shift = step;
}

struct values *values_new(size_t count)
{
    return values_random(count, -1, 1);
}

void values_free_all(void)
{
    while (used > 0) {
        struct values *values = &all[--used];
        free(values->truth);
        free(values->host);
        MUST(cudaFree(values->base));
    }
}

void values_expect(struct values *values, double tolerance, const char *format, ...)
{
    char name[200];
    double largest = 1;
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(name, sizeof name, format, arguments);
    va_end(arguments);
    compared++;
    MUST(cudaStreamSynchronize(stream));
    MUST(cudaMemcpy(values->host, values->device, values->count * sizeof *values->host,
                    cudaMemcpyDeviceToHost));
    if (!around_is_untouched(values))
        fail("%s: what lies around its %zu elements was written", name, values->count);
    for (size_t i = 0; i < values->count; i++)
        largest = fmax(largest, fabs(values->truth[i]));
    for (size_t i = 0; i < values->count; i++)
        if (!(fabs(values->host[i] - values->truth[i]) <= tolerance * largest)) {
            fail("%s: element %zu of %zu: expected %.9g, got %.9g", name, i, values->count,
                 values->truth[i], (double)values->host[i]);
            return;
        }
}
