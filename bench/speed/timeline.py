"""Writes the rows of a simulated job as a timeline: CSV, JSON lines or Chrome events, each rank by a clock of its own."""

import gzip
import json
import os
import random

from simulate import Simulation

COLUMNS = ("rank", "host", "group", "operation", "number", "iteration", "start", "duration", "issued", "bytes")
SUFFIX = {"csv": ".csv", "jsonl": ".jsonl", "chrome": ".json"}


def clocks(job):
    """(offset, rate) of each host: no two hosts' clocks can be compared."""
    draw = random.Random(job.seed + 900001)
    return [(draw.uniform(0, 1e5), 1 + draw.uniform(-8e-5, 8e-5)) for _ in range(job.node(job.world - 1) + 1)]


def absent(job):
    """The columns that the tool did not know."""
    return {name for name in ("issued", "iteration", "bytes", "host") if not job.has[name]}


def values(job, rank, row, clock):
    """A row as a tool writes it: the values in the order of COLUMNS, None where it has none."""
    offset, rate = clock
    group, digits = row.group, job.digits
    start = round(offset + row.start * rate, digits)
    return (rank, "node-%02d" % job.node(rank), group.name if group else "", row.name, row.number if group else None, row.iteration,
            start, round((row.end - row.start) * rate, digits), round(offset + row.issued * rate, digits),
            row.bytes if group else None)


def rows(job, simulation):
    """All rows, of one rank after the other or as they were issued."""
    clock = clocks(job)
    found = ((row.issued, rank.number, row) for rank in simulation.ranks for row in rank.rows if row.group or job.has["kernels"])
    for _, rank, row in sorted(found, key=lambda one: one[:2]) if job.order == "time" else found:
        yield values(job, rank, row, clock[job.node(rank)])


def csv_lines(job, found):
    kept = [place for place, name in enumerate(COLUMNS) if name not in absent(job)]
    numbers = {"start": "%%.%df", "duration": "%%.%df", "issued": "%%.%df"}
    yield ",".join(COLUMNS[place] for place in kept) + "\n"
    form = [numbers[name] % job.digits if name in numbers else "%s" for name in COLUMNS]
    quoted = job.names == "ranks"
    for row in found:
        texts = ["" if row[place] is None else form[place] % row[place] for place in kept]
        if quoted and " " in row[2]:
            texts[kept.index(2)] = '"%s"' % row[2]
        yield ",".join(texts) + "\n"


def json_lines(job, found):
    for row in found:
        yield json.dumps({name: value for name, value in zip(COLUMNS, row) if value is not None and name not in absent(job)}) + "\n"


def chrome_lines(job, found):
    """Complete events of the trace event format: times in microseconds, what else is known in args."""
    yield '{"displayTimeUnit": "ms", "traceEvents": [\n'
    separator = ""
    for row in found:
        known = {name: value for name, value in zip(COLUMNS, row) if value is not None and name not in absent(job)}
        args = {name: known[name] for name in ("rank", "host", "group", "number", "iteration", "bytes") if name in known}
        if "issued" in known:
            args["issued"] = round(known["issued"] * 1e6, 3)
        event = {"ph": "X", "name": known["operation"], "pid": known["rank"], "tid": args.get("group") or "kernels",
                 "ts": round(known["start"] * 1e6, 3), "dur": round(known["duration"] * 1e6, 3), "args": args}
        yield separator + json.dumps(event)
        separator = ",\n"
    yield "\n]}\n"


WRITERS = {"csv": csv_lines, "jsonl": json_lines, "chrome": chrome_lines}


def write_timeline(job, folder):
    """Simulates the job; returns the path of its timeline and the simulation."""
    simulation = Simulation(job, job.causes, record=True)
    path = os.path.join(folder, "timeline" + SUFFIX[job.format] + (".gz" if job.packed else ""))
    lines = WRITERS[job.format](job, rows(job, simulation))
    with open(path, "wb") as file:
        if job.packed:      # no name and no time in it: the same seed gives the same bytes
            with gzip.GzipFile("", "wb", 1, file, mtime=0) as packed:
                packed.writelines(line.encode() for line in lines)
        else:
            file.writelines(line.encode() for line in lines)
    return path, simulation
