/* Device code that programs load themselves: kernels are found by name in PTX, cubins and fat
 * binaries. */
#include <cuda.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "images.h"
#include "support.h"

#define CHECK(call, wanted) EXPECT((cudaError_t)(call), (cudaError_t)(wanted))

static const char ptx[] =
    "// .entry not_this(\n"
    ".version 9.0\n.target sm_90\n.address_size 64\n"
    "/* .entry nor_this( */\n"
    ".visible .entry _Z10add_scaledfPKfPfi(\n\t.param .f32 a\n)\n{\n\tret;\n}\n"
    ".func helper() { ret; }\n"
    ".entry nothing_to_do()\n{\n\tret;\n}\n";

static void launch_add_scaled(CUfunction function)
{
    float *x, *y, factor = 2, back = 0, one = 1;
    int count = 1;
    void *args[] = {&factor, &x, &y, &count};

    OK(cudaMalloc((void **)&x, sizeof(*x)));
    OK(cudaMalloc((void **)&y, sizeof(*y)));
    OK(cudaMemcpy(x, &one, sizeof(one), cudaMemcpyHostToDevice));
    OK(cudaMemcpy(y, &one, sizeof(one), cudaMemcpyHostToDevice));
    CHECK(cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, 0, args, NULL), CUDA_SUCCESS);
    CHECK(cuLaunchCooperativeKernel(function, 1, 1, 1, 1, 1, 1, 0, 0, args), CUDA_SUCCESS);
    OK(cudaMemcpy(&back, y, sizeof(back), cudaMemcpyDeviceToHost));
    assert_true(back == 5);
    OK(cudaFree(x));
    OK(cudaFree(y));
}

static void ptx_kernels_run_their_twins(void **state)
{
    CUmodule module;
    CUfunction function = NULL, idle;
    unsigned count = 0;
    const char *name;
    int value;

    (void)state;
    CHECK(cuModuleLoadData(&module, ptx), CUDA_SUCCESS);
    CHECK(cuModuleGetFunction(&function, module, "_Z10add_scaledfPKfPfi"), CUDA_SUCCESS);
    CHECK(cuModuleGetFunction(&idle, module, "nothing_to_do"), CUDA_SUCCESS);
    CHECK(cuModuleGetFunction(&idle, module, "helper"), CUDA_ERROR_NOT_FOUND);
    CHECK(cuModuleGetFunction(&idle, module, "not_this"), CUDA_ERROR_NOT_FOUND);
    CHECK(cuModuleGetFunction(&idle, module, "nor_this"), CUDA_ERROR_NOT_FOUND);
    CHECK(cuModuleGetFunctionCount(&count, module), CUDA_SUCCESS);
    assert_int_equal(count, 2);
    CHECK(cuFuncGetName(&name, function), CUDA_SUCCESS);
    assert_string_equal(name, "_Z10add_scaledfPKfPfi");
    CHECK(cuFuncGetAttribute(&value, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, function),
          CUDA_SUCCESS);
    assert_int_equal(value, 1024);
    launch_add_scaled(function);
    CHECK(cuModuleUnload(module), CUDA_SUCCESS);
    CHECK(cuModuleUnload(module), CUDA_ERROR_INVALID_HANDLE);
    CHECK(cuModuleGetFunction(&function, module, "nothing_to_do"), CUDA_ERROR_INVALID_HANDLE);
    CHECK(cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, 0, NULL, NULL), CUDA_ERROR_INVALID_HANDLE);
}

