"""Writes the rows of a simulated job as a timeline: CSV, JSON lines or Chrome events, each rank by a clock of its own."""

import gzip
import json
import operator
import os
import random

from simulate import Simulation

COLUMNS = ("rank", "host", "group", "operation", "number", "iteration", "start", "duration", "issued", "bytes")
SECONDS = ("start", "duration", "issued")
SUFFIX = {"csv": ".csv", "jsonl": ".jsonl", "chrome": ".json"}


def clocks(job):
    """(offset, rate) of each host: no two hosts' clocks can be compared."""
    draw = random.Random(job.seed + 900001)
    return [(draw.uniform(0, 1e5), 1 + draw.uniform(-8e-5, 8e-5)) for _ in range(job.node(job.world - 1) + 1)]


def absent(job):
    """The columns that the tool did not know."""
    return {name for name in ("issued", "iteration", "bytes", "host") if not job.has[name]}


def started(row):
    return row.start


def rows(job, simulation):
    """The values of all rows in the order of COLUMNS, "" where there is none: rank after rank, or as they were issued."""
    clock = clocks(job)
    found = ((row.issued, rank.number, row) for rank in simulation.ranks
             for row in sorted(rank.rows, key=started) if row.group or job.has["kernels"])
    for _, rank, row in sorted(found, key=lambda one: one[:2]) if job.order == "time" else found:
        host, group = job.node(rank), row.group
        offset, rate = clock[host]
        yield (rank, "node-%02d" % host, group.name if group else "", row.name, row.number if group else "", row.iteration,
               offset + row.start * rate, (row.end - row.start) * rate, offset + row.issued * rate, row.bytes if group else "")


def csv_lines(job, found):
    kept = [place for place, name in enumerate(COLUMNS) if name not in absent(job)]
    number = "%%.%df" % job.digits
    line = ",".join(number if COLUMNS[place] in SECONDS else "%s" for place in kept) + "\n"
    pick = operator.itemgetter(*kept)
    yield ",".join(pick(COLUMNS)) + "\n"
    for row in found:
        yield line % pick(row)


def known(job, row):
    """The columns of a row that have a value; a kernel has no communicator, and says so."""
    return {name: round(value, job.digits) if name in SECONDS else value for name, value in zip(COLUMNS, row)
            if (value != "" or name == "group") and name not in absent(job)}


def json_lines(job, found):
    for row in found:
        yield json.dumps(known(job, row)) + "\n"


def chrome_lines(job, found):
    """Complete events of the trace event format: times in microseconds, what else is known in args."""
    yield '{"displayTimeUnit": "ms", "traceEvents": [\n'
    separator = ""
    for row in found:
        args = known(job, row)
        event = {"ph": "X", "name": args.pop("operation"), "pid": args["rank"], "tid": args["group"] or "kernels"}
        event.update(ts=round(args.pop("start") * 1e6, 3), dur=round(args.pop("duration") * 1e6, 3), args=args)
        if "issued" in args:
            args["issued"] = round(args["issued"] * 1e6, 3)
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
