/* findings.h: the findings of all databases, one for each fault. */
#ifndef DDPCHECK_TUI_FINDINGS_H
#define DDPCHECK_TUI_FINDINGS_H

#include "lib/finding/fault.h"
#include "lib/finding/finding_load.h"
#include "tui/rows.h"
#include "tui/source.h"

struct findings {
    struct finding_list list; /* ids count over all databases; sentences have PyTorch's names */
    struct fault_list faults; /* in the order of finding_compare */
};

/* Returns 0 (tui_findings_free it), or -1 with err. */
int tui_findings_load(struct findings *findings, struct source *source, struct error *err);
void tui_findings_free(struct findings *findings);
/* The fault whose finding has that id; NULL if there is none. */
const struct fault_group *tui_findings_get(const struct findings *findings, uint32_t id);
/* The communicator that the worst open finding is about; 0 if there is none. Returns 0, or -1 with
 * err. */
int findings_worst_comm(struct source *source, uint64_t *comm, struct error *err);

enum tone finding_tone(const struct finding *finding);
/* All ranks of all sides, and of the other findings of the fault: "0-2,5". Returns text. */
char *finding_ranks(const struct fault_group *fault, char *text, size_t bytes);
bool finding_has_rank(const struct fault_group *fault, int rank);

#endif
