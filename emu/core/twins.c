#include <dlfcn.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "emu/core/kernel.h"
#include "emu/core/process.h"

static struct {
    pthread_once_t once;
    const struct twin *all;     /* NULL: no library */
} twins = { .once = PTHREAD_ONCE_INIT };

static void load(void)
{
    char beside[PATH_MAX];
    const char *path = getenv("DDPCHECK_EMU_TWINS");
    void *library;

    if (!path || !*path)
        path = emu_process_sibling("libddpcheck_twins.so", beside, sizeof(beside));
    library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!library) {
        fprintf(stderr, "ddpcheck emu: no C twins of kernels: %s; kernels will do nothing "
                "(DDPCHECK_EMU_TWINS names another library)\n", dlerror());
        return;
    }
    twins.all = dlsym(library, "kernels_twins");
    if (!twins.all)
        fprintf(stderr, "ddpcheck emu: %s has no table kernels_twins; kernels will do nothing\n", path);
}

const struct twin *emu_twin_find(const char *name)
{
    pthread_once(&twins.once, load);
    for (const struct twin *twin = twins.all; twin && twin->name; twin++)
        if (!strcmp(twin->name, name))
            return twin;
    return NULL;
}
