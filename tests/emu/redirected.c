/* redirected.c: a program under `ddpcheck run --emulate` that brings CUDA libraries of its own
 * along, and needs much thread-local storage when it starts, as jemalloc does. */
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

char *storage_get(void);

int main(void)
{
    static const char *const libraries[] = {"/nowhere/libcudart.so.12", "/nowhere/libcudart.so.13",
                                            "/nowhere/libcuda.so.1", "/nowhere/libnccl.so.2",
                                            "/nowhere/libcudnn.so.9"};
    int failures = !storage_get();

    for (size_t i = 0; i < sizeof libraries / sizeof libraries[0]; i++)
        if (!dlopen(libraries[i], RTLD_NOW | RTLD_LOCAL)) {
            fprintf(stderr, "%s\n", dlerror());
            failures++;
        }
    if (dlopen("/nowhere/libother.so.1", RTLD_NOW)) {
        fprintf(stderr, "libother.so.1 was found\n");
        failures++;
    }
    return failures;
}
