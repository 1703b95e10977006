/* dataset.h: labelled square grey images by index, with pixels in -1 (black) .. 1 (white).
 * Reading is a pure function of the index. shapes.h fills the struct. */
#ifndef DDPTRAIN_DATASET_H
#define DDPTRAIN_DATASET_H

#include <stddef.h>
#include <stdint.h>

struct dataset {
    size_t count;
    int image; /* height and width */
    int classes;
    void *state; /* the source's own */
    /* Writes image * image pixels and the label of image `index` < count. */
    void (*read)(const struct dataset *dataset, size_t index, float *pixels, int32_t *label);
    void (*close)(struct dataset *dataset);
};

#endif
