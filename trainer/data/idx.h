/* idx.h: images and labels from IDX files, the format of MNIST and its successors: two zero bytes,
 * the type (8: unsigned byte), the number of dimensions, each dimension as a big-endian 32-bit
 * number, then the data. */
#ifndef DDPTRAIN_IDX_H
#define DDPTRAIN_IDX_H

#include "lib/base/error.h"
#include "trainer/data/dataset.h"

/* Reads both files whole. `labels` may be NULL: all labels are 0. Images smaller than `image` are
 * put in the middle of a black one. Returns 0, or -1 with a message that names the file and what is
 * wrong with it. */
int idx_open(struct dataset *dataset, const char *images, const char *labels, int image,
             struct error *err);

#endif
