/* log_text.c: finds numbers and words in lines of a job's log. */
#include "lib/import/log_text.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/import/log_line.h"
#include "lib/trace/record.h"

enum { PREFIX_BYTES = 192 }; /* of what may stand before a line */

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

const char *text_next_cell(const char **at, bool is_html, size_t *bytes)
{
    const char *begin = *at, *end;
    if (is_html) {
        const char *open = strstr(begin, "<t"); /* <td>, <th style=...> */
        while (open && open[2] != 'd' && strncmp(open + 2, "h>", 2) != 0 &&
               strncmp(open + 2, "h ", 2) != 0)
            open = strstr(open + 1, "<t");
        begin = open ? strchr(open, '>') : NULL;
        if (!begin)
            return NULL;
        begin += 1 + strspn(begin + 1, " ");
        end = strstr(begin, "</t");
        if (!end)
            end = begin + strlen(begin);
        *at = end;
    } else {
        begin += strspn(begin, " ");
        if (!*begin)
            return NULL;
        for (end = begin; *end && strncmp(end, "  ", 2) != 0;)
            end++;
        *at = end;
    }
    while (end > begin && end[-1] == ' ')
        end--;
    *bytes = (size_t)(end - begin);
    return begin;
}

/* What is in brackets around text[at]: from *begin, with its bracket, to the one that closes it. */
static size_t bracket_around(const char *text, size_t bytes, size_t at, size_t *begin)
{
    size_t open = at;
    while (open && !strchr("([)]", text[open]))
        open--;
    const char *end = NULL;
    if (text[open] == '(' || text[open] == '[')
        end = memchr(text + at, text[open] == '(' ? ')' : ']', bytes - at);
    *begin = open;
    return end ? (size_t)(end - text) - open : 0;
}

/* vLLM's "(Worker_TP1 pid=301)" and sglang's "[2026-02-22 08:19:45 TP3]": where ranks are divided
 * among tensors only, that is the rank. */
static int tensor_rank(const char *text, size_t bytes)
{
    static const char *const others[] = {"DP", "PP", "EP", "CP"};
    size_t most = bytes < PREFIX_BYTES ? bytes : PREFIX_BYTES, begin;
    const char *found = memmem(text, most, "TP", 2);
    size_t digits = found ? strspn(found + 2, "0123456789") : 0;
    if (!digits || digits > 5 || found == text || !strchr(" _", found[-1]) || !found[2 + digits] ||
        !strchr(" ])", found[2 + digits]))
        return -1;
    size_t inside = bracket_around(text, bytes, (size_t)(found - text), &begin);
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (memmem(text + begin, inside, others[i], 2))
            return -1;
    return inside ? atoi(found + 2) : -1;
}

struct log_speaker log_speaker_of(const char *text, size_t bytes)
{
    struct log_speaker speaker = {.rank = log_prefix_rank(text, bytes)};
    if (speaker.rank < 0)
        speaker.rank = tensor_rank(text, bytes);
    const char *pid = memmem(text, bytes < PREFIX_BYTES ? bytes : PREFIX_BYTES, " pid=", 5);
    const char *end = pid ? strchr(pid, ')') : NULL;
    if (end)
        speaker.source = (uint32_t)string_id(pid, (uint64_t)(end - pid)) | 1;
    return speaker;
}

void log_speaker_name(const char *text, size_t bytes, char *to, size_t size)
{
    const char *pid = memmem(text, bytes < PREFIX_BYTES ? bytes : PREFIX_BYTES, " pid=", 5);
    const char *begin = pid;
    while (begin && begin > text && (isalnum((unsigned char)begin[-1]) || begin[-1] == '_'))
        begin--;
    size_t length = begin && begin > text && begin[-1] == '(' ? (size_t)(pid - begin) : 0;
    if (length >= size)
        length = 0;
    snprintf(to, size, "%.*s", (int)length, length ? begin : "");
}

/* The number that the text begins with, if it is all that stands before one of `ends`. */
static int whole_number(const char *text, const char *ends)
{
    size_t digits = strspn(text, "0123456789");
    if (!digits || digits > 6 || (text[digits] && !strchr(ends, text[digits])))
        return -1;
    return atoi(text);
}

/* "node_rank_1.log", "local_rank0.txt": not the rank in the job. */
static bool is_other_rank(const char *name, const char *rank)
{
    static const char *const before[] = {"node", "local", "machine", "host"};
    for (size_t i = 0; i < sizeof before / sizeof *before; i++) {
        const char *found = strcasestr(name, before[i]);
        size_t length = strlen(before[i]);
        if (found && found + length <= rank && rank <= found + length + 1)
            return true;
    }
    return false;
}

int log_rank_of_path(const char *path)
{
    const char *name = strrchr(path, '/'), *folder = name;
    name = name ? name + 1 : path;
    const char *rank = strcasestr(name, "rank");
    if (rank && is_other_rank(name, rank))
        return -1;
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
