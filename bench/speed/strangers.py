"""Writes timelines of a second generator: pipelines and replicas as published traces record them, and what slows each.

    strangers.py FOLDER [SEEDS]     score.py BUILD SEEDS --jobs FOLDER then scores them (default: 1-48)

A seed's remainder by eight is its cause: none, slow device, late host, slow link, more work, uneven work, a heavier last stage, slow from an
iteration on. Jobs are 1F1B pipelines of replicas with parameters gathered first and gradients reduced last. A third of the jobs records each
n-th iteration, a third a few of every twenty, a third all. Of half, a receive is recorded when its data is there. It shares no code with
generate.py or ddpcheck, and was written without regard to how either judges."""

import csv
import json
import os
import random
import statistics
import sys

CAUSES = ("", "slow-device", "slow-host", "slow-link", "more-work", "uneven-work", "uneven-stages", "slow-since")
CODES = {"slow-device": ["DC604", "DC605", "DC601"], "slow-host": ["DC601"], "slow-link": ["DC606"], "more-work": ["DC605", "DC604", "DC601"],
         "uneven-work": ["DC609"], "uneven-stages": ["DC610"], "slow-since": ["DC607"]}
COPY = 0.00001                  # seconds that a receive takes whose data is there
COLUMNS = ("rank", "host", "operation", "start", "duration", "group", "iteration", "peer")


