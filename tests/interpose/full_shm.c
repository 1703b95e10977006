/* full_shm.c: preloaded behind the shim, it has /dev/shm look full. */
#include <dlfcn.h>
#include <string.h>
#include <sys/vfs.h>

int statfs(const char *path, struct statfs *system)
{
    int (*real)(const char *, struct statfs *);
    *(void **)&real = dlsym(RTLD_NEXT, "statfs");
    int result = real(path, system);
    if (!strncmp(path, "/dev/shm", strlen("/dev/shm")))
        system->f_bavail = 0;
    return result;
}
