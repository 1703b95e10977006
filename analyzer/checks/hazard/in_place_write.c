/* in_place_write.c: DC307: a tensor that was saved for backward was modified in place before
 * backward used it.
 *
 * The program says so itself, by marks (docs/nvtx.md): the version of a tensor when it is saved,
 * after each write in place, and when backward reads it. Autograd frameworks count versions for
 * this very comparison; PyTorch makes it only for tensors without saved-tensor hooks, and not for
 * writes through .data or in custom kernels.
 *
 * The tensors kept here are for the places, and for programs that do not say at use what was saved.
 */
#include "analyzer/states.h"
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "analyzer/findings.h"
#include "analyzer/model/process.h"
#include "lib/trace/names.h"
#include "lib/trace/lacks.h"

enum { TENSORS_MAX = 65536, NAME_BYTES = 160 };

struct versioned_tensor {
    uint64_t id;
    uint64_t version, name; /* when it was saved last */
    bool is_saved, is_modified;
    uint64_t written, writer; /* its version after the last write in place, and who wrote */
    struct site saved_at, modified_at;
    UT_hash_handle hh;
};

struct versions {
    struct versioned_tensor *tensors; /* table; the oldest go */
};

static void versions_end(void *state)
{
    struct versions *versions = state;
    struct versioned_tensor *tensor, *next;
    HASH_ITER(hh, versions->tensors, tensor, next) {
        HASH_DEL(versions->tensors, tensor);
        free(tensor);
    }
}

static struct versioned_tensor *tensor_find(const struct versions *versions, uint64_t id)
{
    struct versioned_tensor *tensor = NULL;
    TABLE_FIND(versions->tensors, &id, tensor);
    return tensor;
}

static struct versioned_tensor *tensor_get(struct versions *versions, uint64_t id)
{
    struct versioned_tensor *tensor = tensor_find(versions, id);
    if (tensor)
        return tensor;
    if (HASH_COUNT(versions->tensors) >= TENSORS_MAX) {
        /* uthash iterates in order of addition. */
        struct versioned_tensor *oldest = versions->tensors;
        HASH_DEL(versions->tensors, oldest);
        free(oldest);
    }
    tensor = calloc(1, sizeof *tensor);
    if (!tensor)
        return NULL;
    tensor->id = id;
    TABLE_ADD(versions->tensors, id, tensor);
    if (TABLE_ADDED(tensor))
        return tensor;
    free(tensor);
    return NULL;
}

static void save(struct analyzer *analyzer, struct versions *versions, const struct event *event)
{
    const struct record *record = event->record;
    struct versioned_tensor *tensor = tensor_get(versions, record->tensor.tensor);
    if (!tensor) {
        analyzer->failed = true;
        return;
    }
    tensor->is_saved = record->tensor.version != RECORD_NO_VERSION;
    tensor->version = record->tensor.version;
    tensor->name = record->tensor.name;
    tensor->saved_at = event->site;
    if (tensor->is_modified && tensor->written != tensor->version)
        tensor->is_modified = false; /* the number now names another tensor */
}

static void modify(const struct versions *versions, const struct event *event)
{
    const struct record *record = event->record;
    struct versioned_tensor *tensor = tensor_find(versions, record->tensor.tensor);
    if (!tensor)
        return; /* nobody saved it */
    tensor->is_modified = true;
    tensor->written = record->tensor.version;
    tensor->writer = record->tensor.name;
    tensor->modified_at = event->site;
}

/* What was saved and what is there now, as far as the mark or the marks before it say. */
static bool versions_of(const struct process *process, const struct record *record,
                        const struct versioned_tensor *tensor, uint64_t *saved, uint64_t *now)
{
    bool complete = !process->lost.bulk; /* no mark is missing */
    *saved = record->tensor.saved;
    *now = record->tensor.version;
    if (*saved == RECORD_NO_VERSION && complete && tensor && tensor->is_saved)
        *saved = tensor->version;
    if (*now == RECORD_NO_VERSION && complete && tensor && tensor->is_modified)
        *now = tensor->written;
    return *saved != RECORD_NO_VERSION && *now != RECORD_NO_VERSION;
}

/* Of a process with several ranks: the one whose operations this thread issues, else whose device
 * it works on. */
static int version_rank(const struct thread *thread, const struct record *record)
{
    for (const struct member *member = thread->process->members; member;
         member = member->process_next)
        for (uint32_t i = 0; i < member->issuers; i++)
            if (member->issuer[i] == thread)
                return member_shown_rank(member);
    for (const struct member *member = thread->process->members;
         member && thread->process->several_ranks; member = member->process_next)
        if (member->device == record->device)
            return member_shown_rank(member);
    int rank = process_shown_rank(thread->process);
    return rank >= 0 ? rank : thread->process->index;
}

static void describe(const struct process *process, uint64_t name, uint64_t other, uint64_t id,
                     char *text, size_t bytes)
{
    const char *known = process_string(process, name);
    if (!*known)
        known = process_string(process, other);
    if (*known)
        snprintf(text, bytes, "%s", known);
    else
        snprintf(text, bytes, "tensor 0x%" PRIx64, id);
}

