/* log_text.c: finds numbers and words in lines of a job's log. */
#include "lib/import/log_text.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "lib/import/log_line.h"
#include "lib/trace/record.h"

static const int64_t NUMBER_MOST = (int64_t)1 << 53; /* more is damage */

int64_t text_number_behind(const char *text, const char *name)
{
    const char *found = strcasestr(text, name);
    if (!found)
        return -1;
    found += strlen(name);
    while (*found == ' ')
        found++;
    int64_t number = isdigit((unsigned char)*found) ? strtoll(found, NULL, 10) : -1;
    return number < NUMBER_MOST ? number : -1;
}

int64_t text_number_behind_any(const char *text, const char *const *names)
{
    for (; *names; names++) {
        int64_t number = text_number_behind(text, *names);
        if (number >= 0)
            return number;
    }
    return -1;
}

void text_copy_until(char *to, size_t bytes, const char *from, const char *stop)
{
    size_t length = strcspn(from, stop);
    if (length >= bytes)
        length = bytes - 1;
    memcpy(to, from, length);
    to[length] = '\0';
}

struct log_speaker log_speaker_of(const char *text, size_t bytes)
{
    struct log_speaker speaker = {.rank = log_prefix_rank(text, bytes)};
    const char *pid = memmem(text, bytes < 128 ? bytes : 128, " pid=", 5);
    const char *end = pid ? strchr(pid, ')') : NULL;
    if (end)
        speaker.source = (uint32_t)string_id(pid, (uint64_t)(end - pid)) | 1;
    return speaker;
}

/* The number that the text begins with, if it is all that stands before one of `ends`. */
static int whole_number(const char *text, const char *ends)
{
    size_t digits = strspn(text, "0123456789");
    if (!digits || digits > 6 || (text[digits] && !strchr(ends, text[digits])))
        return -1;
    return atoi(text);
}

int log_rank_of_path(const char *path)
{
    const char *name = strrchr(path, '/'), *folder = name;
    name = name ? name + 1 : path;
    const char *rank = strcasestr(name, "rank");
    if (rank && (rank += 4)) {
        rank += *rank == '_' || *rank == '-' || *rank == '=';
        return whole_number(rank, "._-");
    }
    if (!folder || (strncmp(name, "stderr", 6) != 0 && strncmp(name, "stdout", 6) != 0))
        return -1;
    while (folder > path && folder[-1] != '/')
        folder--;
    return whole_number(folder, "/");
}
