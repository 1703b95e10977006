/* findings.c: loads the findings of all databases, the worst first. */
#include "tui/findings.h"

#include <stdlib.h>
#include <string.h>

#include "lib/finding/finding_fix.h"
#include "lib/finding/finding_origin.h"

enum { ID_BITS = 20 }; /* findings of one database */

void tui_findings_free(struct findings *findings)
{
    fault_list_free(&findings->faults);
    finding_list_free(&findings->list);
}

const struct fault_group *tui_findings_get(const struct findings *findings, uint32_t id)
{
    for (int i = 0; i < findings->faults.count; i++)
        if (findings->faults.fault[i].finding->id == id)
            return &findings->faults.fault[i];
    return NULL;
}

static int load_databases(struct finding_list *list, struct source *source, struct error *err)
{
    for (int i = 0; i < trace_database_count(source->trace); i++) {
        int first = list->count;
        if (finding_list_load(list, source->trace, i, 0, err))
            return -1;
        for (int k = first; k < list->count; k++)
            list->finding[k].id |= (uint32_t)i << ID_BITS;
    }
    return 0;
}

/* The finding's sentence, read once for databases that do not change. NULL when memory is short. */
static char *keep_sentence(const struct finding *finding, struct source *source)
{
    for (int i = 0; i < source->words_count; i++)
        if (source->words[i].id == finding->id)
            return strdup(source->words[i].what);
    char *what = finding_sentence(source->trace, finding);
    char *kept = what ? strdup(what) : NULL;
    struct finding_words *words =
        kept ? realloc(source->words, (size_t)(source->words_count + 1) * sizeof *words) : NULL;
    if (words) {
        source->words = words;
        words[source->words_count++] = (struct finding_words){finding->id, kept};
    } else {
        free(kept);
    }
    return what;
}

/* The words that depend on the program's lines. Returns 0, or -1 when memory is short. */
static int name_places(struct finding *finding, struct source *source)
{
    const char *fix = finding_fix(source->trace, finding);
    char *todo = fix == finding->todo ? finding->todo : strdup(fix);
    char *what = keep_sentence(finding, source);
    if (todo != finding->todo)
        free(finding->todo);
    free(finding->what);
    finding->todo = todo;
    finding->what = what;
    return todo && what ? 0 : -1;
}

int tui_findings_load(struct findings *findings, struct source *source, struct error *err)
{
    struct finding_list *list = &findings->list;
    *findings = (struct findings){0};
    int result = load_databases(list, source, err);
    finding_list_sort(list);
    for (int i = 0; !result && i < list->count; i++) {
        if (name_places(&list->finding[i], source))
            result = error_memory(err, "can't show the findings");
        else
            fault_list_add(&findings->faults, source->trace, &list->finding[i], true);
    }
    if (!result && findings->faults.failed)
        result = error_memory(err, "can't show the findings");
    if (result)
        tui_findings_free(findings);
    return result;
}

int findings_worst_comm(struct source *source, uint64_t *comm, struct error *err)
{
    struct findings findings;
    if (tui_findings_load(&findings, source, err) < 0)
        return -1;
    const struct finding *worst = findings.list.count ? &findings.list.finding[0] : NULL;
    *comm = worst && worst->state == FINDING_OPEN ? worst->comm : 0;
    tui_findings_free(&findings);
    return 0;
}

enum tone finding_tone(const struct finding *finding)
{
    static const enum tone tones[] = {TONE_ERROR, TONE_WARNING, TONE_NOTE};
    return finding->state == FINDING_RESOLVED ? TONE_FAINT : tones[finding->severity];
}

char *finding_ranks(const struct fault_group *fault, char *text, size_t bytes)
{
    struct rankset all = {0};
    for (int i = 0; i < fault->finding->sides; i++)
        rankset_unite(&all, &fault->finding->side[i].ranks);
    rankset_unite(&all, &fault->ranks);
    rankset_brief(&all, text, bytes);
    rankset_free(&all);
    return text;
}

bool finding_has_rank(const struct fault_group *fault, int rank)
{
    bool found = rankset_has(&fault->ranks, rank);
    for (int i = 0; i < fault->finding->sides; i++)
        found = found || rankset_has(&fault->finding->side[i].ranks, rank);
    return found;
}
