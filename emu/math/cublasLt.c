/* cublasLt.c: cuBLASLt's functions that return something other than a status, and its choice of an
 * algorithm. */
#include <stddef.h>
#include <string.h>

#include "emu/math/words.h"

const char *cublasLtGetStatusName(int status);
const char *cublasLtGetStatusName(int status)
{
    return status ? "CUBLAS_STATUS_INTERNAL_ERROR" : "CUBLAS_STATUS_SUCCESS";
}

const char *cublasLtGetStatusString(int status);
const char *cublasLtGetStatusString(int status)
{
    return status ? "an internal operation failed" : "success";
}

size_t cublasLtGetVersion(void);
size_t cublasLtGetVersion(void)
{
    return DDPCHECK_EMU_CUDA * 10000 + 9900;
}

size_t cublasLtGetCudartVersion(void);
size_t cublasLtGetCudartVersion(void)
{
    return DDPCHECK_EMU_CUDA * 1000;
}

int cublasLtGetProperty(int which, int *value);
int cublasLtGetProperty(int which, int *value)
{
    words_set_int(value, which ? 0 : DDPCHECK_EMU_CUDA);
    return 0;
}

/* cublasLtMatmulHeuristicResult_t, as in cublasLt.h. */
struct heuristic_result {
    unsigned long algorithm[8];
    size_t workspace_bytes;
    int status;
    float waves;
    int reserved[4];
};

/* One algorithm, which needs no workspace. */
int cublasLtMatmulAlgoGetHeuristic(void *handle, void *operation, void *a, void *b, void *c,
                                   void *d, void *preference, int requested,
                                   struct heuristic_result *results, int *found);
int cublasLtMatmulAlgoGetHeuristic(void *handle, void *operation, void *a, void *b, void *c,
                                   void *d, void *preference, int requested,
                                   struct heuristic_result *results, int *found)
{
    void *const unused[] = {handle, operation, a, b, c, d, preference};

    (void)unused;
    if (requested > 0)
        memset(results, 0, sizeof(*results));
    words_set_int(found, requested > 0);
    return 0;
}
