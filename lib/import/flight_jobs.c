/* flight_jobs.c: which rank a Flight Recorder file is of, and which files belong to one job.
 *
 * Those whose names differ in the rank alone do, and those of several nodes, whose names or
 * directories differ, as long as no rank is there twice. */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "lib/base/array.h"
#include "lib/base/rankset.h"
#include "lib/import/flight_dump.h"

enum { PREFIXES_MAX = 1 << 14, RANK_DIGITS_MAX = 7 };

/* Digits of a name. */
struct digits {
    const char *begin;
    size_t count; /* 0: there are none */
};

static bool is_rank_number(struct digits digits)
{
    return digits.count && digits.count <= RANK_DIGITS_MAX;
}

static bool is_separator(char c)
{
    return c && strchr("_-.=", c);
}

static struct digits last_digits(const char *begin, const char *end)
{
    const char *at = end;
    while (at > begin && isdigit((unsigned char)at[-1]))
        at--;
    return (struct digits){at, (size_t)(end - at)};
}

/* The last number that follows the word "rank": rank3, Rank-3, rank_3. */
static struct digits digits_of_rank(const char *begin, const char *end)
{
    struct digits found = {0};
    for (const char *at = begin; at + 4 < end; at++) {
        if (strncasecmp(at, "rank", 4))
            continue;
        const char *number = at + 4 + is_separator(at[4]);
        size_t count = strspn(number, "0123456789");
        if (count && !isalpha((unsigned char)number[count]))
            found = (struct digits){number, count};
    }
    return found;
}

/* "host3", "attempt_1": numbers something else than ranks. */
static bool follows_other_word(const char *begin, const char *digits)
{
    const char *end = digits - (digits > begin && is_separator(digits[-1])), *at = end;
    while (at > begin && isalpha((unsigned char)at[-1]))
        at--;
    return at < end && (end - at < 4 || strncasecmp(end - 4, "rank", 4));
}

/* "nccl_trace_rank_12"; nodes put their names before the number (nccl_trace_rank_node02_12) or
 * behind it (rank12_node02), and some write a directory for each rank (rank_12/trace). */
static struct digits find_rank_digits(const char *path)
{
    const char *name = strrchr(path, '/');
    name = name ? name + 1 : path;
    const char *end = name + strlen(name);
    struct digits last = last_digits(name, end), word = digits_of_rank(name, end);
    if (is_rank_number(word) && (!is_rank_number(last) || follows_other_word(name, last.begin)))
        return word;
    return is_rank_number(last) ? last : digits_of_rank(path, name);
}

/* Endings that say how the file is written. */
static void cut_endings(char *name)
{
    static const char *const endings[] = {".gz", ".zst", ".json", ".pkl", ".pickle"};
    size_t length = strlen(name);
    for (size_t i = 0; i < 2 * sizeof endings / sizeof *endings; i++) {
        size_t bytes = strlen(endings[i / 2]);
        if (length > bytes && !strcmp(name + length - bytes, endings[i / 2]))
            name[length -= bytes] = 0;
    }
}

int flight_parse_rank(struct flight_dump *dump)
{
    char *name = dump->job;
    if (snprintf(name, sizeof dump->job, "%s", input_path(dump->input)) >= (int)sizeof dump->job)
        return flight_failed(dump, "its name is too long");
    cut_endings(name);
    struct digits digits = find_rank_digits(name);
    int64_t rank = -1;
    if (is_rank_number(digits))
        rank = atoi(digits.begin);
    else if (!dump->field[FIELD_rank] || !value_integer(dump->field[FIELD_rank], &rank))
        return flight_failed(dump, "which rank it is of stands in its name only, and that has no "
                                   "such number: name it as PyTorch does, ..._rank_0, ..._rank_1");
    if (digits.count)
        memmove(name + (digits.begin - name), digits.begin + digits.count,
                strlen(digits.begin + digits.count) + 1);
    dump->rank = (int)rank;
    return 0;
}

struct flight_job {
    struct rankset ranks;
    char *name;
};

/* A file's name without the rank, and the job that it was found to belong to. */
struct flight_prefix {
    char *text;
    uint32_t job;
};

struct flight_jobs {
    struct flight_prefix *prefix;
    struct flight_job *job;
    uint32_t prefixes, jobs;
};

/* The first job without this rank; a new one if all have it. */
static uint32_t job_without(struct flight_jobs *all, int rank)
{
    uint32_t found = 0;
    while (found < all->jobs && rankset_has(&all->job[found].ranks, rank))
        found++;
    return found;
}

static struct flight_prefix *add_prefix(struct flight_jobs *all, const char *text, int rank)
{
    if (all->prefixes == PREFIXES_MAX || !ARRAY_ADD(all->prefix, all->prefixes) ||
        !ARRAY_ADD(all->job, all->jobs))
        return NULL;
    uint32_t found = job_without(all, rank);
    char *copy = strdup(text), *name = found == all->jobs ? strdup(text) : NULL;
    if (!copy || (found == all->jobs && !name)) {
        free(copy);
        free(name);
        return NULL;
    }
    if (found == all->jobs)
        all->job[all->jobs++] = (struct flight_job){.name = name};
    all->prefix[all->prefixes] = (struct flight_prefix){copy, found};
    return &all->prefix[all->prefixes++];
}

int flight_find_job(struct flight_dump *dump)
{
    void **state = import_state(dump->import);
    struct flight_jobs *all = *state ? *state : (*state = calloc(1, sizeof *all));
    struct flight_prefix *prefix = NULL;
    for (uint32_t i = 0; all && i < all->prefixes && !prefix; i++)
        if (!strcmp(all->prefix[i].text, dump->job))
            prefix = &all->prefix[i];
    if (all && !prefix)
        prefix = add_prefix(all, dump->job, dump->rank);
    if (!prefix || rankset_add(&all->job[prefix->job].ranks, dump->rank))
        return flight_failed(dump, OUT_OF_MEMORY ", or there are too many files");
    snprintf(dump->job, sizeof dump->job, "%s", all->job[prefix->job].name);
    return 0;
}

int flight_forget_jobs(struct import *import)
{
    void **state = import_state(import);
    struct flight_jobs *all = *state;
    for (uint32_t i = 0; all && i < all->prefixes; i++)
        free(all->prefix[i].text);
    for (uint32_t i = 0; all && i < all->jobs; i++) {
        rankset_free(&all->job[i].ranks);
        free(all->job[i].name);
    }
    if (all) {
        free(all->prefix);
        free(all->job);
    }
    free(all);
    *state = NULL;
    return 0;
}
