"""ddpcheck stacks --pid: the threads of running programs, read from outside, for every Python; and its errors."""

import json
import os
import re
import subprocess
import sys
import tempfile
import time

from common import HERE, pythons

TOOL = os.path.join(sys.argv[1], "bin", "ddpcheck")
PAGE = os.path.join(HERE, "..", "..", "docs", "stacks.md")
PROGRAM = """import os, sys, threading, time
def inner():
    os.write(1, b"there\\n")
    time.sleep(300)
def outer():
    inner()
class Loader:
    def load(self, lock):
        with lock:
            os.write(1, b"there\\n")
            sys.stdin.read()
threading.Thread(target=Loader().load, args=(threading.Lock(),), daemon=True).start()
outer()
"""
MAIN = [("inner", 4), ("outer", 6), ("<module>", 13)]


def call(*arguments):
    done = subprocess.run([TOOL, "stacks", *arguments], capture_output=True, text=True, timeout=300)
    if "does not let us look" in done.stderr and os.getuid():
        print("skipped: " + done.stderr)
        sys.exit(77)
    return done.returncode, done.stdout, done.stderr


class Jobs:
    """Programs that stand in inner() and in the read of a thread."""

    def __init__(self, python, script, ranks):
        self.jobs = []
        for rank in ranks:
            environment = {**os.environ, "RANK": str(rank)} if rank is not None else \
                {name: value for name, value in os.environ.items() if name != "RANK"}
            self.jobs.append(subprocess.Popen([python, script], env=environment, stdin=subprocess.PIPE,
                                              stdout=subprocess.PIPE, text=True))
        for job in self.jobs:
            assert [job.stdout.readline() for _ in range(2)] == ["there\n"] * 2
            self.wait_asleep(job.pid)
        self.pids = ",".join(str(job.pid) for job in self.jobs)

    @staticmethod
    def wait_asleep(pid):
        """Between its last print and the sleep a thread runs."""
        def states():
            for task in os.listdir("/proc/%d/task" % pid):
                with open("/proc/%d/task/%s/stat" % (pid, task)) as file:
                    yield file.read().rpartition(")")[2].split()[0]
        while set(states()) != {"S"}:
            time.sleep(0.01)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for job in self.jobs:
            job.kill()
            job.communicate()


def places(frames, script):
    return [(re.sub(r"^Loader\.", "", frame["function"]), frame["line"]) for frame in frames if frame["file"] == script]


def check_python(python, script):
    with Jobs(python, script, (0, 1, 3)) as jobs:
        for options in ([], ["--python"]):
            status, out, err = call("--json", "--pid", jobs.pids, *options)
            assert status == 0 and not err, (python, err)
            lines = [json.loads(line) for line in out.splitlines()]
            assert [line["main"] for line in lines] == [True, False], (python, lines)
            assert all(line["ranks"] == "0-1,3" and line["threads"] == 3 and line["python"] for line in lines), lines
            assert places(lines[0]["frames"], script) == MAIN, (python, lines[0])
            assert places(lines[1]["frames"], script)[0] == ("load", 11), (python, lines[1])
            assert lines[1]["in"] == ("" if options else "read"), lines[1]
        # Nothing happened to them.
        assert all(job.poll() is None for job in jobs.jobs)


def check_text(script, folder):
    with Jobs(sys.executable, script, (0, 1, 2)) as jobs:
        status, out, err = call("--pid", jobs.pids, "--all")
        assert status == 0 and "ranks 0-2     main thread, in" in out and "_PyEval_EvalFrameDefault" in out, (out, err)
        status, out, err = call("--pid", jobs.pids + ",4194303")
        assert status == 2 and "there is no process 4194303" in err and "ranks 0-2" in out and "_PyEval" not in out, (out, err)
        with open(PAGE) as page:
            shown = [line.strip() for line in page if line.startswith("    ddpcheck stacks") and "--pid" in line]
        assert len(shown) == 2
        for command in shown:
            done = subprocess.run(["bash", "-c", command.replace("train.py", script)], capture_output=True, text=True,
                                  env={**os.environ, "PATH": os.path.dirname(TOOL) + ":" + os.environ["PATH"]})
            assert "inner()" in done.stdout, (command, done)
    with Jobs(sys.executable, script, (None,)) as jobs:
        status, out, err = call("--pid", jobs.pids)
        assert status == 0 and "process %s" % jobs.pids in out, (out, err)


def check_errors(folder):
    for arguments in (["--pid", "x"], ["--pid", "0"], ["--pid", "1,-1"], [], ["--python"], ["--python", folder],
                      ["--pid", "1", folder], ["--pid", ",".join(["1"] * 257)]):
        status, out, err = call(*arguments)
        assert status == 2 and err.startswith("ddpcheck stacks: ") and not out, (arguments, status, err)
    status, _, err = call(os.path.join(folder, "nothing"))
    assert status == 2 and "nothing" in err, err
    ended = subprocess.Popen(["true"])
    while open("/proc/%d/stat" % ended.pid).read().rpartition(")")[2].split()[0] != "Z":
        time.sleep(0.01)
    status, _, err = call("--pid", str(ended.pid))
    assert status == 2 and str(ended.pid) in err, (status, err)
    ended.wait()


def main():
    with tempfile.TemporaryDirectory() as folder:
        script = os.path.join(folder, "train.py")
        with open(script, "w") as file:
            file.write(PROGRAM)
        for python in pythons():
            check_python(python, script)
        check_text(script, folder)
        check_errors(folder)


main()
