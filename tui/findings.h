/* findings.h: the findings of all databases (tables finding and finding_side), one for each
 * fault. */
#ifndef DDPCHECK_TUI_FINDINGS_H
#define DDPCHECK_TUI_FINDINGS_H

#include "lib/base/rankset.h"
#include "lib/finding/finding_store.h"
#include "tui/rows.h"
#include "tui/source.h"

enum { TUI_SIDES_MAX = 8 };

struct tui_side {
    char *ranks, *phase;
    struct act act, now; /* DID_OTHER without a name: not known, as in older databases */
    char *call, *where;  /* their words; where they are not known, as the database has them */
    int process;
    uint64_t stack, where_stack, since_ns;
    bool stack_is_address, where_stack_is_address;
};

struct tui_finding {
    uint32_t id; /* of the TUI: counts over all databases */
    char *code, *severity, *certainty, *state, *what, *todo;
    uint64_t comm, number, first_ns, last_ns, times;
    bool has_number;
    uint64_t fingerprint;
    int others;          /* findings of the same fault, which are not in the list */
    struct rankset more; /* their ranks */
    struct tui_side side[TUI_SIDES_MAX];
    int sides;
};

struct findings {
    struct tui_finding *finding; /* open before resolved, then the worst, then the earliest first */
    int count;
};

/* Returns 0 (tui_findings_free it), or -1 with err. */
int tui_findings_load(struct findings *findings, struct source *source, struct error *err);
void tui_findings_free(struct findings *findings);
/* NULL if there is none with that id. */
const struct tui_finding *tui_findings_get(const struct findings *findings, uint32_t id);
/* The communicator that the worst open finding is about; 0 if there is none. Returns 0, or -1 with
 * err. */
int findings_worst_comm(struct source *source, uint64_t *comm, struct error *err);

enum tone finding_tone(const struct tui_finding *finding);
/* All ranks of all sides, and of the other findings of the fault: "0-2,5". Returns text. */
char *finding_ranks(const struct tui_finding *finding, char *text, size_t bytes);

#endif
