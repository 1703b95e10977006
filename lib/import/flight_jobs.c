/* flight_jobs.c: which Flight Recorder files belong to one job.
 *
 * Those whose names differ in the rank alone do, and those of several nodes, whose names or
 * directories differ, as long as no rank is there twice. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/rankset.h"
#include "lib/import/flight_dump.h"

enum { PREFIXES_MAX = 1 << 14 };

struct flight_job {
    struct rankset ranks;
    char *name;
};

/* What stands before the rank in a file's name, and the job that it was found to belong to. */
struct flight_prefix {
    char *text;
    uint32_t job;
};

struct flight_jobs {
    struct flight_prefix *prefix;
    struct flight_job *job;
    uint32_t prefixes, jobs, capacity;
};

static int grow_jobs(struct flight_jobs *all)
{
    uint32_t capacity = all->capacity ? 2 * all->capacity : 16;
    struct flight_prefix *prefix = realloc(all->prefix, capacity * sizeof *prefix);
    if (prefix)
        all->prefix = prefix;
    struct flight_job *job = prefix ? realloc(all->job, capacity * sizeof *job) : NULL;
    if (!job)
        return -1;
    all->job = job;
    all->capacity = capacity;
    return 0;
}

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
    if (all->prefixes == PREFIXES_MAX || (all->prefixes == all->capacity && grow_jobs(all)))
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
        return flight_failed(dump, "memory is short, or there are too many files");
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
