/* dc308_payloads.c: DC308 (ranks that must hold the same bytes after a collective do not), DC309 (a
 * send buffer changed while it was sent). Both compare hashes that the GPU made on the operation's
 * stream. */
#include <stdio.h>

#include "analyzer/findings.h"
#include "analyzer/loop/payloads.h"
#include "analyzer/model/process.h"

enum { CALL_BYTES = 256, RANKS_BYTES = 128 };

static bool leaves_all_alike(uint16_t api)
{
    return api == API_ncclAllReduce || api == API_ncclBroadcast || api == API_ncclBcast ||
           api == API_ncclAllGather;
}

static void note_times(struct draft *draft, const struct payload_cell *cell)
{
    if (!draft->finding.first_ns || cell->site.time_ns < draft->finding.first_ns)
        draft->finding.first_ns = cell->site.time_ns;
    if (cell->site.time_ns > draft->finding.last_ns)
        draft->finding.last_ns = cell->site.time_ns;
}

/* One side for each group of ranks that hold the same. */
static void add_sides(struct draft *draft, const struct payload *payload,
                      const struct payload_group *groups, int count)
{
    char call[CALL_BYTES];
    signature_text(&payload->signature, call, sizeof call);
    for (int i = 0; i < count; i++)
        draft_side(draft, call, &payload->cell[groups[i].first].site);
    for (uint32_t rank = 0; rank < payload->cells; rank++) {
        const struct payload_cell *cell = &payload->cell[rank];
        int group = payload_group_of(cell, HASH_RECV_AFTER, groups, count);
        if (group < 0)
            continue;
        draft_rank(draft, &draft->finding.side[group], cell->member);
        note_times(draft, cell);
    }
}

static int check_alike(struct analyzer *analyzer, const struct payload *payload)
{
    struct payload_group groups[PAYLOAD_GROUPS_MAX];
    if (payload->key.kind != PAYLOAD_COLLECTIVE || payload->mixed ||
        !leaves_all_alike(payload->signature.api))
        return 0;
    int count = payload_groups(payload, HASH_RECV_AFTER, groups);
    if (count < 2)
        return 0;
    struct draft draft = draft_new("DC308", CERTAIN, payload->comm);
    struct text what = {0};
    char call[CALL_BYTES], name[16], ranks[RANKS_BYTES];
    add_sides(&draft, payload, groups, count);
    draft.finding.number = payload->number;
    draft.finding.has_number = true;
    text_add(&what, "after %s #%llu of %s ", signature_text(&payload->signature, call, sizeof call),
             (unsigned long long)payload->number, comm_name(payload->comm->id, name));
    for (int i = 0; i < count; i++) {
        const struct rankset *set = &draft.finding.side[i].ranks;
        bool one = rankset_count(set) == 1;
        text_add(&what, "%s%s %s %s", i ? (i + 1 < count ? ", " : " and ") : "",
                 one ? "rank" : "ranks", rankset_text(set, ranks, sizeof ranks),
                 i     ? "others"
                 : one ? "holds some bytes"
                       : "hold the same bytes");
    }
    draft_say(&draft, &what,
              "Look for what writes the buffer of the rank that differs while the operation runs "
              "or just after it, on another "
              "stream: make it wait for the operation.");
    return findings_report(analyzer, &draft, NULL);
}

static int check_unchanged(struct analyzer *analyzer, const struct payload *payload,
                           const struct payload_cell *cell)
{
    enum { BOTH = 1 << HASH_SEND_BEFORE | 1 << HASH_SEND_AFTER };
    if ((cell->told & BOTH) != BOTH || cell->hash[HASH_SEND_BEFORE] == cell->hash[HASH_SEND_AFTER])
        return 0;
    struct draft draft = draft_new("DC309", CERTAIN, payload->comm);
    struct text what = {0};
    char call[CALL_BYTES], name[16];
    struct finding_side *side =
        draft_side(&draft, signature_text(&payload->signature, call, sizeof call), &cell->site);
    draft_rank(&draft, side, cell->member);
    note_times(&draft, cell);
    draft.merges_ranks = true;
    draft.finding.number = payload->number;
    draft.finding.has_number = true;
    text_add(&what, "the send buffer of %s #%llu of %s changed on rank %d while the operation ran",
             call, (unsigned long long)payload->number, comm_name(payload->comm->id, name),
             member_shown_rank(cell->member));
    draft_say(&draft, &what,
              "Write to the buffer only after the operation: let the stream or the host that "
              "writes wait for an event recorded "
              "behind it.");
    return findings_report(analyzer, &draft, NULL);
}

static int payload(struct analyzer *analyzer, const struct payload *payload)
{
    if (payload->key.kind == PAYLOAD_NAMED)
        return 0;
    for (uint32_t i = 0; i < payload->cells; i++)
        if (check_unchanged(analyzer, payload, &payload->cell[i]))
            return -1;
    return check_alike(analyzer, payload);
}

const struct check_group checks_alike = {.name = "payloads alike", .payload = payload};
