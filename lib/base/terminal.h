/* terminal.h: whether to colour what is printed. */
#ifndef DDPCHECK_TERMINAL_H
#define DDPCHECK_TERMINAL_H

#include <stdbool.h>

enum color_when { COLOR_AUTO, COLOR_ALWAYS, COLOR_NEVER };

/* The flag decides; then FORCE_COLOR or CLICOLOR_FORCE (not "0"), NO_COLOR (not empty), TERM=dumb,
 * and last whether fd is a terminal. */
bool terminal_colored(enum color_when when, int fd);

#endif
