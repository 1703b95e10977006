/* hub_place.h: which process of a job is the first one, and where it runs, by what launchers set.
 */
#ifndef DDPCHECK_HUB_PLACE_H
#define DDPCHECK_HUB_PLACE_H

#include <stdbool.h>

enum { PLACE_HOST_BYTES = 256, PLACE_JOB_BYTES = 128 };

struct hub_place {
    const char *launcher;        /* "slurm", ...; "none": a job of this host alone */
    bool is_first;               /* this process starts the hub */
    char host[PLACE_HOST_BYTES]; /* the first host's name; "" if the launcher does not name it */
    char job[PLACE_JOB_BYTES];   /* distinguishes jobs that share a directory; a file name */
};

/* Reads the environment, and the options of the program that is run if it is torchrun. */
void hub_place_find(struct hub_place *place, char *const *argv);

#endif
