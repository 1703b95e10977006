/* terminal.c: decides whether output is coloured. */
#include "lib/base/terminal.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static bool is_variable_set(const char *name)
{
    const char *value = getenv(name);
    return value && value[0] && strcmp(value, "0") != 0;
}

bool terminal_colored(enum color_when when, int fd)
{
    if (when != COLOR_AUTO)
        return when == COLOR_ALWAYS;
    if (is_variable_set("FORCE_COLOR") || is_variable_set("CLICOLOR_FORCE"))
        return true;
    const char *no_color = getenv("NO_COLOR");
    const char *term = getenv("TERM");
    if ((no_color && no_color[0]) || (term && strcmp(term, "dumb") == 0))
        return false;
    return isatty(fd) == 1;
}
