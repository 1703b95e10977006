/* known_kernels.c: PyTorch's element-wise kernels.
 *
 * Nearly all that PyTorch computes between collectives runs in these, and they get their pointers
 * in structs, without const: a tensor that is only read would count as written. Their layout has
 * been the same since 2020 (PyTorch 2.10 source, aten/src/ATen/native/cuda): CUDALoops.cuh gives an
 * array of pointers that begins with the one output (kernels of several outputs have other names),
 * and vectorized_elementwise_kernel works on `N` elements in a row. */
#include "interpose/memory/known_kernels.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

static const struct {
    const char *name;
    struct known_kernel known;
} kernels_of_torch[] = {
    {"vectorized_elementwise_kernel", {.order = POINTERS_WRITES_FIRST, .element = 1}},
    {"unrolled_elementwise_kernel", {.order = POINTERS_WRITES_FIRST}},
    {"elementwise_kernel", {.order = POINTERS_WRITES_FIRST}},
    /* x[i], embeddings: IndexKernelUtils.cu gives (char *out, char *in, index_t *index, ...) */
    {"vectorized_gather_kernel", {.order = POINTERS_WRITES_FIRST, .of_all = true}},
};

/* Bytes of a type by its mangled name; 1 for those that are not simple. */
static uint8_t bytes_of_type(const char *type)
{
    switch (*type) {
    case 'd':
    case 'l':
    case 'x':
        return 8;
    case 'f':
    case 'i':
        return 4;
    case 's':
        return 2;
    default:
        return strncmp(type, "N3c104Half", 10) && strncmp(type, "N3c108BFloat16", 14) ? 1 : 2;
    }
}

/* fill_ and zero_ write elements of the type that their functor is made for. */
static uint8_t filled_element(const char *arguments)
{
    static const char functor[] = "NS0_11FillFunctorI";
    const char *at = strstr(arguments, functor);
    return at ? bytes_of_type(at + sizeof functor - 1) : 1;
}

struct known_kernel known_kernel_find(const char *name)
{
    static const char space[] = "_ZN2at6native";
    struct known_kernel known = {0};
    char *word;
    if (strncmp(name, space, sizeof space - 1))
        return known;
    size_t length = strtoul(name + sizeof space - 1, &word, 10);
    for (size_t i = 0; i < sizeof kernels_of_torch / sizeof *kernels_of_torch; i++)
        if (strlen(kernels_of_torch[i].name) == length &&
            !strncmp(word, kernels_of_torch[i].name, length))
            known = kernels_of_torch[i].known;
    if (known.element)
        known.element = filled_element(word + length);
    return known;
}
