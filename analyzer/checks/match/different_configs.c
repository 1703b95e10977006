/* different_configs.c: DC114, and what else of one collective NCCL does not compare between ranks:
 * where in a window its buffers are (DC113), and whether a graph launches it (DC115).
 *
 * Each call is compared with that of the first member that made it. */
#include <stdlib.h>

#include "analyzer/checks/match/member_windows.h"
#include "analyzer/findings.h"
#include "analyzer/match/window.h"
#include "analyzer/model/comm.h"
#include "analyzer/model/process.h"
#include "analyzer/states.h"
#include "lib/trace/lacks.h"
#include "lib/trace/names.h"

/* Operations that are remembered of a communicator: a member that is further behind is not
 * compared. */
enum { CALLS_KEPT = 64 };

/* Where a collective's buffers are in windows. */
enum { BUFFER_SEND, BUFFER_RECV, BUFFERS };

struct kept_call {
    bool used, is_replay;
    uint64_t number, config;
    struct window_use use[BUFFERS];
    struct signature signature;
    const struct member *member;
    struct site site;
};

/* What may differ, each reported once for a communicator. */
enum difference { DIFFERENT_CONFIG, DIFFERENT_WINDOW, DIFFERENT_GRAPH, DIFFERENCES };

/* Of a communicator; made at its first collective. A graph on some ranks only is reported once the
 * next operation of the two shows that it is no call too many: that differs the other way round. */
struct kept_calls {
    struct kept_call *ring;
    uint32_t finding[DIFFERENCES];
    struct kept_call replayed, single; /* held back; unused if there are none */
    bool is_shifted;
};

static void kept_calls_end(void *state)
{
    free(((struct kept_calls *)state)->ring);
}

/* The buffers that NCCL reaches on other ranks by its own offset: those of all ranks, and of an
 * AllReduce both. The rank's own part may lie elsewhere on each, as in place. */
static bool is_window_compared(const struct operation *operation, int buffer)
{
    const struct kind *kind = kind_find(operation->record.api);
    uint8_t share = buffer == BUFFER_SEND ? kind->send : kind->recv;
    return operation->record.api == API_ncclAllReduce ||
           (!(kind->flags & KIND_ROOTED) && kind_share_is_all((enum kind_share)share) &&
            operation->record.api != API_ncclAlltoAll);
}

static struct kept_call call_to_keep(const struct analyzer *analyzer,
                                     const struct operation *operation)
{
    const struct record *record = &operation->record;
    const uint64_t buffer[BUFFERS] = {record->op.sendbuff, record->op.recvbuff};
    struct kept_call call = {
        .used = true,
        .is_replay = record->flags & RECORD_FLAG_REPLAY,
        .number = record->op.number,
        .config = operation->config,
        .signature = operation->signature,
        .member = operation->member,
        .site = operation->site,
    };
    for (int i = 0; i < BUFFERS; i++)
        if (is_window_compared(operation, i) &&
            !member_window_use(analyzer, operation->member, buffer[i], &call.use[i]))
            call.use[i].is_inside = false;
    return call;
}

/* Both are in windows. Who is in none may use another algorithm, which NCCL chooses by the same
 * facts on all ranks, so that is left alone. */
static bool windows_differ(const struct kept_call *a, const struct kept_call *b, int *buffer)
{
    for (*buffer = 0; *buffer < BUFFERS; ++*buffer) {
        const struct window_use *one = &a->use[*buffer], *other = &b->use[*buffer];
        if (one->is_inside && other->is_inside &&
            (one->number != other->number || one->offset != other->offset))
            return true;
    }
    return false;
}

static struct draft difference_draft(const struct check *check, enum certainty certainty,
                                     const struct kept_call *first, const struct kept_call *second)
{
    struct draft draft = draft_new(check, certainty, first->member->comm);
    const struct kept_call *side[] = {first, second};
    draft.finding.number = first->number;
    draft.finding.has_number = true;
    draft.finding.first_ns = draft.finding.last_ns = second->site.time_ns;
    draft_cover_comm(&draft, first->member->comm);
    for (int i = 0; i < 2; i++)
        draft_rank(&draft, draft_side_signature(&draft, &side[i]->signature, &side[i]->site),
                   side[i]->member);
    return draft;
}