static void libraries_have_kernels(void **state)
{
    CUlibrary library;
    CUkernel kernel, all[4] = {NULL};
    CUfunction function;
    cudaLibrary_t runtime;
    cudaKernel_t of_runtime;
    float *y, factor = 1;
    int count = 0;
    void *args[] = {&factor, &y, &y, &count};

    (void)state;
    CHECK(cuLibraryLoadData(&library, ptx, NULL, NULL, 0, NULL, NULL, 0), CUDA_SUCCESS);
    CHECK(cuLibraryGetKernel(&kernel, library, "_Z10add_scaledfPKfPfi"), CUDA_SUCCESS);
    CHECK(cuLibraryEnumerateKernels(all, 4, library), CUDA_SUCCESS);
    assert_non_null(all[1]);
    assert_null(all[2]);
    CHECK(cuKernelGetFunction(&function, kernel), CUDA_SUCCESS);
    launch_add_scaled(function);
    CHECK(cuLibraryUnload(library), CUDA_SUCCESS);
    OK(cudaLibraryLoadData(&runtime, ptx, NULL, NULL, 0, NULL, NULL, 0));
    OK(cudaLibraryGetKernel(&of_runtime, runtime, "_Z10add_scaledfPKfPfi"));
    OK(cudaMalloc((void **)&y, sizeof(*y)));
    OK(cudaLaunchKernel(of_runtime, (dim3){1, 1, 1}, (dim3){1, 1, 1}, args, 0, 0));
    OK(cudaDeviceSynchronize());
    EXPECT(cudaLibraryGetKernel(&of_runtime, runtime, "absent"), cudaErrorSymbolNotFound);
    OK(cudaLibraryUnload(runtime));
    OK(cudaFree(y));
}

static void cubins_and_fat_binaries_are_read(void **state)
{
    struct test_cubin cubin = make_cubin("add_scaled");
    struct test_fatbin fatbin = make_fatbin("add_scaled", 90);
    struct test_wrapper wrapper = WRAPPER(&fatbin);
    const void *images[] = {&cubin, &fatbin, &wrapper};
    CUmodule module;
    CUfunction function;

    (void)state;
    for (int i = 0; i < 3; i++) {
        CHECK(cuModuleLoadData(&module, images[i]), CUDA_SUCCESS);
        CHECK(cuModuleGetFunction(&function, module, "inner"), CUDA_ERROR_NOT_FOUND);
        CHECK(cuModuleGetFunction(&function, module, "add_scaled"), CUDA_SUCCESS);
        launch_add_scaled(function);
        CHECK(cuModuleUnload(module), CUDA_SUCCESS);
    }
    fatbin.flags = 0x2000; /* compressed: names that have a twin */
    CHECK(cuModuleLoadFatBinary(&module, &fatbin), CUDA_SUCCESS);
    CHECK(cuModuleGetFunction(&function, module, "_Z10add_scaledfPKfPfi"), CUDA_SUCCESS);
    launch_add_scaled(function);
    CHECK(cuModuleGetFunction(&function, module, "no_twin"), CUDA_ERROR_NOT_FOUND);
    CHECK(cuModuleUnload(module), CUDA_SUCCESS);
}

/* What a driver's compiler and a device take: PTX up to the driver's version, machine code of the
 * device's architecture. */
