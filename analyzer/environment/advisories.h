/* advisories.h: known bugs and harmful settings that fit a finding (advisories.def). */
#ifndef DDPCHECK_ADVISORIES_H
#define DDPCHECK_ADVISORIES_H

#include "analyzer/findings.h"

struct advisory {
    enum code code; /* of the finding that it becomes; CODE_NONE: none */
    const char *setting;
    const char *what, *todo, *source;
};

enum { ADVISED_VERSION_BYTES = 64 };

/* The first advisory for NULL, then the next that fits the finding, whose sides are complete; NULL
 * after the last. */
const struct advisory *advisory_next(const struct analyzer *analyzer, const struct draft *draft,
                                     const struct advisory *before);
/* "NCCL 2.26.2", the job's version that it is about, or "CUDA_LAUNCH_BLOCKING=1". Returns text. */
char *advisory_subject(const struct analyzer *analyzer, const struct draft *draft,
                       const struct advisory *advisory, char text[ADVISED_VERSION_BYTES]);

#endif
