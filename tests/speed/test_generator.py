"""The made-up jobs of bench/speed: a seed is always the same bytes, rows are valid, and a job differs from its clean twin by its causes."""

import collections
import csv
import gzip
import json
import os
import subprocess
import sys
import tempfile
import types
import unittest

FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "bench", "speed")
sys.path.insert(0, FOLDER)

import plan  # noqa: E402
import timeline  # noqa: E402
import truth  # noqa: E402
from causes import CODES, Cause  # noqa: E402
from simulate import Simulation  # noqa: E402

NUMBERS = {"rank": int, "number": int, "iteration": int, "bytes": int, "start": float, "duration": float, "issued": float}
LARGEST = 16        # ranks of the jobs that are simulated here
JOBS = [plan.choose(seed) for seed in range(1, 1001)]


def seeds_of(wanted, count=1):
    """The first seeds whose small jobs are like that."""
    found = [job.seed for job in JOBS if job.world <= LARGEST and wanted(job)][:count]
    assert len(found) == count, "no such job"
    return found


def seed_of_kind(kind, mode=None):
    """A job with this one cause that costs enough to be seen beside the noise, and whose host waits for its device."""
    return seeds_of(lambda job: job.sync and len(job.causes) == 1 and job.causes[0].kind == kind and mode in (None, job.causes[0].mode)
                    and job.causes[0].aim > 0.1)[0]


def read_rows(path):
    """The rows of a timeline as dictionaries of numbers and texts, times in seconds; what it does not know is absent."""
    with gzip.open(path, "rt") if path.endswith(".gz") else open(path, encoding="utf-8") as file:
        if ".csv" in path:
            return [{name: NUMBERS.get(name, str)(text) for name, text in row.items() if text != "" or name == "group"}
                    for row in csv.DictReader(file, strict=True)]
        if ".jsonl" in path:
            return [json.loads(line) for line in file]
        return [chrome_row(event) for event in json.load(file)["traceEvents"]]


def chrome_row(event):
    assert event["ph"] == "X" and event["pid"] == event["args"]["rank"]
    row = dict(event["args"], operation=event["name"], start=event["ts"] / 1e6, duration=event["dur"] / 1e6)
    if "issued" in row:
        row["issued"] /= 1e6
    return row


def listed_ranks(text):
    """"0-2" or "0 4" -> ranks; None for a name."""
    if text.isdigit() or not text.replace("-", "").replace(" ", "").isdigit():
        return None
    first, dash, last = text.partition("-")
    return list(range(int(first), int(last) + 1)) if dash else [int(rank) for rank in text.split()]


