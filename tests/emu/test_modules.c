/* Device code that programs load themselves: kernels are found by name in PTX, cubins and fat
 * binaries. */
#include <cuda.h>
#include <elf.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

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

/* A cubin as small as it can be: two symbols, one of a kernel. */
struct cubin {
    Elf64_Ehdr header;
    Elf64_Shdr sections[3];
    Elf64_Sym symbols[3];
    char names[40];
};

static struct cubin make_cubin(void)
{
    struct cubin cubin = {
        .header = {.e_ident = {0x7f, 'E', 'L', 'F', ELFCLASS64},
                   .e_machine = EM_CUDA,
                   .e_shoff = offsetof(struct cubin, sections),
                   .e_shnum = 3},
        .sections = {{0},
                     {.sh_type = SHT_SYMTAB,
                      .sh_offset = offsetof(struct cubin, symbols),
                      .sh_size = 3 * sizeof(Elf64_Sym),
                      .sh_link = 2},
                     {.sh_type = SHT_STRTAB,
                      .sh_offset = offsetof(struct cubin, names),
                      .sh_size = 40}},
        .symbols = {{0},
                    {.st_name = 1,
                     .st_info = ELF64_ST_INFO(STB_GLOBAL, STT_FUNC),
                     .st_other = 0x10},
                    {.st_name = 12, .st_info = ELF64_ST_INFO(STB_LOCAL, STT_FUNC)}},
        .names = "\0add_scaled\0inner",
    };
    return cubin;
}

/* The container that nvcc makes, around one part. */
struct fatbin {
    uint32_t magic;
    uint16_t version, header_bytes;
    uint64_t bytes;
    uint16_t kind, part_version;
    uint32_t part_header_bytes;
    uint64_t part_bytes;
    uint64_t between[3], flags, more[2];
    struct cubin cubin;
};

static void cubins_and_fat_binaries_are_read(void **state)
{
    struct cubin cubin = make_cubin();
    struct fatbin fatbin = {.magic = 0xba55ed50,
                            .version = 1,
                            .header_bytes = 16,
                            .bytes = sizeof(fatbin) - 16,
                            .kind = 2,
                            .part_header_bytes = 64,
                            .part_bytes = sizeof(fatbin.cubin),
                            .between = {0, (uint64_t)90 << 32},
                            .cubin = cubin};
    struct {
        uint32_t magic, version;
        const void *fatbin, *more;
    } wrapper = {0x466243b1, 1, &fatbin, NULL};
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
    struct cubin cubin = make_cubin();
    struct fatbin fatbin = {.magic = 0xba55ed50,
                            .version = 1,
                            .header_bytes = 16,
                            .bytes = sizeof(fatbin) - 16,
                            .kind = 2,
                            .part_header_bytes = 64,
                            .part_bytes = sizeof(fatbin.cubin),
                            .cubin = cubin};
    static const struct {
        uint16_t kind;
        uint64_t architecture, version;
        CUresult wanted;
    } parts[] = {
        {2, 80, 0, CUDA_ERROR_NO_BINARY_FOR_GPU},
        {2, 100, 0, CUDA_ERROR_NO_BINARY_FOR_GPU},
        {2, 90, 0, CUDA_SUCCESS},
        {1, 75, 9 << 16 | 1, CUDA_ERROR_UNSUPPORTED_PTX_VERSION},
        {1, 100, 8 << 16, CUDA_ERROR_NO_BINARY_FOR_GPU},
    };
    CUmodule module;

    (void)state;
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        fatbin.kind = parts[i].kind;
        fatbin.between[1] = parts[i].architecture << 32 | parts[i].version;
        CHECK(cuModuleLoadFatBinary(&module, &fatbin), parts[i].wanted);
        if (parts[i].wanted == CUDA_SUCCESS)
            CHECK(cuModuleUnload(module), CUDA_SUCCESS);
    }
    CHECK(cuModuleLoadData(&module, ".version 9.1\n.target sm_75\n.entry nothing() { ret; }\n"),
          CUDA_ERROR_UNSUPPORTED_PTX_VERSION);
    CHECK(cuModuleLoadData(&module, ".version 6.3\n.target sm_70\n.entry nothing() { ret; }\n"),
          CUDA_SUCCESS);
    CHECK(cuModuleUnload(module), CUDA_SUCCESS);
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

static int begin(void **state)
{
    reset_devices(state);
    OK(cudaFree(NULL)); /* makes the primary context current */
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(ptx_kernels_run_their_twins, begin),
        cmocka_unit_test_setup(libraries_have_kernels, begin),
        cmocka_unit_test_setup(cubins_and_fat_binaries_are_read, begin),
        cmocka_unit_test_setup(what_does_not_fit_is_refused, begin),
        cmocka_unit_test_setup(what_is_no_image_is_refused, begin),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
