"""Where the checks of tests/gpu/run are run: programs, environment and commands, the same on a GPU and on the emulator."""

import contextlib
import glob
import hashlib
import json
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))

# Each rank takes itself for another host, or NCCL would refuse two on one GPU; and between hosts it would look for
# InfiniBand, which reaches no other process of the same machine.
ONE_GPU = {"LOCAL_RANK": "0", "NCCL_NET": "Socket", "NCCL_SOCKET_IFNAME": "lo", "NCCL_MULTI_RANK_GPU_ENABLE": "1"}


LOOK_S = 0.2        # between two looks at a running command
STAYS_S = 6         # for a suspicion that no rank's arrival withdraws
PATIENCE_S = 60     # for a command that is asked to end


class Failed(Exception):
    """The check found a fault."""


class Skipped(Exception):
    """The check can't be run here; the text says what is missing."""


class NoGpu(Exception):
    """There is no device at all."""


class Check:
    def __init__(self, name, seconds, what, run):
        self.name, self.seconds, self.what, self.run = name, seconds, what, run


def carried_libraries():
    """What .carry/ has for machines where nothing can be installed, unpacked once."""
    packages, root = glob.glob(os.path.join(ROOT, ".carry", "*.deb")), os.path.join(ROOT, ".carry", "root")
    for package in packages if not os.path.isdir(root) else []:
        subprocess.run(["dpkg", "-x", package, root], check=True, timeout=60)
    usr = os.path.join(root, "usr", "lib", "x86_64-linux-gnu")
    return [usr, os.path.join(usr, "openblas-pthread")] if packages else []