class Files(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="ddpcheck-speed-")
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def generate(self, name, numbers, **environment):
        folder = os.path.join(self.folder, name)
        subprocess.run([sys.executable, os.path.join(FOLDER, "generate.py"), folder, ",".join(map(str, numbers))], check=True,
                       env={**os.environ, **environment}, stdin=subprocess.DEVNULL)
        return {os.path.relpath(os.path.join(where, file), folder): os.path.join(where, file)
                for where, _, files in os.walk(folder) for file in files}

    def test_same_seed_same_bytes(self):
        numbers = seeds_of(lambda job: job.causes and job.packed) + seeds_of(lambda job: job.grid[2] > 1 and job.format == "jsonl")
        one, other = self.generate("one", numbers, PYTHONHASHSEED="1"), self.generate("other", numbers, PYTHONHASHSEED="2")
        self.assertEqual(sorted(one), sorted(other))
        self.assertEqual(len(one), 2 * len(numbers))
        for name in one:
            with open(one[name], "rb") as left, open(other[name], "rb") as right:
                self.assertEqual(left.read(), right.read(), name)
        with open(one["%04d/truth.json" % numbers[0]], encoding="utf-8") as left, \
                open(one["%04d/truth.json" % numbers[1]], encoding="utf-8") as right:
            self.assertNotEqual(left.read(), right.read())

    def test_rows(self):
        """All styles and formats, whatever columns they have."""
        for form in timeline.WRITERS:
            for style in ("ddp", "fsdp", "tp", "3d"):
                seed = seeds_of(lambda job: job.style == style and job.format == form)[0]
                with self.subTest(form=form, style=style, seed=seed):
                    self.check_rows(plan.choose(seed), self.generate(form + style, [seed]))

    def check_rows(self, job, files):
        rows = read_rows(next(path for name, path in files.items() if "timeline" in name))
        numbers, members, place = collections.defaultdict(list), collections.defaultdict(set), {}
        for row in rows:
            self.check_row(job, row)
            if row["group"]:
                direction = row["operation"] if row["operation"] in ("Send", "Recv") else ""
                numbers[row["group"], direction, row["rank"]].append(row["number"])
                members[row["group"]].add(row["rank"])
            if "iteration" in row and job.order == "rank":
                self.assertGreaterEqual(row["iteration"], place.get(row["rank"], 0))
                place[row["rank"]] = row["iteration"]
        self.assertEqual({row["rank"] for row in rows}, set(range(job.world)))
        self.assertEqual(len(members), len(job.groups()))
        for key, found in numbers.items():
            self.assertEqual(sorted(found), list(range(len(found))), key)
        for (group, direction, rank), found in numbers.items():
            self.assertIn(listed_ranks(group), (None, sorted(members[group])))
            if not direction:
                self.assertEqual({len(numbers[group, "", member]) for member in members[group]}, {len(found)}, group)
            else:
                peer, = members[group] - {rank}
                self.assertEqual(len(found), len(numbers[group, "Recv" if direction == "Send" else "Send", peer]))

    def check_row(self, job, row):
        self.assertLess(row["rank"], job.world)
        self.assertTrue(row["operation"])
        self.assertGreater(row["duration"], 0)
        self.assertEqual("number" in row, bool(row["group"]))
        for name in ("host", "iteration", "issued"):
            self.assertEqual(name in row, job.has[name])
        self.assertEqual("bytes" in row, job.has["bytes"] and bool(row["group"]))
        self.assertTrue(row["group"] or job.has["kernels"])
        self.assertLessEqual(row.get("issued", row["start"]), row["start"])
        self.assertLess(row.get("iteration", 0), job.iterations)


def kernel_seconds(simulation, rank):
    return [(row.name, round(row.end - row.start, 12)) for row in simulation.ranks[rank].rows if not row.group]


def host_seconds(rank):
    """The host's own time in a job that waits for its device once an iteration: until the iteration's last launch."""
    last = {}
    for row in rank.rows:
        last[row.iteration] = max(last.get(row.iteration, 0), row.issued)
    return last[0] + sum(last[number] - rank.ends[number - 1] for number in range(1, len(rank.ends)))


def transfers(simulation):
    """{(group, name, number): seconds from the last member's start to the end}"""
    starts, ends = collections.defaultdict(list), {}
    for rank in simulation.ranks:
        for row in rank.rows:
            if row.group:
                sender = rank.number if row.name == "Send" else sum(row.group.members) - rank.number if row.name == "Recv" else -1
                starts[row.group.index, sender, row.number].append(row.start)
                ends.setdefault((row.group.index, sender, row.number), set()).add(row.end)
    assert all(len(found) == 1 for found in ends.values()), "an operation ends on all of its members at once"
    return {key: next(iter(ends[key])) - max(found) for key, found in starts.items()}


