/* batch.c: keeps the records of one pass until they are stored. */
#include "collector/batch.h"

#include <stdlib.h>
#include <string.h>

struct record_batch *batch_new(void)
{
    struct record_batch *batch = malloc(sizeof *batch);
    if (batch) {
        batch->count = 0;
        batch->findings = NULL;
    }
    return batch;
}

static void finding_free(struct batch_finding *finding)
{
    for (int i = 0; i < finding->stored.sides; i++) {
        free((char *)finding->side[i].ranks);
        free((char *)finding->side[i].call);
        free((char *)finding->side[i].phase);
        free((char *)finding->side[i].where);
    }
    free((char *)finding->stored.code);
    free((char *)finding->stored.what);
    free((char *)finding->stored.todo);
    free(finding);
}

void batch_clear(struct record_batch *batch)
{
    batch->count = 0;
    while (batch->findings) {
        struct batch_finding *next = batch->findings->next;
        finding_free(batch->findings);
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

static char *copy_finding_text(const char *text)
{
    return strdup(text ? text : "");
}

static bool copy_side(struct store_side *to, const struct finding_side *from)
{
    char ranks[512];
    *to = (struct store_side){
        .ranks = copy_finding_text(rankset_text(&from->ranks, ranks, sizeof ranks)),
        .call = copy_finding_text(from->call),
        .phase = copy_finding_text(from->phase),
        .where = copy_finding_text(from->where),
        .process = from->process,
        .stack = from->stack,
        .stack_is_address = from->stack_is_address,
        .where_stack = from->where_stack,
        .where_stack_is_address = from->where_stack_is_address,
        .since_ns = from->since_ns,
    };
    return to->ranks && to->call && to->phase && to->where;
}

static struct batch_finding *finding_copy(const struct finding *from)
{
    struct batch_finding *to = calloc(1, sizeof *to);
    if (!to)
        return NULL;
    to->stored = (struct store_finding){
        .id = from->id,
        .code = copy_finding_text(from->code),
        .severity = severity_name(from->severity),
        .certainty = certainty_name(from->certainty),
        .state = from->state == FINDING_RESOLVED ? "resolved" : "open",
        .what = copy_finding_text(from->what),
        .todo = copy_finding_text(from->todo),
        .comm = from->comm,
        .number = from->number,
        .has_number = from->has_number,
        .first_ns = from->first_ns,
        .last_ns = from->last_ns,
        .times = from->times,
        .fingerprint = from->fingerprint,
        .side = to->side,
    };
    bool complete = to->stored.code && to->stored.what && to->stored.todo;
    for (int i = 0; i < from->sides && i < FINDING_SIDES_MAX; i++) {
        complete &= copy_side(&to->side[i], &from->side[i]);
        to->stored.sides++;
    }
    if (complete)
        return to;
    finding_free(to);
    return NULL;
}

int batch_add_finding(struct record_batch *batch, const struct finding *finding)
{
    struct batch_finding *added = finding_copy(finding);
    if (!added)
        return -1;
    struct batch_finding **at = &batch->findings;
    while (*at && (*at)->stored.id < finding->id)
        at = &(*at)->next;
    added->next = *at;
    if (*at && (*at)->stored.id == finding->id) {
        added->next = (*at)->next;
        finding_free(*at);
    }
    *at = added;
    return 0;
}

int batch_write(const struct record_batch *batch, struct store *store, struct error *err)
{
    for (int i = 0; i < batch->count; i++)
        if (store_event(store, batch->process[i], &batch->record[i], err) < 0)
            return -1;
    for (const struct batch_finding *finding = batch->findings; finding; finding = finding->next)
        if (store_finding(store, &finding->stored, err) < 0)
            return -1;
    return 0;
}
