"""LD_PRELOAD into programs that never call NCCL: no file, no output of ours, the same result."""

import os
import subprocess
import sys
import time

from line import Line

PROGRAMS = {
    "ls": ["ls", "/"],
    "bash": ["bash", "-c", "echo one; (echo two); exit 3"],
    "python3": [sys.executable, "-c", "import os, ctypes, threading; print(sum(range(10)))"],
    "sleep": ["sleep", "0.05"],
    "fork": [sys.executable, "-c", "import os; pid = os.fork(); os._exit(7) if pid == 0 else print(os.waitpid(pid, 0)[1])"],
}


def run(program, folder, environment):
    done = subprocess.run(program, cwd=folder, env=environment, capture_output=True, timeout=300)
    return done.returncode, done.stdout, done.stderr


def rings(trace):
    """Where the shim keeps the rings of a trace directory (interpose/ring/directory.c); other jobs of this machine have theirs."""
    value = 14695981039346656037
    for byte in trace.encode():
        value = (value ^ byte) * 1099511628211 % 2**64
    return "/dev/shm/ddpcheck-%d-%016x" % (os.geteuid(), value)


def check_name_of_rings(line):
    """A job that does use NCCL has them there."""
    job = line.start_bare([line.trainer, "--ranks", "2", "--iterations", "1"])
    file = os.path.join(line.trace, "rings")
    while not os.path.exists(file) and job.poll() is None:
        time.sleep(0.01)
    with open(file, encoding="utf-8") as stream:
        assert stream.read() == rings(line.trace) + "\n"
    job.communicate(timeout=300)


def main():
    with Line(sys.argv[1], name="dormant") as line:
        for name, program in PROGRAMS.items():
            plain = run(program, line.folder, dict(os.environ))
            # Without DDPCHECK_DIR a shim that woke would make ./ddpcheck-trace; with it, that folder.
            for extra in ({}, {"DDPCHECK_DIR": line.trace}):
                watched = run(program, line.folder, {**os.environ, "LD_PRELOAD": line.shim, **extra})
                assert watched == plain, "%s: %s with the shim, %s without" % (name, watched, plain)
            assert os.listdir(line.folder) == [], "%s left %s" % (name, os.listdir(line.folder))
        for trace in (line.trace, os.path.join(line.folder, "ddpcheck-trace")):
            assert not os.path.exists(rings(trace)), "left: " + rings(trace)
        check_name_of_rings(line)
    print("%d programs: dormant" % len(PROGRAMS))


if __name__ == "__main__":
    main()
