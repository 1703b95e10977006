"""A finding is in the database less than a second after the last rank's call, while the job still hangs.

The bound is what ddpcheck promises for a machine that is not busy. So it is measured three times and all are printed; the
shortest one is compared, because something else that runs on the machine can only add to it."""

import sys
import time

from line import Line, end_group


def measure(build):
    """Seconds from the last host call that any rank entered to the finding's being readable."""
    with Line(build, name="latency") as line:
        job = line.start_bare([line.trainer, "--model", "gan", "--ranks", "4", "--iterations", "8", "--no-gang",
                               "--fault", "partial-barrier"])
        try:
            end = time.monotonic() + 300
            while not line.live_findings():
                assert job.poll() is None, "the job ended before it was diagnosed:\n" + job.communicate()[0]
                assert time.monotonic() < end, "no finding after 300 s"
                time.sleep(0.01)
            seen = time.time_ns()
            findings = line.live_findings()
            assert [code for code, _, _ in findings] == ["DC201"], findings
            assert job.poll() is None, "the job does not hang"
            (offset, last), = line.query(
                "SELECT max(p.realtime_ns - p.monotonic_ns), max(e.time_ns) FROM event e JOIN process p ON p.id = e.process "
                "WHERE e.phase = 1")
            return (seen - offset - last) / 1e9
        finally:
            end_group(job)
            line.wait_collector()


def main():
    seconds = [measure(sys.argv[1]) for _ in range(3)]
    print("found %s s after the last call" % ", ".join("%.3f" % each for each in seconds))
    assert min(seconds) < 1, "found too late"


if __name__ == "__main__":
    main()
