"""The whole line from outside, as a user drives it: run a program under ddpcheck on the emulator, read the report.

Used by the other files of this directory. Standard library only."""

import copy
import json
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time


class Line:
    """One build of ddpcheck and a fresh trace directory."""

    def __init__(self, build, devices=4, name="line"):
        self.build = os.path.abspath(build)
        self.tool = os.path.join(self.build, "bin", "ddpcheck")
        self.shim = os.path.join(self.build, "lib", "libddpcheck.so")
        self.emu = os.path.join(self.build, "lib", "ddpcheck", "emu")
        self.redirect = os.path.join(self.emu, "libddpcheck_emu_redirect.so")   # LD_AUDIT: before what programs bring along
        self.trainer = os.path.join(self.build, "bin", "ddptrain")
        self.devices = devices
        self.folder = tempfile.mkdtemp(prefix="ddpcheck-" + name + "-")
        self.trace = os.path.join(self.folder, "trace")

    def beside(self, name):
        """The same build with a folder and a trace of its own in this one, for a job that runs beside others."""
        other = copy.copy(self)
        other.folder = os.path.join(self.folder, name)
        other.trace = os.path.join(other.folder, "trace")
        os.makedirs(other.folder)
        return other

    def __enter__(self):
        return self

    def __exit__(self, kind, value, traceback):
        if kind is None:
            shutil.rmtree(self.folder, ignore_errors=True)
        else:
            print("kept for a look: " + self.folder, file=sys.stderr)

    def run(self, program, options=(), timeout=120, environment=None):
        """`ddpcheck run -- program`: (status, stdout, stderr)."""
        command = [self.tool, "run", "--emulate", str(self.devices), "-o", self.trace, *options, "--", *program]
        return self.call(command, timeout, environment)

    def run_until(self, program, options, ready, timeout=300, environment=None):
        """The same, but ddpcheck gets SIGTERM as soon as ready(line), which is asked again and again."""
        command = [self.tool, "run", "--emulate", str(self.devices), "-o", self.trace, *options, "--", *program]
        process = subprocess.Popen(command, cwd=self.folder, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE, text=True, env={**os.environ, **(environment or {})})
        end = time.monotonic() + timeout
        while process.poll() is None and not ready(self) and time.monotonic() < end:
            time.sleep(0.2)
        process.send_signal(signal.SIGTERM)
        out, err = process.communicate(timeout=timeout)
        return process.returncode, out, err

    def call(self, command, timeout=300, environment=None):
        done = subprocess.run(command, cwd=self.folder, stdin=subprocess.DEVNULL, capture_output=True, text=True,
                              timeout=timeout, env={**os.environ, **(environment or {})})
        return done.returncode, done.stdout, done.stderr

    def bare_environment(self, **more):
        """What a user sets who preloads the shim by hand."""
        paths = [self.emu] + ([os.environ["LD_LIBRARY_PATH"]] if os.environ.get("LD_LIBRARY_PATH") else [])
        return {**os.environ, "LD_PRELOAD": self.shim, "DDPCHECK_DIR": self.trace,
                "LD_LIBRARY_PATH": ":".join(paths), "LD_AUDIT": self.redirect,
                "DDPCHECK_EMU_DEVICES": str(self.devices), **more}

    def start_bare(self, program, **more):
        return subprocess.Popen(program, cwd=self.folder, env=self.bare_environment(**more), stdin=subprocess.DEVNULL,
                                stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True)

    def report(self, *options):
        """(status, findings, all JSON lines) of `ddpcheck report --json`."""
        status, out, err = self.call([self.tool, "report", "--json", *options, self.trace])
        if status == 2:
            raise AssertionError("report failed: " + err)
        lines = [json.loads(line) for line in out.splitlines()]
        return status, [line for line in lines if line.get("schema", "").startswith("ddpcheck.finding/")], lines

    def database(self):
        names = [name for name in os.listdir(self.trace) if name.endswith(".db")]
        if len(names) != 1:
            raise AssertionError("expected one database in %s, found %s" % (self.trace, names))
        return os.path.join(self.trace, names[0])

    def query(self, sql, *values):
        connection = sqlite3.connect("file:" + self.database() + "?mode=ro", uri=True, timeout=120)
        try:
            return connection.execute(sql, values).fetchall()
        finally:
            connection.close()

    def live(self, sql):
        """The rows, [] while there is no database yet."""
        try:
            return self.query(sql)
        except (AssertionError, FileNotFoundError, sqlite3.Error):
            return []

    def live_findings(self):
        """What the collector stored."""
        return self.live("SELECT code, severity, fingerprint FROM finding ORDER BY id")

    def live_problems(self):
        """The same without notes: on a busy machine one may say that a rank is late."""
        return [each for each in self.live_findings() if each[1] != "note"]

    def live_sides(self):
        """(code, ranks) of each side of what the collector found, likewise."""
        return self.live("SELECT f.code, s.ranks FROM finding f JOIN finding_side s ON s.finding = f.id")

    def live_database(self):
        """True once the collector has stored an event."""
        return self.live("SELECT 1 FROM event LIMIT 1") != []

    def wait_collector(self, timeout=300):
        """Returns when no collector holds the directory any more."""
        import fcntl
        end = time.monotonic() + timeout
        with open(os.path.join(self.trace, "collector.lock"), "a") as lock:
            while True:
                try:
                    fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    return
                except OSError:
                    if time.monotonic() > end:
                        raise AssertionError("the collector of %s did not end in %d s" % (self.trace, timeout))
                    time.sleep(0.05)


def end_group(process, timeout=120):
    """Kills a process and all that it started; returns its output."""
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass
    out, _ = process.communicate(timeout=timeout)
    return out
