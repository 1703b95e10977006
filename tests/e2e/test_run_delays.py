"""For how long threads of a job had no processor is in the trace: of two ranks that have to share one."""

import os
import signal
import sys

from line import Line

ITERATIONS = 1000000      # the job ends when there is enough
READINGS = 3              # of each rank
ROWS = ("SELECT process, w0, w1, w2, w5, w4 >> 32 FROM event WHERE api = "
        "(SELECT number FROM api WHERE name = 'notice_run_delay')")


def has_enough(line):
    of = [row[0] for row in line.live(ROWS)]
    return min(of.count(0), of.count(1)) >= READINGS


def main():
    if not os.access("/proc/self/schedstat", os.R_OK):
        return      # a kernel that does not say it
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    with Line(sys.argv[1], devices=2, name="run-delays") as line:
        program = [line.trainer, "--ranks", "2", "--model", "cnn", "--iterations", str(ITERATIONS)]
        status, out, err = line.run_until(program, [], has_enough)
        assert status == 128 + signal.SIGTERM, (status, out, err)
        rows = line.query(ROWS)
        print(rows)
        assert {row[0] for row in rows} == {0, 1} and has_enough(line), rows
        for _, interval, longest, together, children, threads in rows:
            assert interval / 100 <= max(longest, children) <= min(interval, together), (interval, longest, children, together)
            assert together <= threads * interval, (together, threads, interval)


if __name__ == "__main__":
    main()
