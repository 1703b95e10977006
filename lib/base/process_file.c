/* process_file.c: reads what the kernel says of a process. */
#include "lib/base/process_file.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
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

char *process_stat_read(pid_t pid, char *text, size_t bytes)
{
    process_file_read(pid, "stat", text, bytes);
    return strrchr(text, ')');
}

/* The sum of `count` numbers from field `first` on, as proc_pid_stat(5) numbers them. */
static uint64_t sum_stat_fields(pid_t pid, int first, int count)
{
    enum { FIELD_STATE = 3 }; /* the first behind the program's name */
    char text[1024], *end;
    const char *at = process_stat_read(pid, text, sizeof text);
    uint64_t sum = 0;
    for (int i = FIELD_STATE - 1; at && i < first; i++)
        at = strchr(at + 1, ' ');
    for (int i = 0; at && i < count; i++, at = end)
        sum += strtoull(at, &end, 10);
    return sum;
}

uint64_t process_start_ticks(pid_t pid)
{
    enum { FIELD_START = 22 };
    return sum_stat_fields(pid, FIELD_START, 1);
}

uint64_t process_processor_ticks(pid_t pid)
{
    enum { FIELD_USER = 14, FIELDS = 4 }; /* user, system, and the same of its children */
    return sum_stat_fields(pid, FIELD_USER, FIELDS);
}

uint64_t process_run_delay_ns(pid_t pid)
{
    char text[96];
    uint64_t delay_ns = 0;
    process_file_read(pid, "schedstat", text, sizeof text);
    return sscanf(text, "%*u %" SCNu64, &delay_ns) == 1 ? delay_ns : 0;
}

uint64_t process_fetched_bytes(pid_t pid)
{
    char text[512];
    uint64_t bytes = 0;
    process_file_read(pid, "io", text, sizeof text);
    const char *at = strstr(text, "\nread_bytes: ");
    return at && sscanf(at, "\nread_bytes: %" SCNu64, &bytes) == 1 ? bytes : 0;
}

void boot_id_read(char *text, size_t bytes)
{
    FILE *file = fopen("/proc/sys/kernel/random/boot_id", "re");
    if (file && fgets(text, (int)bytes, file))
        text[strcspn(text, "\n")] = 0;
    if (file)
        fclose(file);
}
