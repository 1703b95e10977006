/* wrapped.h: texts of --help in lines that fit a terminal. */
#ifndef DDPCHECK_TRAINER_WRAPPED_H
#define DDPCHECK_TRAINER_WRAPPED_H

#include <stdio.h>

enum { HELP_WIDTH = 92 };

/* Prints text in lines that end before column `width`, of which those after the first begin at
 * column `indent`; so the first is expected to begin there, too. */
void print_wrapped(FILE *file, const char *text, int indent, int width);

#endif
