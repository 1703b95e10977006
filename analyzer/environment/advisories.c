/* advisories.c: which known bugs and settings fit a finding. */
#include "analyzer/environment/advisories.h"

#include <stdio.h>
#include <string.h>

#include "analyzer/environment/settings.h"
#include "analyzer/model/comm.h"
#include "analyzer/model/process.h"
#include "lib/trace/names.h"

/* nccl#2379: "on the order of fifty communicators in quick succession". */
enum { MANY_COMMS = 50 };

enum advised { ADVISED_NCCL, ADVISED_TORCH, ADVISED_DRIVER };

/* What a finding is about. */
struct circumstances {
    const struct analyzer *analyzer;
    const struct draft *draft;
    const struct process *process; /* the first of those that it concerns */
};

typedef bool place_test(const struct circumstances *at);

/* A side is in a call of that class, or in that call; or it waits for one. */
static bool concerns_call(const struct circumstances *at, enum api_class class, uint16_t api)
{
    const struct finding *finding = &at->draft->finding;
    const uint16_t awaited = at->draft->awaited_api;
    if (awaited && (api ? awaited == api : api_class_of(awaited) == class))
        return true;
    for (int i = 0; i < finding->sides; i++) {
        const struct act *acts[] = {&finding->side[i].act, &finding->side[i].now};
        for (size_t k = 0; k < sizeof acts / sizeof *acts; k++) {
            uint16_t calls[] = {acts[k]->call.api, acts[k]->wait.call.api};
            for (size_t c = 0; c < sizeof calls / sizeof *calls; c++)
                if (calls[c] && (api ? calls[c] == api : api_class_of(calls[c]) == class))
                    return true;
        }
    }
    return false;
}

/* The finding is about an operation, or a rank is inside NCCL: not in code of its own. */
static bool is_inside_nccl(const struct circumstances *at)
{
    return at->draft->comm || at->draft->awaited_api || concerns_call(at, CLASS_COMM, 0);
}

static bool is_anywhere(const struct circumstances *at)
{
    return at->process != NULL;
}

static bool is_in_setup(const struct circumstances *at)
{
    return concerns_call(at, CLASS_COMM, 0) && !concerns_call(at, CLASS_COMM, API_ncclCommAbort);
}

static bool is_in_abort(const struct circumstances *at)
{
    return concerns_call(at, CLASS_COMM, API_ncclCommAbort);
}

static bool is_about_messages(const struct circumstances *at)
{
    return concerns_call(at, CLASS_P2P, 0);
}

static bool is_first_operation(const struct circumstances *at)
{
    const struct finding *finding = &at->draft->finding;
    return at->draft->comm && finding->has_number && finding->number == 0 &&
           at->draft->comm == at->analyzer->first_comm && at->draft->comm->nranks > 1;
}

static bool has_several_gpus(const struct circumstances *at)
{
    const struct rankset *processes = &at->draft->processes;
    for (int i = rankset_next(processes, 0); i >= 0; i = rankset_next(processes, i + 1))
        if (at->analyzer->process[i] && at->analyzer->process[i]->several_ranks)
            return true;
    return false;
}

/* How many of the processes are on the host of the first of them, and how many are not. */
static void count_on_host(const struct circumstances *at, const char *host, int *here,
                          int *elsewhere)
{
    const struct rankset *processes = &at->draft->processes;
    *here = *elsewhere = 0;
    for (int i = rankset_next(processes, 0); i >= 0; i = rankset_next(processes, i + 1)) {
        const struct process *process = at->analyzer->process[i];
        if (process && !strcmp(process->info.host, host))
            ++*here;
        else if (process)
            ++*elsewhere;
    }
}

static bool is_on_several_hosts(const struct circumstances *at)
{
    int here, elsewhere;
    count_on_host(at, at->process->info.host, &here, &elsewhere);
    return elsewhere > 0;
}

static bool is_on_uneven_hosts(const struct circumstances *at)
{
    const struct rankset *processes = &at->draft->processes;
    int first, here, elsewhere;
    count_on_host(at, at->process->info.host, &first, &elsewhere);
    for (int i = rankset_next(processes, 0); i >= 0; i = rankset_next(processes, i + 1)) {
        const struct process *process = at->analyzer->process[i];
        count_on_host(at, process ? process->info.host : at->process->info.host, &here, &elsewhere);
        if (here != first)
            return true;
    }
    return false;
}

static bool has_many_comms(const struct circumstances *at)
{
    return is_in_setup(at) && at->analyzer->comm_count >= MANY_COMMS;
}

