/* unsupported.c: every other function of the runtime: it prints its name once and returns
 * cudaErrorNotSupported. No CUDA header here: the lists hold names only, and arguments are ignored.
 */
#include "emu/core.h"

enum { NOT_SUPPORTED = 801 };

int call_leave(int error);

#define UNSUPPORTED(name)                                                     \
    int name(void);                                                           \
    int name(void)                                                            \
    {                                                                         \
        emu_unsupported(#name, "the emulated CUDA runtime does not have it"); \
        return call_leave(NOT_SUPPORTED);                                     \
    }
#include "emu/cudart/unsupported.def"
#if DDPCHECK_EMU_CUDART == 13
#include "emu/cudart/unsupported13.def"
#else
#include "emu/cudart/unsupported12.def"
#endif
