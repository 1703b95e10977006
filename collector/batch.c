/* batch.c: keeps the records of one pass until they are stored. */
#include "collector/batch.h"

#include <stdlib.h>

#include "lib/base/invariant.h"
#include "lib/finding/finding_store.h"

struct record_batch *batch_new(void)
{
    struct record_batch *batch = malloc(sizeof *batch);
    if (batch) {
        batch->count = 0;
        batch->findings = NULL;
    }
    return batch;
}

static void drop_finding(struct batch_finding *finding)
{
    finding_free(&finding->finding);
    free(finding);
}

void batch_clear(struct record_batch *batch)
{
    batch->count = 0;
    while (batch->findings) {
        struct batch_finding *next = batch->findings->next;
        drop_finding(batch->findings);
        batch->findings = next;
    }
}

void batch_free(struct record_batch *batch)
{
    if (!batch)
        return;
    batch_clear(batch);
    free(batch);
}

bool batch_add(struct record_batch *batch, int process, const struct record *record)
{
    if (batch->count == BATCH_RECORDS)
        return false;
    batch->record[batch->count] = *record;
    batch->process[batch->count++] = process;
    return true;
}

int batch_add_finding(struct record_batch *batch, const struct finding *finding)
{
    struct batch_finding *added = calloc(1, sizeof *added);
    if (!added || finding_copy(&added->finding, finding) < 0) {
        free(added);
        return -1;
    }
    struct batch_finding **at = &batch->findings;
    while (*at && (*at)->finding.id < finding->id)
        at = &(*at)->next;
    added->next = *at;
    if (*at && (*at)->finding.id == finding->id) {
        added->next = (*at)->next;
        drop_finding(*at);
    }
    *at = added;
    invariant(!added->next || added->finding.id < added->next->finding.id,
              "findings of a batch are in the order of their ids");
    return 0;
}

int batch_write(const struct record_batch *batch, struct store *store, struct error *err)
{
    if (batch->count > 0 &&
        store_events(store, batch->process, batch->record, batch->count, err) < 0)
        return -1;
    for (const struct batch_finding *finding = batch->findings; finding; finding = finding->next)
        if (finding_store(store, &finding->finding, err) < 0)
            return -1;
    return 0;
}