static void add_places(struct draft *draft, struct finding_side *side,
                       const struct process *process, const struct versioned_tensor *tensor)
{
    if (!tensor)
        return;
    const struct act modified = {.did = DID_MODIFIED,
                                 .name = process_string(process, tensor->writer),
                                 .phase = site_phase(&tensor->modified_at)};
    const struct act saved = {.did = DID_SAVED, .phase = site_phase(&tensor->saved_at)};
    if (tensor->is_modified)
        draft_side_now(draft, side, &modified, &tensor->modified_at);
    else if (tensor->is_saved)
        draft_side_now(draft, side, &saved, &tensor->saved_at);
}

static void use(struct analyzer *analyzer, const struct versions *versions,
                const struct event *event)
{
    struct process *process = event->process;
    const struct record *record = event->record;
    const struct versioned_tensor *tensor = tensor_find(versions, record->tensor.tensor);
    uint64_t saved, now;
    if (!versions_of(process, record, tensor, &saved, &now) || saved == now)
        return;
    char name[NAME_BYTES];
    describe(process, record->tensor.name, tensor ? tensor->name : 0, record->tensor.tensor, name,
             sizeof name);
    const struct act reads = {.did = DID_READS_SAVED, .name = name};
    struct draft draft = draft_new(&check_in_place_write, CERTAIN, NULL);
    struct finding_side *side = draft_side(&draft, &reads, &event->site);
    if (rankset_add(&side->ranks, version_rank(event->thread, record)))
        draft.failed = true;
    draft_cover(&draft, process);
    draft.merges_ranks = true;
    draft.finding.first_ns = draft.finding.last_ns = event->site.time_ns;
    add_places(&draft, side, process, tensor);
    const struct values values = {
        .name = {name},
        .value = {(int64_t)saved, (int64_t)now},
        .flag = {tensor && tensor->is_modified},
    };
    draft_headline(&draft, HEADLINE_IN_PLACE_WRITE, ADVICE_IN_PLACE_WRITE, &values);
    findings_report(analyzer, &draft, NULL);
}

static void versions_on_range(struct analyzer *analyzer, const struct event *event)
{
    struct thread *thread = event->thread;
    const struct record *record = event->record;
    if (record->api != API_ddpcheck_save && record->api != API_ddpcheck_modify &&
        record->api != API_ddpcheck_use)
        return;
    struct versions *versions =
        state_get(analyzer, &check_in_place_write, OWNER_PROCESS, &thread->process->states);
    if (!versions)
        return;
    switch (record->api) {
    case API_ddpcheck_save:
        save(analyzer, versions, event);
        return;
    case API_ddpcheck_modify:
        modify(versions, event);
        return;
    case API_ddpcheck_use:
        use(analyzer, versions, event);
        return;
    default:
        return;
    }
}

const struct check check_in_place_write = {
    .code = DC307,
    .name = "in-place-write",
    .severity = SEVERITY_ERROR,
    .scope = SCOPE_PROCESS,
    .weak_without = LOSS_CALLS | LOSS_CUDA,
    .needs = LACKS_MARKS,
    /* autograd's own check ends the rank */
    .explains = CODES(CODES_HANGS),
    .title = "a tensor saved for backward was modified in place before backward used it",
    .text =
        "Backward needs some results of forward unchanged. One of them was written in place after "
        "it was saved and before backward read it, so the gradient computed from it is wrong.\n\n"
        "In PyTorch sigmoid, tanh, softmax and exp save their result, and convolution, linear "
        "layers and batch normalization their input: an in-place operation on what batch "
        "normalization returns is harmless, on what it was given is not.\n\n"
        "It shows as autograd's own error about a modified variable, on the ranks that get so far. "
        "Or, if the framework does not check (saved-tensor hooks, writes through .data or by "
        "custom kernels, a check that is turned off), it shows as training that learns less, "
        "without any error.\n\n"
        "It is found only if the program announces which versions it saves and reads, by NVTX "
        "marks: ddptrain does, and docs/nvtx.md shows how to do it in PyTorch. The finding is as "
        "correct as those marks. A program that does not name the saved version at the use is not "
        "checked after records were lost (DC901).",
    .causes =
        CAUSES({"An in-place activation on what the layer before saved: ReLU(inplace=True) behind "
                "sigmoid, tanh, softmax or exp, or on the input of a convolution, a linear layer "
                "or batch normalization.",
                "The write's line is an in-place call (a name that ends in _, or inplace=True)."},
               {"A write through .data, a custom kernel or torch.no_grad() to an activation or a "
                "parameter between forward and backward.",
                "The write's line is no autograd operation: PyTorch's own check does not see it."},
               {"An optimizer step between forward and backward: two models that share parameters, "
                "a GAN whose one half steps before the other's backward.",
                "The write is the optimizer's, and the reader is another model's backward."}),
    .source = "PyTorch 2.10 documentation, \"Autograd mechanics\", In-place correctness checks",
    .example =
        "y = sigmoid(x);                          /* saves y, its result, for its backward */\n"
        "leaky_relu_in_place(y, 0.2f);            /* destroys it */\n"
        "backward(loss);\n",
    .fix_c = "z = leaky_relu(y, 0.2f);                 /* out of place, or in place on a clone of "
             "y */\n",
    .fix_torch = "x = torch.nn.functional.leaky_relu(x, 0.2)     # not in place on what a layer "
                 "saved: its input or its result\n",
    .on = {[EVENT_RANGE] = versions_on_range},
    .state_bytes = {[OWNER_PROCESS] = sizeof(struct versions)},
    .state_end = {[OWNER_PROCESS] = versions_end},
};
