"""The made-up jobs: seed -> grid, model, noise, causes and what the recording tool knew. The same seed is always the same job."""

import random

from causes import Cause
from simulate import NOISE, Group, Simulation

TUNING = range(1, 501)          # seeds to tune the analyzer with; the others measure it
TEST = range(501, 1001)
FABRIC, NETWORK = 150e9, 20e9   # bytes a second, within a host and between hosts
LEAST = 0.03                    # a smaller share of an iteration is no cause: nobody has to report it


class Job:
    """A job's settings; see plan()."""

    def __init__(self, seed):
        self.seed = seed

    def settings(self):
        return dict(self.__dict__)

    def place(self, rank):
        """(tp, dp, pp) of a rank: tensor-parallel ranks are neighbours, stages are far from each other."""
        tp, dp, _ = self.grid
        return rank % tp, rank // tp % dp, rank // (tp * dp)

    def ranks_with(self, **places):
        """The ranks at a place: ranks_with(dp=1) is a replica."""
        which = {"tp": 0, "dp": 1, "pp": 2}
        return [rank for rank in range(self.world)
                if all(self.place(rank)[which[name]] == value for name, value in places.items())]

    def node(self, rank):
        return rank // self.per_host

    def groups(self):
        """New communicators, {"dp": [...], "tp": [...], "pp": [...]}; those of pp are pairs of neighbouring stages."""
        tp, dp, pp = self.grid
        members = {"dp": [self.ranks_with(tp=t, pp=p) for p in range(pp) for t in range(tp)] if dp > 1 else [],
                   "tp": [list(range(first, first + tp)) for first in range(0, self.world, tp)] if tp > 1 else [],
                   "pp": [[rank, rank + tp * dp] for rank in range(self.world - tp * dp)]}
        made, number = {}, 0
        for kind in members:
            made[kind] = []
            for order, ranks in enumerate(members[kind]):
                across = len({self.node(rank) for rank in ranks}) > 1
                made[kind].append(Group(number, self.group_name(kind, order, ranks), ranks, NETWORK if across else FABRIC))
                number += 1
        return made

    def group_name(self, kind, order, ranks):
        if self.names == "names":
            return "%s%d" % (kind, order)
        if ranks == list(range(ranks[0], ranks[-1] + 1)):
            return "%d-%d" % (ranks[0], ranks[-1])
        return " ".join(map(str, ranks))


def tables(job, draw):
    """The noise of kernels, hosts, networks and batches, as factors."""
    def table(sigma, tail=0.0, heaviest=1.0):
        return [draw.lognormvariate(0, sigma) * (1 + draw.random() ** 3 * heaviest if draw.random() < tail else 1)
                for _ in range(NOISE)]
    sigma, tail, network = {"quiet": (0.004, 0, 0.02), "usual": (0.015, 0.001, 0.05), "noisy": (0.03, 0.004, 0.15),
                            "heavy-tailed": (0.02, 0.01, 0.3)}[job.noise]
    job.kernels = table(sigma, tail, 3)
    job.hosts = table(0.25, tail, 100)
    job.network = table(network, tail * 4, 10)
    job.batches = table(0.06)


def choose_grid(job, draw):
    job.style = "ddp"
    job.grid = (1, draw.choice((2, 4, 4, 8, 8, 16, 32, 64)), 1)
    job.world = job.grid[0] * job.grid[1] * job.grid[2]
    job.per_host = draw.choice((1, 2, 4, 8, 8, 8))


def choose_model(job, draw):
    job.iterations = draw.randint(40, 80)
    job.layers, job.kinds, job.pieces = draw.randint(2, 4), draw.choice((1, 2, 3)), 1
    job.layer_seconds = draw.uniform(0.002, 0.02)
    job.layer_bytes = int(job.layer_seconds * draw.uniform(0.2, 0.9) * NETWORK) // 4096 * 4096
    job.launch, job.loader = draw.uniform(10e-6, 60e-6), draw.uniform(0.0005, 0.002)
    job.sync = draw.random() < 0.6
    job.unoverlapped = False


def choose_noise(job, draw):
    job.noise = draw.choice(("quiet", "usual", "usual", "usual", "noisy", "heavy-tailed"))
    job.spread = draw.choice((0.002, 0.004, 0.006))
    job.variable = draw.random() < 0.12
    job.warm_up, job.warm_up_factor = (draw.randint(1, 3), draw.uniform(1.5, 4)) if draw.random() < 0.3 else (0, 1.0)
    tables(job, draw)


def choose_knowledge(job, draw):
    """What the tool that recorded the timeline knew, and how it wrote it."""
    job.has = {"issued": draw.random() < 0.7, "kernels": draw.random() < 0.7, "iteration": draw.random() < 0.75,
               "bytes": draw.random() < 0.85, "host": draw.random() < 0.8}
    job.names = draw.choice(("names", "ranks"))
    job.format = draw.choice(("csv",) * 8 + ("jsonl", "chrome"))
    job.order = draw.choice(("rank", "time"))
    job.digits = draw.choice((6, 6, 6, 9))
    job.packed = draw.random() < 0.1


def one_cause(job, draw):
    share = draw.choice((0.05, 0.1, 0.15, 0.2, 0.3, 0.4)) * draw.uniform(1.05, 1.3)
    kind = draw.choice(("slow-host", "slow-device"))
    cause = Cause(kind, [draw.randrange(job.world)])
    cause.share = share
    return cause


def calibrate(job, cause):
    """Finds the amount with which the cause alone, without noise, takes about its share of an iteration."""
    since, cause.since = cause.since, 0
    clean = Simulation(job, [], iterations=4, noise=False).ends()
    seconds = clean[-1] - clean[0]
    low, high, aim = 0.0, None, seconds / (1 - cause.share)
    amount = cause.share / (1 - cause.share) * (seconds / 3 if cause.kind == "slow-host" else 1)
    for _ in range(6):
        cause.amount = amount
        ends = Simulation(job, [cause], iterations=4, noise=False).ends()
        got = ends[-1] - ends[0]
        if abs(got - aim) < 0.15 * (aim - seconds):
            break
        low, high = (amount, high) if got < aim else (low, amount)
        amount = (low + high) / 2 if high else amount * min(3.0, 1.2 * (aim - seconds) / max(got - seconds, 0.05 * seconds))
    cause.since = since


def plan(seed):
    """The job of a seed."""
    draw = random.Random(seed)
    job = Job(seed)
    for choose in (choose_grid, choose_model, choose_noise, choose_knowledge):
        choose(job, draw)
    job.causes = [one_cause(job, draw) for _ in range(draw.choice((0, 1, 1)))]
    for cause in job.causes:
        calibrate(job, cause)
    return job
