"""A database that is damaged while the job is recorded is set aside; another goes on, and nothing that comes afterwards is lost."""

import glob
import os
import signal
import subprocess
import sys

from line import Line

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "collector"))
from tool import wait_until

build = os.path.abspath(sys.argv[1])
PAGE = 4096
LEAST = 256 * PAGE      # of the file, so that a part of it is no longer in the collector's memory


def check(what, condition, *details):
    assert condition, (what, *details)


def size_of(path):
    return os.path.getsize(path) if os.path.exists(path) else 0


def last_iteration(line):
    rows = line.live("SELECT max(number) FROM v_collective")
    return rows[0][0] or 0 if rows else 0


def damaged(first_page):
    with Line(build) as line:
        process = subprocess.Popen([line.tool, "run", "--emulate", "4", "-o", line.trace, "--", line.trainer, "--ranks", "4",
                                    "--iterations", "1000000"], cwd=line.folder, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                   stderr=subprocess.PIPE, text=True, start_new_session=True)
        database = os.path.join(line.trace, os.uname().nodename + ".db")
        wait_until(lambda: size_of(database) > LEAST, what="a database of some size")
        before = last_iteration(line)
        with open(database, "r+b") as file:
            file.seek(first_page * PAGE)
            file.write(os.urandom(size_of(database) - first_page * PAGE))
        wait_until(lambda: glob.glob(database + ".damaged-*") and last_iteration(line) > before + 10, what="a new database that grows")
        process.send_signal(signal.SIGTERM)
        _, err = process.communicate(timeout=120)
        check("said", process.returncode == 143 and "the database is damaged; it is moved to %s.damaged-1" % database in err, err)
        check("one collector", "no collector" not in err and "no finding" in err, err)
        status, findings, lines = line.report()
        check("report", status == 0 and not findings, status, findings)
        check("ranks", line.query("SELECT count(*) FROM process") == [(4,)], lines)
        check("last", last_iteration(line) > before + 10, before)


damaged(0)
damaged(1)
