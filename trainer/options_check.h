/* options_check.h: defaults that depend on the fault, and which options can't be combined. */
#ifndef DDPCHECK_TRAINER_OPTIONS_CHECK_H
#define DDPCHECK_TRAINER_OPTIONS_CHECK_H

#include "lib/base/error.h"
#include "trainer/options.h"

/* Sets what was not given and depends on the fault. */
void options_choose_rest(struct train_options *options);
/* Returns 0, or -1 and the reason if a value is not known or two options exclude each other. */
int options_check(const struct train_options *options, struct error *err);

#endif