static const char *config_words(const struct kept_call *call)
{
    const char *text = process_string(call->member->process, call->config);
    return call->config && text ? text : "none";
}

static void report_config(struct analyzer *analyzer, const struct kept_call *first,
                          const struct kept_call *second, uint32_t *id)
{
    struct draft draft = difference_draft(&check_different_configs,
                                          first->config && second->config ? CERTAIN : POSSIBLE,
                                          first, second);
    const struct values values = {.call = {call_of_api(first->signature.api)},
                                  .name = {config_words(first), config_words(second)}};
    draft_headline(&draft, HEADLINE_DIFFERENT_CONFIGS, ADVICE_SAME_CONFIG, &values);
    findings_report(analyzer, &draft, id);
}

static void report_windows(struct analyzer *analyzer, const struct kept_call *first,
                           const struct kept_call *second, int buffer, uint32_t *id)
{
    const struct window_use *one = &first->use[buffer], *other = &second->use[buffer];
    struct draft draft = difference_draft(&check_one_sided, CERTAIN, first, second);
    const struct values values = {
        .call = {call_of_api(first->signature.api)},
        .value = {(int64_t)one->offset, one->number, (int64_t)other->offset, other->number},
    };
    draft_headline(&draft, HEADLINE_WINDOW_OFFSETS,
                   one->number == other->number ? ADVICE_SAME_OFFSET : ADVICE_SAME_WINDOW_ORDER,
                   &values);
    findings_report(analyzer, &draft, id);
}

static void report_graph(struct analyzer *analyzer, struct kept_calls *calls)
{
    struct draft draft =
        difference_draft(&check_different_graphs, CERTAIN, &calls->replayed, &calls->single);
    const struct values values = {.call = {call_of_api(calls->single.signature.api)}};
    draft_headline(&draft, HEADLINE_CAPTURED_BY_SOME, ADVICE_CAPTURED_BY_SOME, &values);
    findings_report(analyzer, &draft, &calls->finding[DIFFERENT_GRAPH]);
    calls->replayed.used = false;
}

static void compare_graphs(struct analyzer *analyzer, struct kept_calls *calls,
                           const struct kept_call *first, const struct kept_call *second)
{
    const struct kept_call *replayed = first->is_replay ? first : second,
                           *single = first->is_replay ? second : first;
    bool differs = first->is_replay != second->is_replay;
    if (calls->is_shifted || calls->finding[DIFFERENT_GRAPH])
        return;
    if (!calls->replayed.used && differs) {
        calls->replayed = *replayed;
        calls->single = *single;
        return;
    }
    bool is_pair =
        (replayed->member == calls->replayed.member && single->member == calls->single.member) ||
        (replayed->member == calls->single.member && single->member == calls->replayed.member);
    if (!calls->replayed.used || !is_pair)
        return;
    calls->is_shifted = differs && calls->replayed.member != replayed->member;
    if (calls->is_shifted)
        calls->replayed.used = false;
    else
        report_graph(analyzer, calls);
}

static void compare_configs(struct analyzer *analyzer, struct kept_calls *calls,
                            const struct kept_call *first, const struct kept_call *second)
{
    uint32_t *id = calls->finding;
    int buffer;
    if (first->config != second->config && !first->is_replay && !second->is_replay) {
        if (!id[DIFFERENT_CONFIG])
            report_config(analyzer, first, second, &id[DIFFERENT_CONFIG]);
        else
            findings_count(analyzer, id[DIFFERENT_CONFIG], second->site.time_ns);
    }
    if (windows_differ(first, second, &buffer) && !id[DIFFERENT_WINDOW])
        report_windows(analyzer, first, second, buffer, &id[DIFFERENT_WINDOW]);
    compare_graphs(analyzer, calls, first, second);
}

