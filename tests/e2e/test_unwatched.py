"""A process that has crashed and is reaped before the collector has seen it: `ddpcheck run`, its parent, knows how it ended."""

import os
import signal
import subprocess
import sys

from line import Line

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "collector"))
from tool import wait_until

build = os.path.abspath(sys.argv[1])
PROGRAM = os.path.join(build, "tests", "suite", "hang", "thread_crashes")


def children_of(pid):
    """{command line: pid} of the process's children."""
    found = {}
    with open("/proc/%d/task/%d/children" % (pid, pid)) as file:
        for child in file.read().split():
            try:
                with open("/proc/%s/cmdline" % child, errors="replace") as words:
                    found[words.read().replace("\0", " ")] = int(child)
            except OSError:
                pass
    return found


def child(pid, words):
    """By how its command line begins: one that was forked and has not begun yet still has ours."""
    return next((number for line, number in children_of(pid).items() if line.startswith(words)), None)


def run_unwatched(line, program):
    """The report's findings of a program that began and ended while the collector was stopped."""
    run = subprocess.Popen([line.tool, "run", "--emulate", "3", "-o", line.trace, "--", "sh", "-c", 'read go && exec "$0"', program],
                           cwd=line.folder, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    wait_until(lambda: child(run.pid, "sh -c read go"))       # the collector was ready before
    job, collector = child(run.pid, "sh -c read go"), child(run.pid, "ddpcheck collect")
    os.kill(collector, signal.SIGSTOP)
    try:
        run.stdin.write("\n")
        run.stdin.flush()
        wait_until(lambda: not os.path.exists("/proc/%d" % job))
    finally:
        os.kill(collector, signal.SIGCONT)
    output = run.communicate(timeout=120)[0]
    return run.returncode, line.report()[1], output


def main():
    with Line(build, name="unwatched") as line:
        status, findings, output = run_unwatched(line, PROGRAM)
        assert status == 128 + signal.SIGSEGV, (status, output)
        assert [finding["code"] for finding in findings] == ["DC205"], (findings, output)
        assert "SIGSEGV" in findings[0]["what"] and "DC205" in output, (findings, output)
    with Line(build, name="unwatched") as line:
        status, findings, output = run_unwatched(line, PROGRAM + ".twin")
        assert (status, findings) == (0, []), (findings, output)


if __name__ == "__main__":
    main()
