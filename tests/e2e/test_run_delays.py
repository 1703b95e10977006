"""For how long threads of a job had no processor is in the trace: of two ranks that have to share one."""

import os
import sys

from line import Line

ITERATIONS = 600      # some seconds


def main():
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    with Line(sys.argv[1], devices=2, name="run-delays") as line:
        status, out, err = line.run([line.trainer, "--ranks", "2", "--model", "cnn", "--iterations", str(ITERATIONS)], timeout=600)
        assert status == 0, out + err
        rows = line.query("SELECT process, w0, w1, w2, w4 >> 32 FROM event WHERE api = "
                          "(SELECT number FROM api WHERE name = 'notice_run_delay')")
        print(rows)
        assert {row[0] for row in rows} == {0, 1} or not os.access("/proc/self/schedstat", os.R_OK), rows
        for _, interval, longest, together, threads in rows:
            assert interval / 100 <= longest <= min(interval, together), (interval, longest, together)
            assert together <= threads * interval, (together, threads, interval)


if __name__ == "__main__":
    main()
