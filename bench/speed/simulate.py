"""Simulates a training job: what each rank's host and device do, and when.

Every rank runs its program (programs.py): its host launches kernels and operations, its device executes them in the order
of their streams. An operation of a communicator starts on a rank when its stream reaches it, and ends on all ranks when the last one
has come and the bytes are transferred. No random number is drawn while a job runs: noise comes from tables, each
user of which reads its own sequence, so a job and its twin without a cause have the same noise."""

import collections
import random

from programs import PROGRAMS

NOISE = 1 << 14                 # entries of a table of noise
LATENCY = 12e-6                 # of one step of a ring
LAUNCH_TO_START = 4e-6          # from the host's launch to the start on an idle device

# name, group (None: compute), number, iteration, start, end, issued, bytes; times are those of the simulation.
Row = collections.namedtuple("Row", "name group number iteration start end issued bytes")


class Group:
    """A communicator: its members, what it is called, and how fast its slowest link is."""

    def __init__(self, number, name, members, rate):
        self.index, self.name, self.members, self.rate = number, name, tuple(members), rate
        self.slow = []          # (from which iteration, factor): links that became slower
        self.noise = number * 7919

    def seconds(self, job, operation, size, iteration, place):
        """From the last member's arrival to the end."""
        ranks = len(self.members)
        around = 2 if operation == "AllReduce" else 1
        moved = size * (around * (ranks - 1) / ranks if operation not in ("Send", "Recv") else 1)
        factor = job.network[(self.noise + place * 31) % NOISE]
        for since, slower in self.slow:
            if iteration >= since:
                factor *= slower
        return (LATENCY * around * min(ranks - 1, 16) + moved / self.rate) * factor


class Meeting:
    """An operation of a group while its members arrive."""
    __slots__ = ("group", "need", "arrived", "parked", "done")

    def __init__(self, group, need):
        self.group, self.need, self.arrived, self.parked, self.done = group, need, [], [], False


class Rank:
    """One rank: the times that its host and its streams have reached."""

    def __init__(self, job, number):
        self.job, self.number = job, number
        self.place = job.place(number)                      # tp, dp, pp
        draw = random.Random(job.seed * 1000003 + number)
        self.step = draw.randrange(1, NOISE, 2)             # an odd step reads the whole table
        self.at = self.host_at = draw.randrange(NOISE)
        self.speed = 1 + max(-0.015, min(0.015, draw.gauss(0, job.spread)))     # no two devices are equal
        self.host, self.compute, self.iteration = 0.0, 0.0, 0
        self.streams = collections.defaultdict(float)
        self.numbers = collections.Counter()
        self.rows, self.ends = [], []
        self.work = self.attention = 1.0                    # of this iteration
        self.extra = 0
        self.program = PROGRAMS[job.style](self)

    def begin(self, iteration):
        """The host starts an iteration: what the causes do to it, the data loader, the batch's size."""
        job = self.job
        self.iteration = iteration
        self.device = self.speed
        self.work, self.extra, self.launch, stall = 1.0, 0, job.launch, job.loader
        if job.variable:
            self.work *= job.batches[(iteration * 613 + self.number * 7907) % NOISE]
        if iteration < job.warm_up:
            self.device *= job.warm_up_factor
        self.attention = self.work
        for cause in job.causes_of[self.number]:
            stall += cause.apply(self, iteration)
        self.host += stall
        self.overhead()

    def overhead(self):
        """The host's own time for one launch."""
        self.host_at = (self.host_at + self.step) % NOISE
        self.host += self.launch * self.job.hosts[self.host_at]
        return self.host

    def kernel(self, name, seconds, factor=1.0):
        issued = self.overhead()
        self.at = (self.at + self.step) % NOISE
        start = max(issued + LAUNCH_TO_START, self.compute)
        self.compute = start + seconds * self.device * factor * self.job.kernels[self.at]
        if self.job.record:
            self.rows.append(Row(name, None, 0, self.iteration, start, self.compute, issued, 0))

    def operation(self, group, name, size, stream, start=None):
        """Enqueues an operation after the kernels launched so far; yield the meeting that this returns."""
        issued = self.overhead()
        if start is None:
            start = max(issued + LAUNCH_TO_START, self.streams[stream], self.compute)
        kind = name if name in ("Send", "Recv") else ""     # sends count on their own: they meet the peer's receives
        number = self.numbers[group.index, kind]
        self.numbers[group.index, kind] = number + 1
        sender = self.number if kind == "Send" else sum(group.members) - self.number if kind else -1
        return self.job.arrive(self, group, name, sender, number, start, issued, size, stream)

    def wait(self, stream):
        """Kernels launched from here on start after the operations of the stream."""
        self.compute = max(self.compute, self.streams[stream])

    def end(self):
        """The optimizer's step is launched; the host reads the loss, or may run ahead by an iteration."""
        job = self.job
        self.ends.append(self.compute)
        if job.sync:
            self.host = max(self.host, self.compute)
        elif len(self.ends) > 1:
            self.host = max(self.host, self.ends[-2])


class Simulation:
    """Runs a job (jobs.py) with some of its causes. record: keep the rows."""

    def __init__(self, job, causes, iterations=None, record=False, noise=True):
        self.__dict__.update(job.settings())
        self.place = job.place
        self.record, self.iterations = record, iterations or job.iterations
        if not noise:
            self.kernels = self.hosts = self.network = self.batches = [1.0] * NOISE
        self.groups = job.groups()
        self.causes_of = collections.defaultdict(list)
        for cause in causes:
            cause.prepare(self.groups)
            for rank in cause.ranks:
                self.causes_of[rank].append(cause)
        self.by_rank = collections.defaultdict(dict)
        for kind, groups in self.groups.items():
            for group in groups:
                for rank in group.members:
                    self.by_rank[rank].setdefault(kind, []).append(group)
        self.meetings = {}
        self.ranks = [Rank(self, number) for number in range(self.world)]
        self.run()

    def arrive(self, rank, group, name, sender, number, start, issued, size, stream):
        key = (group.index, sender, number)
        meeting = self.meetings.get(key)
        if meeting is None:
            meeting = self.meetings[key] = Meeting(group, len(group.members))
        meeting.arrived.append((rank, name, number, start, issued, size, stream))
        if len(meeting.arrived) == meeting.need:
            del self.meetings[key]
            self.finish(meeting, rank.iteration)
        return meeting

    def finish(self, meeting, iteration):
        group, arrived = meeting.group, meeting.arrived
        end = max(one[3] for one in arrived)
        end += group.seconds(self, arrived[0][1], max(one[5] for one in arrived), iteration, arrived[0][2])
        for rank, name, number, start, issued, size, stream in arrived:
            rank.streams[stream] = max(rank.streams[stream], end)
            if self.record:
                rank.rows.append(Row(name, group, number, iteration, start, end, issued, size))
        meeting.done = True
        self.ready.extend(meeting.parked)

    def run(self):
        """Each rank runs until it waits for others; the last to arrive lets them go on."""
        self.ready = collections.deque(self.ranks)
        while self.ready:
            rank = self.ready.popleft()
            for meeting in rank.program:
                if not meeting.done:
                    meeting.parked.append(rank)
                    break
        if self.meetings:
            raise AssertionError("ranks wait for each other: %s" % sorted(self.meetings)[:4])

    def ends(self):
        """When each iteration ended, on the last rank."""
        return [max(times) for times in zip(*(rank.ends for rank in self.ranks))]
