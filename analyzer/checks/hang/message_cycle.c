/* message_cycle.c: DC203: the check for sends and receives that wait for each other; wait_cycle.c
 * finds them. */
#include "analyzer/check.h"
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
            "group). There is no buffering to rely on, however small the message.",
    .causes = CAUSES(
        {"Every rank of a ring sends first and then receives, or both ends of a pair send first.",
         "All steps of the cycle are sends: put the send and the receive into one ncclGroup "
         "(batch_isend_irecv)."},
        {"A pipeline schedule whose neighbours disagree about the order of forward sends and "
         "backward receives.",
         "One step is a send, the next a receive, of different micro-batches."}),
    .source = "NCCL 2.29 user guide, \"Point-to-point communication\" and \"Group Calls\"",
    .example = "ncclSend(x, n, ncclFloat, (rank + 1) % ranks, comm, stream);     /* all ranks send "
               "first */\nncclRecv(y, n, ncclFloat, (rank + ranks - 1) % ranks, comm, stream);\n",
    .fix_c = "ncclGroupStart();\nncclSend(x, n, ncclFloat, (rank + 1) % ranks, comm, "
             "stream);\nncclRecv(y, n, ncclFloat, (rank + ranks - 1) % ranks, comm, "
             "stream);\nncclGroupEnd();\n",
    .fix_torch = "for work in dist.batch_isend_irecv([dist.P2POp(dist.isend, x, right), "
                 "dist.P2POp(dist.irecv, y, left)]):\n    work.wait()\n",
};
