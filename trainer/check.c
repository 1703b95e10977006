/* check.c: prints the error of a failed CUDA or NCCL call and exits. */
#include "trainer/check.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/kernels.h"

/* Every message names its rank, also those from the depth of an operation that knows no job. */
static int own_rank = -1;

void fatal_name_rank(int rank)
{
    own_rank = rank;
}

/* One write per line, so that the lines of several ranks don't mix. */
static void print_prefixed(const char *format, va_list arguments)
{
    char text[1024], line[1100];
    vsnprintf(text, sizeof text, format, arguments);
    if (own_rank < 0)
        snprintf(line, sizeof line, "ddptrain: %s\n", text);
    else
        snprintf(line, sizeof line, "ddptrain: rank %d: %s\n", own_rank, text);
    fflush(stdout);
    fputs(line, stderr);
}

void fatal(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    print_prefixed(format, arguments);
    va_end(arguments);
    exit(1);
}

void notice(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    print_prefixed(format, arguments);
    va_end(arguments);
}

void check_cuda(cudaError_t result, const char *call, const char *file, int line)
{
    char why[512] = "";
    if (result == cudaSuccess)
        return;
    bool explained = kernels_explain(result, why, sizeof why);
    fatal("%s failed at %s:%d: %s (%s)%s%s", call, file, line, cudaGetErrorName(result),
          cudaGetErrorString(result), explained ? "; " : "", why);
}

void check_nccl(ncclResult_t result, const char *call, const char *file, int line)
{
    if (result == ncclSuccess)
        return;
    const char *more = ncclGetLastError(NULL);
    if (!more)
        more = "";
    fatal("%s failed at %s:%d: %s%s%s", call, file, line, ncclGetErrorString(result),
          *more ? ": " : "", more);
}

void *allocate(size_t count, size_t bytes)
{
    void *memory = calloc(count ? count : 1, bytes);
    if (!memory)
        fatal("out of host memory for %zu x %zu bytes", count, bytes);
    return memory;
}

char *duplicate(const char *text)
{
    char *copy = strdup(text);
    if (!copy)
        fatal("out of host memory for a name");
    return copy;
}

void print_wrapped(FILE *file, const char *text, int indent, int width)
{
    while (*text) {
        int length = (int)strlen(text), room = width - indent;
        if (length > room)
            for (length = room; length > 0 && text[length] != ' '; length--)
                ;
        fprintf(file, "%.*s\n", length, text);
        text += length;
        while (*text == ' ')
            text++;
        if (*text)
            fprintf(file, "%*s", indent, "");
    }
}
