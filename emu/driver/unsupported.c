/* unsupported.c: every other function of the driver: it prints its name once and returns
 * CUDA_ERROR_NOT_SUPPORTED. cuGetProcAddress does not return them, so programs that query it first
 * avoid them. */
#include "emu/core.h"

enum { NOT_SUPPORTED = 801 };

#define UNSUPPORTED(name)                                                    \
    int name(void);                                                          \
    int name(void)                                                           \
    {                                                                        \
        emu_unsupported(#name, "the emulated CUDA driver does not have it"); \
        return NOT_SUPPORTED;                                                \
    }
#include "emu/driver/unsupported.def"
