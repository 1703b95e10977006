/* Kernels registered by hand, as nvcc's host code does. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "support.h"

void **__cudaRegisterFatBinary(void *fat_binary);
void __cudaRegisterFatBinaryEnd(void **module);
void __cudaUnregisterFatBinary(void **module);
void __cudaRegisterFunction(void **module, const char *host, char *device, const char *name,
                            int thread_limit, uint3 *thread, uint3 *block, dim3 *block_size,
                            dim3 *grid_size, int *warp_size);
void __cudaRegisterVar(void **module, char *host, char *device, const char *name, int external,
                       size_t bytes, int constant, int global);
cudaError_t __cudaGetKernel(cudaKernel_t *kernel, const void *function);
cudaError_t __cudaLaunchKernel(cudaKernel_t kernel, dim3 grid, dim3 block, void **args,
                               size_t shared, cudaStream_t stream);

/* Stubs: only their addresses matter. */
static char add_scaled, describe, unknown, variable, fill, compare, concatenate, sum;
static void **module;

static const dim3 ONE = {1, 1, 1};

static int register_kernels(void **state)
{
    static const struct {
        const char *host, *mangled;
    } kernels[] = {
        {&add_scaled, "_Z10add_scaledfPKfPfi"},
        {&describe, "_ZN5tests8describeE3fooPll"},
        {&unknown, "_Z7unknownPi"},
        {&fill, "_ZN2at6native29vectorized_elementwise_kernelILi4ENS0_11FillFunctorIlEESt5arrayI"
                "PcLm1EEEEviT0_T1_"},
        {&compare, "_ZN2at6native29vectorized_elementwise_kernelILi4ENS0_1A14CompareFunctorIlEESt5"
                   "arrayIPcLm3EEEEviT0_T1_"},
        {&concatenate, "_ZN2at6native1A26CatArrayBatchedCopy_contigINS1_10OpaqueTypeILj2EEEjLi2ELi"
                       "128ELi1EEEvPT_NS1_25CatArrInputTensorMetadataIS5_T0_XT2_EXT3_EEENS1_16"
                       "TensorSizeStrideIS8_Lj4EEEiS8_"},
        {&sum, "_ZN2at6native13reduce_kernelILi512ELi1ENS0_8ReduceOpIlNS0_14func_wrapper_tIlZNS0_"
               "11sum_functorIlllEclERNS_14TensorIteratorEEUlllE_EEjlLi4ELi4EEEEEvT1_"},
    };

    (void)state;
    module = __cudaRegisterFatBinary(NULL);
    for (size_t i = 0; i < sizeof(kernels) / sizeof(kernels[0]); i++)
        __cudaRegisterFunction(module, kernels[i].host, NULL, kernels[i].mangled, -1, NULL, NULL,
                               NULL, NULL, NULL);
    __cudaRegisterVar(module, &variable, NULL, "variable", 0, 16, 0, 0);
    __cudaRegisterFatBinaryEnd(module);
    return 0;
}

static int unregister_kernels(void **state)
{
    (void)state;
    __cudaUnregisterFatBinary(module);
    EXPECT(cudaLaunchKernel(&unknown, ONE, ONE, NULL, 0, 0), cudaErrorInvalidDeviceFunction);
    return 0;
}

static void twin_does_the_work(void **state)
{
    float host[1000], factor = 2, *x, *y;
    int count = 1000;
    void *args[] = {&factor, &x, &y, &count};
    cudaKernel_t kernel;

    (void)state;
    for (int i = 0; i < count; i++)
        host[i] = (float)i;
    OK(cudaMalloc((void **)&x, sizeof(host)));
    OK(cudaMalloc((void **)&y, sizeof(host)));
    OK(cudaMemcpy(x, host, sizeof(host), cudaMemcpyHostToDevice));
    OK(cudaMemset(y, 0, sizeof(host)));
    OK(cudaLaunchKernel(&add_scaled, (dim3){4, 1, 1}, (dim3){256, 1, 1}, args, 0, 0));
    factor = 100; /* arguments are copied by the call */
    OK(cudaMemcpy(host, y, sizeof(host), cudaMemcpyDeviceToHost));
    assert_true(host[999] == 1998);
    factor = 1;
    OK(__cudaGetKernel(&kernel, &add_scaled));
    OK(__cudaLaunchKernel(kernel, (dim3){4, 1, 1}, (dim3){256, 1, 1}, args, 0, 0));
    OK(cudaMemcpy(host, y, sizeof(host), cudaMemcpyDeviceToHost));
    assert_true(host[999] == 2997);
}