static void what_does_not_fit_is_refused(void **state)
{
    struct test_cubin cubin = make_cubin("add_scaled");
    struct test_fatbin fatbin = make_fatbin("add_scaled", 90);
    static const struct {
        uint16_t kind;
        uint32_t architecture;
        uint16_t major, minor;
        CUresult wanted;
    } parts[] = {
        {PART_CUBIN, 80, 0, 0, CUDA_ERROR_NO_BINARY_FOR_GPU},
        {PART_CUBIN, 100, 0, 0, CUDA_ERROR_NO_BINARY_FOR_GPU},
        {PART_CUBIN, 90, 0, 0, CUDA_SUCCESS},
        {PART_PTX, 75, 9, 1, CUDA_ERROR_UNSUPPORTED_PTX_VERSION},
        {PART_PTX, 100, 8, 0, CUDA_ERROR_NO_BINARY_FOR_GPU},
    };
    /* In a cubin alone its header says so; from 10.0 on in another byte. */
    static const struct {
        uint8_t abi;
        uint32_t flags;
        CUresult wanted;
    } headers[] = {
        {7, 0x500550, CUDA_ERROR_NO_BINARY_FOR_GPU},
        {7, 0x50055a, CUDA_SUCCESS},
        {8, 0x6006402, CUDA_ERROR_NO_BINARY_FOR_GPU},
    };
    CUmodule module;

    (void)state;
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        fatbin.kind = parts[i].kind;
        fatbin.architecture = parts[i].architecture;
        fatbin.major = parts[i].major;
        fatbin.minor = parts[i].minor;
        CHECK(cuModuleLoadFatBinary(&module, &fatbin), parts[i].wanted);
        if (parts[i].wanted == CUDA_SUCCESS)
            CHECK(cuModuleUnload(module), CUDA_SUCCESS);
    }
    for (size_t i = 0; i < sizeof headers / sizeof *headers; i++) {
        cubin.header.e_ident[EI_ABIVERSION] = headers[i].abi;
        cubin.header.e_flags = headers[i].flags;
        CHECK(cuModuleLoadData(&module, &cubin), headers[i].wanted);
        if (headers[i].wanted == CUDA_SUCCESS)
            CHECK(cuModuleUnload(module), CUDA_SUCCESS);
    }
    CHECK(cuModuleLoadData(&module, ".version 9.1\n.target sm_75\n.entry nothing() { ret; }\n"),
          CUDA_ERROR_UNSUPPORTED_PTX_VERSION);
    CHECK(cuModuleLoadData(&module, ".version 6.3\n.target sm_70\n.entry nothing() { ret; }\n"),
          CUDA_SUCCESS);
    CHECK(cuModuleUnload(module), CUDA_SUCCESS);
}

static void expect_layout(CUfunction function, size_t count, const size_t (*wanted)[2])
{
    size_t offset, bytes;

    for (size_t i = 0; i < count; i++) {
        CHECK(cuFuncGetParamInfo(function, i, &offset, &bytes), CUDA_SUCCESS);
        assert_int_equal(offset, wanted[i][0]);
        assert_int_equal(bytes, wanted[i][1]);
    }
    CHECK(cuFuncGetParamInfo(function, count, &offset, &bytes), CUDA_ERROR_INVALID_VALUE);
}

/* Kernels that nothing here can run have the parameters that their code declares. */
static void parameters_are_read_from_device_code(void **state)
{
    static const char text[] =
        ".version 8.0\n.target sm_80\n"
        ".visible .entry mixed(\n\t.param .u32 mixed_param_0,\n"
        "\t.param .align 8 .b8 mixed_param_1[24],\n"
        "\t.param .u64 .ptr .global .align 1 mixed_param_2, .param .u8 mixed_param_3\n)\n"
        "{ ret; }\n.entry none\n{ ret; }\n";
    static const size_t mixed[][2] = {{0, 4}, {8, 24}, {32, 8}, {40, 1}};
    static const size_t plain[][2] = {{0, 8}, {8, 24}, {32, 4}};
    static const size_t large[][2] = {{0, 5000}, {5000, 8}};
    /* More than 4 KiB of parameters: ptxas writes another attribute. */
    static const uint8_t large_info[] = {
        0x04, 0x45, 12, 0, 0, 0, 0, 0, 1, 0, 0x88, 0x13, 8,    0,    4, 4,
        0x04, 0x45, 12, 0, 0, 0, 0, 0, 0, 0, 0,    0,    0x88, 0x13, 0, 0,
    };
    struct test_cubin small = make_cubin("small");
    struct test_cubin big = make_cubin_with("big", large_info, sizeof(large_info));
    const struct {
        const void *image;
        const char *name;
        size_t count;
        const size_t (*layout)[2];
    } rows[] = {
        {text, "mixed", 4, mixed},
        {text, "none", 0, NULL},
        {&small, "small", 3, plain},
        {&big, "big", 2, large},
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        CUmodule module;
        CUfunction function;

        CHECK(cuModuleLoadData(&module, rows[i].image), CUDA_SUCCESS);
        CHECK(cuModuleGetFunction(&function, module, rows[i].name), CUDA_SUCCESS);
        expect_layout(function, rows[i].count, rows[i].layout);
        CHECK(cuModuleUnload(module), CUDA_SUCCESS);
    }
}

