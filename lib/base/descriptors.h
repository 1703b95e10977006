/* descriptors.h: as many open files as this process may have. */
#ifndef DDPCHECK_DESCRIPTORS_H
#define DDPCHECK_DESCRIPTORS_H

#include <stdbool.h>

#include "lib/base/error.h"

/* Raises the soft limit of open files to the hard one: the soft one is low for the sake of programs
 * that use select(). */
void descriptors_raise(void);
/* Fewer than `count` more files can be opened. */
bool descriptors_are_few(int count);
/* Whether `count` more files can be opened, for `who`. Returns 0, or -1 with err, which says what
 * to do. */
int descriptors_need(const char *who, int count, struct error *err);

#endif
