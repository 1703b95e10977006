/* diff_setup.c: compares how two jobs were started: versions, launcher, program. */
#include "cmd/diff/diff_setup.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void nccl_version(const struct process_info *info, char *text, size_t bytes)
{
    int version = info->nccl_version;
    if (version >= 10000)
        snprintf(text, bytes, "%d.%d.%d", version / 10000, version / 100 % 100, version % 100);
    else if (version > 0) /* before 2.9 */
        snprintf(text, bytes, "%d.%d.%d", version / 1000, version / 100 % 10, version % 100);
}

static void cuda_version(int version, char *text, size_t bytes)
{
    if (version > 0)
        snprintf(text, bytes, "%d.%d", version / 1000, version / 10 % 100);
}

static void runtime_version(const struct process_info *info, char *text, size_t bytes)
{
    cuda_version(info->cuda_runtime_version, text, bytes);
}

static void driver_version(const struct process_info *info, char *text, size_t bytes)
{
    cuda_version(info->cuda_driver_version, text, bytes);
}

static void world_size(const struct process_info *info, char *text, size_t bytes)
{
    if (info->world_size > 0)
        snprintf(text, bytes, "%d", info->world_size);
}

static void launcher(const struct process_info *info, char *text, size_t bytes)
{
    snprintf(text, bytes, "%s", info->launcher);
}

static void program(const struct process_info *info, char *text, size_t bytes)
{
    snprintf(text, bytes, "%s", info->program);
}

static void format_command(const struct process_info *info, char *text, size_t bytes)
{
    snprintf(text, bytes, "%s", info->command);
}

/* Each writes its field; nothing where it is not known. */
static const struct field {
    const char *what;
    void (*write)(const struct process_info *info, char *text, size_t bytes);
} fields[] = {
    {"world size", world_size},      {"NCCL", nccl_version}, {"CUDA runtime", runtime_version},
    {"CUDA driver", driver_version}, {"launcher", launcher}, {"program", program},
    {"command", format_command},
};

/* The process of a rank, the last of several restart attempts; NULL if the trace has none. */
static const struct process_info *find_rank_process(const struct diff_side *side, int rank)
{
    const struct process_info *found = NULL;
    for (int i = 0; i < side->members; i++) {
        const struct process_info *info = trace_process(side->trace, side->member[i].process);
        if (side->member[i].shown_rank == rank && (!found || info->restart > found->restart))
            found = info;
    }
    return found;
}

static int add_setup_change(struct diff_setup *setup, const char *what, const char *a,
                            const char *b, int rank)
{
    int i = 0;
    while (i < setup->differences &&
           (setup->difference[i].what != what || strcmp(setup->difference[i].value[0], a) ||
            strcmp(setup->difference[i].value[1], b)))
        i++;
    if (i == setup->differences) {
        struct setup_difference *more =
            reallocarray(setup->difference, (size_t)i + 1, sizeof *more);
        if (!more)
            return -1;
        setup->difference = more;
        setup->differences++;
        more[i] = (struct setup_difference){.what = what};
        snprintf(more[i].value[0], sizeof more[i].value[0], "%s", a);
        snprintf(more[i].value[1], sizeof more[i].value[1], "%s", b);
    }
    return rankset_add(&setup->difference[i].ranks, rank);
}

static int compare_processes(struct diff_setup *setup, const struct process_info *a,
                             const struct process_info *b, int rank)
{
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++) {
        char value[2][512] = {"", ""};
        fields[i].write(a, value[0], sizeof value[0]);
        fields[i].write(b, value[1], sizeof value[1]);
        if (!*value[0] || !*value[1] || !strcmp(value[0], value[1]))
            continue;
        if (add_setup_change(setup, fields[i].what, value[0], value[1], rank))
            return -1;
    }
    return 0;
}

int diff_setup(struct diff_setup *setup, struct diff_side *const side[2], int rank, int with)
{
    *setup = (struct diff_setup){0};
    struct rankset ranks = {0};
    int status = 0;
    if (rank >= 0)
        status = rankset_add(&ranks, rank);
    for (int i = 0; i < side[0]->members && rank < 0 && !status; i++)
        if (side[0]->member[i].shown_rank >= 0)
            status = rankset_add(&ranks, side[0]->member[i].shown_rank);
    for (int of = rankset_next(&ranks, 0); of >= 0 && !status; of = rankset_next(&ranks, of + 1)) {
        const struct process_info *a = find_rank_process(side[0], of),
                                  *b = find_rank_process(side[1], rank >= 0 ? with : of);
        if (a && b)
            status = compare_processes(setup, a, b, of);
    }
    rankset_free(&ranks);
    return status;
}

void diff_setup_free(struct diff_setup *setup)
{
    for (int i = 0; i < setup->differences; i++)
        rankset_free(&setup->difference[i].ranks);
    free(setup->difference);
    *setup = (struct diff_setup){0};
}
