/* finding_load.h: reads findings back from the databases of a trace, as finding_store wrote them.
 */
#ifndef DDPCHECK_FINDING_LOAD_H
#define DDPCHECK_FINDING_LOAD_H

#include "lib/base/error.h"
#include "lib/finding/finding.h"
#include "lib/trace/trace.h"

struct finding_list {
    struct finding *finding; /* the list owns them */
    int count;
};

/* Appends the findings of one database whose id is `first_id` or more, in order of their ids.
 * Process numbers become the trace's. Acts that this build does not know are DID_OTHER. A finding
 * whose code this build does not know has CODE_NONE and begins its sentence with the code. Returns
 * 0; -1 with err if memory is short; 1 with err if the database can't be read to its end. */
int finding_list_load(struct finding_list *list, struct trace *trace, int database,
                      int64_t first_id, struct error *err);
/* Appends a zeroed finding; NULL when memory is short. */
struct finding *finding_list_add(struct finding_list *list);
/* Sorts by finding_compare. */
void finding_list_sort(struct finding_list *list);
void finding_list_free(struct finding_list *list);

#endif
