"""A made-up job: its grid of ranks, its communicators, and its settings, which plan.py chooses."""

from simulate import Group

FABRIC, NETWORK = 150e9, 20e9   # bytes a second, within a host and between hosts


class Job:
    """The settings of a job, and who is where in its grid."""

    def __init__(self, seed):
        self.seed = seed

    def place(self, rank):
        """(tp, dp, pp) of a rank: ranks that share layers are neighbours, stages are far from each other."""
        tp, dp, _ = self.grid
        return rank % tp, rank // tp % dp, rank // (tp * dp)

    def node(self, rank):
        return rank // self.per_host

    def replica(self, rank):
        """The ranks that train on the same samples."""
        tp, dp, pp = self.grid
        first = self.place(rank)[1] * tp
        return [stage * tp * dp + first + one for stage in range(pp) for one in range(tp)]

    def on_host(self, rank):
        return [other for other in range(self.world) if self.node(other) == self.node(rank)]

    def members(self):
        """(kind, ranks) of each communicator; those of kind pp are pairs of neighbouring stages."""
        tp, dp, pp = self.grid
        if dp > 1:
            for first in (stage * tp * dp + one for stage in range(pp) for one in range(tp)):
                yield "dp", range(first, first + tp * dp, tp)
        if tp > 1:
            for first in range(0, self.world, tp):
                yield "tp", range(first, first + tp)
        for rank in range(self.world - tp * dp):
            yield "pp", (rank, rank + tp * dp)

    def groups(self):
        """New communicators."""
        made, count = [], {}
        for kind, ranks in self.members():
            order = count[kind] = count.get(kind, -1) + 1
            rate = NETWORK if self.node(ranks[0]) != self.node(ranks[-1]) else FABRIC
            made.append(Group(len(made), kind, self.group_name(kind, order, ranks), ranks, rate))
        return made

    def group_name(self, kind, order, ranks):
        if self.names == "names":
            return "%s%d" % (kind, order)
        if len(ranks) > 1 and ranks[-1] - ranks[0] == len(ranks) - 1:
            return "%d-%d" % (ranks[0], ranks[-1])
        return " ".join(map(str, ranks))
