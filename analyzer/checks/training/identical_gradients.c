/* identical_gradients.c: DC501: ranks give the same bytes to one reduction after the other: they
 * compute the same.
 *
 * Counted are reductions (sum, average, scaled sum) of at least ELEMENTS floats whose hashes all
 * ranks reported, that hold no single value throughout (zeros, a token), no NaN or Inf, and not
 * what one of the last few held. The classes of ranks that have been alike in all of them are kept;
 * when none of two ranks or more is left it begins again. */
#include <stdlib.h>
#include <string.h>

#include "analyzer/states.h"
#include "analyzer/findings.h"
#include "analyzer/loop/payloads.h"
#include "analyzer/model/comm.h"
#include "lib/trace/lacks.h"

enum { ELEMENTS = 256, OPERATIONS = 16, RECENT = 4 };

struct likeness {
    uint32_t *label; /* by rank: its class, named by the lowest rank in it */
    uint32_t ranks;
    uint32_t operations;     /* in which the classes were alike */
    uint64_t recent[RECENT]; /* hashes of the lowest class with two ranks or more */
    uint32_t next, finding;
    uint64_t first_ns;
};

static void likeness_end(void *state)
{
    free(((struct likeness *)state)->label);
}

static void start_again(struct likeness *likeness)
{
    memset(likeness->label, 0, likeness->ranks * sizeof *likeness->label);
    memset(likeness->recent, 0, sizeof likeness->recent);
    likeness->operations = 0;
}

static struct likeness *likeness_of(struct analyzer *analyzer, const struct payload *payload)
{
    struct likeness *likeness =
        state_get(analyzer, &check_identical_gradients, OWNER_COMM, &payload->comm->states);
    if (!likeness || likeness->label)
        return likeness;
    likeness->label = calloc(payload->cells, sizeof *likeness->label);
    if (!likeness->label) {
        analyzer->failed = true;
        return NULL;
    }
    likeness->ranks = payload->cells;
    return likeness;
}

static bool is_float(uint8_t datatype)
{
    return (datatype >= TYPE_FLOAT16 && datatype <= TYPE_BFLOAT16) || datatype == TYPE_FLOAT8E4M3 ||
           datatype == TYPE_FLOAT8E5M2;
}

/* Whether it says anything about what the ranks compute. */
static bool gradients_count(const struct payload *payload)
{
    const struct signature *s = &payload->signature;
    const struct kind *kind = kind_find(s->api);
    bool adds = s->redop == REDOP_SUM || s->redop == REDOP_AVG || s->redop == REDOP_PREMULSUM;
    uint64_t elements = kind && kind_share_is_all(kind->send) ? s->count * payload->cells
                                                              : s->count;
    if (payload->key.kind != PAYLOAD_COLLECTIVE || payload->mixed || payload->cells < 2 ||
        !kind_has(s->api, KIND_REDUCES) || !adds || !is_float(s->datatype) || elements < ELEMENTS)
        return false;
    for (uint32_t rank = 0; rank < payload->cells; rank++) {
        const struct payload_cell *cell = &payload->cell[rank];
        if (!(cell->reported & 1 << HASH_SEND_BEFORE) || cell->uniform & 1 << HASH_SEND_BEFORE ||
            cell->nans || cell->infs)
            return false;
    }
    return true;
}

/* Splits the classes by hash. Returns the lowest rank of a class of two or more, or -1. Quadratic
 * in the number of different classes only: a rank looks for the first one before it that is in its
 * class and sent the same. */
static int refine(struct likeness *likeness, const struct payload *payload)
{
    int shared = -1;
    uint32_t classes = 0, *first = malloc(likeness->ranks * sizeof *first),
             *label = malloc(likeness->ranks * sizeof *label);
    if (!first || !label) {
        free(first);
        free(label);
        return -2;
    }
    for (uint32_t rank = 0; rank < likeness->ranks; rank++) {
        uint32_t i = 0;
        while (i < classes && (likeness->label[first[i]] != likeness->label[rank] ||
                               payload->cell[first[i]].hash[HASH_SEND_BEFORE] !=
                                   payload->cell[rank].hash[HASH_SEND_BEFORE]))
            i++;
        if (i == classes)
            first[classes++] = rank;
        else if (shared < 0 || first[i] < (uint32_t)shared)
            shared = (int)first[i];
        label[rank] = first[i];
    }
    memcpy(likeness->label, label, likeness->ranks * sizeof *label);
    free(first);
    free(label);
    return shared;
}

static bool seen_lately(struct likeness *likeness, uint64_t hash)
{
    for (int i = 0; i < RECENT; i++)
        if (likeness->recent[i] == hash)
            return true;
    likeness->recent[likeness->next++ % RECENT] = hash;
    return false;
}

