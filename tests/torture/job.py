"""A job that counts its own calls (counted.c), a collector that is stopped and killed, and what is in the database."""

import os
import shutil
import signal
import sqlite3
import struct
import subprocess
import sys
import tempfile
import time

BUILD = os.path.abspath(sys.argv[1])
TOOL = os.path.join(BUILD, "bin", "ddpcheck")
SHIM = os.path.join(BUILD, "lib", "libddpcheck.so")
COUNTED = os.path.join(BUILD, "tests", "torture", "torture_counted")
EMULATOR = os.path.abspath(sys.argv[2])
RANKS_MAX = 64


def wait_until(condition, what, timeout=120):
    end = time.monotonic() + timeout
    while not (value := condition()):
        assert time.monotonic() < end, what + " did not happen in %d s" % timeout
        time.sleep(0.02)
    return value


class Job:
    """torture_counted under the shim in a folder of its own, on emulated devices."""

    def __init__(self, ranks=2, parent=None):
        self.ranks = ranks
        self.folder = tempfile.mkdtemp(prefix="ddpcheck-torture-", dir=parent)
        self.trace = os.path.join(self.folder, "trace")
        self.counts_path = os.path.join(self.folder, "counts")
        self.processes = []
        clean = {name: value for name, value in os.environ.items()
                 if not name.startswith(("DDPCHECK", "OMPI", "PMI", "SLURM")) and name not in ("RANK", "GLIBC_TUNABLES")}
        self.environment = {**clean, "LD_LIBRARY_PATH": EMULATOR, "DDPCHECK_EMU_DEVICES": str(max(ranks, 2)),
                            "DDPCHECK_DIR": self.trace, "DDPCHECK_COLLECT": "0"}
        self.environment.pop("LD_PRELOAD", None)

    def __enter__(self):
        return self

    def __exit__(self, kind, value, traceback):
        for process in self.processes:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
        rings = self.rings()
        if rings:
            shutil.rmtree(rings, ignore_errors=True)
        if kind is None:
            shutil.rmtree(self.folder, ignore_errors=True)
        else:
            print("kept for a look: " + self.folder, file=sys.stderr)

    def start(self, command, **environment):
        process = subprocess.Popen(command, env={**self.environment, **environment}, cwd=self.folder, start_new_session=True,
                                   stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        self.processes.append(process)
        return process

    def start_program(self, loops, *options, **environment):
        return self.start([COUNTED, self.counts_path, str(self.ranks), str(loops), *options], LD_PRELOAD=SHIM, **environment)

    def make_counts(self, go=True):
        """What counted.c counts in, before it starts; it goes on at once or at go()."""
        with open(self.counts_path, "wb") as file:
            file.write(struct.pack("Q", go))
            file.truncate(8 * (1 + 3 * RANKS_MAX))

    def run_command(self, *program):
        return [TOOL, "run", "--emulate", str(max(self.ranks, 2)), "-o", self.trace, "--", *program]

    def run_environment(self):
        """For `ddpcheck run`, which makes its own."""
        return {**self.environment, "LD_LIBRARY_PATH": "", "DDPCHECK_COLLECT": ""}

    def start_collector(self):
        # Without any producer it would end at once.
        wait_until(lambda: self.rings() and os.path.isdir(self.rings()) and
                   len([name for name in os.listdir(self.rings()) if name.endswith(".ring")]) >= self.ranks, "the ring files")
        return self.start([TOOL, "collect", self.trace])

    def rings(self):
        try:
            with open(os.path.join(self.trace, "rings"), encoding="utf-8") as file:
                return file.read().strip()
        except FileNotFoundError:
            return None

    def counts(self):
        """(pid, calls entered, calls returned) by rank."""
        try:
            with open(self.counts_path, "rb") as file:
                words = struct.unpack("%dQ" % (1 + 3 * RANKS_MAX), file.read(8 * (1 + 3 * RANKS_MAX)))
        except (FileNotFoundError, struct.error):
            return [(0, 0, 0)] * self.ranks
        return [words[1 + 3 * rank:4 + 3 * rank] for rank in range(self.ranks)]

    def go(self):
        with open(self.counts_path, "r+b") as file:
            file.write(struct.pack("Q", 1))

    def query(self, sql, *values):
        rows = []
        folders = [self.trace, os.path.join(self.trace, "old")]
        names = [os.path.join(folder, name) for folder in folders if os.path.isdir(folder)
                 for name in os.listdir(folder) if name.endswith(".db")]
        for name in names:
            connection = sqlite3.connect("file:" + name + "?mode=ro", uri=True, timeout=120)
            try:
                rows += connection.execute(sql, values).fetchall()
            except sqlite3.OperationalError as error:
                if "no such table" not in str(error):
                    raise
            connection.close()
        return rows

    def rows(self):
        """By rank: (ENTERs of ncclAllReduce in the trace, LEAVEs, control records that are said to be lost)."""
        found = []
        for pid, _, _ in self.counts():
            calls = dict(self.query("SELECT phase, count(*) FROM event JOIN process p ON p.id = event.process WHERE p.pid = ? AND api = "
                                    "(SELECT number FROM api WHERE name = 'ncclAllReduce') GROUP BY phase", pid))
            lost = self.query("SELECT max(coalesce(s.lost_control, 0)) FROM process_state s JOIN process p ON p.id = s.process "
                              "WHERE p.pid = ?", pid)
            found.append((calls.get(1, 0), calls.get(2, 0), lost[0][0] or 0 if lost else 0))
        return found
