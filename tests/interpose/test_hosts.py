"""Several containers or hosts that share a trace directory and have a /dev/shm each: every process is recorded, in a database that
carries its host's name. Needs unshare and mounts; without them the test is skipped.

test_hosts.py BUILD FAKE-LIBRARIES"""

import fcntl
import glob
import os
import re
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import time

from watch import BUILD, FAKE, JOB, LAUNCHER, SHIM, equal

TOOL = os.path.join(BUILD, "bin", "ddpcheck")
APART = ["unshare", "--mount", "--uts", "sh", "-c", 'mount -t tmpfs none /dev/shm && hostname "$0" && exec "$@"']
OPERATIONS = 13     # of job.c, collectives


def run(host, *program, **environment):
    clean = {name: value for name, value in os.environ.items() if name not in LAUNCHER and not name.startswith("DDPCHECK")}
    done = subprocess.run([*APART, host, *program], env={**clean, "LD_LIBRARY_PATH": FAKE, **environment}, capture_output=True,
                          text=True, timeout=300)
    equal((done.returncode, done.stdout), (0, "ok\n"), "the job: " + done.stderr)
    return done.stderr


def preloaded(host, trace):
    equal(run(host, "env", "LD_PRELOAD=" + SHIM, "DDPCHECK_DIR=" + trace, JOB, "collectives"), "", "stderr")


def recorded(trace):
    """Operations by database."""
    counts = {}
    for path in glob.glob(os.path.join(trace, "*.db")):
        database = sqlite3.connect("file:" + path + "?mode=ro", uri=True)
        try:
            counts[os.path.basename(path)] = database.execute("SELECT count(*) FROM v_collective").fetchone()[0]
        except sqlite3.OperationalError:
            counts[os.path.basename(path)] = 0  # it is being made
        database.close()
    return counts


def recorded_at_last(trace, databases):
    """The same, once so many databases have what a job issues. The rings of other hosts can't be seen from here, and a
    collector may begin after the end of a short job."""
    end = time.monotonic() + 120
    counts = recorded(trace)
    while sum(count >= OPERATIONS - 3 for count in counts.values()) < databases and time.monotonic() < end:
        time.sleep(0.05)
        counts = recorded(trace)
    for path in glob.glob(os.path.join(trace, "collector-*.lock")):
        with open(path, "a") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
    return recorded(trace)


def test_containers_of_one_host(trace):
    """The first one's collector still runs when the second begins; it can't reach the second's rings."""
    preloaded("one", trace)
    preloaded("one", trace)
    counts = recorded_at_last(trace, 2)
    equal(sorted(re.sub("-[0-9a-f]{8}", "-KEY", name) for name in counts), ["one-KEY.db", "one.db"], "databases")
    assert len(set(counts.values())) == 1 and min(counts.values()) >= OPERATIONS - 3, counts


def test_hosts(trace):
    for host in ("one", "two", "three"):
        preloaded(host, trace)
    counts = recorded_at_last(trace, 3)
    equal(sorted(counts), ["one.db", "three.db", "two.db"], "databases")
    assert len(set(counts.values())) == 1 and min(counts.values()) >= OPERATIONS - 3, counts


def test_run_on_each_host(trace):
    for host in ("one", "two"):
        said = run(host, TOOL, "run", "-o", trace, "--", JOB, "collectives")
        assert "1 rank" in said, said
    equal(sorted(recorded(trace)), ["one.db", "two.db"], "databases")


def test_job_in_a_container(trace):
    """`ddpcheck run` is outside, and its collector with it."""
    clean = {name: value for name, value in os.environ.items() if name not in LAUNCHER and not name.startswith("DDPCHECK")}
    done = subprocess.run([TOOL, "run", "-o", trace, "--", *APART, "inside", JOB, "collectives"], capture_output=True, text=True,
                          timeout=300, env={**clean, "LD_LIBRARY_PATH": FAKE})
    equal((done.returncode, done.stdout), (0, "ok\n"), done.stderr)
    assert "collectors of their own record them" in done.stderr and "no NCCL call" not in done.stderr, done.stderr
    counts = recorded_at_last(trace, 1)
    assert counts.get("inside.db", 0) >= OPERATIONS - 3, (counts, done.stderr)


def main():
    if subprocess.run([*APART, "probe", "true"], capture_output=True).returncode:
        print("skipped: unshare --mount --uts is not permitted here")
        sys.exit(77)
    for name, test in list(globals().items()):
        if name.startswith("test_"):
            folder = tempfile.mkdtemp(prefix="ddpcheck-hosts-")
            try:
                test(os.path.join(folder, "trace"))
                print("passed", name)
            finally:
                shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
