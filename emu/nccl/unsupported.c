/* unsupported.c: each function of NCCL that the emulated one lacks: it prints its name once and
 * returns ncclInvalidUsage. No nccl.h here: the table holds names only, some of them newer than the
 * header, and arguments are ignored. */
int fail_unsupported(const char *call);

#define EMULATED(name)
#define UNSUPPORTED(name)                                                   \
    int name(void) __attribute__((visibility("default")));                  \
    int p##name(void) __attribute__((visibility("default"), alias(#name))); \
    int name(void)                                                          \
    {                                                                       \
        return fail_unsupported(#name);                                     \
    }
#include "emu/nccl/functions.def"
