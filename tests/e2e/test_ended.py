"""A job that is ended while it waits gets its finding: by --timeout, by a signal to `ddpcheck run`, by one to the job itself,
and where the trace breaks off. A job that still runs gets none before --hang-after has passed."""

import os
import signal
import sqlite3
import subprocess
import sys

from line import Line

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "collector"))
from tool import wait_until

build = os.path.abspath(sys.argv[1])
PROGRAM = os.path.join(build, "tests", "suite", "hang", "rank_asleep")
LAST = 3        # the AllReduce that rank 0 never calls


def check(what, condition, *details):
    assert condition, (what, *details)


def check_hang(what, line, is_asked=True):
    """One possible DC201: ranks 1-3 wait for rank 0; where rank 0 stood is known if the ranks were asked."""
    _, findings, _ = line.report()
    check(what, [(f["code"], f["certainty"]) for f in findings] == [("DC201", "possible")], findings)
    waiting, missing = findings[0]["sides"]
    check(what, waiting["ranks"] == "1-3" and missing["ranks"] == "0", findings)
    check(what, waiting["since"] and findings[0]["first"] < findings[0]["last"], findings)   # how long it had waited
    if is_asked:
        check(what, missing["where"].startswith("in ") and "sleep" in missing["where"], missing)
        check(what, "suite_nap_ms" in str(missing["where_frames"]), missing)


def is_waiting(line):
    """Three ranks have called what rank 0 will not, and for longer than ddpcheck is patient at the end no rank has shown a sign of
    life: no call, and no GPU that was seen to get on (on busy cores that is seen late)."""
    try:
        return line.query("SELECT count(*) FROM v_collective WHERE number = ?", LAST) == [(3,)] and line.query(
            "SELECT max(time_ns) - (SELECT max(time_ns) FROM event WHERE serial > 0 OR api = "
            "(SELECT number FROM api WHERE name = 'notice_progress')) FROM event")[0][0] > 1.5e9
    except (AssertionError, FileNotFoundError, sqlite3.Error):
        return False


def start(line, *options):
    process = subprocess.Popen([line.tool, "run", "--emulate", "4", "-o", line.trace, *options, "--", PROGRAM], cwd=line.folder,
                               stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True)
    wait_until(lambda: is_waiting(line), what="three ranks waiting")
    return process


def times_out():
    with Line(build) as line:
        status, _, err = line.run([PROGRAM], ["--timeout", "3"])
        check("timeout", status == 143 and "no progress for 3 s" in err and "DC201" in err, status, err)
        check_hang("timeout", line)
    with Line(build) as line:
        status, _, err = line.run([PROGRAM + ".twin"], ["--timeout", "60"])
        check("twin", status == 0 and line.report()[:2] == (0, []), status, err)


def is_signaled():
    """A scheduler's SIGTERM comes to `ddpcheck run`."""
    with Line(build) as line:
        process = start(line)
        process.send_signal(signal.SIGTERM)
        out, _ = process.communicate(timeout=120)
        check("SIGTERM", process.returncode == 143 and "DC201" in out, out)
        check_hang("SIGTERM", line)


def is_killed_beside():
    """Whoever ends the ranks themselves does not say so before: only their ends show it."""
    with Line(build) as line:
        process = start(line)
        for (pid,) in line.query("SELECT pid FROM process"):
            os.kill(pid, signal.SIGTERM)
        out, _ = process.communicate(timeout=120)
        check("killed", "DC201" in out, out)
        check_hang("killed", line, is_asked=False)


def breaks_off():
    """While the job runs, a report is a snapshot, and what waits may go on; a copy of the trace, which nobody goes on with, ends there."""
    with Line(build) as line, Line(build) as copy:
        process = start(line)
        check("running", line.report()[1] == [], line.report()[1])
        os.mkdir(copy.trace)
        source, target = sqlite3.connect(line.database()), sqlite3.connect(os.path.join(copy.trace, "copy.db"))
        with target:
            source.backup(target)
        source.close()
        target.close()
        check_hang("broken off", copy, is_asked=False)
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=120)


times_out()
is_signaled()
is_killed_beside()
breaks_off()
