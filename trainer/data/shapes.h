/* shapes.h: a data set drawn by formula: a circle, square, triangle or cross somewhere in the
 * image, of some size, turned by some angle. The same seed and index give the same image on every
 * machine and rank. */
#ifndef DDPTRAIN_SHAPES_H
#define DDPTRAIN_SHAPES_H

#include "trainer/data/dataset.h"

enum { SHAPES_CLASSES = 4 };

/* Images first .. first + count - 1 of the endless series of this seed: a test set starts where
 * training ends. */
void shapes_open(struct dataset *dataset, uint64_t seed, size_t first, size_t count, int image);

#endif
