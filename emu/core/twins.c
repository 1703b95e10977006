/* twins.c: loads the libraries that hold the C twins of kernels. */
#include <dlfcn.h>
#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "emu/core/kernel.h"
#include "emu/core/process.h"

static struct {
    pthread_once_t once;
    const struct twin *all; /* NULL: no library */
    atomic_uint running;
    atomic_bool leaving; /* the process is in exit() */
} twins = {.once = PTHREAD_ONCE_INIT};

/* The destructors of the twins' libraries (OpenBLAS frees its buffers) follow: no twin may run
 * then. Every twin ends by itself, so that this waits for none that hangs; the bound is for a
 * machine that is too busy. */
static void leave_without_twins(void)
{
    atomic_store(&twins.leaving, true);
    for (int milliseconds = 0; atomic_load(&twins.running) && milliseconds < 5000; milliseconds++)
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
}

void emu_twin_run(const struct twin *twin, const struct twin_grid *grid, void *const *args)
{
    atomic_fetch_add(&twins.running, 1);
    if (!atomic_load(&twins.leaving))
        twin->run(grid, args);
    atomic_fetch_sub(&twins.running, 1);
}

static void load_twins(void)
{
    char beside[PATH_MAX];
    const char *path = getenv("DDPCHECK_EMU_TWINS");
    void *library;

    if (!path || !*path)
        path = emu_process_sibling("libddpcheck_twins.so", beside, sizeof(beside));
    library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!library) {
        fprintf(stderr,
                "ddpcheck emu: no C twins of kernels: %s; kernels will do nothing "
                "(DDPCHECK_EMU_TWINS names another library)\n",
                dlerror());
        return;
    }
    atexit(leave_without_twins);
    twins.all = dlsym(library, "kernels_twins");
    if (!twins.all)
        fprintf(stderr, "ddpcheck emu: %s has no table kernels_twins; kernels will do nothing\n",
                path);
}

const struct twin *emu_twin_find(const char *name)
{
    pthread_once(&twins.once, load_twins);
    for (const struct twin *twin = twins.all; twin && twin->name; twin++)
        if (!strcmp(twin->name, name))
            return twin;
    return emu_count_find(name);
}
