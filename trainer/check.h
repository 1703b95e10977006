/* check.h: what happens when CUDA or NCCL refuses a call: one clear line and exit status 1.
 *
 * A training job cannot recover from a failed launch or a broken communicator, so these errors are
 * fatal. What a user can get wrong (files, options, the model's own rules) comes back as struct
 * error instead. */
#ifndef DDPTRAIN_CHECK_H
#define DDPTRAIN_CHECK_H

#include <stdio.h>

#include <cuda_runtime_api.h>
#include <nccl.h>

/* Names this process in all messages; before the first call it is "ddptrain". */
void fatal_name_rank(int rank);

/* Prints "ddptrain: rank R: MESSAGE" on stderr and ends the process with status 1. */
void fatal(const char *format, ...) __attribute__((format(printf, 1, 2), noreturn));
/* Prints the same on stderr and goes on. */
void notice(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Both do nothing on success; else they say which call failed, where and why, and end the process.
 */
void check_cuda(cudaError_t result, const char *call, const char *file, int line);
void check_nccl(ncclResult_t result, const char *call, const char *file, int line);

#define CHECK_CUDA(call) check_cuda((call), #call, __FILE__, __LINE__)
#define CHECK_NCCL(call) check_nccl((call), #call, __FILE__, __LINE__)

/* malloc, calloc and strdup that end the process when memory is short. The caller frees. */
void *allocate(size_t count, size_t bytes);
char *duplicate(const char *text);

/* Texts of --help in lines that fit a terminal. */

enum { HELP_WIDTH = 92 };

/* Prints text in lines that end before column `width`. The first line begins where the cursor is,
 * which should be column `indent`; later lines begin at column `indent`. */
void print_wrapped(FILE *file, const char *text, int indent, int width);

#endif
