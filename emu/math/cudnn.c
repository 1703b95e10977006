/* cudnn.c: cuDNN's versions, errors and choice of algorithms. */
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "emu/core.h"
#include "emu/math/words.h"

/* Newer than any program was built with: PyTorch refuses a cuDNN that is older than its own. */
enum { VERSION = 99900 };

size_t cudnnGetVersion(void);
size_t cudnnGetVersion(void)
{
    return VERSION;
}

size_t cudnnGetMaxDeviceVersion(void);
size_t cudnnGetMaxDeviceVersion(void)
{
    return VERSION;
}

size_t cudnnGetCudartVersion(void);
size_t cudnnGetCudartVersion(void)
{
    return 12000;
}

/* 0 major, 1 minor, 2 patch (library_types.h). */
int cudnnGetProperty(int which, int *value);
int cudnnGetProperty(int which, int *value)
{
    static const int parts[] = {VERSION / 10000, VERSION / 100 % 100, VERSION % 100};

    words_set_int(value, which >= 0 && which < 3 ? parts[which] : 0);
    return 0;
}

const char *cudnnGetErrorString(int status);
const char *cudnnGetErrorString(int status)
{
    return status ? "CUDNN_STATUS_INTERNAL_ERROR" : "CUDNN_STATUS_SUCCESS";
}

void cudnnGetLastErrorString(char *message, size_t bytes);
void cudnnGetLastErrorString(char *message, size_t bytes)
{
    if (message && bytes)
        message[0] = 0;
}

/* cudnnConvolution*AlgoPerf_t: algorithm, status, time, memory, determinism, math type, reserved.
 */
struct algorithm_result {
    int algorithm, status;
    float milliseconds;
    size_t workspace_bytes;
    int deterministic, math_type, reserved[3];
};

static int give_algorithm(int requested, int *found, struct algorithm_result *results)
{
    if (requested > 0)
        memset(results, 0, sizeof(*results));
    words_set_int(found, requested > 0);
    return 0;
}

/* The same arguments whatever the direction: four descriptors after the handle, and in the forms
 * named Ex memory behind some of them. */
#define ALGORITHM(name)                                                                   \
    int name(void *handle, void *a, void *b, void *c, void *d, int requested, int *found, \
             struct algorithm_result *results);                                           \
    int name(void *handle, void *a, void *b, void *c, void *d, int requested, int *found, \
             struct algorithm_result *results)                                            \
    {                                                                                     \
        void *const unused[] = {handle, a, b, c, d};                                      \
                                                                                          \
        (void)unused;                                                                     \
        return give_algorithm(requested, found, results);                                 \
    }
#define ALGORITHM_EX(name)                                                   \
    int name(WORD_PARAMETERS);                                               \
    int name(WORD_PARAMETERS)                                                \
    {                                                                        \
        void *const words[] = {WORDS};                                       \
                                                                             \
        return give_algorithm((int)(intptr_t)words[8], words[9], words[10]); \
    }
ALGORITHM(cudnnGetConvolutionForwardAlgorithm_v7)
ALGORITHM(cudnnGetConvolutionBackwardDataAlgorithm_v7)
ALGORITHM(cudnnGetConvolutionBackwardFilterAlgorithm_v7)
ALGORITHM(cudnnFindConvolutionForwardAlgorithm)
ALGORITHM(cudnnFindConvolutionBackwardDataAlgorithm)
ALGORITHM(cudnnFindConvolutionBackwardFilterAlgorithm)
ALGORITHM_EX(cudnnFindConvolutionForwardAlgorithmEx)
ALGORITHM_EX(cudnnFindConvolutionBackwardDataAlgorithmEx)
ALGORITHM_EX(cudnnFindConvolutionBackwardFilterAlgorithmEx)
