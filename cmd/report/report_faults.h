/* report_faults.h: the findings of a report, those of one fault together. */
#ifndef DDPCHECK_REPORT_FAULTS_H
#define DDPCHECK_REPORT_FAULTS_H

#include "cmd/report/report_model.h"
#include "lib/finding/fault.h"

struct report_fault {
    const struct finding *finding; /* the first of them: the one that is shown; the report's */
    struct fault_key key;
    int others;           /* how many more findings */
    int comms;            /* on how many more communicators */
    uint64_t last_comm;   /* of the last that was added */
    struct rankset ranks; /* of the others */
};

struct report_faults {
    struct report_fault *fault; /* worst first */
    int count;
    bool failed; /* memory was short */
};

/* Gathers the chosen findings in the state; each by itself where `merge` is false. The caller frees
 * it with report_faults_free. */
void report_faults_find(struct report_faults *faults, struct report *report,
                        enum finding_state state, bool merge);
void report_faults_free(struct report_faults *faults);
/* "The same on 7 more communicators, by ranks 8-63."; "" if there are no others. Returns text. */
char *report_fault_others(const struct report_fault *fault, char *text, size_t bytes);

#endif
