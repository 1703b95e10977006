/* nats_library.c: loads libnats. */
#include "lib/nats/nats_library.h"

#include <dlfcn.h>
#include <stdio.h>

/* Its name ends in the minor version, which changes no function that is used here. */
enum { MINOR_MIN = 3, MINOR_MAX = 30 };

static void *open_library(void)
{
    char name[32];
    for (int minor = MINOR_MAX; minor >= MINOR_MIN; minor--) {
        snprintf(name, sizeof name, "libnats.so.3.%d", minor);
        void *handle = dlopen(name, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
        if (handle)
            return handle;
    }
    return dlopen("libnats.so", RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
}

/* OpenSSL, which libnats uses, frees what it has when the program ends, while threads of libnats
 * or of a connection attempt may still use it. It leaves that if its first caller says so (OpenSSL
 * 3, OPENSSL_init_crypto). */
static void keep_openssl(void *handle)
{
    const uint64_t no_atexit = 0x00080000;
    int (*init)(uint64_t, const void *);
    *(void **)&init = dlsym(handle, "OPENSSL_init_crypto");
    if (init)
        init(no_atexit, NULL);
}

int nats_library_load(struct nats_library *library, struct error *err)
{
    void *handle = open_library();
    if (!handle)
        return error_set(err,
                         "can't load NATS's C client, libnats.so.3: %s; install Debian's "
                         "libnats3.4 or libnats-dev, or build it from nats.c",
                         dlerror());
    keep_openssl(handle);
    const struct {
        const char *name;
        void **function;
    } symbols[] = {
#define NATS_SYMBOL(result, name, parameters) {#name, (void **)&library->name},
#include "lib/nats/nats_symbols.def"
#undef NATS_SYMBOL
    };
    for (size_t i = 0; i < sizeof symbols / sizeof *symbols; i++) {
        *symbols[i].function = dlsym(handle, symbols[i].name);
        if (!*symbols[i].function)
            return error_set(err,
                             "can't use this libnats: %s; version 3.3 or newer of nats.c is "
                             "needed",
                             dlerror());
    }
    return 0;
}