/* A fat binary whose cubin is packed by LZ4: literals, a run of the zeros near its end, literals.
 */
static struct test_fatbin make_packed_fatbin(const char *kernel)
{
    enum { RUN = 32, LAST = 8, LITERALS = sizeof(struct test_cubin) - RUN - LAST };
    struct test_fatbin fatbin = make_fatbin(kernel, 90);
    const struct test_cubin cubin = fatbin.cubin;
    uint8_t *packed = (uint8_t *)&fatbin.cubin, *at = packed;
    int more = LITERALS - 15;

    memset(&fatbin.cubin, 0, sizeof(fatbin.cubin));
    for (*at++ = 15 << 4 | 15; more >= 255; more -= 255)
        *at++ = 255;
    *at++ = (uint8_t)more;
    memcpy(at, &cubin, LITERALS);
    at += LITERALS;
    *at++ = 1; /* what was written one byte ago, RUN times */
    *at++ = 0;
    *at++ = RUN - 4 - 15;
    *at++ = LAST << 4;
    memset(at, 0, LAST);
    fatbin.packed_bytes = (uint32_t)(at + LAST - packed);
    fatbin.unpacked_bytes = sizeof(cubin);
    fatbin.flags = 0x2000;
    return fatbin;
}

static void packed_device_code_is_read(void **state)
{
    static const size_t plain[][2] = {{0, 8}, {8, 24}, {32, 4}};
    struct test_fatbin fatbin = make_packed_fatbin("packed");
    struct test_fatbin damaged[] = {fatbin, fatbin, fatbin};
    CUmodule module;
    CUfunction function;

    (void)state;
    CHECK(cuModuleLoadData(&module, &fatbin), CUDA_SUCCESS);
    CHECK(cuModuleGetFunction(&function, module, "packed"), CUDA_SUCCESS);
    expect_layout(function, 3, plain);
    CHECK(cuModuleUnload(module), CUDA_SUCCESS);
    damaged[0].packed_bytes--;
    damaged[1].unpacked_bytes--;
    ((uint8_t *)&damaged[2].cubin)[0] = 1; /* no literals before what is repeated */
    for (int i = 0; i < 3; i++) {
        CHECK(cuModuleLoadData(&module, &damaged[i]), CUDA_SUCCESS);
        CHECK(cuModuleGetFunction(&function, module, "packed"), CUDA_ERROR_NOT_FOUND);
        CHECK(cuModuleUnload(module), CUDA_SUCCESS);
    }
}

/* PyTorch's struct ReduceOp of int64 and of float: what the two differ in is before `config`. */
struct reduce_config {
    int32_t element_bytes, inputs, outputs, others[11];
    uint32_t vectorize;
    int32_t vector;
};
struct reduce_sizes {
    int32_t dims;
    uint32_t dim[25][3];
};
struct reduce_rest {
    struct reduce_config config;
    struct reduce_sizes in;
    uint32_t in_stride[25];
    struct reduce_sizes out;
    uint32_t out_stride[25][2];
};

