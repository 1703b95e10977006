"""Chooses the job of a seed: grid, model, noise, causes, and what the recording tool knew. A seed is always the same job."""

import random

from causes import NOTES, Cause
from jobs import NETWORK, Job
from simulate import NOISE, Simulation

TUNING = range(1, 501)          # seeds to tune the analyzer with; the others measure it
TEST = range(501, 1001)
SMALL = ((1, 2, 1), (1, 4, 1), (1, 8, 1), (1, 8, 1), (1, 16, 1), (1, 32, 1), (2, 2, 1), (2, 4, 1), (4, 2, 1), (8, 2, 1), (4, 8, 1),
         (1, 2, 2), (2, 2, 2), (2, 4, 2), (4, 2, 4), (1, 4, 4), (2, 4, 4), (1, 2, 8), (4, 1, 2), (1, 1, 4), (8, 4, 2))
# Of the seeds that end like this: the number of ranks, least and most iterations, and grids.
LARGE = (
    (250, 250, 26, 28, ((1, 4096, 1), (8, 512, 1), (4, 1024, 1))),
    (100, 25, 30, 34, ((1, 1024, 1), (8, 128, 1), (8, 64, 2), (4, 128, 2))),
    (25, 10, 40, 50, ((1, 256, 1), (8, 32, 1), (4, 64, 1), (8, 8, 4), (4, 16, 4), (2, 16, 8))),
)
VARYING = 3000                  # seeds above have pauses at varying distances as well; the others stay as they were
BEFORE = 22                     # iterations before and after a change, so that there is evidence of both


def choose_grid(job, draw):
    job.grid, least, most = draw.choice(SMALL), 44, 64
    for every, rest, fewest, largest, grids in LARGE:
        if job.seed % every == rest % every:
            job.grid, least, most = draw.choice(grids), fewest, largest
            break
    tp, dp, pp = job.grid
    job.world, job.iterations = tp * dp * pp, draw.randint(least, most)
    job.per_host = 8 if job.world > 64 else max(tp, draw.choice((1, 2, 4, 8, 8, 8)))
    job.style = "3d" if pp > 1 else "tp" if tp > 1 else draw.choice(("ddp", "ddp", "fsdp"))


def choose_model(job, draw):
    large, deep = job.world >= 1024, job.grid[2] > 1
    job.layers, job.kinds, job.pieces = draw.randint(2, 4), draw.choice((1, 2, 3)), 1
    if deep or job.world > 64:
        job.layers, job.kinds = draw.randint(1, 2), draw.choice((1, 2))
    if large or deep and job.world >= 32:
        job.layers, job.kinds = 1, 1
    job.micro = draw.randint(2, 2 if job.world > 64 else 3) if deep else 1
    job.layer_seconds = draw.uniform(0.002, 0.02)
    job.layer_bytes = int(job.layer_seconds * job.micro * draw.uniform(0.2, 0.9) * NETWORK) // 4096 * 4096
    job.activation_bytes = int(job.layer_seconds * draw.uniform(0.05, 0.3) * NETWORK)
    job.uneven = draw.choice((0, 0.1, 0.3)) if deep else 0
    job.launch, job.loader = draw.uniform(10e-6, 60e-6), draw.uniform(0.0005, 0.002)
    job.sync = draw.random() < 0.6
    job.unoverlapped = False


def tables(job):
    """The noise of kernels, hosts, networks and batches, as factors."""
    draw = random.Random(job.seed + 700001)

    def table(sigma, tail=0.0, heaviest=1.0):
        return [draw.lognormvariate(0, sigma) * (1 + draw.random() ** 3 * heaviest if draw.random() < tail else 1)
                for _ in range(NOISE)]
    sigma, tail, network = {"quiet": (0.004, 0, 0.02), "usual": (0.015, 0.001, 0.05), "noisy": (0.03, 0.004, 0.15),
                            "heavy-tailed": (0.02, 0.01, 0.3)}[job.noise]
    job.kernels = table(sigma, tail, 3)
    job.hosts = table(0.25, tail, 100)
    job.network = table(network, tail * 4, 10)
    job.batches = table(0.06)


