/* evaluate.h: measures how good a model is at the end of training.
 *
 * Models are compared with images that follow the training set, where those are generated; of a
 * file nothing is held back, so its first images are taken. Both functions wait for the device. */
#ifndef DDPTRAIN_EVALUATE_H
#define DDPTRAIN_EVALUATE_H

#include "trainer/job.h"
#include "trainer/models/cnn.h"
#include "trainer/models/dcgan.h"

/* Prints the accuracy of a whole model on the job's device. */
void evaluate_classifier(struct training_job *job, struct cnn *cnn);
/* Prints how far generated images are from those of the data (distance.h), and how far two sets of
 * the data are from one another, which is as near as it gets. Writes --samples, if wanted. */
void evaluate_generator(struct training_job *job, struct dcgan_generator *generator);

#endif
