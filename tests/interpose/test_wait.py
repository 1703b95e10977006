"""A rank that waits until it has no child left, and has adopted the collector (job_wait.c): it gets on, and all of it is recorded.

test_wait.py BUILD FAKE-LIBRARIES"""

import glob
import os
import shutil
import sqlite3
import subprocess
import sys
import time

from watch import BUILD, PROGRAMS, Run, equal

TOOL = os.path.join(BUILD, "bin", "ddpcheck")
WAIT = os.path.join(PROGRAMS, "interpose_wait")
FIRST = ["unshare", "--pid", "--fork", "--kill-child", "--mount-proc"]
HOW = ("wait", "poll", "poll-id")
STATUS, SECONDS = 3, 60


def query(run, text):
    database = glob.glob(os.path.join(run.trace, "*.db"))
    equal(len(database), 1, "databases")
    with sqlite3.connect(database[0]) as connection:
        return connection.execute(text).fetchall()


def check(*program):
    with Run(*program, timeout=SECONDS, DDPCHECK_COLLECT="1", DDPCHECK_COLLECTOR=TOOL) as run:
        equal((run.status, run.out, run.err), (STATUS, "", ""), program[-2:])
        end = time.monotonic() + SECONDS    # the first process of a namespace takes the collector with it
        while not query(run, "SELECT 1 FROM meta WHERE key = 'ended'"):
            assert time.monotonic() < end, "the trace is not complete"
            subprocess.run([TOOL, "collect", "--quiet", run.trace], timeout=SECONDS, check=False)
            time.sleep(0.1)
        equal(query(run, "SELECT count FROM v_collective ORDER BY count"), [(1,), (2,)], f"{program[-2:]}: operations")


def main():
    for how in HOW:
        check(WAIT, "subreaper", how)
    if shutil.which("unshare") and subprocess.run([*FIRST, "true"], capture_output=True, check=False).returncode == 0:
        for how in HOW:
            check(*FIRST, WAIT, "first", how)
    else:
        print("without unshare: not tested as the first process of a namespace")
    print("ok")


if __name__ == "__main__":
    main()
    sys.exit(0)
