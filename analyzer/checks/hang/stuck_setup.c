/* stuck_setup.c: DC209: the check for ranks that never finish creating or destroying a
 * communicator; hang_report.c finds those who wait, and the rest is here. */
#include "analyzer/checks/hang/ended_setup.h"
#include "analyzer/match/one_call.h"
#include "analyzer/model/comm.h"
#include "analyzer/model/graphs.h"
#include "analyzer/model/process.h"
#include "lib/trace/lacks.h"
#include "lib/trace/names.h"

/* "ncclCommDestroy ... waits": until no graph holds operations of the communicator any more. */
static void check_graphs(struct analyzer *analyzer, const struct event *event)
{
    const struct record *record = event->record;
    if (record->api != API_ncclCommDestroy || record->flags & RECORD_FLAG_GONE)
        return;
    const struct member *member = member_find(analyzer, record->comm.comm, record->comm.rank);
    if (!member || !graphs_hold(member))
        return;
    const struct act act = {.did = DID_CALLED_FUNCTION, .call = call_of_api(record->api)};
    struct one_call one = {
        .check = &check_stuck_setup,
        .certainty = HASH_COUNT(event->process->threads) == 1 ? CERTAIN : POSSIBLE,
        .comm = member->comm,
        .member = member,
        .process = event->process,
        .record = record,
        .act = &act,
        .site = thread_site(event->thread, record),
    };
    struct text what = {0};
    char name[COMM_TITLE_BYTES];
    text_add(&what,
             "rank %d destroys %s while a CUDA graph that holds its operations exists: NCCL waits "
             "there until the graph is destroyed",
             one_call_rank(&one), comm_title_of(analyzer, record->comm.comm, name));
    one_call_report(analyzer, &one, &what,
                    "Call cudaGraphExecDestroy and cudaGraphDestroy before ncclCommDestroy.");
}

const struct check check_stuck_setup = {
    .code = DC209,
    .name = "stuck-setup",
    .family = FAMILY_HANG,
    .severity = SEVERITY_ERROR,
    .scope = SCOPE_JOB,
    .needs = LACKS_SETUP,
    .explains = CODES(DC201, DC205, DC206),
    .title = "stuck while a communicator is created or destroyed",
    .text = "Ranks wait in ncclCommInitRank (or ncclCommFinalize, ncclCommDestroy) for ranks that "
            "have not called it.\n\n"
            "It shows as a hang at the start or the end. It is certain if a missing rank has "
            "terminated or is stuck elsewhere, and possible after a long wait (--hang-after): a "
            "rank without a trace (DC902) may only not have been recorded. A rank of this host "
            "that runs and has made no NCCL call yet is named with where it is, if its Python "
            "frames can be read. A communicator of only some of the job's ranks has its own rank "
            "numbers, and no record says which process a missing one is. Where one process waits "
            "and no launcher says that there are others, its other threads may be the missing "
            "ranks: the report shows where one of them is. If the ranks missing in one "
            "communicator wait in the creation of another, one finding shows all of these.\n\n"
            "A rank that ends before its first call of NCCL leaves no record. If its launcher then "
            "terminates the others, which wait for it in the set-up, that is reported as possible: "
            "the job may have been terminated from outside while that rank was still on its "
            "way.\n\n"
            "A communicator that is destroyed while a CUDA graph holds its operations is reported "
            "as well: NCCL waits until the graph is destroyed, which another thread may do.",
    .causes = CAUSES(
        {"A rank that failed before it joined the others.",
         "Its own output: the last traceback.",
         {.failed = true}},
        {"Fewer processes than WORLD_SIZE says.",
         "The finding names the ranks that never called; look for their processes and logs.",
         {.did = SIGN_DID(DID_NO_TRACE, DID_NOT_SEEN)}},
        {"torch.distributed.new_group called by its members only, or in a different order on some "
         "ranks.",
         "The ranks already share a communicator, and those that have not arrived wait elsewhere: "
         "call new_group on all ranks, in the same order.",
         {.did = SIGN_DID(DID_INIT_CROSSED)}},
        {"The wrong network interface: NCCL picked one that other hosts can't reach (a VPN or "
         "bridge; docker0 "
         "only if there is no other).",
         "NCCL_DEBUG=INFO prints 'NET/Socket : Using ...'; set NCCL_SOCKET_IFNAME."},
        {"A firewall between the hosts: NCCL uses ports that it chooses at random.",
         "'nc -zv' from one host to a listening port of another."},
        {"/dev/shm too small or not shared between the containers of one host.",
         "df /dev/shm; NCCL_DEBUG=WARN names the file."},
        {"Different NCCL versions on the hosts.",
         "The first line of NCCL_DEBUG=VERSION on each rank."}),
    .source = "NCCL 2.29 user guide, \"Creating a Communicator\" and \"Troubleshooting\" "
              "(networking, shared memory)",
    .example = "if (rank != 3)\n    ncclCommInitRank(&comm, 4, id, rank);\n",
    .fix_c = "ncclCommInitRank(&comm, 4, id, rank);        /* on all four */\n",
    .fix_torch =
        "# torchrun --nnodes=1 --nproc_per_node=4 train.py: as many processes as WORLD_SIZE says\n"
        "dist.init_process_group(\"nccl\", timeout=timedelta(minutes=2))    # fail early instead "
        "of after 10 minutes\n",
    .on = {[EVENT_NCCL] = check_graphs, [EVENT_FINISH] = setup_on_finish},
};
