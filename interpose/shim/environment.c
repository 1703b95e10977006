/* environment.c: reads the environment that the program has now, or began with. */
#include "interpose/shim/environment.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

extern char **environ;

enum { VARIABLES_MOST = 1024 };

/* The list is a copy: a shim that is loaded later, as NCCL's plugin, is given one of the heap,
 * which the program's next setenv frees. The variables themselves glibc keeps for ever. */
static char *first_environment[VARIABLES_MOST + 1];

void environment_remember(char **environment)
{
    for (int i = 0; environment && environment[i] && i < VARIABLES_MOST; i++)
        first_environment[i] = environment[i];
}

const char *environment_first(const char *name)
{
    size_t length = strlen(name);
    for (char **entry = first_environment; *entry; entry++)
        if (!strncmp(*entry, name, length) && (*entry)[length] == '=')
            return *entry + length + 1;
    return NULL;
}

char **environment_first_all(void)
{
    return first_environment;
}

/* A program that removes single variables means it. */
static bool is_environment_cleared(void)
{
    return !environ || !*environ || (!getenv("DDPCHECK_DIR") && environment_first("DDPCHECK_DIR"));
}

const char *environment_get(const char *name)
{
    const char *value = getenv(name);
    return value || !is_environment_cleared() ? value : environment_first(name);
}
