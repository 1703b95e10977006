/* hazard_sites.h: hazards by the two places of the program that they lie between: each is one
 * finding. */
#ifndef DDPCHECK_HAZARD_SITES_H
#define DDPCHECK_HAZARD_SITES_H

#include "analyzer/hazard/hazards.h"

struct hazard_site;

/* Zero-initialised is empty. */
struct hazard_sites {
    struct hazard_site *site;
    uint32_t count, capacity;
    bool has_unreported;
};

/* Counts one; returns where its draft is to be made if it is new, else NULL. */
struct draft *hazard_sites_found(struct hazard_sites *sites, const struct hazard_key *key,
                                 uint64_t time_ns);
/* Reports what was counted. */
void hazard_sites_report(struct analyzer *analyzer, struct hazard_sites *sites);
void hazard_sites_drop_unreported(struct hazard_sites *sites);
void hazard_sites_free(struct hazard_sites *sites);

#endif
