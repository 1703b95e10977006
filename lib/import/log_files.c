/* log_files.c: finds out whose a file of a log is. */
#include "lib/import/log_files.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/array.h"
#include "lib/base/text.h"
#include "lib/import/log_text.h"

/* The directory of each rank that was seen: that of the node, above torchelastic's attempts. */
struct log_files {
    uint64_t *of_rank; /* hash of its name; 0: none was seen */
    size_t ranks, capacity;
};

static const char attempt_begin[] = "attempt_";

/* The rank that the lines begin with; -1: none; -2: several, so that the file is nobody's own. */
static int find_rank_of_lines(const struct import_head *head)
{
    int rank = -1;
    const char *at = head->bytes;
    while ((at = strstr(at, "[rank")) != NULL) {
        int found = isdigit((unsigned char)at[5]) ? atoi(at + 5) : rank;
        if (rank >= 0 && found != rank)
            return -2;
        rank = found;
        at += 5;
    }
    return rank;
}

static uint64_t hash_node(const char *path)
{
    const char *attempt = strstr(path, attempt_begin);
    return attempt ? hash_bytes(HASH_START, path, (size_t)(attempt - path)) | 1 : 0;
}

/* Two nodes have a file of that rank each. */
static int note_node(struct log_job *job, int rank, uint64_t node)
{
    struct log_files *seen = job->seen ? job->seen : (job->seen = calloc(1, sizeof *seen));
    if (!seen || !ARRAY_RESERVE(seen->of_rank, seen->capacity, rank + 1))
        return -1;
    job->ranks_are_local |= node && seen->of_rank[rank] && seen->of_rank[rank] != node;
    seen->of_rank[rank] = node;
    return 0;
}

int log_file_begin(struct log_job *job, const struct import_head *head)
{
    const char *attempt = strstr(head->path, attempt_begin);
    int by_name = log_rank_of_path(head->path);
    int by_lines = by_name >= 0 ? find_rank_of_lines(head) : -1;
    job->attempt = attempt ? (uint32_t)strtoul(attempt + strlen(attempt_begin), NULL, 10) : 0;
    job->file_rank_is_name = by_lines == -1;
    job->file_rank = by_lines == -1 ? by_name : by_lines;
    if (by_lines == -2)
        job->file_rank = -1;
    if (by_name < 0 || by_lines == -2)
        return 0;
    job->ranks_are_local |= by_lines >= 0 && by_lines != by_name;
    return note_node(job, by_name, hash_node(head->path));
}

void log_files_free(struct log_job *job)
{
    free(job->seen ? job->seen->of_rank : NULL);
    free(job->seen);
    job->seen = NULL;
}
