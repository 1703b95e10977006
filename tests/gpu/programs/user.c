/* user.c: a library that is linked with one runtime, and says which one answers its calls. */
#include <cuda_runtime_api.h>

int gpu_user_version(void);

int gpu_user_version(void)
{
    int version = 0;
    return cudaRuntimeGetVersion(&version) ? -1 : version;
}
