/* The architecture of the emulated devices and the device code that nvcc's host code registers. The
 * device has one architecture in a process, so the cases run in processes of their own:
 *
 *     (none)    a program for 8.0 alone: the device is one of 8.0
 *     both      a program for 8.0 and 9.0: 9.0
 *     8.6       what DDPCHECK_EMU_ARCHITECTURE says, whatever the program brings */
#include <stdlib.h>
#include <string.h>

#include "images.h"
#include "support.h"

void **__cudaRegisterFatBinary(void *fat_binary);
void __cudaRegisterFatBinaryEnd(void **module);
void __cudaUnregisterFatBinary(void **module);
void __cudaRegisterFunction(void **module, const char *host, char *device, const char *name,
                            int thread_limit, uint3 *thread, uint3 *block, dim3 *block_size,
                            dim3 *grid_size, int *warp_size);

static const dim3 ONE = {1, 1, 1};

/* A registered fat binary of one part and one kernel; the stub's address names the kernel. */
struct registered {
    char stub;
    struct test_fatbin fatbin;
    struct test_wrapper wrapper;
    void **module;
};

static void register_one(struct registered *one, uint16_t kind, uint32_t architecture)
{
    one->fatbin = make_fatbin("_Z6kernelPf6structi", architecture);
    one->fatbin.kind = kind;
    one->wrapper = (struct test_wrapper)WRAPPER(&one->fatbin);
    one->module = __cudaRegisterFatBinary(&one->wrapper);
    __cudaRegisterFunction(one->module, &one->stub, NULL, "_Z6kernelPf6structi", -1, NULL, NULL,
                           NULL, NULL, NULL);
    __cudaRegisterFatBinaryEnd(one->module);
}

static cudaError_t launch(const struct registered *one)
{
    void *pointer = NULL;
    char structure[24] = {0};
    int number = 0;
    void *args[] = {&pointer, structure, &number};

    return cudaLaunchKernel(&one->stub, ONE, ONE, args, 0, 0);
}

static void expect_device(int major, int minor)
{
    struct cudaDeviceProp properties;
    int got_major, got_minor;

    OK(cudaGetDeviceProperties(&properties, 0));
    assert_int_equal(properties.major * 10 + properties.minor, major * 10 + minor);
    OK(cudaDeviceGetAttribute(&got_major, cudaDevAttrComputeCapabilityMajor, 0));
    OK(cudaDeviceGetAttribute(&got_minor, cudaDevAttrComputeCapabilityMinor, 0));
    assert_int_equal(got_major * 10 + got_minor, major * 10 + minor);
}

static void what_the_program_brings_runs(void **state)
{
    static struct registered program;
    struct cudaFuncAttributes attributes;

    (void)state;
    register_one(&program, PART_CUBIN, 80);
    expect_device(8, 0);
    OK(launch(&program));
    OK(cudaDeviceSynchronize());
    OK(cudaFuncGetAttributes(&attributes, &program.stub));
    assert_int_equal(attributes.binaryVersion, 80);
    __cudaUnregisterFatBinary(program.module);
}

/* Registered later, as a library that is opened. */
static void what_does_not_fit_fails_at_its_launch(void **state)
{
    static struct registered newer, text;
    struct cudaFuncAttributes attributes;
    int blocks;

    (void)state;
    register_one(&newer, PART_CUBIN, 90);
    EXPECT(launch(&newer), cudaErrorNoKernelImageForDevice);
    EXPECT(cudaFuncGetAttributes(&attributes, &newer.stub), cudaErrorNoKernelImageForDevice);
    EXPECT(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, &newer.stub, 32, 0),
           cudaErrorNoKernelImageForDevice);
    EXPECT(cudaGetLastError(), cudaErrorNoKernelImageForDevice);
    OK(cudaDeviceSynchronize()); /* the device is none the worse for it */
    register_one(&text, PART_PTX, 75);
    text.fatbin.major = 9; /* looked at when the kernel is first used */
    text.fatbin.minor = 9;
    EXPECT(launch(&text), cudaErrorUnsupportedPtxVersion);
    __cudaUnregisterFatBinary(newer.module);
    __cudaUnregisterFatBinary(text.module);
}

static void registered_kernels_have_their_parameters(void **state)
{
    static struct registered program;
    static const size_t wanted[][2] = {{0, 8}, {8, 24}, {32, 4}};
    size_t offset, bytes;

    (void)state;
    register_one(&program, PART_CUBIN, 80);
    for (size_t i = 0; i < 3; i++) {
        OK(cudaFuncGetParamInfo(&program.stub, i, &offset, &bytes));
        assert_int_equal(offset, wanted[i][0]);
        assert_int_equal(bytes, wanted[i][1]);
    }
    EXPECT(cudaFuncGetParamInfo(&program.stub, 3, &offset, &bytes), cudaErrorInvalidValue);
    __cudaUnregisterFatBinary(program.module);
}

static void most_of_the_program_decides(void **state)
{
    static struct registered older, usual;

    (void)state;
    register_one(&older, PART_CUBIN, 80);
    register_one(&usual, PART_CUBIN, 90);
    expect_device(9, 0);
    OK(launch(&usual));
    EXPECT(launch(&older), cudaErrorNoKernelImageForDevice);
    __cudaUnregisterFatBinary(older.module);
    __cudaUnregisterFatBinary(usual.module);
}

static void the_setting_decides(void **state)
{
    static struct registered older, usual;

    (void)state;
    register_one(&older, PART_CUBIN, 80);
    register_one(&usual, PART_CUBIN, 90);
    expect_device(8, 6);
    OK(launch(&older)); /* an earlier minor version */
    EXPECT(launch(&usual), cudaErrorNoKernelImageForDevice);
    __cudaUnregisterFatBinary(older.module);
    __cudaUnregisterFatBinary(usual.module);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest brought[] = {
        cmocka_unit_test(what_the_program_brings_runs), /* first: it decides */
        cmocka_unit_test(what_does_not_fit_fails_at_its_launch),
        cmocka_unit_test(registered_kernels_have_their_parameters),
    };
    const struct CMUnitTest both[] = {cmocka_unit_test(most_of_the_program_decides)};
    const struct CMUnitTest set[] = {cmocka_unit_test(the_setting_decides)};

    if (argc > 1 && !strcmp(argv[1], "both"))
        return cmocka_run_group_tests(both, NULL, NULL);
    if (argc > 1)
        return cmocka_run_group_tests(set, NULL, NULL);
    return cmocka_run_group_tests(brought, NULL, NULL);
}
