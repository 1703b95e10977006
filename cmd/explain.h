/* explain.h: the texts of `ddpcheck explain`, for those who put them elsewhere. */
#ifndef DDPCHECK_EXPLAIN_H
#define DDPCHECK_EXPLAIN_H

#include <stdio.h>

#include "analyzer/analyzer.h"

/* Writes what docs/findings has of the check: Markdown with a heading of its own. */
void explain_print_markdown(const struct check *check, FILE *out);

#endif
