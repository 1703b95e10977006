/* different_settings.c: DC801: a variable that must agree differs between ranks; and DC802's
 * comparison, which is the same. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analyzer/environment/environment.h"
#include "analyzer/environment/settings.h"
#include "analyzer/model/comm.h"
#include "analyzer/model/process.h"

enum { NAMES_COMPARED = 64, NAME_VALUE_BYTES = 256 };

static const struct agreement {
    const char *begins;
    bool must;
    const char *source;
} agreements[] = {
#define AGREEMENT(...) {__VA_ARGS__},
#include "analyzer/environment/agreement.def"
};

/* Versions that each process has beside its settings. */
static const char *const versions[] = {"NCCL", "CUDA runtime", "CUDA driver"};

static bool must_agree(const char *name)
{
    for (size_t i = 0; i < sizeof agreements / sizeof *agreements; i++)
        if (!strncmp(name, agreements[i].begins, strlen(agreements[i].begins)))
            return agreements[i].must;
    return false;
}

/* What one comparison is about. */
struct agreement_check {
    struct analyzer *analyzer;
    const struct rankset *processes;
    const char *done[NAMES_COMPARED];
    int done_count;
};

static const struct process *next_compared(const struct agreement_check *comparison, int *i)
{
    for (*i = rankset_next(comparison->processes, *i); *i >= 0;
         *i = rankset_next(comparison->processes, *i + 1)) {
        const struct process *process = comparison->analyzer->process[*i];
        if (process && process_is_recorded(process) && process->slot.settings)
            return process;
    }
    return NULL;
}

/* "NCCL_ALGO=Ring", but "NCCL 2.28.9" and "NCCL_ALGO not set". */
static char separator_of(const struct check *check, const char *value)
{
    return check == &check_different_settings && value ? '=' : ' ';
}

/* The side whose ranks have this value; NULL: memory is short, or there is no room for one more
 * value. */
static struct finding_side *side_of_value(struct draft *draft, const char *name, const char *value)
{
    char words[NAME_VALUE_BYTES];
    snprintf(words, sizeof words, "%s%c%s", name, separator_of(draft->check, value),
             value ? value : "not set");
    for (int i = 0; i < draft->finding.sides; i++)
        if (!strcmp(draft->finding.side[i].act.name, words))
            return &draft->finding.side[i];
    return draft_side(draft, &(struct act){.did = DID_HAS_SETTING, .name = words}, NULL);
}

static int order_sides(const void *a, const void *b)
{
    const struct finding_side *left = a, *right = b;
    return strcmp(left->act.name, right->act.name);
}

static void report_difference(struct agreement_check *comparison, const char *name,
                              enum setting_kind kind, struct draft *draft)
{
    struct finding *finding = &draft->finding;
    struct values values = {.name = {name}};
    /* The same order in each report of it, so that ranks of other communicators join their side. */
    qsort(finding->side, (size_t)finding->sides, sizeof *finding->side, order_sides);
    for (int i = 0; i < finding->sides; i++)
        values.said[i] = finding->side[i].act.name + strlen(name) + 1;
    draft->merges_sides = true;
    draft_headline(draft, HEADLINE_SETTING_DIFFERS,
                   kind == SETTING_VERSION ? ADVICE_SAME_VERSION : ADVICE_SAME_SETTING, &values);
    findings_report(comparison->analyzer, draft, NULL);
}

static void compare_setting(struct agreement_check *comparison, const char *name,
                            enum setting_kind kind)
{
    char text[SETTING_TEXT_BYTES];
    struct draft draft =
        draft_new(kind == SETTING_VERSION ? &check_different_versions : &check_different_settings,
                  CERTAIN, NULL);
    int i = 0;
    for (const struct process *process; (process = next_compared(comparison, &i)); i++) {
        const char *value = settings_value(process, name, text);
        if (!value && kind == SETTING_VERSION)
            continue; /* not known */
        struct finding_side *side = side_of_value(&draft, name, value);
        int rank = process_shown_rank(process);
        if (side && rankset_add(&side->ranks, rank >= 0 ? rank : process->index))
            draft.failed = true;
        draft_cover(&draft, process);
        if (side && side->process < 0)
            side->process = process->index;
        if (draft.finding.last_ns < process->last_ns)
            draft.finding.first_ns = draft.finding.last_ns = process->last_ns;
    }
    if (draft.finding.sides > 1)
        report_difference(comparison, name, kind, &draft);
    else
        draft_drop(&draft);
}

