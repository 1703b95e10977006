/* straggler.c: DC601: one rank comes last again and again, and the others wait for it. */
#include <inttypes.h>
#include <stdio.h>

#include "analyzer/states.h"
#include "analyzer/findings.h"
#include "analyzer/loop/lockstep.h"
#include "analyzer/model/process.h"
#include "analyzer/model/comm.h"
#include "lib/trace/names.h"
#include "lib/trace/lacks.h"

/* When it is worth a word. */
enum {
    /* A delay is time in which all members but one wait. Hosts' clocks are as good as NTP
     * keeps them over a network: some ten milliseconds (RFC 5905, section 1). */
    DELAY_NS = 1000000,
    DELAY_OTHER_HOST_NS = 50000000,
    DELAYS_WINDOW = 32,  /* judged together */
    DELAYS_PERCENT = 90, /* of them by one rank: chance would spread them */
    LOST_PERCENT = 10,   /* of the time */
};

/* Who came last to the operations of a communicator, in the window that is being filled. */
struct lateness {
    uint64_t begin_ns, end_ns; /* of the window; of the last time that was lost */
    uint32_t delays;
    uint32_t finding;        /* that was reported; 0: none yet */
    const struct member *of; /* whom it names */
    bool is_mixed;           /* later another came last: no rank is the straggler */
};

/* Of a member: the delays of the window in which it was the last. */
struct member_lateness {
    uint32_t delays;
    uint64_t delayed_ns;
};

static struct lateness *lateness_of(struct analyzer *analyzer, struct comm *comm)
{
    return state_get(analyzer, &check_straggler, OWNER_COMM, &comm->states);
}

static struct member_lateness *lateness_of_member(struct analyzer *analyzer, struct member *member)
{
    return state_get(analyzer, &check_straggler, OWNER_MEMBER, &member->states);
}

static bool is_one_host(const struct comm *comm)
{
    for (uint32_t i = 1; i < comm->members; i++)
        if (comm->member[i]->process->host != comm->member[0]->process->host)
            return false;
    return true;
}

static void report_late(struct analyzer *analyzer, const struct comm *comm,
                        const struct member *member, struct lateness *lateness,
                        const struct member_lateness *late, uint64_t elapsed_ns,
                        const struct site *site)
{
    struct draft draft = draft_new(&check_straggler, POSSIBLE, comm);
    struct text what = {0};
    char name[COMM_TITLE_BYTES];
    draft_rank(&draft, draft_side(&draft, &(struct act){.did = DID_COMES_LAST}, site), member);
    draft.finding.first_ns = lateness->begin_ns;
    draft.finding.last_ns = site->time_ns;
    text_add(&what,
             "rank %d came last to %" PRIu32 " of %" PRIu32
             " operations of %s for which the others had to wait, by %.1f ms on "
             "average: %.0f%% of the time was lost",
             member_shown_rank(member), late->delays, lateness->delays, comm_title(comm, name),
             (double)late->delayed_ns / late->delays / 1e6,
             100.0 * (double)late->delayed_ns / (double)elapsed_ns);
    if (!is_one_host(comm))
        text_add(&what, " (the hosts' clocks are trusted to %d ms)", DELAY_OTHER_HOST_NS / 1000000);
    draft_say(&draft, &what,
              "See what this rank does besides: its share of the data, logging, evaluation, "
              "checkpoints, its GPU's clock, its host's other load.");
    lateness->of = member;
    findings_report(analyzer, &draft, &lateness->finding);
}

/* One finding for a communicator; none where another rank comes last in a later window. */
static void judge_habit(struct analyzer *analyzer, const struct comm *comm, struct member *late,
                        struct lateness *lateness, uint64_t elapsed_ns, const struct site *site)
{
    const struct member_lateness *of_late = lateness_of_member(analyzer, late);
    if (lateness->is_mixed || !of_late)
        return;
    if (!lateness->of)
        report_late(analyzer, comm, late, lateness, of_late, elapsed_ns, site);
    else if (lateness->of != late) {
        lateness->is_mixed = true;
        if (lateness->finding)
            findings_resolve(analyzer, lateness->finding, "later another rank came last");
    } else if (lateness->finding)
        findings_count(analyzer, lateness->finding, site->time_ns);
}

static void begin_window(struct analyzer *analyzer, struct comm *comm, struct lateness *lateness,
                         uint64_t now_ns)
{
    lateness->begin_ns = now_ns;
    lateness->delays = 0;
    for (uint32_t i = 0; i < comm->members; i++) {
        struct member_lateness *of_member = lateness_of_member(analyzer, comm->member[i]);
        if (of_member)
            *of_member = (struct member_lateness){0};
    }
}