static void launch_passes_grid_and_structs(void **state)
{
    struct {
        int a, b, c;
    } numbers = {1, 2, 3};
    long *out, back[5], word = 77;
    void *args[] = {&numbers, &out, &word};
    cudaLaunchConfig_t config = {
        .gridDim = {9, 1, 1}, .blockDim = {64, 1, 1}, .dynamicSmemBytes = 512};

    (void)state;
    OK(cudaMalloc((void **)&out, sizeof(back)));
    OK(cudaLaunchKernelExC(&config, &describe, args));
    OK(cudaMemcpy(back, out, sizeof(back), cudaMemcpyDeviceToHost));
    assert_int_equal(back[0], 9);
    assert_int_equal(back[1], 64);
    assert_int_equal(back[2], 512);
    assert_int_equal(back[3], 6);
    assert_int_equal(back[4], 77);
}

static void parameters_are_laid_out_as_in_c(void **state)
{
    struct {
        int a[3];
        long *b;
        long c;
    } expected; /* "[12]Pl" */
    size_t offset, bytes;
    const char *name;

    (void)state;
    OK(cudaFuncGetParamInfo(&describe, 0, &offset, &bytes));
    assert_int_equal(offset, 0);
    assert_int_equal(bytes, 12);
    OK(cudaFuncGetParamInfo(&describe, 1, &offset, &bytes));
    assert_int_equal(offset, (char *)&expected.b - (char *)&expected);
    assert_int_equal(bytes, 8);
    OK(cudaFuncGetParamInfo(&describe, 2, &offset, NULL));
    assert_int_equal(offset, (char *)&expected.c - (char *)&expected);
    EXPECT(cudaFuncGetParamInfo(&describe, 3, &offset, &bytes), cudaErrorInvalidValue);
    OK(cudaFuncGetName(&name, &describe));
    assert_string_equal(name, "_ZN5tests8describeE3fooPll");
}

/* Programs decide by these: sizes of objects, and "I have no more batches". */
static void pytorch_fills_and_compares(void **state)
{
    int64_t *data, host[3], value = 5;
    char *results, yes[3];
    int count = 3, greater = 1, too_many = 1 << 30;
    int64_t *pair[3];
    void *fill_args[] = {&count, &value, &data}, *too_many_args[] = {&too_many, &value, &data};
    void *compare_args[] = {&count, &greater, pair};

    (void)state;
    OK(cudaMalloc((void **)&data, 2 * sizeof(host)));
    OK(cudaMalloc((void **)&results, sizeof(yes)));
    OK(cudaLaunchKernel(&fill, ONE, ONE, fill_args, 0, 0));
    OK(cudaMemcpy(host, data, sizeof(host), cudaMemcpyDeviceToHost));
    assert_true(host[0] == 5 && host[1] == 5 && host[2] == 5);
    OK(cudaMemcpy(data + 3, (int64_t[]){4, 5, -6}, sizeof(host), cudaMemcpyHostToDevice));
    pair[0] = (int64_t *)results, pair[1] = data, pair[2] = data + 3;
    OK(cudaLaunchKernel(&compare, ONE, ONE, compare_args, 0, 0));
    OK(cudaMemcpy(yes, results, sizeof(yes), cudaMemcpyDeviceToHost));
    assert_true(yes[0] == 1 && yes[1] == 0 && yes[2] == 1);
    /* What does not fit into the allocation is another layout: nothing is written. */
    value = 8;
    OK(cudaLaunchKernel(&fill, ONE, ONE, too_many_args, 0, 0));
    OK(cudaMemcpy(host, data, sizeof(host), cudaMemcpyDeviceToHost));
    assert_true(host[0] == 5);
}

