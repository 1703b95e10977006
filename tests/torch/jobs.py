"""What the tests of this directory share: the PyTorch of tools/setup-torch, on the emulator, and its server."""

import functools
import concurrent.futures
import json
import os
import signal
import subprocess
import sys
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "e2e"))

from line import Line  # noqa: E402,F401

SKIPPED = 77
AT_ONCE = 3         # jobs, which wait for most of their time
# So long a rank is silent before it counts as missing, where a job hangs, and where none should: there a busy machine stops it.
HANGS, GOES_ON = "2", "20"


def torch_folder():
    """Where PyTorch is, in the version that DDPCHECK_TEST_TORCH names or the newest that is tested; ends the test as skipped
    where there is none."""
    setup = os.path.join(HERE, "..", "..", "tools", "setup-torch")
    version = [os.environ["DDPCHECK_TEST_TORCH"]] if os.environ.get("DDPCHECK_TEST_TORCH") else []
    found = subprocess.run([setup, "--find", *version], capture_output=True, text=True, timeout=300)
    if found.returncode:
        print("skipped: no PyTorch here; tools/setup-torch installs it where there is a network")
        sys.exit(SKIPPED)
    return found.stdout.strip()


@functools.cache
def torch_version():
    """(2, 15, 0)"""
    done = subprocess.run([python(), "-c", "import importlib.metadata as m; print(m.version('torch'))"], capture_output=True,
                          text=True, check=True)
    return tuple(int(part) for part in done.stdout.split("+")[0].split("."))


def python():
    return os.path.join(torch_folder(), "bin", "python3")


class Server:
    """server.py under a bare LD_PRELOAD, as a context manager. Its jobs run main() of a module: of `program`, which is imported
    once, or of another."""

    def __init__(self, line, ranks, program="job", folder=HERE):
        self.line, self.ranks, self.program, self.folder = line, ranks, program, folder
        self.asking = threading.Lock()

    def __enter__(self):
        self.process = subprocess.Popen(
            [python(), os.path.join(HERE, "server.py"), self.program], cwd=self.line.folder, stdin=subprocess.PIPE,
            stdout=subprocess.PIPE, text=True, env=self.line.bare_environment(OMP_NUM_THREADS="1", DDPCHECK_EMU_DEVICES=str(self.ranks),
                                              PYTHONPATH=self.folder))
        return self

    def __exit__(self, *_):
        self.process.stdin.close()
        self.process.wait(timeout=300)

    def start(self, case, folder, program=None, ranks=None, **environment):
        os.makedirs(folder, exist_ok=True)
        order = {"program": program or self.program, "case": case, "ranks": ranks or self.ranks, "folder": folder,
                 "environment": environment}
        with self.asking:
            self.process.stdin.write(json.dumps(order) + "\n")
            self.process.stdin.flush()
            return int(self.process.stdout.readline())


def beside(jobs):
    """Calls them, some beside each other, and raises the first one's failure."""
    with concurrent.futures.ThreadPoolExecutor(AT_ONCE) as pool:
        for done in [pool.submit(*job) for job in jobs]:
            done.result()


def statuses(folder):
    try:
        with open(os.path.join(folder, "statuses")) as file:
            return json.load(file)
    except FileNotFoundError:
        return None


def output(folder):
    with open(os.path.join(folder, "output.log")) as file:
        return file.read()


def wait_for(condition, seconds):
    """What the condition gives as soon as it is true; None when it never was."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        got = condition()
        if got:
            return got
        time.sleep(0.05)
    return None


def end_group(leader):
    os.killpg(leader, signal.SIGKILL)