/* All have come. Time that was lost for an operation before is not lost again. */
static void judge_meeting(struct analyzer *analyzer, struct comm *comm,
                          const struct meeting *meeting, const struct site *site)
{
    struct lateness *lateness = lateness_of(analyzer, comm);
    struct member *late = comm->member[0];
    for (uint32_t i = 0; i < comm->members; i++)
        if (comm->member[i] == meeting->last)
            late = comm->member[i];
    struct member_lateness *of_late = lateness_of_member(analyzer, late);
    if (!lateness || !of_late)
        return;
    uint64_t from = meeting->last_ns[1] > lateness->end_ns ? meeting->last_ns[1] : lateness->end_ns,
             to = meeting->last_ns[0];
    if (!lateness->begin_ns)
        begin_window(analyzer, comm, lateness, to);
    if (to > lateness->end_ns)
        lateness->end_ns = to;
    if (to <= from || to - from < (uint64_t)(is_one_host(comm) ? DELAY_NS : DELAY_OTHER_HOST_NS))
        return;
    lateness->delays++;
    of_late->delays++;
    of_late->delayed_ns += to - from;
    if (lateness->delays < DELAYS_WINDOW)
        return;
    uint64_t elapsed_ns = to - lateness->begin_ns;
    bool is_habit = 100 * (uint64_t)of_late->delays >=
                        DELAYS_PERCENT * (uint64_t)lateness->delays &&
                    100 * of_late->delayed_ns >= LOST_PERCENT * elapsed_ns;
    if (is_habit)
        judge_habit(analyzer, comm, late, lateness, elapsed_ns, site);
    begin_window(analyzer, comm, lateness, to);
}

static void straggler_on_operation(struct analyzer *analyzer, const struct event *event)
{
    const struct operation *operation = event->operation;
    struct comm *comm = operation->member->comm;
    if (api_class_of(operation->record.api) != CLASS_COLLECTIVE)
        return;
    const struct meeting *meeting = lockstep_find(comm, operation->record.op.number);
    bool complete = meeting && comm->nranks > 1 && meeting->arrivals == (uint32_t)comm->nranks &&
                    !comm->divergence;
    if (complete)
        judge_meeting(analyzer, comm, meeting, &operation->site);
}

const struct check check_straggler = {
    .code = DC601,
    .name = "straggler",
    .family = FAMILY_SPEED,
    .severity = SEVERITY_NOTE,
    .scope = SCOPE_JOB,
    .needs = LACKS_TIMING,
    .title = "one rank is a straggler",
    .text =
        "A collective starts when its last rank arrives. Here one rank (a straggler) causes nearly "
        "all of the waiting: of 32 delays in a row, it caused at least nine in ten, and they add "
        "up to a tenth of the time or more.\n\n"
        "It shows as a job that is slower than its GPUs.\n\n"
        "The times are those at which each host called the operation. On one host they are exact; "
        "between hosts the clocks are trusted to 50 ms, and smaller delays are not counted. A rank "
        "whose GPU is slow is detected only if its host waits for it in each iteration.",
    .causes = CAUSES({"A larger share of the data, or longer sequences, on that rank.",
                      "Its own time per step is longer in forward and backward."},
                     {"Logging, evaluation, checkpoints or a profiler on rank 0.",
                      "The delays are regular, every n steps.",
                      {.did = SIGN_DID(DID_COMES_LAST), .rank_0_alone = true}},
                     {"A slower host: its loader's processors, its disk, another job.",
                      "All ranks of one host are late."},
                     {"A GPU with a lower clock (heat, power limit) or a link that fell back.",
                      "nvidia-smi -q -d CLOCK,PERFORMANCE on that host; nvidia-smi topo -m."}),
    .source = "ddpcheck: measured, no rule of a library",
    .example = "if (rank == 0)\n    write_samples();             /* 50 ms in every iteration "
               "*/\nncclAllReduce(x, x, n, ncclFloat, ncclSum, comm, stream);\n",
    .fix_c = "if (rank == 0)\n    hand_samples_to_a_thread();\nncclAllReduce(x, x, n, ncclFloat, "
             "ncclSum, comm, stream);\n",
    .fix_torch =
        "if rank == 0 and step % 100 == 0:   # rarely, or in another process\n    save_samples()\n",
    .on = {[EVENT_OPERATION] = straggler_on_operation},
    .state_bytes =
        {[OWNER_COMM] = sizeof(struct lateness), [OWNER_MEMBER] = sizeof(struct member_lateness)},
};
