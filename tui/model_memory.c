/* model_memory.c: the memory that the last operations of each process used: what is in flight
 * first, with what was found about it. */
#include <stdlib.h>
#include <string.h>

#include "lib/base/text.h"
#include "lib/trace/names.h"
#include "tui/findings.h"
#include "tui/members.h"
#include "tui/operations.h"
#include "tui/view.h"

enum { CELL_RANK, CELL_RANGE, CELL_BYTES, CELL_STATE, CELL_USE };
enum { EVENTS = 20000, USES_MAX = 4096, WORDS = 10, NARROW = 60 };

struct buffer_use {
    char label[COMM_LABEL_BYTES]; /* of comm */
    int process, rank;            /* rank: -1 not known */
    uint64_t begin, bytes, comm, number, seq;
    bool collective, in_flight,
        over; /* over: its process has ended, it will not be done any more */
    char text[OPERATION_TEXT];
};

/* What the operation puts into or takes from its larger buffer on its rank. */
static uint64_t bytes_of(const struct record *record, int nranks)
{
    struct op_extent extent = {0};
    op_extent_of(record, nranks, &extent);
    return extent.send_bytes > extent.recv_bytes ? extent.send_bytes : extent.recv_bytes;
}

static const struct member_state *member_of(const struct members *members, uint64_t comm, int rank,
                                            int *nranks)
{
    for (int i = 0; i < members->comms; i++) {
        const struct tui_comm *of = &members->comm[i];
        if (of->id != comm)
            continue;
        *nranks = of->nranks;
        return members_rank(of, rank);
    }
    return NULL;
}

static void take_use(struct buffer_use *use, int *uses, const struct members *members, int process,
                     struct record *record, uint64_t seq)
{
    uint64_t begin = record->op.recvbuff ? record->op.recvbuff : record->op.sendbuff;
    int nranks = 0;
    for (int i = 0; i < *uses; i++)
        if (use[i].process == process && use[i].begin == begin)
            return;
    if (*uses == USES_MAX || !begin)
        return;
    const struct member_state *member =
        member_of(members, record->op.comm, record->op.rank, &nranks);
    struct buffer_use *here = &use[(*uses)++];
    *here = (struct buffer_use){.process = process,
                                .begin = begin,
                                .comm = record->op.comm,
                                .number = record->op.number,
                                .seq = seq,
                                .bytes = bytes_of(record, nranks),
                                .collective = api_class_of(record->api) == CLASS_COLLECTIVE};
    if (member)
        strcpy(here->label, member->label);
    else
        comm_name(here->comm, here->label);
    here->rank = member ? member->shown_rank : record->op.rank;
    here->in_flight = here->collective && member && member->done <= record->op.number;
    here->over = member && member->ended;
    operation_text(record, here->text);
}

static int load_uses(struct source *source, const struct members *members, struct buffer_use *use,
                     int *uses, struct error *err)
{
    static const char sql[] =
        "SELECT process, api, w0, w1, w2, w3, w4, w5, w6, w7, w8, w9, seq FROM event "
        "WHERE seq > (SELECT max(seq) - ? FROM event) AND phase = 1 AND api IN (SELECT number FROM "
        "api WHERE class IN "
        "('collective', 'p2p')) ORDER BY seq DESC";
    const int64_t parameter[] = {EVENTS};
    struct cursor row = cursor_new(source->trace, sql, parameter, 1);
    int result;
    while ((result = cursor_next(&row, err)) == 1) {
        struct record record = {.api = (uint16_t)cursor_number(&row, 1), .phase = RECORD_ENTER};
        for (int i = 0; i < WORDS; i++)
            record.word[i] = (uint64_t)cursor_number(&row, 2 + i);
        take_use(use, uses, members, cursor_process(&row, 0), &record,
                 (uint64_t)cursor_number(&row, 12));
    }
    return result;
}

static int in_flight_first(const void *left, const void *right)
{
    const struct buffer_use *a = left, *b = right;
    if (a->in_flight != b->in_flight)
        return b->in_flight - a->in_flight;
    if (a->rank != b->rank)
        return a->rank - b->rank;
    if (a->process != b->process)
        return a->process - b->process;
    return a->begin < b->begin ? -1 : a->begin > b->begin;
}

