/* attach_sources.c: goes through the sources beside stacks, and asks NCCL's RAS. */
#include "cmd/attach/attach_sources.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/base/array.h"
#include "lib/base/clock.h"
#include "lib/import/ras_client.h"

static bool add_path(char ***list, int *count, const char *path)
{
    char *copy = strdup(path);
    if (copy && ARRAY_ADD(*list, *count)) {
        (*list)[(*count)++] = copy;
        return true;
    }
    free(copy);
    return false;
}

void attach_add_path(struct attach_sources *sources, const char *path)
{
    if (!add_path(&sources->path, &sources->paths, path))
        text_add(&sources->absent, "%s (" OUT_OF_MEMORY ")\n", path);
}

static bool is_own(const struct attach_sources *sources, const char *path)
{
    for (int i = 0; i < sources->owns; i++)
        if (!strcmp(sources->own[i], path))
            return true;
    return false;
}

FILE *attach_open_own(struct attach_sources *sources, const char *name)
{
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%s/%s", sources->folder, name);
    FILE *file = fopen(path, "ae");
    if (!file)
        text_add(&sources->absent, "%s (cannot write it: %s)\n", path, strerror(errno));
    else if (!is_own(sources, path) && add_path(&sources->own, &sources->owns, path))
        attach_add_path(sources, path);
    return file;
}

/* --- NCCL's RAS --- */

static const char *first_variable(const struct live_job *job, const char *name)
{
    const char *value = NULL;
    for (int i = 0; i < job->ranks && !value; i++)
        value = live_variable(&job->rank[i].process, name);
    return value;
}

static const char *ras_address(const struct live_job *job)
{
    const char *address = first_variable(job, "NCCL_RAS_ADDR");
    if (!address)
        address = getenv("NCCL_RAS_ADDR");
    return address && *address ? address : RAS_USUAL_ADDRESS;
}

/* One answer, behind those before: two show what has changed. */
static void fetch_ras(struct attach_sources *sources, const struct live_job *job)
{
    bool is_text = false;
    size_t bytes;
    char *text = ras_fetch(ras_address(job), NULL, &is_text, &bytes, &sources->ras_failed);
    FILE *file = text ? attach_open_own(sources, is_text ? "ncclras.txt" : "ncclras.json") : NULL;
    if (file) {
        if (!is_text)
            fprintf(file, "{\"ddpcheck_time_ns\": %llu}\n", (unsigned long long)realtime_now_ns());
        fwrite(text, 1, bytes, file);
        fputc('\n', file);
        fclose(file);
    }
    free(text);
}

void attach_sources_ask(struct attach_sources *sources, const struct live_job *job)
{
    const char *is_on = first_variable(job, "NCCL_RAS_ENABLE");
    if (job->ranks && !job->uses_nccl)
        error_set(&sources->ras_failed, "NCCL's RAS: no rank here uses NCCL");
    else if (is_on && !strcmp(is_on, "0"))
        error_set(&sources->ras_failed, "NCCL's RAS: the job has NCCL_RAS_ENABLE=0");
    else
        fetch_ras(sources, job);
}

static void read_ras_again(struct attach_sources *sources, const struct live_job *job)
{
    if (!sources->ras_failed.text[0])
        fetch_ras(sources, job);
    if (sources->ras_failed.text[0])
        text_add(&sources->absent, "%s\n", sources->ras_failed.text);
    else
        text_add(&sources->read, "NCCL's RAS at %s\n", ras_address(job));
}

static void read_ras_diagnostics(struct attach_sources *sources, const struct live_job *job)
{
    struct error failed = {{0}};
    size_t bytes;
    if (sources->ras_failed.text[0])
        return;
    char *text = ras_fetch_diagnostics(ras_address(job), NULL, &bytes, &failed);
    FILE *file = text ? attach_open_own(sources, "diagnostics.txt") : NULL;
    if (file) {
        fwrite(text, 1, bytes, file);
        fclose(file);
        text_add(&sources->read, "NCCL's diagnostics\n");
    } else if (!text) {
        text_add(&sources->absent, "%s\n", failed.text);
    }
    free(text);
}

/* --- all of them --- */

void attach_sources_read(struct attach_sources *sources, const struct live_job *job)
{
    read_ras_again(sources, job);
    read_ras_diagnostics(sources, job);
    attach_read_dumps(sources, job);
    attach_read_debug(sources, job);
    attach_read_outputs(sources, job);
    attach_read_kernel_log(sources, job);
    attach_read_gpus(sources, job);
}

static void print_source_lines(const char *heading, const char *lines)
{
    for (const char *line = lines, *end; line && (end = strchr(line, '\n')); line = end + 1)
        fprintf(stderr, "ddpcheck: %s %.*s\n", heading, (int)(end - line), line);
}

void attach_print_sources(const struct attach_sources *sources)
{
    print_source_lines("read", sources->read.data);
    print_source_lines("not read:", sources->absent.data);
}

static void free_paths(char **path, int count)
{
    for (int i = 0; i < count; i++)
        free(path[i]);
    free(path);
}

void attach_sources_free(struct attach_sources *sources)
{
    for (int i = 0; i < sources->owns; i++)
        unlink(sources->own[i]);
    free_paths(sources->path, sources->paths);
    free_paths(sources->own, sources->owns);
    text_free(&sources->read);
    text_free(&sources->absent);
    *sources = (struct attach_sources){0};
}