def choose_noise(job, draw):
    job.noise = draw.choice(("quiet", "usual", "usual", "usual", "noisy", "heavy-tailed"))
    job.spread = draw.choice((0.001, 0.003, 0.006))
    job.variable = draw.random() < 0.12
    job.warm_up, job.warm_up_factor = (draw.randint(1, 3), draw.uniform(1.5, 4)) if draw.random() < 0.3 else (0, 1.0)


def choose_knowledge(job, draw):
    """What the tool that recorded the timeline knew, and how it wrote it."""
    job.has = {"issued": draw.random() < 0.7, "kernels": draw.random() < 0.7, "iteration": draw.random() < 0.75,
               "bytes": draw.random() < 0.85, "host": draw.random() < 0.8}
    job.names = draw.choice(("names", "ranks"))
    job.format = draw.choice(("csv",) * 8 + ("jsonl", "chrome")) if job.world <= 256 else "csv"
    job.order = draw.choice(("rank", "time"))
    job.digits = draw.choice((6, 6, 6, 9))
    job.packed = draw.random() < 0.1


def slow_device(job, draw):
    """Only ranks with the same part of the model show that one is slow: stages differ in correct jobs, too."""
    return dict(ranks=[draw.randrange(job.world)]) if job.grid[0] * job.grid[1] > 1 else None


def rank_or_host(job, draw, **more):
    """One rank, or all of its host if there are others."""
    rank = draw.randrange(job.world)
    host = job.on_host(rank)
    return dict(ranks=host if len(host) < job.world and draw.random() < 0.25 else [rank], **more)


def change(job, draw):
    return draw.randint(BEFORE, job.iterations - BEFORE)


def slow_host(job, draw):
    """In a pipeline without peers a stage that is late looks like one with more layers, unless launches or kernels are recorded."""
    if job.grid[0] * job.grid[1] == 1 and not (job.has["issued"] or job.has["kernels"]):
        return None
    return rank_or_host(job, draw, mode=draw.choice(("loader", "loader", "middle", "launch")))


def throttle_after(job, draw):
    return dict(ranks=[draw.randrange(job.world)], since=change(job, draw))


def more_work(job, draw):
    """Whoever gets more samples or longer ones: a replica, all ranks of which have the same."""
    if job.grid[1] == 1:
        return None
    return dict(ranks=job.replica(draw.randrange(job.world)), mode=draw.choice(("longer", "longer", "more")))


def slow_link(job, draw):
    """A link of two neighbours in a ring, or of a host. What is usual show the time before, or groups beside it.

    Groups are beside each other if they send as many bytes and both or neither leave a host: that has to be recorded."""
    kind, ranks = draw.choice([(kind, ranks) for kind, ranks in job.members() if kind != "pp" or job.grid[2] > 1])
    place = draw.randrange(len(ranks))
    cause = dict(ranks=[ranks[place], ranks[place - 1]], mode="pair")
    hosts = {job.node(rank) for rank in ranks}
    if len(hosts) > 1 and draw.random() < 0.5:
        cause = dict(ranks=job.on_host(ranks[place]), mode="nic")
    probe = Cause("slow-link", cause["ranks"], 0, mode=cause["mode"])
    alike = [group for group in job.groups() if group.kind == kind and job.node(group.members[0]) != job.node(group.members[-1])
             or group.kind == kind and len(hosts) == 1]
    sisters = job.has["host"] and job.has["bytes"] and any(not probe.crosses(job, group) for group in alike)
    if job.iterations >= 2 * BEFORE and (not sisters or draw.random() < 0.5):
        cause["since"] = change(job, draw)
    return cause if sisters or "since" in cause else None


def slow_since(job, draw):
    return dict(ranks=range(job.world), since=change(job, draw))


