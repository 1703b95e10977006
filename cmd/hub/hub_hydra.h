/* hub_hydra.h: which job of MPICH's launcher, Hydra, this process belongs to. */
#ifndef DDPCHECK_HUB_HYDRA_H
#define DDPCHECK_HUB_HYDRA_H

/* Where the job's mpiexec listens, "n0:37095": Hydra gives a job no name, but passes this
 * address to its proxy on each host, and no other mpiexec has it meanwhile. "" where no proxy
 * started us. */
void hydra_find_address(char *address, unsigned long bytes);

#endif
