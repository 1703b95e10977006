/* stages.h: which communicators carry messages from stage to stage of a pipeline, and which span
 * its stages. For analyzer/speed. */
#ifndef DDPCHECK_SPEED_STAGES_H
#define DDPCHECK_SPEED_STAGES_H

#include "analyzer/speed/slowdown.h"

struct stages {
    uint32_t *
        *rank; /* by communicator: those of its members; UINT32_MAX where one was never seen */
    const struct speed_comm **comm;
    bool *pipes; /* by communicator: messages go from stage to stage */
    bool *spans; /* by communicator: it holds both ends of such a message */
    uint32_t comms;
    uint32_t *seen; /* by rank: 1 + the communicator that was marked last */
};

/* Fills in judged->pipeline_of, too. 0 or -1 (ENOMEM); to be freed in either case. */
int stages_find(const struct judged *judged, struct stages *stages);
void stages_free(struct stages *stages);

#endif
