"""Runs the trainer without a fault, in all its modes, until an hour of job time is full: none of these jobs may get a finding
that a rank, a device, a link or the whole job is slow (DC601, DC604 to DC608).

    clean_runs.py BUILD [--minutes N] [--nice N] [--keep FOLDER]

What other programs run beside it is the noise, so it prints the load. Ends with status 1 if there was such a finding."""

import argparse
import collections
import itertools
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time

FINDINGS = ("DC601", "DC604", "DC605", "DC606", "DC607", "DC608")
JOBS = (
    ("--ranks 2", "--ranks 4", "--model cnn --ranks 2", "--model cnn --ranks 4", "--mode dp --model cnn", "--mode mirrored --model cnn",
     "--mode pipeline --model cnn --ranks 2", "--mode pipeline --ranks 2", "--mode dp", "--mode mirrored",
     "--model cnn --ranks 2 --amp fp16", "--ranks 2 --amp bf16", "--model cnn --ranks 2 --accumulate 4",
     "--model cnn --ranks 4 --bucket-mb 0 --first-bucket-mb 0", "--ranks 2 --join", "--ranks 3 --simultaneous",
     "--ranks 2 --barrier-every 5", "--ranks 2 --exchange-every 3", "--model cnn --ranks 2 --find-unused",
     "--ranks 2 --reduce-copies", "--ranks 2 --discriminator-updates 2", "--model cnn --ranks 2 --batch 64"))
DEVICES, ITERATIONS = 4, 300


def run_job(build, folder, options, timing, niceness):
    """How long it ran, and codes and sentences of the FINDINGS that its report has."""
    tool, trainer = os.path.join(build, "bin", "ddpcheck"), os.path.join(build, "bin", "ddptrain")
    devices = 2 if "--mode" in options and "--ranks" not in options else DEVICES
    trace = os.path.join(folder, "trace")
    command = ["nice", "-n", str(niceness), tool, "run", "-q", *(["--timing"] if timing else []), "--emulate", str(devices),
               "-o", trace, "--", trainer, *options.split(), "--iterations", str(ITERATIONS)]
    begin = time.monotonic()
    done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    seconds = time.monotonic() - begin
    if done.returncode:
        sys.exit("clean_runs: %s ended with %d:\n%s" % (" ".join(command), done.returncode, done.stderr[-4000:]))
    report = subprocess.run([tool, "report", "--json", trace], capture_output=True, text=True)
    lines = [json.loads(line) for line in report.stdout.splitlines()]
    found = [line for line in lines if line["schema"].startswith("ddpcheck.finding/") and line["code"] in FINDINGS and
             line.get("state") != "resolved"]
    return seconds, [(line["code"], line["what"]) for line in found]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build")
    parser.add_argument("--minutes", type=float, default=60, help="job time (60)")
    parser.add_argument("--nice", type=int, default=0, help="niceness of the jobs (0)")
    parser.add_argument("--keep", metavar="FOLDER", help="keep the traces there, to read them again with another analyzer")
    options = parser.parse_args()
    spent, loads, counts, wrong = 0.0, [], collections.Counter(), []
    for number, (job, timing) in enumerate(itertools.cycle(itertools.product(JOBS, (False, True)))):
        if spent >= 60 * options.minutes:
            break
        with tempfile.TemporaryDirectory(prefix="ddpcheck-clean-") as folder:
            if options.keep:
                folder = os.path.join(options.keep, "%04d" % number)
                os.makedirs(folder)
            seconds, found = run_job(os.path.abspath(options.build), folder, job, timing, options.nice)
        spent += seconds
        loads.append(os.getloadavg()[0])
        counts[timing] += 1
        for code, what in found:
            wrong.append(number)
            print("%s%s (load %.0f): %s %s" % (job, ", --timing" if timing else "", loads[-1], code, what), flush=True)
        if number % 20 == 19:
            print("%d runs, %.1f minutes, %d with a finding" % (number + 1, spent / 60, len(set(wrong))), flush=True)
    print("%d runs, %d of them with --timing, %.1f minutes of job time, load %.0f to %.0f (median %.0f): %d with a finding"
          % (sum(counts.values()), counts[True], spent / 60, min(loads), max(loads), statistics.median(loads), len(set(wrong))))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
