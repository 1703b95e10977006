"""Where the checks of tests/gpu/run are run: programs, environment and commands, the same on a GPU and on the emulator."""

import contextlib
import copy
import glob
import hashlib
import json
import os
import re
import shutil
import signal
import sqlite3
import subprocess
import sys
import sysconfig
import time

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
sys.path.append(os.path.join(ROOT, "tests", "suite"))
from sessions import end_session  # noqa: E402

# Each rank takes itself for another host, or NCCL would refuse two on one GPU; and between hosts it would look for
# InfiniBand, which reaches no other process of the same machine.
ONE_GPU = {"LOCAL_RANK": "0", "NCCL_NET": "Socket", "NCCL_SOCKET_IFNAME": "lo", "NCCL_MULTI_RANK_GPU_ENABLE": "1"}


LOOK_S = 0.2        # between two looks at a running command
STAYS_S = 6         # for a suspicion that no rank's arrival withdraws
PATIENCE_S = 60     # for a command that is asked to end
ASK_AGAIN_S = 5


class Failed(Exception):
    """The check found a fault."""


class Skipped(Exception):
    """The check can't be run here; the text says what is missing."""


class NoGpu(Exception):
    """There is no device at all."""


class Check:
    def __init__(self, name, seconds, what, run, measures=False):
        """`measures`: it needs the machine for itself."""
        self.name, self.seconds, self.what, self.run, self.measures = name, seconds, what, run, measures


def carried_libraries(programs, folder):
    """A folder of links to those libraries in .carry/ that the programs need and this machine lacks: what it has suits its
    other programs better."""
    carry = os.path.join(ROOT, ".carry")
    root = os.path.join(carry, "root")
    for package in glob.glob(os.path.join(carry, "*.deb")) if not os.path.isdir(root) else []:
        subprocess.run(["dpkg", "-x", package, root], check=True, timeout=60)
    carried = {os.path.basename(path): path for part in ("root", "lib")
               for path in glob.glob(os.path.join(carry, part, "**", "*.so.*"), recursive=True)}
    os.makedirs(folder, exist_ok=True)
    environment = {**os.environ, "LD_LIBRARY_PATH": folder + ":" + os.environ.get("LD_LIBRARY_PATH", "")}
    missing = True
    while missing:              # a library that was missing has needs of its own
        said = subprocess.run(["ldd", *programs], env=environment, capture_output=True, text=True, timeout=60, check=False).stdout
        missing = {name for name in re.findall(r"(\S+) => not found", said)
                   if name in carried and not os.path.exists(os.path.join(folder, name))}
        for name in missing:
            os.symlink(carried[name], os.path.join(folder, name))
    return folder


def python_libraries():
    """NVIDIA's libraries as pip installs them beside PyTorch, for machines where NCCL is nowhere else."""
    return sorted(glob.glob(os.path.join(sysconfig.get_paths()["purelib"], "nvidia", "*", "lib")))


class Bench:
    def __init__(self, build, work, emulated, ranks, pairs):
        self.build, self.work, self.emulated, self.pairs = os.path.abspath(build), os.path.abspath(work), emulated, pairs
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
        programs = [self.tool, self.program("bin", "ddptrain"), self.program("tests", "test_kernels_device"),
                    *glob.glob(self.program("tests", "gpu", "libgpu_user*.so"))]
        folders = [carried_libraries(programs, os.path.join(self.work, "carried")), self.program("lib")]
        if self.emulated:
            folders.insert(0, self.emulator())
            environment.update(DDPCHECK_EMU_DEVICES="1", OMP_NUM_THREADS="1", GLIBC_TUNABLES="glibc.rtld.optional_static_tls=16384",
                               LD_AUDIT=os.path.join(self.emulator(), "libddpcheck_emu_redirect.so"),
                               PATH=os.path.join(HERE, "stand-ins") + ":" + os.environ["PATH"])
            environment.update({key: os.environ[key] for key in ("DDPCHECK_EMU_DEVICES", ) if key in os.environ})
        else:
            folders += python_libraries()
        environment["LD_LIBRARY_PATH"] = ":".join(folders + [os.environ.get("LD_LIBRARY_PATH", "")]).rstrip(":")
        return environment

    def size(self, full, small):
        """How much to do: `small` in a dry run."""
        return small if self.emulated else full

    def copy_for(self, check):
        """The same bench with a log and a deadline of this check's own."""
        bench = copy.copy(self)
        bench.name, bench.deadline, bench.suspected = check.name, time.monotonic() + check.seconds, None
        bench.log = os.path.join(self.work, check.name + ".log")
        open(bench.log, "w").close()
        return bench

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
                self.ask_to_end(process)
            return process.returncode
        finally:
            end_session(process)
            process.wait()

    def ask_to_end(self, process):
        """Until it ends: what it has started may take the first signal for itself, as JAX does."""
        end = time.monotonic() + PATIENCE_S
        while time.monotonic() < end:
            os.killpg(process.pid, signal.SIGTERM)
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(ASK_AGAIN_S)
                return
        raise Failed("it did not end in %d s after it was asked to" % PATIENCE_S)

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
