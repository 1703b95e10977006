/* values.h: arrays that exist three times: as the double precision truth, on the host, and on the
 * device. */
#ifndef DDPCHECK_TESTS_KERNELS_VALUES_H
#define DDPCHECK_TESTS_KERNELS_VALUES_H

#include <cuda_runtime_api.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* `truth` is what a reference reads and writes; `device` is what a kernel does. Both begin with the
 * same random values, outputs too: an element that a kernel leaves out is noticed. */
struct values {
    size_t count;
    double *truth;
    float *host, *device;
    float *base; /* what was allocated for device, with a margin around it */
};

/* The stream that the cases launch on. */
extern cudaStream_t stream;

/* Uniform in [low, high). Ends the program with a message if there is no memory. Freed by
 * values_free_all. */
struct values *values_random(size_t count, double low, double high);
/* As values_random, in [-1, 1). */
struct values *values_new(size_t count);
void values_free_all(void);
double random_uniform(void);

/* Arrays made from now on begin as many floats (0 to 3) past a 16-byte boundary as this gives:
 * array i at i * step modulo
 * 4. The first: 0, all at a boundary. */
void values_shift(int step);

/* Waits for the device and compares what is there with the truth; the error allowed is `tolerance`
 * of the largest truth, or of 1 if that is more. What lies around the array must not have changed.
 * Prints the first difference and counts a failure. */
void values_expect(struct values *values, double tolerance, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Copies to the device and waits until it is there. cudaMemcpy from pageable memory would not do:
 * it may return before, and a non-blocking stream does not wait for it. Ends the program if it
 * fails. */
void copy_to_device(void *device, const void *host, size_t bytes);

/* Prints and counts a failure. */
void fail(const char *format, ...) __attribute__((format(printf, 1, 2)));
unsigned failures(void);
unsigned comparisons(void);

/* Ends the program if a CUDA call that the test itself needs fails. */
#define MUST(call) must(call, #call, __FILE__, __LINE__)
void must(cudaError_t status, const char *call, const char *file, int line);

/* A launch that has to be accepted. */
#define LAUNCHED(call) launched(call, #call)
void launched(cudaError_t status, const char *call);

#endif
