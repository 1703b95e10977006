/* environment.c: reads rank and world size from the environment. */
#include "trainer/environment.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

/* Ports that the system gives to no connection (net.ipv4.ip_local_port_range). */
enum { FIXED_PORTS = 20000, FIXED_PORTS_COUNT = 10000 };

struct launcher {
    const char *name, *rank, *size, *local_rank, *job;
};

/* In order of trust: the first whose rank and size are set wins. torchrun may run inside Slurm, so
 * Slurm is last. */
static const struct launcher launchers[] = {
    {"torchrun", "RANK", "WORLD_SIZE", "LOCAL_RANK", "TORCHELASTIC_RUN_ID"},
    {"Open MPI", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK",
     "PMIX_NAMESPACE"},
    {"MPICH", "PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", "PMI_JOBID"},
    {"Slurm", "SLURM_PROCID", "SLURM_NTASKS", "SLURM_LOCALID", "SLURM_JOB_ID"},
};

static int read_variable(const char *name, long lowest, int *number, struct error *err)
{
    char *end, *text = getenv(name);
    errno = 0;
    long value = strtol(text, &end, 10);
    if (errno || end == text || *end || value < lowest || value > INT_MAX)
        return error_set(err, "%s=%s in the environment: expected a number of at least %ld", name,
                         text, lowest);
    *number = (int)value;
    return 0;
}

static const struct launcher *read_launcher(bool own_launcher)
{
    for (size_t i = 0; i < sizeof launchers / sizeof launchers[0]; i++) {
        if (own_launcher && i > 0)
            break;
        if (getenv(launchers[i].rank) && getenv(launchers[i].size))
            return &launchers[i];
    }
    return NULL;
}

/* A port that all ranks of a job agree on when nobody gives one: made from the job's name. */
static int port_of_job(const char *job)
{
    unsigned hash = 5381;
    for (const char *c = job ? job : ""; *c; c++)
        hash = hash * 33 + (unsigned char)*c;
    return FIXED_PORTS + (int)(hash % FIXED_PORTS_COUNT);
}

static int read_address(struct environment *environment, const struct launcher *launcher,
                        struct error *err)
{
    environment->host = getenv("MASTER_ADDR") ? getenv("MASTER_ADDR") : "127.0.0.1";
    environment->port = port_of_job(getenv(launcher->job));
    environment->store_socket = -1;
    if (getenv("MASTER_PORT") && read_variable("MASTER_PORT", 1, &environment->port, err) != 0)
        return -1;
    /* torchrun's agent listens on MASTER_PORT itself and lets its workers connect. The next port
     * may be one that the system has given to somebody's connection. */
    if (getenv("TORCHELASTIC_USE_AGENT_STORE") &&
        strcmp(getenv("TORCHELASTIC_USE_AGENT_STORE"), "True") == 0)
        environment->port = FIXED_PORTS + (environment->port + 1) % FIXED_PORTS_COUNT;
    if (environment->port > 65535)
        return error_set(err, "port %d does not exist; set MASTER_PORT", environment->port);
    if (getenv(ENVIRONMENT_STORE_SOCKET) && environment->rank == 0)
        return read_variable(ENVIRONMENT_STORE_SOCKET, 0, &environment->store_socket, err);
    return 0;
}

int environment_read(struct environment *environment, bool own_launcher, struct error *err)
{
    *environment = (struct environment){.size = 1, .store_socket = -1};
    const struct launcher *launcher = read_launcher(own_launcher);
    if (!launcher)
        return 0;
    environment->launcher = launcher->name;
    if (read_variable(launcher->size, 1, &environment->size, err) != 0 ||
        read_variable(launcher->rank, 0, &environment->rank, err) != 0)
        return -1;
    if (environment->rank >= environment->size)
        return error_set(err, "%s=%d does not fit to %s=%d", launcher->rank, environment->rank,
                         launcher->size, environment->size);
    environment->local_rank = -1;
    if (getenv(launcher->local_rank) &&
        read_variable(launcher->local_rank, 0, &environment->local_rank, err) != 0)
        return -1;
    if (getenv("TORCHELASTIC_RESTART_COUNT") &&
        read_variable("TORCHELASTIC_RESTART_COUNT", 0, &environment->restart, err) != 0)
        return -1;
    return read_address(environment, launcher, err);
}
