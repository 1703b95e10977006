"""A program that ends while processes that it started still run and hang: they are named, --timeout ends them as part of the
job, and so does a signal. A job in a directory that another job is recorded into is told so."""

import os
import signal
import subprocess
import sys
import time

from line import Line, end_group

HANG = os.path.join("tests", "suite", "hang", "skipped_on_one_rank")
STATUS = 3
STILL_RUNS = "ddpcheck: the program has exited, and what it started still runs: "


def start(line, *options):
    script = "%s >/dev/null 2>&1 & until ls %s/*.db >/dev/null 2>&1; do sleep 0.1; done; exit %d" % (
        os.path.join(line.build, HANG), line.trace, STATUS)
    return subprocess.Popen([line.tool, "run", "--emulate", "4", "--hang-after", "1", *options, "-o", line.trace, "--",
                             "sh", "-c", script], stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)


def still_runs(pid):
    """Not one that has ended and was not yet waited for: it has no command line."""
    try:
        with open("/proc/%d/cmdline" % pid, encoding="utf-8") as file:
            return HANG in file.read()
    except (FileNotFoundError, ProcessLookupError):
        return False


def finish(line, job, said, what):
    """The job has ended with the status of the program, with nothing left behind, and its fault was found."""
    said += job.communicate(timeout=300)[1]
    assert job.returncode == STATUS and STILL_RUNS in said and " error DC201: " in said, (what, job.returncode, said)
    pids = [int(pid) for pid in said.split(STILL_RUNS)[1].split(";")[0].split(", ")]
    give_up = time.monotonic() + 120
    while any(map(still_runs, pids)) and time.monotonic() < give_up:        # a process that was killed takes a while to end
        time.sleep(0.05)
    assert len(pids) >= 4 and not any(map(still_runs, pids)), (what, pids, said)
    assert " error" in said.splitlines()[-1] and "report: ddpcheck report " in said.splitlines()[-1], (what, said)


def check_timeout(build):
    with Line(build, name="left") as line:
        finish(line, start(line, "--timeout", "3"), "", "--timeout")


def check_signal(build):
    with Line(build, name="left") as line:
        job, said = start(line), ""
        while STILL_RUNS not in said or " error DC201: " not in said:
            text = job.stderr.readline()
            assert text, said
            said += text
        job.send_signal(signal.SIGTERM)
        finish(line, job, said, "SIGTERM")


def check_other_job(build):
    with Line(build, name="left") as line:
        other = line.start_bare([os.path.join(line.build, HANG)], DDPCHECK_HANG_AFTER="1")
        try:
            while not line.live_database():
                assert other.poll() is None
            status, _, err = line.run(["true"])
            assert status == 0 and " already collects into " in err and "for another job, whose processes still run" in err, err
        finally:
            end_group(other)
            line.wait_collector()


def main():
    for check in (check_timeout, check_signal, check_other_job):
        check(sys.argv[1])


if __name__ == "__main__":
    main()
