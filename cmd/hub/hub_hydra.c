/* hub_hydra.c: reads the arguments of the proxy of Hydra that started this process. */
#include "cmd/hub/hub_hydra.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { ANCESTORS_MAX = 32, ARGUMENTS_BYTES = 8192 };

static size_t read_of_process(int pid, const char *name, char *text, size_t bytes)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/%s", pid, name);
    FILE *file = fopen(path, "r");
    size_t length = file ? fread(text, 1, bytes - 1, file) : 0;
    if (file)
        fclose(file);
    text[length] = 0;
    return length;
}

/* A program's name, which comes first and in parentheses, may contain any of these. */
static int parent_of(int pid)
{
    char text[512];
    int parent = 0;
    read_of_process(pid, "stat", text, sizeof text);
    const char *end = strrchr(text, ')');
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
        size_t length = read_of_process(pid, "cmdline", text, sizeof text);
        if (strstr(text, "hydra_"))
            found = find_argument(text, length, "--control-port");
    }
    snprintf(address, bytes, "%s", found ? found : "");
}