class Twins(unittest.TestCase):
    """Each kind of cause does what it says, and nothing else differs from the same job without it."""

    def twins(self, kind, mode=None):
        job = plan.plan(seed_of_kind(kind, mode))
        cause, = job.causes
        faulty, clean = Simulation(job, [cause], record=True), Simulation(job, [], record=True)
        described = truth.truth(job, faulty)["causes"][0]
        self.assertEqual((described["kind"], described["ranks"], described["since"]), (kind, list(cause.ranks), cause.since))
        first = max(cause.since, 2) - 1
        took, would = (one.ends()[-1] - one.ends()[first] for one in (faulty, clean))
        self.assertAlmostEqual(described["share"], 1 - would / took, 4)
        self.assertEqual(described["share"], described["alone"])
        self.assertGreater(described["share"], 0.4 * cause.aim)
        self.assertEqual(faulty.ends()[:cause.since], clean.ends()[:cause.since])
        return job, cause, faulty, clean

    def assert_kernels(self, cause, faulty, clean, factor):
        """The kernels on the cause's ranks take so much longer from then on; all others take as long as in the twin."""
        for rank in faulty.ranks:
            here = [row for row in rank.rows if not row.group]
            there = [row for row in clean.ranks[rank.number].rows if not row.group]
            self.assertEqual([row.name for row in here], [row.name for row in there])
            for one, other in zip(here, there):
                acts = rank.number in cause.ranks and one.iteration >= cause.since
                self.assertAlmostEqual((one.end - one.start) / (other.end - other.start), factor(one.name) if acts else 1, 6)

    def assert_same_transfers(self, faulty, clean):
        here, there = transfers(faulty), transfers(clean)
        self.assertEqual(here.keys(), there.keys())
        for key, seconds in here.items():
            self.assertAlmostEqual(seconds, there[key], 9)

    def test_slow_host(self):
        for mode in ("loader", "middle", "launch"):
            with self.subTest(mode):
                job, cause, faulty, clean = self.twins("slow-host", mode)
                self.assert_kernels(cause, faulty, clean, lambda name: 1)
                self.assert_same_transfers(faulty, clean)
                for rank in faulty.ranks:
                    launches = len(rank.rows) if mode == "launch" else job.iterations
                    more = host_seconds(rank) - host_seconds(clean.ranks[rank.number])
                    stalls = cause.amount * launches if rank.number in cause.ranks else 0
                    self.assertLess(abs(more - stalls), 1e-6 + (0.2 if mode == "launch" else 0.1) * stalls)

    def test_slow_device(self):
        for kind in ("slow-device", "throttle-after", "slow-since"):
            with self.subTest(kind):
                _, cause, faulty, clean = self.twins(kind)
                self.assert_kernels(cause, faulty, clean, lambda name: 1 + cause.amount)
                self.assert_same_transfers(faulty, clean)

    def test_more_work(self):
        _, cause, faulty, clean = self.twins("more-work", "longer")
        self.assert_kernels(cause, faulty, clean, lambda name: (1 + cause.amount) ** (2 if "flash" in name else "adamw" not in name))
        _, cause, faulty, clean = self.twins("more-work", "more")
        for rank in faulty.ranks:
            here, there = kernel_seconds(faulty, rank.number), kernel_seconds(clean, rank.number)
            self.assertEqual(len(here) > len(there), rank.number in cause.ranks)
            self.assertFalse(collections.Counter(there) - collections.Counter(here), "the twin's kernels are all there")

    def test_slow_link(self):
        job, cause, faulty, clean = self.twins("slow-link")
        self.assert_kernels(cause, faulty, clean, lambda name: 1)
        slow = {group.index for group in job.groups() if cause.crosses(job, group)}
        self.assertTrue(slow)
        iterations = {(row.group.index, row.number): row.iteration for rank in faulty.ranks for row in rank.rows if row.group}
        there = transfers(clean)
        for (group, sender, number), seconds in transfers(faulty).items():
            acts = group in slow and iterations[group, number] >= cause.since
            self.assertAlmostEqual(seconds / there[group, sender, number], 1 + cause.amount if acts else 1, 6)

    def test_pause(self):
        for mode in ("one", "all"):
            with self.subTest(mode):
                _, cause, faulty, clean = self.twins("pause", mode)
                self.assert_kernels(cause, faulty, clean, lambda name: 1)
                longer = [number for number in range(1, faulty.iterations)
                          if faulty.ends()[number] - faulty.ends()[number - 1]
                          > clean.ends()[number] - clean.ends()[number - 1] + 0.2 * cause.amount]
                self.assertTrue(longer)
                self.assertEqual({number % cause.period for number in longer}, {cause.period - 1})

    def test_pauses_at_varying_distances(self):
        """Above seed 3000; the seeds below have none, as they always had."""
        seed = next(seed for seed in range(3001, 3200) if [cause.mode for cause in plan.choose(seed).causes] == ["varying"])
        cause, = plan.choose(seed).causes
        at = sorted(cause.at)
        distances = [after - before for before, after in zip(at, at[1:])]
        self.assertGreater(len(set(distances)), 1)
        self.assertTrue(all(0.7 * cause.period - 1 <= distance <= 1.3 * cause.period + 1 for distance in distances), distances)
        rank = types.SimpleNamespace(stall=0.0, number=cause.ranks[0])
        cause.amount = 1.0
        stalled = []
        for iteration in range(at[-1] + 1):
            before = rank.stall
            cause.apply(rank, iteration)
            if rank.stall > before:
                stalled.append(iteration)
        self.assertEqual(stalled, at)
        self.assertFalse(any(cause.mode == "varying" for seed in range(1, 400) for cause in plan.choose(seed).causes))

    def test_several_causes(self):
        """A rank that is as slow as another one costs nothing beside it, and as much alone."""
        job = plan.plan(seed_of_kind("slow-device"))
        cause, = job.causes
        job.causes = [cause, Cause("slow-device", [(cause.ranks[0] + 1) % job.world], cause.aim, amount=cause.amount)]
        described = truth.truth(job, Simulation(job, job.causes))["causes"]
        for one in described:
            self.assertLess(one["share"], 0.4 * one["alone"])
            self.assertGreater(one["alone"], 0.4 * cause.aim)

    def test_how_the_program_communicates(self):
        for kind in ("small-operations", "unoverlapped"):
            job = plan.plan(seeds_of(lambda job: [cause.kind for cause in job.causes] == [kind])[0])
            faulty, clean = Simulation(job, job.causes, record=True), Simulation(job, [], record=True)
            operations = [sum(bool(row.group) for row in one.ranks[0].rows) for one in (faulty, clean)]
            sizes = [sum(row.bytes for row in one.ranks[0].rows) for one in (faulty, clean)]
            self.assertEqual(operations[0] > operations[1], kind == "small-operations")
            self.assertLess(abs(sizes[0] / sizes[1] - 1), 0.01)


