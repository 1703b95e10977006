/* runtimes.c: two CUDA runtimes in one process, each used by a library of its own. Prints what each
 * library got. Exit 77: one of the two is not installed. */
#include <dlfcn.h>
#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { NOT_HERE = 77 };

static int ask(const char *folder, int major)
{
    char path[4200];
    snprintf(path, sizeof path, "%s/libgpu_user%d.so", folder, major);
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!library) {
        printf("%s\n", dlerror());
        exit(NOT_HERE);
    }
    int (*version)(void) = (int (*)(void))dlsym(library, "gpu_user_version");
    return version ? version() : -1;
}

int main(void)
{
    char self[4096];
    ssize_t length = readlink("/proc/self/exe", self, sizeof self - 1);
    if (length < 0)
        return 1;
    self[length] = 0;
    const char *folder = dirname(self);
    int older = ask(folder, 12), newer = ask(folder, 13);
    printf("%d %d\n", older, newer);
    return 0;
}
