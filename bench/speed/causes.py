"""What slows a made-up job: on which ranks, from when, how much, and which finding reports it."""

# The code of the finding that reports a kind.
CODES = {
    "slow-host": "DC601", "small-operations": "DC602", "unoverlapped": "DC603", "slow-device": "DC604", "throttle-after": "DC604",
    "more-work": "DC605", "slow-link": "DC606", "slow-since": "DC607", "pause": "DC608",
}
NOTES = ("small-operations", "unoverlapped")        # how the program is written, not a fault of a rank or a link


class Cause:
    """kind and mode: what happens; ranks: to which; since: from which iteration, period: every how many; at: or in these.

    amount is what calibrate() finds: seconds of a stall, or by what factor more something takes. aim: its share of the iteration."""

    def __init__(self, kind, ranks, aim, since=0, period=0, mode="", amount=0.0, at=()):
        self.kind, self.mode, self.ranks, self.aim = kind, mode, tuple(sorted(ranks)), aim
        self.since, self.period, self.amount, self.at = since, period, amount, frozenset(at)

    def crosses(self, job, group):
        """A slow link is one of the ring of this group."""
        members, mine = group.members, set(self.ranks)
        if self.mode == "nic":
            return not mine.isdisjoint(members) and not mine.issuperset(members)
        return any({one, other} == mine for one, other in zip(members, members[1:] + members[:1]))

    def prepare(self, job):
        """Acts on the whole simulated job, before it starts."""
        if self.kind == "slow-link":
            for group in job.groups:
                if self.crosses(job, group):
                    group.slow.append((self.since, 1 + self.amount))
        elif self.kind == "small-operations":
            job.pieces = int(self.amount)
        elif self.kind == "unoverlapped":
            job.unoverlapped = True

    def apply(self, rank, iteration):
        """Acts on a rank at the start of an iteration."""
        if iteration >= self.since:
            ACTIONS.get(self.kind, nothing)(self, rank, iteration)


def nothing(cause, rank, iteration):
    pass


def slow_host(cause, rank, iteration):
    if cause.mode == "launch":          # every launch takes longer
        rank.launch += cause.amount
    elif cause.mode == "middle":        # in the program, between the passes
        rank.middle_stall += cause.amount
    else:                               # the data loader
        rank.stall += cause.amount


def slow_device(cause, rank, iteration):
    rank.device *= 1 + cause.amount


def more_work(cause, rank, iteration):
    if cause.mode == "more":
        rank.extra = (2, cause.amount)
    else:                               # longer sequences
        rank.work *= 1 + cause.amount
        rank.attention *= (1 + cause.amount) ** 2


def pause(cause, rank, iteration):
    # Unaligned: each rank collects its garbage when its own heap has grown.
    phase = cause.ranks.index(rank.number) * 3 + 1 if cause.mode == "unaligned" else 0
    if cause.at:
        rank.stall += cause.amount if iteration in cause.at else 0
    elif iteration % cause.period == (cause.period - 1 + phase) % cause.period:
        rank.stall += cause.amount


ACTIONS = {"slow-host": slow_host, "slow-device": slow_device, "throttle-after": slow_device, "slow-since": slow_device,
           "more-work": more_work, "pause": pause}
