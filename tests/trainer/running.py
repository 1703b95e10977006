"""Runs ddptrain and looks at what it prints: what all cases share."""

import os
import re
import select
import shutil
import signal
import socket
import subprocess
import sys
import time

TOLERANCE = 1e-4        # relative: sums of floats in another order
PROGRAM = None          # set by run_trainer.py


def start(arguments, environment=None, command=None):
    return subprocess.Popen((command or [PROGRAM]) + arguments, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                            stderr=subprocess.STDOUT, text=True, start_new_session=True,
                            env={**os.environ, **(environment or {})})


def end(process):
    """Kills the process group; returns what it printed."""
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass
    return process.communicate()[0]


def read_until(process, *texts, timeout=300):
    """What the process prints until it has printed all of the texts, or has ended."""
    out, deadline = b"", time.monotonic() + timeout
    while not all(text.encode() in out for text in texts) and time.monotonic() < deadline:
        if select.select([process.stdout], [], [], 1)[0]:
            more = os.read(process.stdout.fileno(), 65536)
            if not more:
                break
            out += more
    return out.decode()


def run(arguments, expected=0, timeout=300, **more):
    process = start(arguments.split(), **more)
    try:
        out = process.communicate(timeout=timeout)[0]
    except subprocess.TimeoutExpired:
        raise AssertionError("ddptrain %s hangs:\n%s" % (arguments, end(process)))
    if process.returncode != expected:
        raise AssertionError("ddptrain %s: exit status %d, expected %d:\n%s"
                             % (arguments, process.returncode, expected, out))
    return out


def losses(out):
    found = {int(line[0]): [float(v) for v in re.findall(r" ([0-9.]+)", line[1])]
             for line in re.findall(r"iteration (\d+):(.*)", out)}
    if not found:
        raise AssertionError("no losses in:\n" + out)
    return found


def quality(out):
    """Of the trained model: a classifier's accuracy, or how far a generator's images are from the data's."""
    return float(re.search(r"(?:accuracy|distance) ([0-9.]+) ", out)[1])


def must_contain(out, *texts):
    for text in texts:
        if text not in out:
            raise AssertionError("expected '%s' in:\n%s" % (text, out))


def must_be_close(one, other, what, tolerance=TOLERANCE):
    if one.keys() != other.keys():
        raise AssertionError("%s: iterations %s and %s" % (what, sorted(one), sorted(other)))
    for iteration in one:
        for a, b in zip(one[iteration], other[iteration], strict=True):
            if abs(a - b) > tolerance * max(abs(a), abs(b)):
                raise AssertionError("%s: iteration %d: %g and %g" % (what, iteration, a, b))


def must_differ(one, other, what):
    if one == other:
        raise AssertionError("%s: the losses are the same: %s" % (what, one))


def must_hang(arguments, *texts, quiet_s=3):
    """The job prints the texts and is still there some seconds later; then all of it is killed."""
    process = start(arguments.split())
    out = read_until(process, *texts)
    time.sleep(quiet_s)
    alive = process.poll() is None
    out += end(process)
    if not alive:
        raise AssertionError("ddptrain %s was expected to hang, but ended with %d:\n%s"
                             % (arguments, process.returncode, out))
    must_contain(out, *texts)


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return str(probe.getsockname()[1])


def of_setup(program):
    """A program of the PyTorch that tools/setup-torch installs."""
    setup = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "tools", "setup-torch")
    found = subprocess.run([setup, "--find"], capture_output=True, text=True, timeout=300).stdout.strip()
    return shutil.which(os.path.join(found, "bin", program)) if found else None


def need(program):
    found = os.environ.get("DDPTRAIN_TEST_" + program.upper()) or shutil.which(program) or of_setup(program)
    if not found:
        print("skipped: %s is not installed; tools/setup-torch brings torchrun, tools/setup the others" % program)
        sys.exit(77)
    return found
