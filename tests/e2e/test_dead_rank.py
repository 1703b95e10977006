"""A rank killed while the others train: exactly DC205, naming the rank and the signal, while the others still hang."""

import os
import signal
import sqlite3
import sys
import time

from line import Line, end_group


def rank_of(pid, session):
    """The RANK that a process of the session was given; None for others."""
    try:
        with open("/proc/%d/stat" % pid) as stat:
            if int(stat.read().rpartition(")")[2].split()[3]) != session:
                return None
        with open("/proc/%d/environ" % pid) as environment:
            found = [line for line in environment.read().split("\0") if line.startswith("RANK=")]
        return int(found[0][5:]) if found else None
    except OSError:
        return None


def all_train(line):
    """Every rank is past its set-up."""
    try:
        return line.query("SELECT count(DISTINCT rank) FROM v_collective WHERE number > 1") == [(4,)]
    except (AssertionError, FileNotFoundError, sqlite3.Error):
        return False


def main():
    with Line(sys.argv[1], name="dead") as line:
        job = line.start_bare([line.trainer, "--ranks", "4", "--iterations", "100000", "--no-gang"])
        try:
            while not all_train(line):
                assert job.poll() is None, job.communicate()[0]
                time.sleep(0.05)
            victim = [pid for pid in map(int, filter(str.isdigit, os.listdir("/proc"))) if rank_of(pid, job.pid) == 2]
            assert len(victim) == 1, victim
            os.kill(victim[0], signal.SIGKILL)
            give_up = time.monotonic() + 300
            while not line.live_problems():
                assert job.poll() is None and time.monotonic() < give_up, "no finding"
                time.sleep(0.05)
        finally:
            end_group(job)
            line.wait_collector()
        status, findings, _ = line.report("--allow-missing")
        said = [(f["code"], [side["ranks"] for side in f["sides"]], f["what"]) for f in findings]
        assert status == 1 and [code for code, _, _ in said] == ["DC205"], said
        assert "2" in said[0][1] and "SIGKILL" in said[0][2], said
    print(said[0][2])


if __name__ == "__main__":
    main()
