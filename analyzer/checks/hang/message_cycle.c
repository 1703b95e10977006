/* message_cycle.c: DC203: the check for sends and receives that wait for each other; wait_cycle.c
 * finds them. */
#include "analyzer/checks/hang/message_runs.h"
#include "lib/trace/lacks.h"

const struct check check_message_cycle = {
    .code = DC203,
    .name = "message-cycle",
    .family = FAMILY_HANG,
    .severity = SEVERITY_ERROR,
    .scope = SCOPE_JOB,
    .needs = LACKS_P2P | LACKS_UNFINISHED,
    .explains = CODES(CODES_HANGS),
    .title = "sends and receives wait for each other in a cycle",
    .text = "The ranks form a wait cycle: each waits in a send (or receive) whose matching call "
            "comes only after a send or receive that waits in turn.\n\n"
            "It shows as a hang. It is certain: NCCL's sends wait for their receive (user guide, "
            "\"Point-to-point communication\": sends and receives block unless they are in one "
            "group). There is no buffering to rely on, however small the message.\n\n"
            "A message that a rank leaves out looks like a wrong order: the later ones take its "
            "place. If one of the ranks exchanged fewer or more messages in a row than the time "
            "before, the finding says so; the first time this is not known.",
    .causes = CAUSES(
        {"Every rank of a ring sends first and then receives, or both ends of a pair send first.",
         "All steps of the cycle are sends: put the send and the receive into one ncclGroup "
         "(batch_isend_irecv)."},
        {"A pipeline schedule whose neighbours disagree about the order of forward sends and "
         "backward receives.",
         "One step is a send, the next a receive, of different micro-batches."},
        {"A micro-batch that only one stage of a pipeline skips.",
         "One rank turned from receiving to sending a message early: count the rounds of both "
         "loops."}),
    .source = "NCCL 2.29 user guide, \"Point-to-point communication\" and \"Group Calls\"",
    .example = "ncclSend(x, n, ncclFloat, (rank + 1) % ranks, comm, stream);     /* all ranks send "
               "first */\nncclRecv(y, n, ncclFloat, (rank + ranks - 1) % ranks, comm, stream);\n",
    .fix_c = "ncclGroupStart();\nncclSend(x, n, ncclFloat, (rank + 1) % ranks, comm, "
             "stream);\nncclRecv(y, n, ncclFloat, (rank + ranks - 1) % ranks, comm, "
             "stream);\nncclGroupEnd();\n",
    .on = {[EVENT_OPERATION] = message_runs_on_operation},
    .state_bytes = {[OWNER_PROCESS] = sizeof(struct message_runs)},
    .fix_torch = "for work in dist.batch_isend_irecv([dist.P2POp(dist.isend, x, right), "
                 "dist.P2POp(dist.irecv, y, left)]):\n    work.wait()\n",
};
