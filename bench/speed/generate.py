"""Writes the timelines of made-up training jobs, and for each what slows it: the accuracy set of slow jobs.

    generate.py FOLDER [SEEDS]      SEEDS: 1-500 to tune with, 501-1000 to measure with (default: 1-1000), or 7 or 7,12-15

Each job is a folder FOLDER/SEED with timeline.csv (or .jsonl, .json, also .gz) and truth.json; README.md describes both. The same seed
gives the same bytes. It shares no code with ddpcheck."""

import multiprocessing
import os
import sys

from plan import plan
from timeline import write_timeline
from truth import write_truth


def seeds(text):
    """"7,12-15" -> [7, 12, 13, 14, 15]"""
    found = []
    for part in text.split(","):
        first, _, last = part.partition("-")
        found += range(int(first), int(last or first) + 1)
    return found


def generate(folder, seed, after=None):
    """Writes one job; returns the path of its timeline. after: it ends so many iterations after its last cause began."""
    folder = os.path.join(folder, "%04d" % seed)
    os.makedirs(folder, exist_ok=True)
    job = plan(seed)
    if after:
        job.iterations = min(job.iterations, max([cause.since for cause in job.causes], default=0) + after)
    path, simulation = write_timeline(job, folder)
    write_truth(job, simulation, os.path.join(folder, "truth.json"))
    return path


def generate_one(task):
    return generate(*task)


def main():
    if not 2 <= len(sys.argv) <= 3 or sys.argv[1].startswith("-"):
        sys.exit(__doc__)
    tasks = [(sys.argv[1], seed) for seed in seeds(sys.argv[2] if len(sys.argv) > 2 else "1-1000")]
    # The largest jobs are spread over the seeds, so small chunks keep all processors busy.
    with multiprocessing.Pool() as pool:
        for number, _ in enumerate(pool.imap_unordered(generate_one, tasks), 1):
            if sys.stderr.isatty():
                print("\r%d of %d" % (number, len(tasks)), end="", file=sys.stderr)
    if sys.stderr.isatty():
        print(file=sys.stderr)


if __name__ == "__main__":
    main()
