/* train_cnn.h: what all modes that train the classifier share. */
#ifndef DDPTRAIN_TRAIN_CNN_H
#define DDPTRAIN_TRAIN_CNN_H

#include "trainer/job.h"
#include "trainer/models/cnn.h"

#define CNN_RATE 1e-3f
#define CNN_LOSSES   \
    {                \
        "classifier" \
    }

/* The model that the options describe, and its optimizer. */
struct cnn_shape job_cnn_shape(const struct training_job *job);
struct adam_settings job_cnn_adam(const struct training_job *job);

#endif
