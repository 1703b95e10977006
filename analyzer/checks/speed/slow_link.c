/* slow_link.c: DC606: transfers of a communicator take longer than those of its sisters. */
#include "analyzer/model/comm.h"
#include "analyzer/speed/slow_finding.h"
#include "lib/trace/lacks.h"

/* Of the communicator: then their numbers say nothing. */
static bool are_all_members(const struct speed *speed, const struct slowdown *slowdown)
{
    const struct comm *comm = slowdown->comm;
    uint32_t named = 0;
    for (uint32_t i = 0; i < comm->members; i++)
        for (uint32_t k = 0; k < slowdown->ranks; k++)
            named += slowdown->rank[k] == speed_rank_of(speed, comm->member[i]);
    return named == comm->members && named == slowdown->ranks;
}

static void slow_link_on_slowdown(struct analyzer *analyzer, const struct event *event)
{
    const struct slowdown *slowdown = event->slowdown;
    if (slowdown->kind != SLOW_LINK)
        return;
    const struct values values = {
        .flag = {[SLOW_FLAG_OWN] = !are_all_members(analyzer->slot.speed, slowdown)},
        .amount = {[SLOW_AMOUNT_OWN] = slowdown->rate > 0 ? slowdown->rate / 1e6 : slowdown->ratio},
    };
    slowdown_report(analyzer, &check_slow_link, slowdown, DID_SLOW_TRANSFER,
                    slowdown->rate > 0 ? HEADLINE_SLOW_RATE : HEADLINE_SLOW_LINK, ADVICE_SLOW_LINK,
                    &values);
}

static void slow_link_on_judged(struct analyzer *analyzer, const struct event *event)
{
    slowdown_withdraw(analyzer, &check_slow_link, event->slowdown);
}

const struct check check_slow_link = {
    .code = DC606,
    .name = "slow-link",
    .severity = SEVERITY_WARNING,
    .scope = SCOPE_JOB,
    .needs = LACKS_STATE | LACKS_DURATIONS,
    .title = "communication itself is slow",
    .text = "Once its last rank has arrived, an operation only transfers data. Here this takes "
            "longer in one communicator than operations of the same kind and size take in others "
            "with as many ranks. No rank is late: the link is slow.\n\n"
            "It shows as a job that spends more time in communication than others like it.\n\n"
            "If several communicators are slow, the ranks or hosts that all of them share are "
            "named. A communicator without others like it is compared with its own past. One that "
            "was slow from the start is reported if operations of 64 KiB and more take 10% of an "
            "iteration and reach less than gigabit Ethernet, 125 MB/s of bus bandwidth. No link "
            "between GPUs is slower on purpose.",
    .causes = CAUSES({"A network card or cable that negotiated a lower speed, or has errors.",
                      "ibstat, ethtool; counters of errors and retries."},
                     {"NVLink or PCIe fell back.", "nvidia-smi nvlink -s; nvidia-smi topo -m."},
                     {"NCCL uses sockets instead of InfiniBand, or another interface.",
                      "NCCL_DEBUG=INFO prints NET/Socket or NET/IB."},
                     {"Another job shares the switch.", "It comes and goes with that job."}),
    .source = "ddpcheck: measured, no rule of a library",
    .example = "/* NCCL_DEBUG=INFO on the rank's host, while the others print NET/IB:\n"
               " *     NCCL INFO NET/Socket : Using [0]eth0 */\n",
    .fix_c = "/* NCCL_IB_HCA=mlx5 and a driver that loads: all hosts use InfiniBand again. */\n",
    .fix_torch =
        "# With NCCL_NET=IB in the environment, init fails where InfiniBand does not work,\n"
        "# instead of using sockets.\n",
    .on = {[EVENT_SLOWDOWN] = slow_link_on_slowdown, [EVENT_JUDGED] = slow_link_on_judged},
    .state_bytes = {[OWNER_JOB] = sizeof(struct slow_reported)},
    .state_end = {[OWNER_JOB] = slow_reported_free},
};
