/* hub_place.c: the first process of a job by the variables of its launcher. */
#include "cmd/hub/hub_place.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cmd/hub/hub_hydra.h"
#include "cmd/hub/hub_torchrun.h"

static const char *variable(const char *name)
{
    const char *value = name ? getenv(name) : NULL;
    return value ? value : "";
}

/* Where the processes of the job meet: no other job can have that address. */
static void find_master(char *job, unsigned long bytes)
{
    snprintf(job, bytes, "%s%s%s", variable("MASTER_ADDR"), *variable("MASTER_PORT") ? "." : "",
             variable("MASTER_PORT"));
}

/* The first row whose variables are there is used. Sources: Slurm's srun(1), "OUTPUT ENVIRONMENT
 * VARIABLES"; Open MPI's mpirun(1), "Environment Variables"; MPICH's Hydra sets PMI_*,
 * and Intel MPI's an identifier of the job, which libfabric's providers and oneCCL use as such;
 * PyTorch's torchrun, "Environment Variables"; and for pods, where torchrun starts below us,
 * Kubeflow's PyTorchJob. NULL: the launcher has none. Those after PLACE_OTHERS are read where the
 * program is not torchrun, whose options say more. */
static const struct place_row {
    const char *launcher;
    const char *rank;  /* 0 is the first process */
    const char *local; /* its rank on its host, if `rank` is that of the host */
    const char *hosts; /* a list that begins with the first host */
    const char *job, *step;
    /* Where it has no name: what else no other job has at the same time. */
    void (*find_job)(char *job, unsigned long bytes);
} place_rows[] = {
    {"slurm", "SLURM_PROCID", NULL, "SLURM_STEP_NODELIST", "SLURM_JOB_ID", "SLURM_STEP_ID", NULL},
    {"openmpi", "OMPI_COMM_WORLD_RANK", NULL, NULL, "PMIX_NAMESPACE", NULL, NULL},
    {"mpich", "PMI_RANK", NULL, NULL, "I_MPI_HYDRA_UUID", NULL, hydra_find_address},
    {"torchrun", "GROUP_RANK", "LOCAL_RANK", "MASTER_ADDR", "TORCHELASTIC_RUN_ID", NULL,
     find_master},
    {"torchrun", "PET_NODE_RANK", NULL, "MASTER_ADDR", "PET_RDZV_ID", NULL, find_master},
    {"pods", "NODE_RANK", NULL, "MASTER_ADDR", NULL, NULL, find_master},
    {"pods", "RANK", NULL, "MASTER_ADDR", NULL, NULL, find_master},
};

enum { PLACE_OTHERS = 4 };

/* The first name of a list of hosts as Slurm writes it: "n[003-128],login" begins with "n003".
 * Returns host, "" if the list is empty. */
static char *hub_place_first_host(const char *list, char host[PLACE_HOST_BYTES])
{
    size_t length = strcspn(list, "[,");
    int bytes = snprintf(host, PLACE_HOST_BYTES, "%.*s", (int)length, list);
    if (list[length] != '[' || bytes >= PLACE_HOST_BYTES)
        return host;
    const char *number = list + length + 1, *end = strchr(number, ']');
    if (!end)
        return host;
    size_t digits = strcspn(number, "-,]"), rest = strcspn(end + 1, "[,");
    snprintf(host + bytes, PLACE_HOST_BYTES - (size_t)bytes, "%.*s%.*s", (int)digits, number,
             (int)rest, end + 1);
    return host;
}

/* torchrun's name for a job without one is "none". What may not be in a file name becomes '-'. */
static void name_job(struct hub_place *place, const char *job, const char *step,
                     void (*find_job)(char *job, unsigned long bytes))
{
    char found[PLACE_JOB_BYTES];
    if (find_job && (!*job || strcmp(job, "none") == 0)) {
        find_job(found, sizeof found);
        job = found;
    }
    snprintf(place->job, sizeof place->job, "%s%s%s%s%s", place->launcher, *job ? "-" : "", job,
             *step ? "." : "", step);
    for (char *at = place->job; *at; at++)
        if (!isalnum((unsigned char)*at) && *at != '.' && *at != '-' && *at != '_')
            *at = '-';
}

static bool find_row(struct hub_place *place, size_t from, size_t to)
{
    for (size_t i = from; i < to; i++) {
        const struct place_row *row = &place_rows[i];
        const char *rank = variable(row->rank), *local = variable(row->local);
        if (!*rank)
            continue;
        place->launcher = row->launcher;
        place->is_first = strcmp(rank, "0") == 0 && (!*local || strcmp(local, "0") == 0);
        hub_place_first_host(variable(row->hosts), place->host);
        name_job(place, variable(row->job), variable(row->step), row->find_job);
        return true;
    }
    return false;
}

static bool find_torchrun(struct hub_place *place, char *const *argv)
{
    struct torchrun_options options = {.nnodes = getenv("PET_NNODES"),
                                       .node_rank = getenv("PET_NODE_RANK"),
                                       .endpoint = getenv("PET_RDZV_ENDPOINT"),
                                       .address = getenv("PET_MASTER_ADDR"),
                                       .port = getenv("PET_MASTER_PORT"),
                                       .id = getenv("PET_RDZV_ID")};
    char meeting[PLACE_JOB_BYTES];
    if (!torchrun_read(argv, &options))
        return false;
    place->launcher = "torchrun";
    place->is_first = torchrun_is_first(&options, place->host, sizeof place->host);
    torchrun_find_meeting(&options, meeting, sizeof meeting);
    name_job(place, options.id ? options.id : meeting, "", NULL);
    return true;
}

void hub_place_find(struct hub_place *place, char *const *argv)
{
    const size_t rows = sizeof place_rows / sizeof place_rows[0];
    *place = (struct hub_place){.launcher = "none", .is_first = true, .job = "none"};
    if (!find_row(place, 0, PLACE_OTHERS) && !find_torchrun(place, argv))
        find_row(place, PLACE_OTHERS, rows);
}
