/* hub_hydra.c: reads the arguments of the proxy of Hydra that started this process. */
#include "cmd/hub/hub_hydra.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "lib/base/process_file.h"

enum { ANCESTORS_MAX = 32, ARGUMENTS_BYTES = 8192 };

static int parent_of(int pid)
{
    char text[512];
    int parent = 0;
    const char *end = process_stat_read(pid, text, sizeof text);
    return end && sscanf(end + 1, " %*c %d", &parent) == 1 ? parent : 0;
}

/* The word after `name`. */
static const char *find_argument(const char *text, size_t length, const char *name)
{
    const char *end = text + length, *word = text;
    while (word < end && strcmp(word, name) != 0)
        word += strlen(word) + 1;
    word += word < end ? strlen(word) + 1 : 0;
    return word < end ? word : NULL;
}

void hydra_find_address(char *address, unsigned long bytes)
{
    char text[ARGUMENTS_BYTES];
    const char *found = NULL;
    int pid = getppid();
    for (int i = 0; i < ANCESTORS_MAX && pid > 1 && !found; i++, pid = parent_of(pid)) {
        size_t length = process_file_read(pid, "cmdline", text, sizeof text);
        if (strstr(text, "hydra_"))
            found = find_argument(text, length, "--control-port");
    }
    snprintf(address, bytes, "%s", found ? found : "");
}
