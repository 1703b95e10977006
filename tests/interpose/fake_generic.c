/* fake_generic.c: every function of calls.def as one that succeeds and does nothing, weak, so that
 * fake_nccl.c and fake_cudart.c define those that matter. With FAKE_NCCL libnccl's, else
 * libcudart's and the driver's. Whatever a function's parameters are, they are not looked at. */
#define FAKE(name)                                              \
    __attribute__((weak)) int fake_##name(void) __asm__(#name); \
    int fake_##name(void)                                       \
    {                                                           \
        return 0;                                               \
    }

#ifdef FAKE_NCCL
#define FAKE_NCCL_(name) FAKE(name)
#define FAKE_CUDART_(name)
#define FAKE_DRIVER_(name)
#else
#define FAKE_NCCL_(name)
#define FAKE_CUDART_(name) FAKE(name)
#define FAKE_DRIVER_(name) FAKE(name)
#endif
#define CALL_NAME(name, library) FAKE_##library##_(name)
#include "interpose/calls/call_names.def"