/* What was held back until the next operation, which did not come. Other errors say more. */
static void configs_on_finish(struct analyzer *analyzer, const struct event *event)
{
    (void)event;
    for (uint32_t i = 0; i < analyzer->reported_count; i++)
        if (analyzer->reported[i].finding.state == FINDING_OPEN &&
            analyzer->reported[i].finding.severity == SEVERITY_ERROR)
            return;
    for (struct comm *comm = analyzer->first_comm; comm; comm = comm->next) {
        struct kept_calls *calls =
            state_find(analyzer, &check_different_configs, OWNER_COMM, comm->states);
        if (calls && calls->replayed.used)
            report_graph(analyzer, calls);
    }
}

static bool can_be_compared(const struct operation *operation)
{
    const struct record *record = &operation->record;
    return api_class_of(record->api) == CLASS_COLLECTIVE &&
           !(record->flags & RECORD_FLAG_CAPTURE) && operation->member->comm->nranks != 1 &&
           !operation->process->lost.control && operation->match->result == WINDOW_MATCHES &&
           !operation->process->info.lacks;
}

static void configs_on_operation(struct analyzer *analyzer, const struct event *event)
{
    const struct operation *operation = event->operation;
    if (!can_be_compared(operation))
        return;
    struct kept_calls *calls =
        state_get(analyzer, &check_different_configs, OWNER_COMM, &operation->member->comm->states);
    if (calls && !calls->ring)
        calls->ring = calloc(CALLS_KEPT, sizeof *calls->ring);
    if (!calls || !calls->ring) {
        analyzer->failed = true;
        return;
    }
    const struct kept_call mine = call_to_keep(analyzer, operation);
    struct kept_call *first = &calls->ring[mine.number % CALLS_KEPT];
    if (!first->used || first->number < mine.number)
        *first = mine;
    else if (first->number == mine.number && first->member != mine.member)
        compare_configs(analyzer, calls, first, &mine);
}

const struct check check_different_configs = {
    .code = DC114,
    .name = "different-configs",
    .severity = SEVERITY_ERROR,
    .scope = SCOPE_JOB,
    .off_without = LOSS_CALLS,
    .needs = LACKS_CALLS,
    .explains = CODES(CODES_HANGS),
    .title = "the configuration of one collective differs between ranks",
    .text =
        "The collectives that take an ncclCollConfig_t (ncclAllReduceConfig and the others, from "
        "NCCL 2.31 on) need the same configuration on every rank: the numbers of CTAs, the "
        "algorithms, the CTA policy. NCCL validates it only locally.\n\n"
        "It shows as a hang inside NCCL, or as wrong values, because ranks choose different "
        "algorithms or numbers of channels. The profiler's tag, the launch completion event and "
        "extensions of vendors may differ, and are not compared.\n\n"
        "It is possible only, if one rank gives no configuration: what its communicator has may "
        "be the same. A collective that is launched by a graph is not compared, nor one of a rank "
        "that is more than 64 collectives behind.",
    .causes = CAUSES({"A configuration that is tuned on each rank, by what it measured.",
                      "The values are near to each other: tune on one rank, then broadcast."},
                     {"Ranks that run different versions of a launch script.",
                      "Variables of the environment differ as well (DC801)."}),
    .source = "NCCL 2.32 nccl.h, ncclCollConfig_t: \"The same configuration must be set on every "
              "rank\", which NCCL \"validates only locally\"",
    .example = "ncclCollConfig_t config = NCCL_COLLCONFIG_INITIALIZER;\n"
               "config.maxCTAs = rank ? 8 : 16;      /* differs */\n"
               "ncclAllReduceConfig(x, x, n, ncclFloat, ncclSum, comm, stream, &config);\n",
    .fix_c = "config.maxCTAs = 8;      /* one value for all ranks */\n"
             "ncclAllReduceConfig(x, x, n, ncclFloat, ncclSum, comm, stream, &config);\n",
    .fix_torch = "options = dist.ProcessGroupNCCL.Options()\n"
                 "options.config.max_ctas = 8    # one value for all ranks\n",
    .on = {[EVENT_OPERATION] = configs_on_operation, [EVENT_FINISH] = configs_on_finish},
    .state_bytes = {[OWNER_COMM] = sizeof(struct kept_calls)},
    .state_end = {[OWNER_COMM] = kept_calls_end},
};