enum advised_place {
    ANYWHERE,
    SETUP,
    ABORT,
    MESSAGES,
    FIRST_OPERATION,
    SEVERAL_GPUS,
    SEVERAL_HOSTS,
    UNEVEN_HOSTS,
    MANY_COMMUNICATORS,
    PLACES
};

static place_test *const places[PLACES] = {
    [ANYWHERE] = is_anywhere,
    [SETUP] = is_in_setup,
    [ABORT] = is_in_abort,
    [MESSAGES] = is_about_messages,
    [FIRST_OPERATION] = is_first_operation,
    [SEVERAL_GPUS] = has_several_gpus,
    [SEVERAL_HOSTS] = is_on_several_hosts,
    [UNEVEN_HOSTS] = is_on_uneven_hosts,
    [MANY_COMMUNICATORS] = has_many_comms,
};

#define DC0 CODE_NONE
static const struct row {
    struct advisory advisory;
    enum code fits;
    enum advised library;
    int since, before;
    const char *values;
    enum advised_place place;
} rows[] = {
#define ADVISORY(...) ADVISORY_ROW(__VA_ARGS__)
#define ADVISORY_ROW(number, fits, library, since, before, setting, values, place, what, todo, \
                     source)                                                                   \
    {{DC##number, setting, what, todo, source}, DC##fits, library, since, before, values, place},
#include "analyzer/environment/advisories.def"
};
#undef DC0

enum { ROWS = sizeof rows / sizeof *rows };

static int advised_version(const struct process *process, enum advised library)
{
    char text[SETTING_TEXT_BYTES];
    int major = 0, minor = 0, patch = 0;
    if (library == ADVISED_NCCL)
        return process->info.nccl_version;
    if (library == ADVISED_DRIVER)
        return process->info.cuda_driver_version;
    const char *torch = settings_value(process, "PyTorch", text);
    if (!torch || sscanf(torch, "%d.%d.%d", &major, &minor, &patch) != 3)
        return 0;
    return major * 10000 + minor * 100 + patch;
}

static bool version_fits(const struct process *process, const struct row *row)
{
    int version = advised_version(process, row->library);
    if (!row->since && !row->before)
        return true;
    return version > 0 && version >= row->since && (!row->before || version < row->before);
}

/* One of the words, which '|' separates, is the value. */
static bool is_listed_value(const char *value, const char *values)
{
    if (!*values)
        return *value && strcmp(value, "0") != 0;
    for (;;) {
        size_t bytes = strcspn(values, "|");
        if (strlen(value) == bytes && !memcmp(value, values, bytes))
            return true;
        if (!values[bytes])
            return false;
        values += bytes + 1;
    }
}

static bool setting_fits(const struct process *process, const struct row *row)
{
    char text[SETTING_TEXT_BYTES];
    const char *value = settings_value(process, row->advisory.setting, text);
    return is_listed_value(value ? value : "", row->values);
}

/* The first process of those that the finding concerns to which the row applies. */
static const struct process *find_process(const struct analyzer *analyzer,
                                          const struct draft *draft, const struct row *row)
{
    for (int i = rankset_next(&draft->processes, 0); i >= 0;
         i = rankset_next(&draft->processes, i + 1)) {
        const struct process *process = analyzer->process[i];
        if (process && process_is_recorded(process) && version_fits(process, row) &&
            setting_fits(process, row))
            return process;
    }
    return NULL;
}

static bool row_fits(const struct analyzer *analyzer, const struct draft *draft,
                     const struct row *row)
{
    if (row->fits != draft->finding.code)
        return false;
    const struct circumstances at = {analyzer, draft, find_process(analyzer, draft, row)};
    return at.process && is_inside_nccl(&at) && places[row->place](&at);
}

const struct advisory *advisory_next(const struct analyzer *analyzer, const struct draft *draft,
                                     const struct advisory *before)
{
    int next = before ? (int)((const struct row *)before - rows) + 1 : 0;
    while (next < ROWS && !row_fits(analyzer, draft, &rows[next]))
        next++;
    return next < ROWS ? &rows[next].advisory : NULL;
}

char *advisory_subject(const struct analyzer *analyzer, const struct draft *draft,
                       const struct advisory *advisory, char text[ADVISED_VERSION_BYTES])
{
    static const char *const libraries[] = {"NCCL", "PyTorch", "CUDA driver"};
    const struct row *row = (const struct row *)advisory;
    const struct process *process = find_process(analyzer, draft, row);
    char value[SETTING_TEXT_BYTES];
    const char *name = advisory->code == DC803 ? libraries[row->library] : advisory->setting;
    const char *shown = process ? settings_value(process, name, value) : NULL;
    snprintf(text, ADVISED_VERSION_BYTES, "%s%s%s", name, advisory->code == DC803 ? " " : "=",
             shown ? shown : "");
    return text;
}