/* Reduces the rows of a matrix of 2 rows and 3 columns. */
static void reduce_rows(const char *kernel, size_t element, size_t bytes, const void *matrix,
                        void *results)
{
    struct reduce_rest rest = {
        .config = {.element_bytes = (int32_t)element, .inputs = 3, .outputs = 2, .vector = 1},
        .in = {1, {{3, 0, 0}}},
        .in_stride = {(uint32_t)element},
        .out = {1, {{2, 0, 0}}},
        .out_stride = {{(uint32_t)element, 3 * (uint32_t)element}}};
    unsigned char op[1056] = {0};
    char text[640], *from, *to;
    CUmodule module;
    CUfunction function;
    void *args[] = {op};

    snprintf(text, sizeof(text),
             ".version 9.0\n.target sm_90\n.address_size 64\n"
             ".visible .entry %s(\n\t.param .align 8 .b8 p[%zu]\n)\n{\n\tret;\n}\n",
             kernel, bytes);
    CHECK(cuModuleLoadData(&module, text), CUDA_SUCCESS);
    CHECK(cuModuleGetFunction(&function, module, kernel), CUDA_SUCCESS);
    OK(cudaMalloc((void **)&from, 6 * element));
    OK(cudaMalloc((void **)&to, 2 * element));
    OK(cudaMemcpy(from, matrix, 6 * element, cudaMemcpyHostToDevice));
    memcpy(op + 2 * element, &rest, sizeof(rest));
    memcpy(op + bytes - 64, &from, sizeof(from));
    memcpy(op + bytes - 56, &to, sizeof(to));
    CHECK(cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, 0, args, NULL), CUDA_SUCCESS);
    OK(cudaMemcpy(results, to, 2 * element, cudaMemcpyDeviceToHost));
    CHECK(cuModuleUnload(module), CUDA_SUCCESS);
}

/* Programs decide by these: the largest size of an object, whether a number is not finite. */
static void pytorch_reduces(void **state)
{
    static const char sum[] = "_ZN2at6native13reduce_kernelILi512ELi1ENS0_8ReduceOpIlNS0_14func_"
                              "wrapper_tIlZNS0_11sum_functorIlllEclERNS_14TensorIteratorEEUlllE_EE"
                              "jlLi4ELi4EEEEEvT1_",
                      largest[] =
                          "_ZN2at6native13reduce_kernelILi512ELi1ENS0_8ReduceOpIfNS0_14func_"
                          "wrapper_tIfNS0_13MaxNanFunctorIfEEEEjfLi4ELi4EEEEEvT1_";
    int64_t sums[2];
    float largests[2] = {-1, -1};

    (void)state;
    reduce_rows(sum, 8, 1056, (int64_t[]){1, 2, 3, -4, 5, 6}, sums);
    assert_true(sums[0] == 6 && sums[1] == 7);
    reduce_rows(largest, 4, 1048, (float[]){1, 8.5f, 3, -4, -5, -6}, largests);
    assert_true(largests[0] == 8.5f && largests[1] == -4);
    /* A parameter of another size has another layout. */
    reduce_rows(largest, 4, 1040, (float[]){1, 8.5f, 3, -4, -5, -6}, largests);
    assert_true(largests[0] == 0 && largests[1] == 0);
}

static void what_is_no_image_is_refused(void **state)
{
    CUmodule module;
    char path[] = "/tmp/ddpcheck-module-XXXXXX";
    int file = mkstemp(path);

    (void)state;
    CHECK(cuModuleLoadData(&module, "no code at all"), CUDA_ERROR_INVALID_IMAGE);
    CHECK(cuModuleLoadData(&module, NULL), CUDA_ERROR_INVALID_VALUE);
    CHECK(cuModuleLoad(&module, "/does/not/exist"), CUDA_ERROR_FILE_NOT_FOUND);
    assert_true(file >= 0);
    assert_int_equal(write(file, ptx, sizeof(ptx) - 1), sizeof(ptx) - 1);
    close(file);
    CHECK(cuModuleLoad(&module, path), CUDA_SUCCESS);
    CHECK(cuModuleUnload(module), CUDA_SUCCESS);
    unlink(path);
}