/* Of [[1], [2]] and [[3, 4], [5, 6]], side by side. */
static void pytorch_concatenates(void **state)
{
    struct {
        const int16_t *data[128];
        uint32_t offset[128], size[128], count[128];
        bool contiguous[128];
        uint32_t strides[8];
    } tensors = {.offset = {0, 1}, .size = {1, 2}, .count = {2, 4}, .contiguous = {true, true}};
    uint32_t sizes[8] = {2, 3, 0, 0, 3, 1}, step = 1;
    int along = 1;
    int16_t *data, *out, host[6];
    void *args[] = {&out, &tensors, sizes, &along, &step};

    (void)state;
    OK(cudaMalloc((void **)&data, sizeof(host)));
    OK(cudaMalloc((void **)&out, sizeof(host)));
    OK(cudaMemcpy(data, (int16_t[]){1, 2, 3, 4, 5, 6}, sizeof(host), cudaMemcpyHostToDevice));
    tensors.data[0] = data, tensors.data[1] = data + 2;
    OK(cudaLaunchKernel(&concatenate, (dim3){4, 2, 1}, ONE, args, 0, 0));
    OK(cudaMemcpy(host, out, sizeof(host), cudaMemcpyDeviceToHost));
    assert_memory_equal(host, ((int16_t[]){1, 3, 4, 2, 5, 6}), sizeof(host));
}

/* Its parameter's size is not known here, so that its layout is not either. */
static void unknown_layout_computes_nothing(void **state)
{
    int64_t *data, host = 3;
    void *args[] = {&data};

    (void)state;
    OK(cudaMalloc((void **)&data, sizeof(host)));
    OK(cudaMemcpy(data, &host, sizeof(host), cudaMemcpyHostToDevice));
    OK(cudaLaunchKernel(&sum, ONE, ONE, args, 0, 0));
    OK(cudaMemcpy(&host, data, sizeof(host), cudaMemcpyDeviceToHost));
    assert_int_equal(host, 3);
}

static void expect_illegal(float *x, float *y)
{
    float factor = 1;
    int count = 1;
    void *args[] = {&factor, &x, &y, &count};

    OK(cudaLaunchKernel(&add_scaled, ONE, ONE, args, 0, 0));
    EXPECT(cudaDeviceSynchronize(), cudaErrorIllegalAddress);
    EXPECT(cudaLaunchKernel(&add_scaled, ONE, ONE, args, 0, 0), cudaErrorIllegalAddress);
    OK(cudaDeviceReset());
    (void)cudaGetLastError();
}

static void kernel_may_touch_only_its_device(void **state)
{
    float *own, *foreign, host = 0, *pinned;
    int count = 0;
    float factor = 0;

    (void)state;
    OK(cudaSetDevice(1));
    OK(cudaMalloc((void **)&foreign, 4));
    OK(cudaSetDevice(0));
    OK(cudaMalloc((void **)&own, 4));
    expect_illegal(own, foreign); /* the reset takes `own` away */
    OK(cudaMalloc((void **)&own, 4));
    expect_illegal(&host, own);
    OK(cudaMalloc((void **)&own, 4));
    OK(cudaMallocHost((void **)&pinned, 4));
    void *args[] = {&factor, &pinned, &own, &count};
    OK(cudaLaunchKernel(&add_scaled, ONE, ONE, args, 0, 0));
    OK(cudaDeviceEnablePeerAccess(1, 0));
    args[1] = &foreign;
    OK(cudaLaunchKernel(&add_scaled, ONE, ONE, args, 0, 0));
    OK(cudaDeviceSynchronize());
}

