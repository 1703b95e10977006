"""Simulates a training job: what each rank's host and device do, and when.

Every rank runs its program (programs.py): its host launches kernels and operations, its device executes them in the order
of their streams. An operation of a communicator starts on a rank when its stream reaches it, and ends on all ranks when the
last one has come and the bytes are transferred. No random number is drawn while a job runs: noise comes from tables, of which
each user reads its own sequence, so a job and its twin without a cause have the same noise."""

import collections
import random

from programs import PROGRAMS

NOISE = 1 << 12                 # entries of a table of noise
LATENCY = 12e-6                 # of one step of a ring
LAUNCH_TO_START = 4e-6          # from the host's launch to the start on an idle device
POINT_TO_POINT = ("Send", "Recv")

# group: None for a kernel; times are those of the simulation.
Row = collections.namedtuple("Row", "name group number iteration start end issued bytes")


class Group:
    """A communicator: its members, what it is called, and how fast its slowest link is."""

    def __init__(self, index, kind, name, members, rate):
        self.index, self.kind, self.name, self.members, self.rate = index, kind, name, tuple(members), rate
        self.slow = []          # (from which iteration, factor): links that became slower
        self.noise = index * 7919

    def seconds(self, job, operation, size, iteration, number):
        """From the last member's arrival to the end."""
        ranks = len(self.members)
        around = 2 if operation == "AllReduce" else 1
        moved = size if operation in POINT_TO_POINT else size * around * (ranks - 1) / ranks
        factor = job.network[(self.noise + number * 31) % NOISE]
        for since, slower in self.slow:
            if iteration >= since:
                factor *= slower
        return (LATENCY * around * min(ranks - 1, 16) + moved / self.rate) * factor


class Meeting:
    """An operation of a group while its members arrive. begun: on the member that arrived last."""
    __slots__ = ("group", "need", "arrived", "parked", "done", "begun")

    def __init__(self, group):
        self.group, self.need, self.arrived, self.parked = group, len(group.members), [], []
        self.done, self.begun = False, 0.0


class Rank:
    """One rank: the times that its host and its streams have reached."""

    def __init__(self, job, number, groups):
        self.job, self.number, self.groups, self.place = job, number, groups, job.place(number)
        draw = random.Random(job.seed * 1000003 + number)
        self.step = draw.randrange(1, NOISE, 2)             # an odd step reads the whole table
        self.at = self.host_at = draw.randrange(NOISE)
        self.speed = 1 + max(-2.0, min(2.0, draw.gauss(0, 1))) * job.spread         # no two devices are equal
        self.host, self.compute, self.iteration = 0.0, 0.0, 0
        self.streams = collections.defaultdict(float)
        self.numbers = collections.Counter()
        self.rows, self.ends = [], []
        self.program = PROGRAMS[job.style](self)

    def begin(self, iteration):
        """The host starts an iteration: what the causes do to it, the data loader, the size of its batch."""
        job = self.job
        self.iteration = iteration
        self.device = self.speed * (job.warm_up_factor if iteration < job.warm_up else 1)
        # work: the batch's tokens; attention: those of its sequences, squared; extra: kernels of a layer, of that length.
        self.work = job.batches[(iteration * 613 + self.place[1] * 7907) % NOISE] if job.variable else 1.0
        self.attention, self.extra = self.work, (0, 0.0)
        self.launch, self.stall, self.middle_stall = job.launch, 0.0, 0.0
        for cause in job.causes_of[self.number]:
            cause.apply(self, iteration)
        self.host += job.loader + self.stall
        self.overhead()

    def middle(self):
        """Between the passes."""
        self.host += self.middle_stall

    def activations(self):
        """Bytes of a layer's result, which grow with the batch."""
        return int(self.job.activation_bytes * self.work) // 256 * 256

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

    def extra_kernels(self, name, seconds):
        """Kernels that the twin lacks read no noise of their own: what follows has the same noise in both."""
        places = self.at, self.host_at
        for _ in range(self.extra[0]):
            self.kernel(name, seconds, self.extra[1])
        self.at, self.host_at = places

    def operation(self, group, name, size, stream, start=None):
        """Enqueues an operation after the kernels launched so far; yield the meeting that this returns."""
        issued = self.overhead()
        if start is None:
            start = max(self.streams[stream], self.compute)
        start = max(start, issued + LAUNCH_TO_START)
        kind = name if name in POINT_TO_POINT else ""       # a pair's sends meet the receives of the other
        number = self.numbers[group.index, kind]
        self.numbers[group.index, kind] = number + 1
        sender = self.number if kind == "Send" else sum(group.members) - self.number if kind else -1
        return self.job.arrive((group.index, sender, number), group, (self, name, number, start, issued, size, stream))

    def wait(self, stream):
        """Kernels launched from here on start after the operations of the stream."""
        self.compute = max(self.compute, self.streams[stream])

    def end(self):
        """The optimizer's step is launched; the host reads the loss, or may run ahead by an iteration."""
        self.ends.append(self.compute)
        if self.job.sync:
            self.host = max(self.host, self.compute)
        elif len(self.ends) > 1:
            self.host = max(self.host, self.ends[-2])


class Simulation:
    """Runs a job (jobs.py) with some of its causes. record: keep the rows."""

    def __init__(self, job, causes, iterations=None, record=False, noise=True):
        self.__dict__.update(job.__dict__)
        self.place, self.record, self.iterations = job.place, record, iterations or job.iterations
        if not noise:
            self.kernels = self.hosts = self.network = self.batches = [1.0] * NOISE
        self.groups = job.groups()
        self.causes_of = collections.defaultdict(list)
        for cause in causes:
            cause.prepare(self)
            for rank in cause.ranks:
                self.causes_of[rank].append(cause)
        by_rank = collections.defaultdict(dict)
        for group in self.groups:
            for rank in group.members:
                by_rank[rank].setdefault(group.kind, []).append(group)
        self.meetings = {}
        self.ranks = [Rank(self, number, by_rank[number]) for number in range(self.world)]
        self.run()

    def arrive(self, key, group, arrival):
        meeting = self.meetings.get(key)
        if meeting is None:
            meeting = self.meetings[key] = Meeting(group)
        meeting.begun = arrival[3]
        meeting.arrived.append(arrival)
        if len(meeting.arrived) == meeting.need:
            del self.meetings[key]
            self.finish(meeting)
        return meeting

    def finish(self, meeting):
        group, arrived = meeting.group, meeting.arrived
        first = arrived[0]
        iteration, size = first[0].iteration, max(arrival[5] for arrival in arrived)
        end = max(arrival[3] for arrival in arrived) + group.seconds(self, first[1], size, iteration, first[2])
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
