/* tensor_lists.h: the tensors of PyTorch's kernels that work on many of them in one launch. */
#ifndef DDPCHECK_TENSOR_LISTS_H
#define DDPCHECK_TENSOR_LISTS_H

#include <stdint.h>

/* Lists of addresses at the start of a parameter, each with room for as many tensors. What is
 * behind the launch's last tensor is not initialized. */
struct tensor_lists {
    uint16_t room; /* 0: the parameter has no lists, or their layout is not known */
    uint8_t lists;
    uint8_t written;    /* bit i: the kernel writes the tensors of list i */
    uint32_t more_read; /* offset of one more list, of tensors that are only read; 0: none */
    uint32_t blocks; /* offset of each block's tensor, by number; 0: the grid has a row a tensor */
    uint16_t blocks_max; /* blocks of one launch */
    uint8_t index_bytes; /* of such a number */
};

/* By the kernel's mangled name, the parameter's index and its size. */
struct tensor_lists tensor_lists_find(const char *name, uint32_t parameter, uint32_t bytes);

/* How many tensors a launch has, whose parameter is at `value`. */
uint32_t tensor_lists_count(const struct tensor_lists *lists, const char *value, uint32_t blocks,
                            uint32_t rows);

#endif
