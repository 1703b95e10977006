/* unsupported.c: every other function of CUPTI: it prints its name once and returns
 * CUPTI_ERROR_NOT_SUPPORTED. */
#include "emu/core.h"

enum { NOT_SUPPORTED = 27 };

#define UNSUPPORTED(name)                                              \
    int name(void);                                                    \
    int name(void)                                                     \
    {                                                                  \
        emu_unsupported(#name, "the emulated CUPTI does not have it"); \
        return NOT_SUPPORTED;                                          \
    }
#include "emu/cupti/unsupported.def"