class Bench:
    def __init__(self, build, work, emulated, ranks):
        self.build, self.work, self.emulated = os.path.abspath(build), os.path.abspath(work), emulated
        self.ranks = ranks or (3 if emulated else 4)
        self.tool = self.program("bin", "ddpcheck")
        self.environment = self.make_environment()
        self.log, self.deadline, self.name, self.suspected = os.devnull, None, "probe", None

    def program(self, *path):
        return os.path.join(self.build, *path)

    def emulator(self):
        return self.program("lib", "ddpcheck", "emu")

    def make_environment(self):
        environment = {**os.environ, **ONE_GPU}
        folders = carried_libraries() + [self.program("lib")]
        if self.emulated:
            folders.insert(0, self.emulator())
            environment.update(DDPCHECK_EMU_DEVICES="1", OMP_NUM_THREADS="1", GLIBC_TUNABLES="glibc.rtld.optional_static_tls=16384",
                               LD_AUDIT=os.path.join(self.emulator(), "libddpcheck_emu_redirect.so"),
                               PATH=os.path.join(HERE, "stand-ins") + ":" + os.environ["PATH"])
            environment.update({key: os.environ[key] for key in ("DDPCHECK_EMU_DEVICES", ) if key in os.environ})
        environment["LD_LIBRARY_PATH"] = ":".join(folders + [os.environ.get("LD_LIBRARY_PATH", "")]).rstrip(":")
        return environment

    def size(self, full, small):
        """How much to do: `small` in a dry run."""
        return small if self.emulated else full

    def begin(self, check):
        self.name, self.deadline, self.suspected = check.name, time.monotonic() + check.seconds, None
        self.log = os.path.join(self.work, check.name + ".log")
        open(self.log, "w").close()

    def command(self, *words, expect=0, until=None, **environment):
        """Runs a command to its end, with all that it started; what it prints. `expect`: its exit status; None: any.
        `until`: what a command that hangs is ended for, as soon as it is true."""
        words = [str(word) for word in words]
        with open(self.log, "a+", errors="replace") as log:
            log.write("$ %s\n" % " ".join(words))
            log.flush()
            begin = log.tell()
            process = subprocess.Popen(words, env={**self.environment, **environment}, stdin=subprocess.DEVNULL, stdout=log,
                                       stderr=log, start_new_session=True, cwd=self.work)
            status = self.wait_for(process, until)
            log.seek(begin)
            out = log.read()
        if expect is not None and status != expect:
            last = out.strip().splitlines()[-3:]
            raise Failed("%s: exit %d, expected %d: %s" % (os.path.basename(words[0]), status, expect, " / ".join(last)))
        return out

    def wait_for(self, process, until):
        """The exit status. What the process started has its process group, and ends with it."""
        try:
            while process.poll() is None and not (until and until()):
                if self.deadline and time.monotonic() > self.deadline:
                    raise subprocess.TimeoutExpired(process.args, 0)
                try:
                    process.wait(LOOK_S)
                except subprocess.TimeoutExpired:
                    pass
            if process.returncode is None:
                os.killpg(process.pid, signal.SIGTERM)
                process.wait(PATIENCE_S)
            return process.returncode
        finally:
            if process.returncode is None:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()

    def probe(self):
        """What the GPU, its driver and the libraries are, as one line."""
        process = subprocess.run([self.program("tests", "gpu", "gpu_probe")], env=self.environment, capture_output=True,
                                 text=True, timeout=120, check=False)
        text = (process.stdout + process.stderr).strip()
        if process.returncode == 77:
            raise NoGpu(text)
        if process.returncode:
            raise Failed(text)
        return text

    def fingerprint(self):
        """Of the programs that are tested: rows of others say nothing about them."""
        digest = hashlib.sha256()
        for path in (self.tool, self.program("lib", "libddpcheck.so"), self.program("bin", "ddptrain")):
            with open(path, "rb") as file:
                digest.update(file.read())
        return digest.hexdigest()[:12]

    def in_ranks(self, *words, ranks=None):
        return [sys.executable, os.path.join(HERE, "ranks.py"), str(ranks or self.ranks), *words]

    def fresh_trace(self):
        trace = os.path.join(self.work, "trace-" + self.name)
        shutil.rmtree(trace, ignore_errors=True)
        return trace

    def watch(self, *words, options=(), timeout=30, hangs=None, expect=0, **environment):
        """Runs a job under ddpcheck; its trace. `hangs`: the code of a job that hangs; it is ended when that is found."""
        trace = self.fresh_trace()
        self.command(self.tool, "run", "-o", trace, "--timeout", timeout, *options, "--", *words, expect=None if hangs else expect,
                     until=(lambda: self.has_finding(trace, hangs)) if hangs else None, **environment)
        return trace

    def findings(self, trace, severities=("error", "warning")):
        """The codes of a trace's open findings."""
        out = self.command(self.tool, "report", "--json", trace, expect=None)
        lines = [json.loads(line) for line in out.splitlines() if line.startswith("{")]
        return sorted({line["code"] for line in lines if line.get("severity") in severities and line.get("state") == "open"})

    def expect_findings(self, trace, codes, severities=("error", "warning")):
        found = self.findings(trace, severities)
        if found != sorted(codes):
            raise Failed("expected %s, got %s" % (" ".join(codes) or "no finding", " ".join(found) or "none"))
        return "found " + (" ".join(found) or "nothing, as expected")

    def has_finding(self, trace, code):
        """Whether a job that may be running has shown what is expected of it: as certain, or as a suspicion that stays."""
        try:
            found = {certainty for (certainty, ) in self.query(
                trace, "SELECT certainty FROM finding WHERE code = '%s' AND state = 'open'" % code)}
        except sqlite3.Error:
            found = set()       # the collector is making the database
        if not found:
            self.suspected = None
        elif self.suspected is None:
            self.suspected = time.monotonic()
        return "certain" in found or bool(found and time.monotonic() - self.suspected > STAYS_S)

    def query(self, trace, sql):
        """Rows of the trace's databases, one after the other."""
        rows = []
        for path in sorted(glob.glob(os.path.join(trace, "*.db"))):
            with contextlib.closing(sqlite3.connect("file:%s?mode=ro" % path, uri=True)) as database:
                rows += database.execute(sql).fetchall()
        return rows
