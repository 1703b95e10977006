"""SIGKILL of a rank, of all ranks and of the collector at random moments of a real training job: all that was
recorded is in the database afterwards, once.

The serials of a process are dense, so a lost record shows as a gap and a doubled one as a repetition. The
many-times version with synthetic producers is tests/collector."""

import os
import random
import signal
import subprocess
import sys
import time

from line import Line, end_group

ROUNDS = 6


def matching(accept):
    """pids of the running processes for which accept(folder in /proc) holds."""
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            if accept("/proc/" + pid):
                found.append(int(pid))
        except OSError:
            pass
    return found


def session_of(folder):
    with open(folder + "/stat", "rb") as stat:
        return int(stat.read().rpartition(b")")[2].split()[3])


def has_argument(folder, argument):
    with open(folder + "/cmdline", "rb") as command:      # that of any process: it need not be text
        return argument.encode() in command.read().split(b"\0")


def kill(pid):
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        pass


def gaps(line):
    """(process, serials missing or doubled) where that is more than the losses that the trace itself reports."""
    wrong = []
    for process, count, distinct, last in line.query(
            "SELECT process, count(*), count(DISTINCT serial), max(serial) FROM event WHERE serial > 0 GROUP BY process"):
        lost = line.query("SELECT coalesce(max(w0 + w1), 0) FROM event WHERE process = ? AND api = 262", process)[0][0]
        if count != distinct or last - distinct > lost:
            wrong.append((process, count, distinct, last, lost))
    return wrong


def one_round(build, victim, random_source):
    with Line(build, name="kills") as line:
        job = line.start_bare([line.trainer, "--model", "gan", "--ranks", "4", "--iterations", "1000"])
        while not line.live_database():
            assert job.poll() is None, job.communicate()[0]
            time.sleep(0.02)
        time.sleep(random_source.uniform(0, 2))
        ranks = [pid for pid in matching(lambda folder: session_of(folder) == job.pid) if pid != job.pid]
        collectors = matching(lambda folder: has_argument(folder, line.trace))
        assert ranks and collectors, "nobody to kill: ranks %s, collectors %s" % (ranks, collectors)
        if victim == "rank":
            kill(random_source.choice(ranks))
        if victim in ("all", "collector and all"):
            for pid in ranks:
                kill(pid)
        if victim in ("collector", "collector and all"):
            for pid in collectors:
                kill(pid)
        time.sleep(random_source.uniform(0, 1))
        end_group(job)
        done = subprocess.run([line.tool, "collect", line.trace], capture_output=True, text=True, timeout=300)
        assert done.returncode in (0, 2), done.stderr
        line.wait_collector()
        wrong = gaps(line)
        assert not wrong, "%s: (process, rows, distinct serials, last serial, lost): %s" % (victim, wrong)
        rows = line.query("SELECT count(*) FROM event")[0][0]
        assert rows > 0
        return rows


def main():
    source = random.Random(1)
    total = 0
    for round_number in range(ROUNDS):
        victim = ("rank", "all", "collector", "collector and all")[round_number % 4]
        total += one_round(sys.argv[1], victim, source)
    print("%d rounds, %d records, none lost or doubled" % (ROUNDS, total))


if __name__ == "__main__":
    main()
