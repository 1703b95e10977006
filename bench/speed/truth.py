"""What slows a job, as the simulation knows: each cause with its ranks and the share of the iteration that it costs.

share: beside the other causes; alone: in a job without them. enough: sets of its ranks each of which alone costs nearly as much."""

import copy
import json

from causes import CODES
from plan import TUNING
from simulate import Simulation

ENOUGH = 0.9                    # of what a cause costs, that a part of its ranks costs alone


def share(cause, ends, without):
    """The part of the iterations' time that would not be spent without the cause."""
    first = max(cause.since, 2) - 1
    took, would = (times[-1] - times[first] for times in (ends, without))
    return max(0.0, (took - would) / took)


def accepted(job, cause):
    """The codes that what is recorded allows to report for the cause."""
    codes = {CODES[cause.kind]}
    if not job.has["kernels"]:
        if not job.has["issued"] and cause.kind in ("slow-host", "slow-device", "throttle-after", "more-work"):
            codes |= {"DC601", "DC604", "DC605"}
        elif cause.kind in ("slow-device", "throttle-after", "more-work"):
            codes |= {"DC604", "DC605"}
    return sorted(codes)


def visible(job, cause):
    """The ranks that a finding may name: of a slow link no more is to be seen than which communicators are slow."""
    slow = [set(group.members) for group in job.groups() if cause.kind == "slow-link" and cause.crosses(job, group)]
    shared = set.intersection(*slow) if slow else set(cause.ranks)
    return sorted(shared or set.union(*slow))


def enough(job, cause, without, whole):
    """The ranks of a stage, where these alone cost nearly as much as all: what delays the other stages is hidden in their waiting."""
    stages = {}
    for rank in cause.ranks:
        stages.setdefault(job.place(rank)[2], []).append(rank)
    found = []
    is_divided = cause.kind != "slow-link" and len(stages) > 1 and len(cause.ranks) < job.world and whole
    for ranks in stages.values() if is_divided else ():
        part = copy.copy(cause)
        part.ranks = tuple(ranks)
        ends = Simulation(job, [part if other is cause else other for other in job.causes]).ends()
        if share(cause, ends, without) >= ENOUGH * whole:
            found.append(ranks)
    return found


def describe(job, cause, ends, clean):
    if len(job.causes) > 1:
        without = Simulation(job, [other for other in job.causes if other is not cause]).ends()
        alone = share(cause, Simulation(job, [cause]).ends(), clean)
    else:
        without, alone = clean, share(cause, ends, clean)
    costs = share(cause, ends, without)
    return {"kind": cause.kind, "code": CODES[cause.kind], "accepted": accepted(job, cause), "ranks": list(cause.ranks),
            "visible": visible(job, cause), "enough": enough(job, cause, without, costs),
            "since": cause.since, "period": cause.period, "mode": cause.mode, "amount": round(cause.amount, 6), "aim": round(cause.aim, 4),
            "share": round(costs, 4), "alone": round(alone, 4)}


def truth(job, simulation):
    ends = simulation.ends()
    clean = Simulation(job, []).ends() if job.causes else ends
    return {"seed": job.seed, "half": "tuning" if job.seed in TUNING else "test", "style": job.style, "ranks": job.world,
            "grid": dict(zip(("tp", "dp", "pp"), job.grid)), "ranks_per_host": job.per_host, "iterations": job.iterations,
            "noise": job.noise, "variable_batches": job.variable, "warm_up": job.warm_up, "sync": job.sync, "uneven": job.uneven,
            "has": {name: known for name, known in sorted(job.has.items())}, "format": job.format,
            "iteration_seconds": round((ends[-1] - ends[2]) / (len(ends) - 3), 6),
            "causes": [describe(job, cause, ends, clean) for cause in job.causes]}


def write_truth(job, simulation, path):
    with open(path, "w", encoding="utf-8") as file:
        json.dump(truth(job, simulation), file, indent=1)
        file.write("\n")
