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

/* The first name of a list of hosts as Slurm writes it: "n[003-128],login" begins with "n003".
 * Returns host, "" if the list is empty. */
char *hub_place_first_host(const char *list, char host[PLACE_HOST_BYTES]);

#endif
