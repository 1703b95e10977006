"""How the analysis grows with the ranks of a job: `ddpcheck report` of made-up jobs of ever more ranks (rank_traces.c).

    ranks.py BUILD [MOST]      from 1,024 ranks to MOST (default: 65,536), each four times as many

Each rank is in six communicators. Prints the processor time and memory of each, and the exponent of the time's growth by least
squares; then what a report over a database for each of 2,048 hosts takes."""

import math
import os
import subprocess
import sys
import tempfile

LEAST, MOST, FACTOR = 1024, 65536, 4
ENDS = ("clean", "missing", "half", "skipped", "mismatch", "cycle")
HOST_RANKS, HOSTS = 8, 2048


def measured(command):
    """(processor seconds, peak memory in MB) of a command that finds something or nothing."""
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stdin=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    if os.waitstatus_to_exitcode(status) not in (0, 1):
        raise SystemExit("bench: %s failed with %d" % (command, status))
    return usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024


def exponent(points):
    """b of time = a * ranks^b, by least squares of the logarithms."""
    x, y = ([math.log(point[i]) for point in points] for i in (0, 1))
    mean_x, mean_y = sum(x) / len(x), sum(y) / len(y)
    return sum((a - mean_x) * (b - mean_y) for a, b in zip(x, y)) / sum((a - mean_x) ** 2 for a in x)


def growth(build, show, most=MOST):
    tool, make = os.path.join(build, "bin/ddpcheck"), os.path.join(build, "bench/bench_rank_traces")
    for end in ENDS:
        points, ranks = [], LEAST
        while ranks <= most:
            with tempfile.TemporaryDirectory(prefix="ddpcheck-bench-") as trace:
                subprocess.run([make, trace, end, str(ranks), "grid"], check=True)
                cpu, peak = measured([tool, "report", trace])
            points.append((ranks, cpu))
            show("%-10s %7d ranks %8.2f s of processor %8.0f MB" % (end, ranks, cpu, peak))
            ranks *= FACTOR
        if len(points) > 1:
            show("%-10s ranks^%.2f (aim: at most 1.1)" % (end, exponent(points)))
    with tempfile.TemporaryDirectory(prefix="ddpcheck-bench-") as trace:
        hosts = min(HOSTS, most // HOST_RANKS)
        subprocess.run([make, trace, "missing", str(hosts * HOST_RANKS), "grid", "hosts"], check=True)
        cpu, peak = measured([tool, "report", trace])
        show("missing, a database for each of %d hosts %8.2f s of processor %8.0f MB (aim: at most 10 s)" % (hosts, cpu, peak))


if __name__ == "__main__":
    growth(sys.argv[1], print, int(sys.argv[2]) if len(sys.argv) > 2 else MOST)
