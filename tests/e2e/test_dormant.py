"""LD_PRELOAD into programs that never call NCCL: no file, no output of ours, the same result."""

import os
import subprocess
import sys

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


def rings():
    return {name for name in os.listdir("/dev/shm") if name.startswith("ddpcheck-")}


def main():
    with Line(sys.argv[1], name="dormant") as line:
        before = rings()
        for name, program in PROGRAMS.items():
            plain = run(program, line.folder, dict(os.environ))
            # Without DDPCHECK_DIR a shim that woke would make ./ddpcheck-trace; with it, that folder.
            for extra in ({}, {"DDPCHECK_DIR": line.trace}):
                watched = run(program, line.folder, {**os.environ, "LD_PRELOAD": line.shim, **extra})
                assert watched == plain, "%s: %s with the shim, %s without" % (name, watched, plain)
            assert os.listdir(line.folder) == [], "%s left %s" % (name, os.listdir(line.folder))
        assert rings() <= before, "left in /dev/shm: %s" % (rings() - before)
    print("%d programs: dormant" % len(PROGRAMS))


if __name__ == "__main__":
    main()
