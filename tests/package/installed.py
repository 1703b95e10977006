"""An installed tree as its users have it: shared by the tests of this folder. Standard library only."""

import contextlib
import fcntl
import os
import re
import shutil
import sqlite3
import subprocess
import tempfile


def output(*command, statuses=(0,), **more):
    """What a command prints; its status must be one of `statuses`."""
    more.setdefault("timeout", 600)
    done = subprocess.run(command, capture_output=True, text=True, stdin=subprocess.DEVNULL, **more)
    assert done.returncode in statuses, "%s: status %d\n%s%s" % (" ".join(command), done.returncode, done.stdout, done.stderr)
    return done.stdout + done.stderr


@contextlib.contextmanager
def installing(build):
    """One at a time: cmake and cpack write a list of what they install into the build's folder."""
    with open(os.path.join(build, "installing.lock"), "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


class Folder:
    """A temporary folder, kept for a look when the test fails."""

    def __init__(self, name):
        self.path = tempfile.mkdtemp(prefix="ddpcheck-" + name + "-")

    def __enter__(self):
        return self

    def __exit__(self, kind, value, traceback):
        if kind is None:
            shutil.rmtree(self.path)
        else:
            print("kept for a look: " + self.path)

    def __truediv__(self, name):
        return os.path.join(self.path, name)


def environment(**more):
    """The caller's, without anything of ddpcheck's or CUDA's."""
    kept = {name: value for name, value in os.environ.items()
            if not re.match(r"DDPCHECK_|LD_PRELOAD|LD_LIBRARY_PATH|NVTX_", name)}
    return {**kept, **more}


def watch_trainer(tool, trainer, trace):
    """Runs the trainer on two emulated devices; the trace must hold both ranks and no finding."""
    text = output(tool, "run", "--emulate", "2", "-o", trace, "--", trainer, "--ranks", "2", "--iterations", "3",
                  "--dataset-size", "64", env=environment())
    assert re.search(r"2 ranks, \d+ communicators?, no finding", text), text
    text = output(tool, "report", trace, env=environment())
    assert "2 processes" in text, text
    return text


def check_demo(tool, folder):
    """`ddpcheck demo` needs nothing but what is installed: it hangs, is diagnosed at the line of its source, and ended."""
    text = output(tool, "demo", "-o", os.path.join(folder, "demo"), env=environment(), cwd=folder)
    assert re.search(r"train\.c:\d+: error DC201: ranks 0-2\s", text) and "rank 3" in text, text
    assert "Next: 'ddpcheck tui" in text, text


def collectives_by_pid(trace):
    """{pid: number of collectives}, straight from the database."""
    database, = [name for name in os.listdir(trace) if name.endswith(".db")]
    connection = sqlite3.connect("file:%s?mode=ro" % os.path.join(trace, database), uri=True)
    try:
        return dict(connection.execute("SELECT pid, count(*) FROM v_collective GROUP BY pid"))
    finally:
        connection.close()
