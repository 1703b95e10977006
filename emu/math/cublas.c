/* cublas.c: cuBLAS's functions that return something other than a status. */
#include <stddef.h>

#include "emu/math/words.h"

/* The newest of its major version: JAX refuses libraries that are older than its own. */
enum { VERSION = DDPCHECK_EMU_CUDA * 10000 + 9900 };

const char *cublasGetStatusName(int status);
const char *cublasGetStatusName(int status)
{
    return status ? "CUBLAS_STATUS_INTERNAL_ERROR" : "CUBLAS_STATUS_SUCCESS";
}

const char *cublasGetStatusString(int status);
const char *cublasGetStatusString(int status)
{
    return status ? "an internal operation failed" : "success";
}

int cublasGetVersion(int *version);
int cublasGetVersion(int *version)
{
    words_set_int(version, VERSION);
    return 0;
}

int cublasGetVersion_v2(void *handle, int *version);
int cublasGetVersion_v2(void *handle, int *version)
{
    (void)handle;
    return cublasGetVersion(version);
}

size_t cublasGetCudartVersion(void);
size_t cublasGetCudartVersion(void)
{
    return DDPCHECK_EMU_CUDA * 1000;
}

/* 0 major, 1 minor, 2 patch (library_types.h). */
int cublasGetProperty(int which, int *value);
int cublasGetProperty(int which, int *value)
{
    words_set_int(value, which ? 0 : DDPCHECK_EMU_CUDA);
    return 0;
}
