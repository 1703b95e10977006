/* versions.h: what checks/dc307_versions.c keeps of one process. */
#ifndef DDPCHECK_VERSIONS_H
#define DDPCHECK_VERSIONS_H

struct versions;

/* NULL is fine. */
void versions_free(struct versions *versions);

#endif
