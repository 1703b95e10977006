/* diff_setup.c: compares how two jobs were started: versions, launcher, program. */
#include "cmd/diff/diff_setup.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cmd/report/report_environment.h"
#include "lib/base/array.h"

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
    {"world size", world_size},
    {"launcher", launcher},
    {"program", program},
    {"command", format_command},
};

/* The process of a rank, the last of several restart attempts; -1 if the trace has none. */
static int find_rank_process(const struct diff_side *side, int rank)
{
    int found = -1;
    for (int i = 0; i < side->members; i++) {
        const struct process_info *info = trace_process(side->trace, side->member[i].process);
        if (side->member[i].shown_rank == rank &&
            (found < 0 || info->restart > trace_process(side->trace, found)->restart))
            found = side->member[i].process;
    }
    return found;
}

static int add_setup_change(struct diff_setup *setup, const char *what, const char *a,
                            const char *b, int rank)
{
    int i = 0;
    while (i < setup->differences &&
           (strcmp(setup->difference[i].what, what) || strcmp(setup->difference[i].value[0], a) ||
            strcmp(setup->difference[i].value[1], b)))
        i++;
    if (i == setup->differences) {
        if (!ARRAY_ADD(setup->difference, i))
            return -1;
        struct setup_difference *new = &setup->difference[setup->differences++];
        *new = (struct setup_difference){0};
        snprintf(new->what, sizeof new->what, "%s", what);
        snprintf(new->value[0], sizeof new->value[0], "%s", a);
        snprintf(new->value[1], sizeof new->value[1], "%s", b);
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

/* A value of one side beside that of the same name of the other; both are sorted by name. */
static int compare_environments(struct diff_setup *setup, const struct environment_list *a,
                                const struct environment_list *b, int rank)
{
    int i = 0, k = 0, status = 0;
    while ((i < a->count || k < b->count) && !status) {
        const struct environment_item *left = i < a->count ? &a->item[i] : NULL;
        const struct environment_item *right = k < b->count ? &b->item[k] : NULL;
        int order = environment_order(left, right);
        const struct environment_item *some = order <= 0 ? left : right;
        /* Of what is no variable, one side may just not say it. Launchers choose MASTER_PORT anew
         * for each run. */
        bool counts = (!order || environment_is_variable(some)) &&
                      strncmp(some->name, "MASTER_", strlen("MASTER_")) != 0;
        const char *value[] = {order <= 0 ? left->value : "not set",
                               order >= 0 ? right->value : "not set"};
        if (counts && strcmp(value[0], value[1]) != 0)
            status = add_setup_change(setup, some->name, value[0], value[1], rank);
        i += order <= 0;
        k += order >= 0;
    }
    return status;
}

static int compare_surroundings(struct diff_setup *setup, struct diff_side *const side[2],
                                const int process[2], int rank)
{
    struct environment_list environment[2];
    int status = environment_load(&environment[0], side[0]->trace, process[0]) |
                 environment_load(&environment[1], side[1]->trace, process[1]);
    bool both = environment[0].count && environment[1].count;
    if (!status && both)
        status = compare_environments(setup, &environment[0], &environment[1], rank);
    environment_free(&environment[0]);
    environment_free(&environment[1]);
    return status;
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
        const int process[] = {find_rank_process(side[0], of),
                               find_rank_process(side[1], rank >= 0 ? with : of)};
        if (process[0] >= 0 && process[1] >= 0)
            status = compare_processes(setup, trace_process(side[0]->trace, process[0]),
                                       trace_process(side[1]->trace, process[1]), of) ||
                             compare_surroundings(setup, side, process, of)
                         ? -1
                         : 0;
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
