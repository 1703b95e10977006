/* evaluate.h: how good a classifier has become. */
#ifndef DDPTRAIN_EVALUATE_H
#define DDPTRAIN_EVALUATE_H

#include "trainer/job.h"
#include "trainer/models/cnn.h"

/* Prints the accuracy of a whole model on the job's device: on generated images that follow the training set, or on the
 * first ones of a file, of which nothing is held back. Waits for the device. */
void evaluate_classifier(struct job *job, struct cnn *cnn);

#endif
