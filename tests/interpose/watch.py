"""A program under the shim, and what is in its ring files. Used by the tests of this directory."""

import json
import os
import shutil
import subprocess
import sys
import tempfile

from rings_name import fnv, name_rings

BUILD, FAKE = (os.path.abspath(path) for path in sys.argv[1:3])
SHIM = os.path.join(BUILD, "lib", "libddpcheck.so")
PROGRAMS = os.path.join(BUILD, "tests", "interpose")
JOB = os.path.join(PROGRAMS, "interpose_job")
DUMP = os.path.join(PROGRAMS, "ring_dump")

NO_SLOT = 0xFFFFFFFF
LAUNCHER = ("RANK", "LOCAL_RANK", "WORLD_SIZE", "PMI_RANK", "SLURM_PROCID", "OMPI_COMM_WORLD_RANK", "JAX_PROCESS_ID",
            "TORCHELASTIC_RUN_ID")


class Run:
    """A program under the shim, with its output and what is in its rings."""

    def __init__(self, *program, preload=True, timeout=300, cwd=None, trace=True, rings=None, **environment):
        self.folder = tempfile.mkdtemp(prefix="ddpcheck-interpose-")
        self.trace = os.path.join(self.folder, "trace")
        if rings:       # a directory that the first process of the trace would choose itself
            os.mkdir(self.trace)
            os.rename(rings, name_rings(os.path.dirname(rings), self.trace))
        # The TSan preset's GLIBC_TUNABLES reserve room that small stacks have not.
        clean = {name: value for name, value in os.environ.items()
                 if name not in LAUNCHER and name != "GLIBC_TUNABLES" and not name.startswith("DDPCHECK")}
        self.environment = {**clean, "LD_LIBRARY_PATH": FAKE, "DDPCHECK_COLLECT": "0", "DDPCHECK_STACKS": "0",
                            **({"LD_PRELOAD": SHIM} if preload else {}), **({"DDPCHECK_DIR": self.trace} if trace else {}),
                            **environment}
        done = subprocess.run(program, env=self.environment, cwd=cwd or self.folder, capture_output=True, text=True,
                              timeout=timeout)
        self.status, self.out, self.err = done.returncode, done.stdout, done.stderr

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.rings():
            shutil.rmtree(self.rings(), ignore_errors=True)
        shutil.rmtree(self.folder, ignore_errors=True)

    def rings(self):
        try:
            with open(os.path.join(self.trace, "rings"), encoding="ascii") as file:
                return file.read().rstrip("\n")
        except FileNotFoundError:
            return None

    def files(self):
        return sorted(os.path.join(self.rings(), name) for name in os.listdir(self.rings())) if self.rings() else []

    def records(self, file=None):
        if file is None:
            assert len(self.files()) == 1, "ring files: %s" % self.files()
            file = self.files()[0]
        done = subprocess.run([DUMP, file], capture_output=True, text=True, timeout=300)
        assert done.returncode == 0, done.stderr
        return [json.loads(line) for line in done.stdout.splitlines()]

    def ok(self, status=0):
        assert (self.status, self.out, self.err) == (status, "ok\n" if status == 0 else "", ""), \
            "status %d, stdout %r, stderr %r" % (self.status, self.out, self.err)
        return self


def of(records, api, phase=None):
    return [record for record in records if record["api"] == api and phase in (None, record.get("phase"))]


def equal(got, expected, what):
    assert got == expected, "%s: expected %s, got %s" % (what, expected, got)


def signed(value):
    return value - (1 << 64) if value >> 63 else value


def words(*values):
    return b"".join((value & 0xFFFFFFFFFFFFFFFF).to_bytes(8, "little") for value in values)


UNIQUE = signed(fnv(b"\7" * 128))