static bool is_compared(struct agreement_check *comparison, const char *name)
{
    for (int i = 0; i < comparison->done_count; i++)
        if (!strcmp(comparison->done[i], name))
            return true;
    if (comparison->done_count == NAMES_COMPARED)
        return true;
    comparison->done[comparison->done_count++] = name;
    return false;
}

void environment_compare(struct analyzer *analyzer, const struct rankset *processes)
{
    struct agreement_check comparison = {.analyzer = analyzer, .processes = processes};
    int i = 0;
    for (size_t k = 0; k < sizeof versions / sizeof *versions; k++)
        compare_setting(&comparison, versions[k], SETTING_VERSION);
    for (const struct process *process; (process = next_compared(&comparison, &i)); i++)
        for (uint32_t k = 0; k < process->slot.settings->count; k++) {
            const struct setting *setting = &process->slot.settings->item[k];
            const char *name = setting_name(process, setting);
            if (must_agree(name) && !is_compared(&comparison, name))
                compare_setting(&comparison, name, setting->kind);
        }
}

/* Once all members have come, when the last one calls. */
static void settings_on_setup(struct analyzer *analyzer, const struct event *event)
{
    const struct member *member = event->member;
    if (!member || event->record->phase != RECORD_POINT || member->comm->nranks < 2 ||
        member->comm->members < (uint32_t)member->comm->nranks)
        return;
    struct rankset processes = {0};
    for (uint32_t i = 0; i < member->comm->members; i++) {
        const struct process *process = member->comm->member[i]->process;
        if (!member->comm->member[i]->exists ||
            (process && rankset_add(&processes, process->index))) {
            rankset_free(&processes);
            return;
        }
    }
    environment_compare(analyzer, &processes);
    rankset_free(&processes);
}

const struct check check_different_settings = {
    .code = DC801,
    .name = "different-settings",
    .severity = SEVERITY_NOTE,
    .scope = SCOPE_JOB,
    .title = "a variable that must agree differs between ranks",
    .text =
        "NCCL decides on each rank by itself which algorithm, protocol, number of channels and "
        "buffer sizes it uses, from its variables and from what it finds. Ranks that decide "
        "differently wait for each other for ever, at some sizes only, or report \"receiving "
        "524288 bytes instead of 65536\".\n\n"
        "Compared are the variables NCCL_... that each process has at its first NCCL call, those "
        "that the program sets itself included. Variables that name what a host has "
        "(NCCL_SOCKET_IFNAME, NCCL_IB_HCA), that change what is printed (NCCL_DEBUG), or that a "
        "launcher gives each rank its own value of (LOCAL_RANK, CUDA_VISIBLE_DEVICES) may differ. "
        "A job may well run with such a difference, so it is a note by itself; a hang that it may "
        "be the cause of names it (DC211).",
    .causes = CAUSES({"A variable that one host's profile, container or job script sets.",
                      "'ddpcheck report --env': who has it, and whether the program set it."},
                     {"A program that sets os.environ[\"NCCL_...\"] on some ranks.",
                      "'ddpcheck report --env' marks what the program set."}),
    .source = "NCCL 2.29 user guide, \"Environment Variables\"; github.com/NVIDIA/nccl issues 626, "
              "1136, 1328",
    .example = "if (rank == 0)\n    setenv(\"NCCL_PROTO\", \"Simple\", 1);\n"
               "ncclCommInitRank(&comm, nranks, id, rank);\n",
    .fix_c = "setenv(\"NCCL_PROTO\", \"Simple\", 1);                       /* on every rank */\n",
    .fix_torch = "os.environ[\"NCCL_PROTO\"] = \"Simple\"    # on every rank, or in the launcher: "
                 "mpirun -x, srun --export\n",
    .on = {[EVENT_SETUP] = settings_on_setup},
};
