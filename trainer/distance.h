/* distance.h: how far two sets of images are from one another, as distributions. */
#ifndef DDPTRAIN_DISTANCE_H
#define DDPTRAIN_DISTANCE_H

/* The sliced Wasserstein distance (Rabin et al. 2012; used for GANs by Karras et al. 2018): along a
 * direction of the space of images each set is a heap of numbers, and the distance of two heaps is
 * how far numbers have to be carried on average to make one into the other; the result is the mean
 * over directions. 0 for equal sets, in whatever order; it sees wrong brightness as well as images
 * that are all alike. `count` images of `pixels` numbers each; the same arguments give the same
 * result. Ends the process when memory is short. */
double image_distance(const float *one, const float *other, int count, int pixels);

#endif
