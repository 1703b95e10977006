/* direct_launch.c: a launch calls the kernel's twin at once. It also sees every kernel that nvcc
 * registers and so can check, before the tests run, that kernels and twins are the same set with
 * the same parameters. */
#include "kernels/twin.h"

#include <cuda_runtime_api.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Of libstdc++ (Itanium C++ ABI): returns memory that the caller frees, or NULL. */
char *__cxa_demangle(const char *mangled, char *buffer, size_t *length, int *status);

enum { KERNELS_MOST = 256 };

static struct kernel {
    const void *stub;
    char *signature; /* demangled: name(type, type...) */
    const struct twin *twin;
} kernels[KERNELS_MOST];
static size_t kernel_count;

static const struct twin *twin_find(const char *signature)
{
    for (const struct twin *twin = kernels_twins; twin->name; twin++) {
        const size_t length = strlen(twin->name);
        if (!strncmp(signature, twin->name, length) && signature[length] == '(')
            return twin;
    }
    return NULL;
}

/* The letter of twin.h for a type as the demangler writes it. */
static const char *letter_of(const char *type)
{
    static const struct {
        const char *type, *letters;
    } known[] = {
        {"int", "i"},    {"unsigned int", "i"}, {"unsigned long", "l"},        {"float", "f"},
        {"double", "d"}, {"conv2d", "[40]"},    {"kernels_activation", "[8]"},
    };
    const size_t length = strlen(type);

    if (type[length - 1] == '*')
        return strstr(type, " const*") ? "p" : "P";
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (!strcmp(type, known[i].type))
            return known[i].letters;
    return "?";
}

static void letters_of(const char *signature, char letters[static 64])
{
    char types[512], *rest = types;

    letters[0] = 0;
    snprintf(types, sizeof types, "%s", strchr(signature, '(') + 1);
    types[strcspn(types, ")")] = 0;
    for (char *type; (type = strsep(&rest, ","));)
        strncat(letters, letter_of(type + strspn(type, " ")), 63 - strlen(letters));
}

static __attribute__((noreturn)) void give_up(const char *why, const char *what)
{
    fprintf(stderr, "FAILED %s: %s\n", why, what);
    exit(1);
}

static void check_tables(void)
{
    size_t twins = 0;

    for (size_t i = 0; i < kernel_count; i++) {
        char letters[64];
        if (!kernels[i].twin)
            give_up("a __global__ function without a twin", kernels[i].signature);
        letters_of(kernels[i].signature, letters);
        if (strcmp(letters, kernels[i].twin->params))
            give_up("a twin whose parameters are not its kernel's", kernels[i].signature);
    }
    for (const struct twin *twin = kernels_twins; twin->name; twin++, twins++) {
        bool found = false;
        for (size_t i = 0; i < kernel_count; i++)
            found |= kernels[i].twin == twin;
        if (!found)
            give_up("a twin of no __global__ function", twin->name);
    }
    if (twins != kernel_count)
        give_up("more kernels than twins", "two kernels share a name");
    printf("%-26s ok\n", "every kernel has its twin");
}

void **__cudaRegisterFatBinary(void *binary);
void **__cudaRegisterFatBinary(void *binary)
{
    (void)binary;
    return (void **)kernels;
}

void __cudaRegisterFatBinaryEnd(void **handle);
void __cudaRegisterFatBinaryEnd(void **handle)
{
    (void)handle;
}

void __cudaUnregisterFatBinary(void **handle);
void __cudaUnregisterFatBinary(void **handle)
{
    (void)handle;
}

/* Variables of the device's: no twin uses them. */
void __cudaRegisterVar(void **handle, char *host, char *device, const char *name, int external,
                       size_t bytes, int constant, int global);
void __cudaRegisterVar(void **handle, char *host, char *device, const char *name, int external,
                       size_t bytes, int constant, int global)
{
    (void)handle, (void)host, (void)device, (void)name, (void)external, (void)bytes, (void)constant,
        (void)global;
}

void __cudaRegisterFunction(void **handle, const char *stub, char *function, const char *name,
                            int limit, struct uint3 *thread, struct uint3 *block,
                            struct dim3 *block_size, struct dim3 *grid_size, int *warp);
void __cudaRegisterFunction(void **handle, const char *stub, char *function, const char *name,
                            int limit, struct uint3 *thread, struct uint3 *block,
                            struct dim3 *block_size, struct dim3 *grid_size, int *warp)
{
    int status;
    char *signature = __cxa_demangle(name, NULL, NULL, &status);

    (void)handle, (void)function, (void)limit, (void)thread, (void)block, (void)block_size,
        (void)grid_size, (void)warp;
    if (!signature || !strchr(signature, '('))
        give_up("a kernel whose name can't be demangled", name);
    if (kernel_count == KERNELS_MOST)
        give_up("more kernels than this test has room for", name);
    kernels[kernel_count++] = (struct kernel){stub, signature, twin_find(signature)};
}

/* What nvcc's stubs for <<<>>> refer to; the launchers call cudaLaunchKernel instead. */
#define UNUSED_BY_LAUNCHERS(name)                                  \
    cudaError_t name(void);                                        \
    cudaError_t name(void)                                         \
    {                                                              \
        give_up("a launch on a path that this test lacks", #name); \
    }
UNUSED_BY_LAUNCHERS(__cudaGetKernel)
UNUSED_BY_LAUNCHERS(__cudaLaunchKernel)
UNUSED_BY_LAUNCHERS(__cudaPopCallConfiguration)

static bool grid_is_valid(dim3 grid, dim3 block)
{
    return grid.x > 0 && grid.y > 0 && grid.z > 0 && grid.x <= 0x7fffffff && grid.y <= 65535 &&
           grid.z <= 65535 && block.x * block.y * block.z > 0 &&
           block.x * block.y * block.z <= 1024;
}

cudaError_t cudaLaunchKernel(const void *stub, dim3 grid, dim3 block, void **args, size_t shared,
                             cudaStream_t stream)
{
    const struct twin_grid whole = {
        {grid.x, grid.y, grid.z}, {block.x, block.y, block.z}, shared, NULL};

    (void)stream;
    if (!grid_is_valid(grid, block))
        return cudaErrorInvalidConfiguration;
    for (size_t i = 0; i < kernel_count; i++)
        if (kernels[i].stub == stub) {
            kernels[i].twin->run(&whole, args);
            return cudaSuccess;
        }
    return cudaErrorInvalidDeviceFunction;
}

cudaError_t cudaGetDeviceCount(int *count)
{
    check_tables();
    *count = 1;
    return cudaSuccess;
}