static void bad_launches_are_refused(void **state)
{
    cudaStream_t elsewhere;

    (void)state;
    EXPECT(cudaLaunchKernel(&unknown, (dim3){0, 1, 1}, ONE, NULL, 0, 0),
           cudaErrorInvalidConfiguration);
    EXPECT(cudaLaunchKernel(&unknown, ONE, (dim3){1025, 1, 1}, NULL, 0, 0),
           cudaErrorInvalidConfiguration);
    EXPECT(cudaLaunchKernel(&unknown, ONE, ONE, NULL, 1 << 20, 0), cudaErrorInvalidValue);
    EXPECT(cudaLaunchKernel(state, ONE, ONE, NULL, 0, 0), cudaErrorInvalidDeviceFunction);
    OK(cudaSetDevice(1));
    OK(cudaStreamCreate(&elsewhere));
    OK(cudaSetDevice(0));
    EXPECT(cudaLaunchKernel(&unknown, ONE, ONE, NULL, 0, elsewhere),
           cudaErrorInvalidResourceHandle);
    OK(cudaStreamDestroy(elsewhere));
}

/* A kernel without a twin does nothing and is named once. */
static void unknown_kernel_is_reported_once(void **state)
{
    char text[4096];
    int saved = dup(STDERR_FILENO), pipe_ends[2];
    ssize_t length;
    const char *first;

    (void)state;
    assert_int_equal(pipe(pipe_ends), 0);
    dup2(pipe_ends[1], STDERR_FILENO);
    for (int i = 0; i < 3; i++)
        OK(cudaLaunchKernel(&unknown, ONE, ONE, NULL, 0, 0));
    dup2(saved, STDERR_FILENO);
    close(pipe_ends[1]);
    length = read(pipe_ends[0], text, sizeof(text) - 1);
    close(pipe_ends[0]);
    close(saved);
    assert_true(length > 0);
    text[length] = 0;
    first = strstr(text, "computes no numbers for this program (first: unknown)");
    assert_non_null(first);
    assert_null(strstr(first + 1, "computes no numbers"));
    OK(cudaDeviceSynchronize());
}

static void variables_have_memory(void **state)
{
    int host[4] = {1, 2, 3, 4}, back[2];
    void *address;
    size_t bytes;

    (void)state;
    OK(cudaGetSymbolSize(&bytes, &variable));
    assert_int_equal(bytes, 16);
    OK(cudaGetSymbolAddress(&address, &variable));
    OK(cudaMemcpyToSymbol(&variable, host, 16, 0, cudaMemcpyHostToDevice));
    OK(cudaMemcpyFromSymbol(back, &variable, 8, 8, cudaMemcpyDeviceToHost));
    assert_int_equal(back[0], 3);
    assert_int_equal(back[1], 4);
    EXPECT(cudaMemcpyToSymbol(&variable, host, 16, 4, cudaMemcpyHostToDevice),
           cudaErrorInvalidValue);
    EXPECT(cudaGetSymbolAddress(&address, host), cudaErrorInvalidSymbol);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(twin_does_the_work, reset_devices),
        cmocka_unit_test_setup(launch_passes_grid_and_structs, reset_devices),
        cmocka_unit_test_setup(parameters_are_laid_out_as_in_c, reset_devices),
        cmocka_unit_test_setup(pytorch_fills_and_compares, reset_devices),
        cmocka_unit_test_setup(pytorch_concatenates, reset_devices),
        cmocka_unit_test_setup(kernel_may_touch_only_its_device, reset_devices),
        cmocka_unit_test_setup(bad_launches_are_refused, reset_devices),
        cmocka_unit_test_setup(unknown_kernel_is_reported_once, reset_devices),
        cmocka_unit_test_setup(unknown_layout_computes_nothing, reset_devices),
        cmocka_unit_test_setup(variables_have_memory, reset_devices),
    };

    return cmocka_run_group_tests(tests, register_kernels, unregister_kernels);
}