static char *memory_text(uint64_t bytes, char *text, size_t size)
{
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
    double value = (double)bytes;
    int unit = 0;
    for (; value >= 1024 && unit < 4; unit++)
        value /= 1024;
    snprintf(text, size, unit ? "%.1f %s" : "%.0f %s", value, units[unit]);
    return text;
}

static int add_hazards(struct source *source, struct rows *rows, struct error *err)
{
    struct findings findings;
    char ranks[128];
    if (tui_findings_load(&findings, source, err) < 0)
        return -1;
    for (int i = 0; i < findings.faults.count; i++) {
        const struct fault_group *fault = &findings.faults.fault[i];
        const struct finding *finding = fault->finding;
        enum family family = code_family(finding->code);
        if (family != FAMILY_HAZARD && family != FAMILY_DEVICE)
            continue;
        struct row *row = rows_add(rows, ~(uint64_t)finding->id, 0);
        row_set(row, CELL_RANK, finding_tone(finding), "%s",
                finding_ranks(fault, ranks, sizeof ranks));
        row_set(row, CELL_RANGE, finding_tone(finding), "%s", code_name(finding->code));
        row_set(row, CELL_STATE, finding_tone(finding), "hazard");
        row_set(row, CELL_USE, finding_tone(finding), "%s", finding->what);
        if (row)
            row->target =
                (struct target){.view = VIEW_FINDING, .finding = finding->id, .process = -1};
    }
    tui_findings_free(&findings);
    return 0;
}

static void add_use(const struct buffer_use *use, bool narrow, struct rows *rows)
{
    char bytes[32];
    struct row *row = rows_add(rows, use->begin ^ (uint64_t)use->process << 56, 0);
    enum tone tone = use->in_flight ? TONE_STRONG : TONE_PLAIN;
    row_set(row, CELL_RANK, tone, "%d", use->rank);
    if (narrow)
        row_set(row, CELL_RANGE, tone, "0x%llx", (unsigned long long)use->begin);
    else
        row_set(row, CELL_RANGE, tone, "0x%llx-0x%llx", (unsigned long long)use->begin,
                (unsigned long long)(use->begin + use->bytes));
    row_set(row, CELL_BYTES, tone, "%s", memory_text(use->bytes, bytes, sizeof bytes));
    row_set(row, CELL_STATE, use->in_flight ? TONE_WARNING : TONE_FAINT, "%s",
            !use->in_flight ? "done"
            : use->over     ? "never done"
                            : "in flight");
    if (use->collective)
        row_set(row, CELL_USE, tone, "#%llu of %s: %s", (unsigned long long)use->number, use->label,
                use->text);
    else
        row_set(row, CELL_USE, tone, "%s of %s", use->text, use->label);
    if (row && use->collective)
        row->target = (struct target){
            .view = VIEW_SEQUENCE, .comm = use->comm, .number = use->number, .process = -1};
}

static int model_memory(struct source *source, struct query *query, struct rows *rows,
                        struct error *err)
{
    struct members members;
    struct buffer_use *use = calloc(USES_MAX, sizeof *use);
    int uses = 0;
    if (!use)
        return error_memory(err, "can't show the memory");
    if (members_load(&members, source, err) < 0) {
        free(use);
        return -1;
    }
    rows->empty = "No operation used memory so far.";
    rows_column(rows, "rank", 12, true);
    rows_column(rows, "memory", 0, false);
    rows_column(rows, "bytes", 0, true);
    rows_column_is_minor(rows);
    rows_column(rows, "state", 0, false);
    rows_column_is_minor(rows);
    rows_column(rows, "used by", 0, false);
    int result = add_hazards(source, rows, err);
    if (result == 0)
        result = load_uses(source, &members, use, &uses, err);
    qsort(use, (size_t)uses, sizeof *use, in_flight_first);
    for (int i = 0; result == 0 && i < uses; i++)
        add_use(&use[i], query->width < NARROW, rows);
    members_free(&members);
    free(use);
    return result;
}

const struct view view_memory = {
    .name = "Memory",
    .about = "Memory that operations use, and what was found about it.",
    .load = model_memory,
};
