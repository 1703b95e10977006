/* The emulated math libraries: they load under NVIDIA's names and symbol versions, calls succeed,
 * and what a caller reads back fits together. */
#include <dlfcn.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "support.h"

static void *open_library(const char *name)
{
    void *library = dlopen(name, RTLD_NOW | RTLD_LOCAL);

    if (!library)
        print_error("%s\n", dlerror());
    assert_non_null(library);
    return library;
}

static void *find_function(const char *library, const char *name)
{
    void *function = dlvsym(open_library(library), name, library);

    if (!function)
        print_error("%s has no %s@@%s\n", library, name, library);
    assert_non_null(function);
    return function;
}

static void libraries_have_their_functions(void **state)
{
    static const char *const functions[][2] = {
        {"libcublas.so.12", "cublasSgemm_v2"},        {"libcublas.so.13", "cublasSgemm_v2"},
        {"libcublasLt.so.12", "cublasLtMatmul"},      {"libcublasLt.so.13", "cublasLtMatmul"},
        {"libcudnn.so.9", "cudnnRNNForward"},         {"libcufft.so.11", "cufftExecC2C"},
        {"libcufft.so.12", "cufftExecC2C"},           {"libcurand.so.10", "curandGenerate"},
        {"libcusolver.so.11", "cusolverDnSetStream"}, {"libcusolver.so.12", "cusolverDnSetStream"},
        {"libcusparse.so.12", "cusparseSpMM"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof functions / sizeof functions[0]; i++) {
        int (*function)(void) = find_function(functions[i][0], functions[i][1]);

        assert_int_equal(function(), 0);
    }
}

static void results_are_written(void **state)
{
    int (*create)(void **) = find_function("libcublas.so.12", "cublasCreate_v2");
    int (*plan)(int *, int, int, int) = find_function("libcufft.so.11", "cufftPlan1d");
    int (*buffer)(void *, int, int, void *, int, int *) =
        find_function("libcusolver.so.11", "cusolverDnSgetrf_bufferSize");
    int (*stream)(void *, void **) = find_function("libcublas.so.12", "cublasGetStream_v2");
    void *handle = NULL, *of_handle = &handle;
    int number = -1;

    (void)state;
    assert_int_equal(create(&handle), 0);
    assert_non_null(handle);
    assert_int_equal(stream(handle, &of_handle), 0);
    assert_null(of_handle);
    assert_int_equal(plan(&number, 8, 0, 1), 0);
    assert_int_equal(number, 1);
    assert_int_equal(buffer(handle, 4, 4, NULL, 4, &number), 0);
    assert_int_equal(number, 0);
}

/* What earlier work left in device memory is no error of a later factorization. */
static void success_is_reported(void **state)
{
    int (*potrf)(void *, int, int, void *, int, void *, int, int *) =
        find_function("libcusolver.so.11", "cusolverDnSpotrf");
    int (*getrf)(void *, int, void *, int, int *, int *, int) =
        find_function("libcublas.so.12", "cublasSgetrfBatched");
    int (*getrs)(void *, int, int, int, void *, int, int *, void *, int, int *, int) =
        find_function("libcublas.so.12", "cublasSgetrsBatched");
    int *info, host[3] = {7, 8, 9}, left[3];

    (void)state;
    OK(cudaMalloc((void **)&info, sizeof(host)));
    OK(cudaMemcpy(info, host, sizeof(host), cudaMemcpyHostToDevice));
    assert_int_equal(potrf(NULL, 0, 4, NULL, 4, NULL, 0, info), 0);
    OK(cudaMemcpy(left, info, sizeof(left), cudaMemcpyDeviceToHost));
    assert_memory_equal(left, ((int[]){0, 8, 9}), sizeof(left));
    assert_int_equal(getrf(NULL, 4, NULL, 4, NULL, info, 2), 0);
    OK(cudaMemcpy(left, info, sizeof(left), cudaMemcpyDeviceToHost));
    assert_memory_equal(left, ((int[]){0, 0, 9}), sizeof(left));
    assert_int_equal(getrs(NULL, 0, 4, 1, NULL, 4, NULL, NULL, 4, host, 2), 0);
    assert_int_equal(host[0], 0);
    OK(cudaFree(info));
}

/* As on a GPU, a call is a kernel on its handle's stream; how else would a shim see it? */
static void calls_launch_kernels(void **state)
{
    int (*create)(void **) = find_function("libcublas.so.12", "cublasCreate_v2");
    int (*destroy)(void *) = find_function("libcublas.so.12", "cublasDestroy_v2");
    int (*set)(void *, void *) = find_function("libcublas.so.12", "cublasSetStream_v2");
    int (*get)(void *, void **) = find_function("libcublas.so.12", "cublasGetStream_v2");
    int (*scale)(void *, int, const float *, float *, int) =
        find_function("libcublas.so.12", "cublasSscal_v2");
    int (*batched)(void *, int, int, int, int, int, const float *, const void *, int, const void *,
                   int, const float *, void *, int,
                   int) = find_function("libcublas.so.12", "cublasSgemmBatched");
    void *handle, *other, *of_handle;
    cudaStream_t stream;
    cudaGraph_t graph;
    size_t nodes = 0;
    float *numbers;

    (void)state;
    OK(cudaMalloc((void **)&numbers, 64));
    OK(cudaStreamCreate(&stream));
    assert_int_equal(create(&handle) | create(&other) | set(handle, stream), 0);
    assert_int_equal(get(handle, &of_handle), 0);
    assert_ptr_equal(of_handle, stream);
    assert_int_equal(get(other, &of_handle), 0);
    assert_null(of_handle);
    OK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
    assert_int_equal(scale(handle, 16, NULL, numbers, 1), 0);
    /* Of arrays of matrices a kernel's arguments are the arrays. */
    assert_int_equal(
        batched(handle, 0, 0, 2, 2, 2, NULL, numbers, 2, numbers, 2, NULL, numbers, 2, 1), 0);
    OK(cudaStreamEndCapture(stream, &graph));
    OK(cudaGraphGetNodes(graph, NULL, &nodes));
    assert_int_equal(nodes, 2);
    OK(cudaGraphDestroy(graph));
    assert_int_equal(destroy(handle) | destroy(other), 0);
    OK(cudaStreamDestroy(stream));
    OK(cudaFree(numbers));
}

/* JAX uses no library that is older than the one that it was built with. */
static void versions_are_new(void **state)
{
    int (*version)(int *) = find_function("libcufft.so.11", "cufftGetVersion");
    int (*property)(int, int *) = find_function("libcusparse.so.12", "cusparseGetProperty");
    int (*cublas)(void *, int *) = find_function("libcublas.so.12", "cublasGetVersion_v2");
    int number = 0;

    (void)state;
    assert_int_equal(version(&number), 0);
    assert_int_equal(number, 11909);
    for (int part = 0; part < 3; part++) {
        assert_int_equal(property(part, &number), 0);
        assert_int_equal(number, part ? 9 : 12);
    }
    assert_int_equal(cublas(NULL, &number), 0);
    assert_int_equal(number, 129900);
}

static void one_algorithm_is_found(void **state)
{
    int (*heuristic)(void *, void *, void *, void *, void *, void *, void *, int, void *, int *) =
        find_function("libcublasLt.so.12", "cublasLtMatmulAlgoGetHeuristic");
    int (*attribute)(void *, int, int, int64_t, int64_t *, void *) =
        find_function("libcudnn.so.9", "cudnnBackendGetAttribute");
    enum { RESULTS = 202, WORKSPACE = 402, NOTE = 1303 };
    enum { INT64 = 3, NUMERICAL_NOTE = 11, DESCRIPTOR = 15 };
    char results[2][96];
    int64_t count = -1, bytes = -1;
    int found = -1;

    (void)state;
    memset(results, 0x55, sizeof(results));
    assert_int_equal(heuristic(NULL, NULL, NULL, NULL, NULL, NULL, NULL, 2, results, &found), 0);
    assert_int_equal(found, 1);
    for (size_t i = 0; i < sizeof(results[0]); i++)
        assert_int_equal(results[0][i], 0);
    assert_int_equal(results[1][0], 0x55);
    assert_int_equal(attribute(NULL, RESULTS, DESCRIPTOR, 0, &count, NULL), 0);
    assert_int_equal(count, 1);
    assert_int_equal(attribute(NULL, NOTE, NUMERICAL_NOTE, 8, &count, results), 0);
    assert_int_equal(count, 0);
    assert_int_equal(attribute(NULL, WORKSPACE, INT64, 1, &count, &bytes), 0);
    assert_int_equal(count, 1);
    assert_int_equal(bytes, 0);
}

/* Matrices of a layer follow one another without gaps, all biases come last, and together they are
 * the size that was given: PyTorch checks this of every LSTM. */
static void recurrent_weights_fill_their_space(void **state)
{
    enum { FLOAT = 0, LSTM = 2, BOTH = 2, INPUT = 5, HIDDEN = 3, LAYERS = 2, MATRICES = 8 };
    int (*create)(void **) = find_function("libcudnn.so.9", "cudnnCreateRNNDescriptor");
    int (*create_tensor)(void **) = find_function("libcudnn.so.9", "cudnnCreateTensorDescriptor");
    int (*set)(void *, int, int, int, int, int, int, int, int, int, int, int, int, void *, int) =
        find_function("libcudnn.so.9", "cudnnSetRNNDescriptor_v8");
    int (*size)(void *, void *, size_t *) =
        find_function("libcudnn.so.9", "cudnnGetRNNWeightSpaceSize");
    int (*where)(void *, void *, int, size_t, void *, int, void *, void **, void *, void **) =
        find_function("libcudnn.so.9", "cudnnGetRNNWeightParams");
    int (*shape)(void *, int, int *, int *, int *, int *) =
        find_function("libcudnn.so.9", "cudnnGetTensorNdDescriptor");
    int (*destroy)(void *) = find_function("libcudnn.so.9", "cudnnDestroyRNNDescriptor");
    int (*destroy_tensor)(void *) = find_function("libcudnn.so.9", "cudnnDestroyTensorDescriptor");
    void *rnn, *tensor, *address;
    size_t bytes = 0;
    float *space = NULL, *at;
    int type, count, dimensions[3], strides[3];

    (void)state;
    assert_int_equal(create(&rnn), 0);
    assert_int_equal(create_tensor(&tensor), 0);
    set(rnn, 0, LSTM, BOTH, 0, 0, FLOAT, 0, 0, INPUT, HIDDEN, HIDDEN, LAYERS, NULL, 0);
    size(NULL, rnn, &bytes);
    at = space = test_malloc(bytes);
    for (int layer = 0; layer < LAYERS; layer++)
        for (int number = 0; number < MATRICES; number++) {
            where(NULL, rnn, layer, bytes, space, number, tensor, &address, NULL, NULL);
            shape(tensor, 3, &type, &count, dimensions, strides);
            assert_ptr_equal(address, at);
            assert_int_equal(count, 3);
            assert_int_equal(dimensions[1], HIDDEN);
            assert_int_equal(dimensions[2], layer == 0 && number < MATRICES / 2 ? INPUT : HIDDEN);
            at += dimensions[1] * dimensions[2];
        }
    for (int layer = 0; layer < LAYERS; layer++)
        for (int number = 0; number < MATRICES; number++) {
            where(NULL, rnn, layer, bytes, space, number, NULL, NULL, tensor, &address);
            assert_ptr_equal(address, at);
            at += HIDDEN;
        }
    assert_ptr_equal((char *)at, (char *)space + bytes);
    test_free(space);
    destroy(rnn);
    destroy_tensor(tensor);
}

/* All processes of a job print one line, and write each name to one file. */
static void one_line_says_that_nothing_is_computed(void **state)
{
    int (*gemm)(void) = find_function("libcublas.so.12", "cublasDgemm_v2");
    int (*symm)(void) = find_function("libcublas.so.12", "cublasDsymm_v2");
    char path[] = "/tmp/ddpcheck-names-XXXXXX", text[4096] = "", expected[256];
    int pipe_ends[2], saved = dup(STDERR_FILENO), file = mkstemp(path);
    ssize_t length;

    (void)state;
    close(file);
    unlink(path);
    setenv("DDPCHECK_EMU_NOT_COMPUTED", path, 1);
    assert_int_equal(pipe(pipe_ends), 0);
    dup2(pipe_ends[1], STDERR_FILENO);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(gemm(), 0);
        assert_int_equal(symm(), 0);
    }
    dup2(saved, STDERR_FILENO);
    close(pipe_ends[1]);
    length = read(pipe_ends[0], text, sizeof(text) - 1);
    close(pipe_ends[0]);
    close(saved);
    unsetenv("DDPCHECK_EMU_NOT_COMPUTED");
    assert_true(length > 0);
    snprintf(expected, sizeof(expected),
             "ddpcheck emu: the emulated GPU computes no numbers for this program (first: "
             "cublasDgemm_v2); all names: %s\n",
             path);
    assert_string_equal(text, expected);
    file = open(path, O_RDONLY);
    memset(text, 0, sizeof(text));
    assert_true(read(file, text, sizeof(text) - 1) > 0);
    assert_string_equal(text, "cublasDgemm_v2\ncublasDsymm_v2\n");
    close(file);
    unlink(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(libraries_have_their_functions),
        cmocka_unit_test(results_are_written),
        cmocka_unit_test(success_is_reported),
        cmocka_unit_test(calls_launch_kernels),
        cmocka_unit_test(versions_are_new),
        cmocka_unit_test(one_algorithm_is_found),
        cmocka_unit_test(recurrent_weights_fill_their_space),
        cmocka_unit_test(one_line_says_that_nothing_is_computed),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
