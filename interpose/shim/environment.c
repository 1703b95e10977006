/* environment.c: reads the environment that the program has now, or began with. */
#include "interpose/shim/environment.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

extern char **environ;

static char **first_environment; /* on the stack of the main thread; survives a fork */

void environment_remember(char **environment)
{
    first_environment = environment;
}

static const char *first_value(const char *name)
{
    size_t length = strlen(name);
    for (char **entry = first_environment; entry && *entry; entry++)
        if (!strncmp(*entry, name, length) && (*entry)[length] == '=')
            return *entry + length + 1;
    return NULL;
}

/* A program that removes single variables means it. */
static bool is_environment_cleared(void)
{
    return !environ || !*environ || (!getenv("DDPCHECK_DIR") && first_value("DDPCHECK_DIR"));
}

const char *environment_get(const char *name)
{
    const char *value = getenv(name);
    return value || !is_environment_cleared() ? value : first_value(name);
}
