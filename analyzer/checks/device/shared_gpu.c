/* shared_gpu.c: DC405: two ranks of a communicator drive one GPU. */
#include "analyzer/match/one_call.h"
#include "analyzer/model/comm.h"
#include "analyzer/model/process.h"
#include "lib/trace/lacks.h"
#include "lib/trace/names.h"

/* ncclCommInitAll with a device that is listed twice. */
static void check_list(struct analyzer *analyzer, struct process *process,
                       const struct record *record)
{
    struct one_call one = {
        .check = &check_shared_gpu,
        .certainty = CERTAIN,
        .comm = comm_find(analyzer, record->comm.comm),
        .process = process,
        .record = record,
        .site = {.process = process,
                 .stack = record->stack,
                 .stack_is_address = record->flags & RECORD_FLAG_ADDRESS,
                 .time_ns = record_realtime(process, record)},
    };
    const struct values values = {.value = {record->comm.device}};
    one_call_headline(analyzer, &one, HEADLINE_GPU_LISTED_TWICE, ADVICE_GPU_LISTED_TWICE, &values);
}

/* NCCL made the communicator all the same: NCCL_MULTI_RANK_GPU_ENABLE allows it, or NCCL_HOSTID
 * makes each rank a host. */
static void accept_gpu(struct analyzer *analyzer, const struct comm *comm)
{
    uint32_t finding = findings_find(analyzer, DC405, comm->id, 0);
    bool all = comm->nranks > 0 && comm->members >= (uint32_t)comm->nranks;
    for (uint32_t i = 0; i < comm->members && all; i++)
        all = comm->member[i]->exists;
    if (finding && all)
        findings_resolve(
            analyzer, finding,
            "NCCL created the communicator: NCCL_MULTI_RANK_GPU_ENABLE or NCCL_HOSTID is set");
}

static void check_gpu(struct analyzer *analyzer, struct process *process,
                      const struct record *record, struct member *member)
{
    const struct comm *comm = member->comm;
    const struct member *other = NULL;
    for (uint32_t i = 0; i < comm->members && member->gpu && !other; i++)
        if (comm->member[i] != member && comm->member[i]->gpu == member->gpu &&
            !comm->member[i]->destroyed)
            other = comm->member[i];
    if (!other)
        return;
    struct draft draft = draft_new(&check_shared_gpu, CERTAIN, comm);
    struct site site = {.process = process,
                        .stack = record->stack,
                        .stack_is_address = record->flags & RECORD_FLAG_ADDRESS};
    struct finding_side *side = draft_side(&draft, &(struct act){.did = DID_SHARES_GPU}, &site);
    draft_rank(&draft, side, other);
    draft_rank(&draft, side, member);
    draft_cover_comm(&draft, comm);
    draft.merges_ranks = true;
    draft.finding.first_ns = draft.finding.last_ns = record_realtime(process, record);
    const struct values values = {
        .name = {process->info.host},
        .value = {member_shown_rank(other), member_shown_rank(member), other->device,
                  member->device},
    };
    draft_headline(&draft, HEADLINE_SHARED_GPU, ADVICE_SHARED_GPU, &values);
    findings_report(analyzer, &draft, NULL);
}

static void gpu_on_setup(struct analyzer *analyzer, const struct event *event)
{
    const struct record *record = event->record;
    struct member *member = event->member;
    if (record->phase == RECORD_ENTER && record->api == API_ncclCommInitAll &&
        record->comm.flags & RECORD_COMM_DUPLICATE) {
        check_list(analyzer, event->process, record);
    } else if (member && record->phase == RECORD_POINT) {
        accept_gpu(analyzer, member->comm);
    } else if (member && record->api != API_ncclCommShrink && member->process == event->process) {
        check_gpu(analyzer, event->process, record, member);
    }
}

const struct check check_shared_gpu = {
    .code = DC405,
    .name = "shared-gpu",
    .severity = SEVERITY_ERROR,
    .scope = SCOPE_JOB,
    .weak_without = LOSS_CALLS,
    .needs = LACKS_DEVICE,
    .explains = CODES(CODES_HANGS, DC111),
    .title = "two ranks of one communicator use the same GPU",
    .text =
        "Two members of a communicator were created on one GPU. NCCL refuses it, or "
        "hangs in old versions, unless it was allowed (By version, below).\n\n"
        "GPUs are compared by their UUID, otherwise by host and PCI address: two MIG instances "
        "are two devices. The finding is withdrawn if NCCL creates the communicator anyway: "
        "NCCL_MULTI_RANK_GPU_ENABLE=1 allows several ranks on one GPU, and an NCCL_HOSTID of its "
        "own makes each rank a host.",
    .causes =
        CAUSES({"torch.cuda.set_device(local_rank) is missing or comes after the first collective, "
                "so that all ranks use device 0.",
                "All sides show device 0; pass device_id to init_process_group, because barrier() "
                "otherwise guesses the device."},
               {"CUDA_VISIBLE_DEVICES set per rank as well as a local rank: each process sees one "
                "device, and index 1 does not exist or belongs to another process.",
                "The environment of two ranks ('ddpcheck doctor' in each)."},
               {"More processes than GPUs on the host.", "nproc_per_node against nvidia-smi -L."}),
    .source = "NCCL 2.29 user guide, \"Creating a Communicator\": one device for each rank",
    .example =
        "ncclCommInitRank(&comm, nranks, id, rank);           /* every rank on device 0 */\n",
    .fix_c = "cudaSetDevice(local_rank);\nncclCommInitRank(&comm, nranks, id, rank);\n",
    .fix_torch = "torch.cuda.set_device(int(os.environ[\"LOCAL_RANK\"]))\n",
    .on = {[EVENT_SETUP] = gpu_on_setup},
};