class Job:
    """Its shape, its randomness (drawn before any cause is applied), and its one cause."""

    def __init__(self, seed):
        draw = random.Random(seed * 7919 + 13)
        self.seed, self.kind = seed, CAUSES[seed % len(CAUSES)]
        self.stages = draw.choice((2, 3, 4)) if self.kind in ("uneven-stages", "slow-link") else draw.choice((1, 1, 2, 4))
        self.replicas = draw.choice((2, 4, 8)) if self.stages > 1 else draw.choice((4, 8, 16))
        self.batches = self.stages * draw.choice((2, 3))
        self.world, self.recorded = self.stages * self.replicas, draw.choice((48, 60))
        self.sampling = ("all", "each", "some")[seed // len(CAUSES) % 3]
        step = draw.choice((5, 50))
        self.numbers = {"all": list(range(self.recorded)), "each": [100 + step * i for i in range(self.recorded)],
                        "some": [i // 4 * 20 + i % 4 + 3 for i in range(self.recorded)]}[self.sampling]
        self.short_receives = draw.random() < 0.5
        self.forward, self.backward = draw.uniform(0.004, 0.02), draw.uniform(0.008, 0.04)
        self.wire, self.gather = 0.0008, draw.uniform(0.002, 0.006)
        self.victim, self.amount = draw.randrange(self.world), draw.uniform(1.25, 1.7)
        self.since = self.recorded // 2 if self.kind == "slow-since" else 0
        self.offset = [draw.uniform(0, 5000) for _ in range(self.world)]
        self.noise = {}
        for key in ((i, r, b) for i in range(self.recorded) for r in range(self.world) for b in range(self.batches)):
            self.noise[key] = (draw.gauss(1, 0.01), draw.gauss(1, 0.01))
        spread = [[draw.lognormvariate(0, 0.35) for _ in range(self.batches * self.replicas)] for _ in range(self.recorded)]
        self.length = [[value / statistics.fmean(row) for value in row] for row in spread]

    def stage(self, rank):
        return rank // self.replicas

    def work(self, i, rank, batch, backward, faulty):
        seconds = (self.backward if backward else self.forward) * self.noise[i, rank, batch][backward]
        replica, last = rank % self.replicas, self.stage(rank) == self.stages - 1
        if not faulty:              # a heavier stage's work is somebody's: without the fault all stages have the same
            return seconds * ((self.stages - 1 + self.amount) / self.stages if self.kind == "uneven-stages" else 1)
        return seconds * {"slow-device": self.amount if rank == self.victim else 1,
                          "more-work": self.amount if replica == self.victim % self.replicas else 1,
                          "uneven-work": self.length[i][replica * self.batches + batch],
                          "uneven-stages": self.amount if last else 1,
                          "slow-since": self.amount if i >= self.since else 1}.get(self.kind, 1)

    def delay(self, rank, faulty):
        return (self.amount - 1) * (self.forward + self.backward) / 2 if faulty and self.kind == "slow-host" and rank == self.victim else 0

    def moves(self, stage, faulty):
        """The link that is slow is that of all replicas of one stage: it costs as often as they meet."""
        slow = faulty and self.kind == "slow-link" and stage == self.stage(self.victim)
        return self.gather + (self.amount - 1) * self.batches * (self.forward + self.backward) / 2 * slow

    def program(self, rank):
        """1F1B: as many forwards first as there are stages behind it, then one of each in turn."""
        ahead = min(self.batches, self.stages - 1 - self.stage(rank))
        order = [(b, False) for b in range(ahead)]
        for b in range(self.batches):
            order += [(ahead + b, False)] * (ahead + b < self.batches) + [(b, True)]
        return order


def simulate(job, i, faulty, rows=None):
    """The seconds that an iteration takes; rows: what would be recorded, by the job's own time."""
    def note(rank, name, begin, end, group="", peer=""):
        if rows is not None:
            rows.append((rank, name, begin, end - begin, group, i, peer))
    at, arrives = {}, {}
    for stage in range(job.stages):
        ranks = range(stage * job.replicas, (stage + 1) * job.replicas)
        begin = {r: 0.0002 * job.noise[i, r, 0][0] + job.delay(r, faulty) for r in ranks}
        end = max(begin.values()) + job.gather
        for r in ranks:
            note(r, "AllGather", begin[r], end, "dp%d" % stage)
            at[r] = end
    left = {r: job.program(r) for r in range(job.world)}
    while any(left.values()):
        for r in left:
            while left[r]:
                batch, backward = left[r][0]
                ahead = r + job.replicas if backward else r - job.replicas
                needs = (job.stage(r) < job.stages - 1) if backward else job.stage(r) > 0
                if needs and (ahead, batch, backward) not in arrives:
                    break
                left[r].pop(0)
                if needs:
                    sent = arrives[ahead, batch, backward]
                    end = max(at[r] + COPY, sent + job.wire)
                    begin = max(at[r], min(sent, end - COPY)) if job.short_receives else at[r]
                    note(r, "recv", begin, end, "pp", ahead)
                    at[r] = end
                at[r] += job.delay(r, faulty)
                begin, at[r] = at[r], at[r] + job.work(i, r, batch, backward, faulty)
                note(r, "backward" if backward else "forward", begin, at[r])
                behind = r - job.replicas if backward else r + job.replicas
                if 0 <= behind < job.world:
                    arrives[r, batch, backward] = at[r]
                    note(r, "send", at[r], at[r] + job.wire, "pp", behind)
                    at[r] += 0.00002
    for stage in range(job.stages):
        ranks = range(stage * job.replicas, (stage + 1) * job.replicas)
        end = max(at[r] for r in ranks) + job.moves(stage, faulty)
        for r in ranks:
            note(r, "ReduceScatter", at[r], end, "dp%d" % stage)
            at[r] = end
    return max(at.values())


def truth(job, lasted):
    """As generate.py writes it: the job runs again without its cause."""
    share = 1 - sum(simulate(job, i, False) for i in range(job.since, job.recorded)) / sum(lasted[job.since:])
    every = list(range(job.world))
    ranks = {"slow-device": [job.victim], "slow-host": [job.victim], "more-work": [r for r in every if (r - job.victim) % job.replicas == 0],
             "slow-link": [r for r in every if job.stage(r) == job.stage(job.victim)],
             "uneven-stages": [r for r in every if job.stage(r) == job.stages - 1]}.get(job.kind, every)
    cause = {"kind": job.kind, "code": CODES[job.kind][0], "accepted": CODES[job.kind], "ranks": ranks, "visible": ranks,
             "enough": [[r] for r in ranks] if job.kind == "more-work" else [], "since": job.numbers[job.since] if job.since else 0, "period": 0,
             "mode": job.sampling, "share": round(share, 4), "alone": round(share, 4)} if job.kind else None
    return {"seed": job.seed, "style": job.sampling, "ranks": job.world, "grid": {"tp": 1, "dp": job.replicas, "pp": job.stages}, "noise": "quiet",
            "iterations": job.recorded, "has": {"kernels": True, "issued": False}, "causes": [cause] if cause else []}


def write(folder, seed):
    job = Job(seed)
    folder = os.path.join(folder, "%04d" % seed)
    os.makedirs(folder, exist_ok=True)
    lasted, table, begin, previous = [], [], 0.0, None
    for i, number in enumerate(job.numbers):
        rows = []
        lasted.append(simulate(job, i, True, rows))
        begin += lasted[-1] * (number - previous - 1) if previous is not None else 0
        table += [(rank, "node-%02d" % (rank // 4), name, "%.6f" % (job.offset[rank] + begin + start), "%.6f" % duration, group, number, peer)
                  for rank, name, start, duration, group, _, peer in rows]
        begin, previous = begin + lasted[-1], number
    with open(os.path.join(folder, "timeline.csv"), "w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([COLUMNS, *sorted(table, key=lambda row: (row[0], float(row[3])))])
    with open(os.path.join(folder, "truth.json"), "w", encoding="utf-8") as file:
        json.dump(truth(job, lasted), file, indent=1)


def main():
    if not 2 <= len(sys.argv) <= 3 or sys.argv[1].startswith("-"):
        sys.exit(__doc__)
    first, _, last = (sys.argv[2] if len(sys.argv) > 2 else "1-48").partition("-")
    for seed in range(int(first), int(last or first) + 1):
        write(sys.argv[1], seed)


if __name__ == "__main__":
    main()