/* What first uses a kernel on a device waits for all work there, but only the first time. */
static void first_use_waits_for_the_device(void **state)
{
    static const char two[] = ".version 8.0\n.target sm_80\n.entry one() { ret; }\n"
                              ".entry two() { ret; }\n";
    struct gate first = GATE_CLOSED, second = GATE_CLOSED;
    CUmoduleLoadingMode mode;
    CUfunctionLoadingState loaded;
    CUlibrary library;
    CUmodule module;
    CUkernel kernel;
    CUfunction function;
    cudaStream_t busy, other;
    pthread_t opener;

    (void)state;
    CHECK(cuModuleGetLoadingMode(&mode), CUDA_SUCCESS);
    assert_int_equal(mode, CU_MODULE_LAZY_LOADING);
    OK(cudaStreamCreateWithFlags(&busy, cudaStreamNonBlocking));
    OK(cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking));
    CHECK(cuLibraryLoadData(&library, two, NULL, NULL, 0, NULL, NULL, 0), CUDA_SUCCESS);
    CHECK(cuModuleLoadData(&module, two), CUDA_SUCCESS);
    CHECK(cuLibraryGetKernel(&kernel, library, "one"), CUDA_SUCCESS);
    CHECK(cuFuncIsLoaded(&loaded, (CUfunction)kernel), CUDA_SUCCESS);
    assert_int_equal(loaded, CU_FUNCTION_LOADING_STATE_UNLOADED);

    OK(cudaLaunchHostFunc(busy, gate_pass, &first));
    gate_await(&first);
    assert_int_equal(pthread_create(&opener, NULL, gate_open_later, &first), 0);
    OK(cudaLaunchKernel(kernel, (dim3){1, 1, 1}, (dim3){1, 1, 1}, NULL, 0, other));
    assert_true(gate_is_open(&first)); /* the launch came back only then */
    pthread_join(opener, NULL);
    CHECK(cuFuncIsLoaded(&loaded, (CUfunction)kernel), CUDA_SUCCESS);
    assert_int_equal(loaded, CU_FUNCTION_LOADING_STATE_LOADED);

    OK(cudaLaunchHostFunc(busy, gate_pass, &second));
    gate_await(&second);
    OK(cudaLaunchKernel(kernel, (dim3){1, 1, 1}, (dim3){1, 1, 1}, NULL, 0, other));
    assert_false(gate_is_open(&second));
    assert_int_equal(pthread_create(&opener, NULL, gate_open_later, &second), 0);
    CHECK(cuModuleGetFunction(&function, module, "two"), CUDA_SUCCESS); /* loads, too */
    assert_true(gate_is_open(&second));
    pthread_join(opener, NULL);
    assert_false(first.timed_out || second.timed_out);
    OK(cudaDeviceSynchronize());
    CHECK(cuModuleUnload(module), CUDA_SUCCESS);
    CHECK(cuLibraryUnload(library), CUDA_SUCCESS);
}

static int begin(void **state)
{
    reset_devices(state);
    OK(cudaFree(NULL)); /* makes the primary context current */
    return 0;
}

int main(int argc, char **argv)
{
    const struct CMUnitTest lazy[] = {
        cmocka_unit_test_setup(first_use_waits_for_the_device, begin),
    };
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(ptx_kernels_run_their_twins, begin),
        cmocka_unit_test_setup(libraries_have_kernels, begin),
        cmocka_unit_test_setup(cubins_and_fat_binaries_are_read, begin),
        cmocka_unit_test_setup(what_does_not_fit_is_refused, begin),
        cmocka_unit_test_setup(parameters_are_read_from_device_code, begin),
        cmocka_unit_test_setup(packed_device_code_is_read, begin),
        cmocka_unit_test_setup(pytorch_reduces, begin),
        cmocka_unit_test_setup(what_is_no_image_is_refused, begin),
    };
    if (argc > 1 && !strcmp(argv[1], "lazy")) /* with DDPCHECK_EMU_LAZY_LOADING=1 */
        return cmocka_run_group_tests(lazy, NULL, NULL);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