static void gradients_report(struct analyzer *analyzer, const struct payload *payload,
                             struct likeness *likeness)
{
    struct draft draft = draft_new(&check_identical_gradients, POSSIBLE, payload->comm);
    for (uint32_t first = 0; first < likeness->ranks && draft.finding.sides < FINDING_SIDES_MAX;
         first++) {
        struct finding_side *side = NULL;
        uint32_t last = first;
        for (uint32_t rank = first + 1; rank < likeness->ranks; rank++)
            last = likeness->label[rank] == first ? rank : last;
        if (likeness->label[first] != first || last == first)
            continue;
        side = draft_side_signature(&draft, &payload->signature, &payload->cell[first].site);
        for (uint32_t rank = first; rank <= last; rank++)
            if (likeness->label[rank] == first)
                draft_rank(&draft, side, payload->cell[rank].member);
    }
    draft.finding.first_ns = likeness->first_ns;
    draft.finding.last_ns = payload->cell[0].site.time_ns;
    draft.finding.number = payload->number;
    draft.finding.has_number = true;
    const struct values values = {.value = {likeness->operations}};
    draft_headline(&draft, HEADLINE_IDENTICAL_GRADIENTS, ADVICE_IDENTICAL_GRADIENTS, &values);
    findings_report(analyzer, &draft, &likeness->finding);
}

static void gradients_on_payload(struct analyzer *analyzer, const struct event *event)
{
    const struct payload *payload = event->payload;
    if (!gradients_count(payload))
        return;
    struct likeness *likeness = likeness_of(analyzer, payload);
    if (!likeness || likeness->ranks != payload->cells)
        return;
    int shared = refine(likeness, payload);
    if (shared == -2) {
        analyzer->failed = true;
        return;
    }
    if (shared < 0) {
        if (likeness->finding)
            findings_resolve(analyzer, likeness->finding, "what they give differs now");
        likeness->finding = 0;
        start_again(likeness);
        return;
    }
    if (seen_lately(likeness, payload->cell[shared].hash[HASH_SEND_BEFORE]))
        return;
    if (!likeness->operations++)
        likeness->first_ns = payload->cell[shared].site.time_ns;
    if (likeness->finding)
        findings_count(analyzer, likeness->finding, payload->cell[shared].site.time_ns);
    if (likeness->operations == OPERATIONS)
        gradients_report(analyzer, payload, likeness);
}

const struct check check_identical_gradients = {
    .code = DC501,
    .name = "identical-gradients",
    .severity = SEVERITY_WARNING,
    .scope = SCOPE_JOB,
    .weak_without = LOSS_HASHES,
    .needs = LACKS_PAYLOAD,
    .title = "ranks send bit-identical gradients",
    .text = "Two ranks or more passed exactly the same bytes to 16 reductions in a row. Ranks that "
            "see different samples never compute bit-identical gradients, so they seem to work on "
            "the same samples: the data is not divided between the ranks. Needs payload hashes "
            "(ddpcheck run --hash).\n\n"
            "There is no error: the job trains as if it had one rank, only slower, and learns less "
            "than it should. A forgotten sampler.set_epoch() shows only if there is no sharding "
            "either: with sharding the ranks' samples still differ.\n\n"
            "Only sums and averages of 256 floats or more count, without NaN and Inf, that are not "
            "one value throughout and not repeated; ranks are compared in the communicator of the "
            "reduction. It is always only possible: a job may reduce what is the same everywhere "
            "on purpose (a copy of the parameters that is averaged, replicated layers, a warm-up "
            "with one batch for all). When the ranks differ again, it is resolved.",
    .causes = CAUSES({"A DataLoader without a DistributedSampler, or one whose rank or number of "
                      "replicas is not this rank's.",
                      "print(next(iter(loader.sampler)), loader.sampler.rank) on every rank."},
                     {"An IterableDataset: a sampler has no effect on it, it must shard itself by "
                      "rank and by worker.",
                      "isinstance(loader.dataset, IterableDataset)."},
                     {"A framework that replaces samplers, or does not (Lightning's "
                      "use_distributed_sampler, Accelerate's prepare).",
                      "type(loader.sampler) at run time."},
                     {"One seed for all ranks in a random sampler of your own.",
                      "The first batch's hash is equal on all ranks."}),
    .source = "PyTorch 2.10 documentation, torch.utils.data.distributed.DistributedSampler and "
              "IterableDataset",
    .example = "sample = shuffled[step];                /* the same on every rank "
               "*/\ngradients_of(sample, gradients, stream);\nncclAllReduce(gradients, gradients, "
               "n, ncclFloat, ncclAvg, comm, stream);\n",
    .fix_c = "sample = shuffled[step * ranks + rank]; /* each rank its own part "
             "*/\ngradients_of(sample, gradients, stream);\nncclAllReduce(gradients, gradients, n, "
             "ncclFloat, ncclAvg, comm, stream);\n",
    .fix_torch = "sampler = DistributedSampler(dataset)          # rank and number of replicas "
                 "from the process group\nloader = DataLoader(dataset, batch_size=64, "
                 "sampler=sampler)\nfor epoch in range(epochs):\n    sampler.set_epoch(epoch)\n",
    .on = {[EVENT_PAYLOAD] = gradients_on_payload},
    .state_bytes = {[OWNER_COMM] = sizeof(struct likeness)},
    .state_end = {[OWNER_COMM] = likeness_end},
};