def pause(job, draw):
    period = draw.randint(4, min(12, job.iterations // 5))
    rank = draw.randrange(job.world)
    ranks, mode = draw.choice((([rank], "one"), ([rank], "one"), (job.on_host(rank), "host"), (range(job.world), "all")))
    if 1 < job.world <= period // 3 and draw.random() < 0.5:
        ranks, mode = range(job.world), "unaligned"
    if job.seed > VARYING and mode != "unaligned" and random.Random(job.seed).random() < 0.5:
        return dict(ranks=ranks, mode="varying", period=period, at=varying_times(job, period))
    return dict(ranks=ranks, mode=mode, period=period)


def varying_times(job, period):
    """Iterations about so far from each other, as of a garbage collector."""
    draw, at = random.Random(job.seed + 300007), []
    following = draw.randrange(1, period)
    while following < job.iterations:
        at.append(following)
        following += max(2, round(period * draw.uniform(0.75, 1.25)))
    return at


def small_operations(job, draw):
    return dict(ranks=range(job.world), amount=draw.randint(12, 24)) if job.style == "ddp" and job.world <= 16 else None


def unoverlapped(job, draw):
    return dict(ranks=range(job.world)) if job.style == "ddp" else None


# kind: (who and how, weight, whether it needs iterations before and after a change)
KINDS = {
    "slow-host": (slow_host, 5, False), "slow-device": (slow_device, 4, False), "throttle-after": (throttle_after, 2, True),
    "more-work": (more_work, 4, False), "slow-link": (slow_link, 4, False), "slow-since": (slow_since, 3, True),
    "pause": (pause, 3, False), "small-operations": (small_operations, 6, False), "unoverlapped": (unoverlapped, 6, False),
}


def possible(job):
    """The kinds that a job of this size can show."""
    return [kind for kind, (_, _, changes) in KINDS.items() if not changes or job.iterations >= 2 * BEFORE]


def choose_causes(job, draw):
    """Zero to three, of different kinds and on different ranks if they are on single ones."""
    count = draw.choice((0,) * 6 + (1,) * 9 + (2,) * 3 + (3,) * 2)
    job.causes = []
    while len(job.causes) < count:
        kinds = [kind for kind in possible(job) if kind not in [cause.kind for cause in job.causes]]
        kind = draw.choices(kinds, [KINDS[kind][1] for kind in kinds])[0]
        chosen = KINDS[kind][0](job, draw)
        if chosen is None or len(set(chosen["ranks"])) < job.world and any(
                len(cause.ranks) < job.world and not set(cause.ranks).isdisjoint(chosen["ranks"]) for cause in job.causes):
            continue
        aim = draw.choice((0.05, 0.08, 0.12, 0.15, 0.2, 0.3, 0.4)) * draw.uniform(0.95, 1.2)
        job.causes.append(Cause(kind, aim=aim, **chosen))


def first_amount(cause, seconds):
    """A guess from which calibrate() starts; seconds: of an iteration."""
    lost = cause.aim / (1 - cause.aim)
    if cause.kind == "slow-host":
        return lost * seconds / (12 if cause.mode == "launch" else 1)
    return lost


def iteration_seconds(job, causes):
    """Of an iteration without noise, once the hosts are as far ahead of the devices as they get."""
    first, last = (0, 4) if job.sync else (4, 8)
    ends = Simulation(job, causes, iterations=last, noise=False).ends()
    return (ends[-1] - ends[first]) / (last - first - 1)


def calibrate(job, cause):
    """Finds the amount with which the cause alone, without noise, takes about the aimed share of an iteration."""
    since, cause.since = cause.since, 0
    seconds = iteration_seconds(job, [])
    if cause.kind == "pause":
        cause.amount = seconds * (cause.period * cause.aim / (1 - cause.aim) + (0 if job.sync else 0.5))
    elif cause.kind not in NOTES:
        search(job, cause, seconds)
    cause.since = since


def search(job, cause, seconds):
    """Tries amounts until an iteration takes as long as aimed, 15 % more or less of the difference."""
    low, high, aim = 0.0, None, seconds / (1 - cause.aim)
    amount = first_amount(cause, seconds)
    for _ in range(7):
        cause.amount = amount
        took = iteration_seconds(job, [cause])
        if abs(took - aim) < 0.15 * (aim - seconds):
            break
        low, high = (amount, high) if took < aim else (low, amount)
        amount = (low + high) / 2 if high else amount * min(4.0, 1.2 * (aim - seconds) / max(took - seconds, 0.05 * seconds))


def choose(seed):
    """The job of a seed, without what takes long: its tables of noise and how large its causes have to be."""
    draw = random.Random(seed)
    job = Job(seed)
    for what in (choose_grid, choose_model, choose_noise, choose_knowledge, choose_causes):
        what(job, draw)
    return job


def plan(seed):
    """The job of a seed."""
    job = choose(seed)
    tables(job)
    for cause in job.causes:
        calibrate(job, cause)
    return job
