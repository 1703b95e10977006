/* live_environment.c: a process's environment as it is now, and which rank a launcher's variables
 * say it is.
 *
 * /proc/PID/environ has what it was started with. Who forks ranks sets their variables later: these
 * are in its memory, where the C library's `environ` leads to them. */
#include "lib/live/live_internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/process_file.h"
#include "lib/python/peek.h"

enum { ENVIRONMENT_BYTES = 1 << 18, VARIABLES_MAX = 4096, VARIABLE_BYTES = 4096 };

static const struct launcher_variables {
    const char *name, *needs, *rank, *local_rank, *world_size, *job, *restart;
    bool is_for_ranks;
} launcher_variables[] = {
#define LAUNCHER(...) {__VA_ARGS__},
#include "lib/trace/launchers.def"
#undef LAUNCHER
    {"RANK", "", "RANK", "LOCAL_RANK", "WORLD_SIZE", "", "", true},
};

/* How many ranks of the job are on this host. */
static const char *const local_sizes[] = {"LOCAL_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_SIZE",
                                          "MPI_LOCALNRANKS"};

const char *live_variable(const struct live_process *process, const char *name)
{
    size_t length = strlen(name);
    const char *end = process->environment + process->environment_bytes;
    for (const char *at = process->environment; at && at < end; at += strlen(at) + 1)
        if (!strncmp(at, name, length) && at[length] == '=')
            return at + length + 1;
    return NULL;
}

static int live_number(const struct live_process *process, const char *name)
{
    const char *text = *name ? live_variable(process, name) : NULL;
    char *end;
    long number = text && *text ? strtol(text, &end, 10) : -1;
    return text && *text && !*end && number >= 0 && number < 1 << 24 ? (int)number : -1;
}

/* Nothing says that ranks are on other hosts. */
static bool is_on_one_host(const struct live_process *process)
{
    const char *master = live_variable(process, "MASTER_ADDR");
    if (live_variable(process, "SLURM_NNODES"))
        return live_number(process, "SLURM_NNODES") == 1;
    return !master || !strcmp(master, "localhost") || !strncmp(master, "127.", 4) ||
           !strcmp(master, "::1");
}

static void name_live_job(const struct live_process *process, struct live_identity *identity)
{
    const char *host = live_variable(process, "MASTER_ADDR"),
               *port = live_variable(process, "MASTER_PORT"),
               *step = live_variable(process, "SLURM_STEP_ID");
    if (host && port)
        snprintf(identity->job, sizeof identity->job, "%.80s:%.20s", host, port);
    else if (live_variable(process, "SLURM_JOB_ID"))
        snprintf(identity->job, sizeof identity->job, "%.40s.%.20s",
                 live_variable(process, "SLURM_JOB_ID"), step ? step : "");
    else
        snprintf(identity->job, sizeof identity->job, "session %d", process->session);
}

void live_identify(const struct live_process *process, struct live_identity *identity)
{
    *identity = (struct live_identity){
        .launcher = "", .rank = -1, .local_rank = -1, .world_size = -1, .local_size = -1};
    name_live_job(process, identity);
    for (size_t i = 0; i < sizeof launcher_variables / sizeof *launcher_variables; i++) {
        const struct launcher_variables *row = &launcher_variables[i];
        if ((*row->needs && !live_variable(process, row->needs)) ||
            live_number(process, row->rank) < 0)
            continue;
        identity->launcher = row->name;
        identity->rank = live_number(process, row->rank);
        identity->local_rank = live_number(process, row->local_rank);
        identity->world_size = live_number(process, row->world_size);
        break;
    }
    for (size_t i = 0; i < sizeof local_sizes / sizeof *local_sizes && identity->local_size < 0;
         i++)
        identity->local_size = live_number(process, local_sizes[i]);
    if (identity->local_size < 0 && is_on_one_host(process))
        identity->local_size = identity->world_size;
}

void live_read_environment(struct live_process *process)
{
    process->environment = malloc(ENVIRONMENT_BYTES);
    process->environment_bytes =
        process->environment
            ? process_file_read(process->pid, "environ", process->environment, ENVIRONMENT_BYTES)
            : 0;
}

#ifdef HAVE_LIBDW

enum { ENVIRONS_MAX = 4 };

struct environs {
    uint64_t address[ENVIRONS_MAX];
    int count;
    bool past_program;
};

/* The program's own copy (a COPY relocation), and those of the C library: an auditor
 * (LD_AUDIT) has one more. */
static int find_environs(Dwfl_Module *module, void **user_data, const char *name, Dwarf_Addr start,
                         void *context)
{
    (void)user_data;
    (void)start;
    struct environs *environs = context;
    bool is_program = !environs->past_program;
    const char *slash = strrchr(name, '/'), *base = slash ? slash + 1 : name;
    environs->past_program = true;
    if (!is_program && strncmp(base, "libc.so", 7) != 0 && strncmp(base, "libc-", 5) != 0)
        return DWARF_CB_OK;
    int count = dwfl_module_getsymtab(module);
    for (int i = 1; i < count && environs->count < ENVIRONS_MAX; i++) {
        GElf_Sym symbol;
        GElf_Addr address;
        const char *found = dwfl_module_getsym_info(module, i, &symbol, &address, NULL, NULL, NULL);
        if (!found || symbol.st_shndx == SHN_UNDEF || strncmp(found, "environ", 7) != 0 ||
            (found[7] && found[7] != '@'))
            continue;
        environs->address[environs->count++] = address;
        break;
    }
    return DWARF_CB_OK;
}

/* The text at `address`, in pieces that cross no page: the next may not be there. Returns
 * its length, 0 where it can't be read. */
static size_t peek_text(uint64_t address, char *text)
{
    enum { PIECE = 64 };
    for (size_t used = 0; used < VARIABLE_BYTES;) {
        size_t piece = PIECE - (size_t)((address + used) % PIECE);
        if (!peek(address + used, text + used, piece))
            return 0;
        if (memchr(text + used, '\0', piece))
            return strlen(text);
        used += piece;
    }
    return 0;
}

/* The variables that `environ` leads to. Returns their bytes. */
static size_t read_variables(uint64_t environ_address, char *text)
{
    uint64_t list = 0, variable = 0;
    size_t used = 0;
    if (!peek(environ_address, &list, sizeof list) || !list)
        return 0;
    for (int i = 0; i < VARIABLES_MAX && used + 2 * VARIABLE_BYTES < ENVIRONMENT_BYTES; i++) {
        if (!peek(list + sizeof variable * (uint64_t)i, &variable, sizeof variable) || !variable)
            break;
        size_t length = peek_text(variable, text + used);
        used += length ? length + 1 : 0;
    }
    return used;
}

/* An auditor's copy is as it was at the beginning: the longest is the program's. */
void live_read_environment_now(struct live_process *process, Dwfl *dwfl)
{
    struct environs environs = {0};
    dwfl_getmodules(dwfl, find_environs, &environs, 0);
    peek_at(process->pid);
    for (int i = 0; i < environs.count; i++) {
        char *text = malloc(ENVIRONMENT_BYTES);
        size_t bytes = text ? read_variables(environs.address[i], text) : 0;
        bool is_longer = bytes > process->environment_bytes;
        free(is_longer ? process->environment : text);
        if (is_longer) {
            process->environment = text;
            process->environment_bytes = bytes;
        }
    }
    peek_at(0);
}

#endif
