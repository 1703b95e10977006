/* process_file.c: reads what the kernel says of a process. */
#include "lib/base/process_file.h"

#include <stdio.h>
#include <string.h>

size_t process_file_read(pid_t pid, const char *name, char *text, size_t bytes)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/%s", (int)pid, name);
    FILE *file = fopen(path, "re");
    size_t length = file ? fread(text, 1, bytes - 1, file) : 0;
    if (file)
        fclose(file);
    text[length] = '\0';
    return length;
}

const char *process_stat_read(pid_t pid, char *text, size_t bytes)
{
    process_file_read(pid, "stat", text, bytes);
    return strrchr(text, ')');
}
