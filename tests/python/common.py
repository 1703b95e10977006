"""What the tests of this directory share: the job, its marked lines, and running it under each Python."""

import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "e2e"))

from line import Line  # noqa: E402
from pythons import pythons  # noqa: E402,F401

JOB = os.path.join(HERE, "job.py")


def marked(mark, index=0):
    """Number of the index-th line that ends in `# mark`."""
    with open(JOB, encoding="utf-8") as file:
        return [number for number, line in enumerate(file, 1) if line.rstrip().endswith("# " + mark)][index]


def short(name):
    """Without the class and function around it, which Python tells from 3.11 on."""
    return name.rpartition(".")[2]


def places(frames):
    """(function, line) of the frames that stand in the job."""
    return [(short(frame["function"]), frame["line"]) for frame in frames if frame["file"] == JOB]


def run(python, what, ranks=4, options=(), environment=None, timeout=300, until=None):
    """(status, stderr, findings, stacks, findings as told in text) of a job under `ddpcheck run`. A job that hangs is
    terminated as a scheduler does it, once until(line)."""
    with Line(sys.argv[1], devices=ranks, name="python") as line:
        program, options = [python, JOB, what, str(ranks)], ["--hang-after", "1", *options]
        if until:
            status, _, err = line.run_until(program, options, until, timeout, environment)
        else:
            status, _, err = line.run(program, options, timeout, environment)
        _, findings, lines = line.report()
        _, text, _ = line.call([line.tool, "report", "--verbose", line.trace])
        stacks = [one for one in lines if one["schema"] == "ddpcheck.stack/1"]
        return status, err, findings, stacks, text