class Set(unittest.TestCase):
    """Both halves have what the figures are about."""

    def test_halves(self):
        self.assertEqual(set(plan.TUNING) | set(plan.TEST), {job.seed for job in JOBS})
        self.assertFalse(set(plan.TUNING) & set(plan.TEST))
        for half in (plan.TUNING, plan.TEST):
            jobs = [JOBS[seed - 1] for seed in half]
            kinds = collections.Counter(cause.kind for job in jobs for cause in job.causes)
            counts = collections.Counter(len(job.causes) for job in jobs)
            sizes = collections.Counter(job.world for job in jobs)
            self.assertEqual(set(kinds), set(CODES))
            self.assertGreater(min(kinds.values()), 5)
            self.assertEqual(set(counts), {0, 1, 2, 3})
            self.assertGreater(min(counts.values()), 30)
            self.assertTrue({2, 4, 8, 16, 32, 64, 256, 1024, 4096} <= set(sizes), sizes)

    def test_changes_leave_evidence(self):
        for job in JOBS:
            for cause in job.causes:
                if cause.since:
                    self.assertGreaterEqual(min(cause.since, job.iterations - cause.since), 20)
                self.assertLessEqual(5 * cause.period, job.iterations)

    def test_single_ranks_differ(self):
        for job in JOBS:
            single = [set(cause.ranks) for cause in job.causes if len(cause.ranks) < job.world]
            self.assertEqual(len(set().union(*single)), sum(map(len, single)), "seed %d" % job.seed)

    def test_clocks(self):
        job = plan.choose(25)
        clocks = timeline.clocks(job)
        self.assertEqual(len(clocks), job.world // 8)
        self.assertGreater(max(clocks)[0] - min(clocks)[0], 1000)


if __name__ == "__main__":
    unittest.main()
