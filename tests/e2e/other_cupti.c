/* Two libraries for test_exact_times.py. With -DTOO_OLD a CUPTI that is too old;
 * else a profiler: preloaded, it has CUPTI before anybody else. */
#include <stdint.h>

#ifdef TOO_OLD

int cuptiGetVersion(uint32_t *version);
int cuptiGetVersion(uint32_t *version)
{
    *version = 9;
    return 0;
}

#define FUNCTION(name) \
    int name(void);    \
    int name(void)     \
    {                  \
        return 999;    \
    }
FUNCTION(cuptiGetTimestamp)
FUNCTION(cuptiSubscribe)
FUNCTION(cuptiUnsubscribe)
FUNCTION(cuptiActivityEnable)
FUNCTION(cuptiActivityDisable)
FUNCTION(cuptiActivityFlushAll)
FUNCTION(cuptiActivityGetNextRecord)
FUNCTION(cuptiActivityRegisterCallbacks)
FUNCTION(cuptiEnableCallback)

#else

#include <dlfcn.h>
#include <stdio.h>

static void ignore(void *data, int domain, uint32_t id, const void *parameters)
{
    (void)data, (void)domain, (void)id, (void)parameters;
}

__attribute__((constructor)) static void have_cupti(void)
{
    void *cupti = dlopen("libcupti.so.13", RTLD_NOW), *handle;
    int (*subscribe)(void **, void (*)(void *, int, uint32_t, const void *), void *) =
        cupti ? (int (*)(void **, void (*)(void *, int, uint32_t, const void *), void *))dlsym(
                    cupti, "cuptiSubscribe")
              : NULL;
    if (!subscribe || subscribe(&handle, ignore, NULL) != 0)
        fprintf(stderr, "the profiler has no CUPTI\n");
}

#endif
