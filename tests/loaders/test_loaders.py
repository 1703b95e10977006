"""Which front end sees the calls of a program, by how it comes by NCCL (docs/front-ends.md).

test_loaders.py BUILD EMULATOR-LIBRARIES"""

import os
import shutil
import sqlite3
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "e2e"))
from stored import wait_stored  # noqa: E402

BUILD, EMULATOR = (os.path.abspath(path) for path in sys.argv[1:3])
TOOL, SHIM = os.path.join(BUILD, "bin", "ddpcheck"), os.path.join(BUILD, "lib", "libddpcheck.so")
FOLDER = os.path.join(BUILD, "tests", "loaders")
ALL = 2 * 2 * 5     # two communicators, two ranks, five rounds
# How it is loaded: AllReduces seen by `ddpcheck run`, and by `ddpcheck run --plugin`.
WAYS = {"local": (ALL, ALL), "handle": (ALL, ALL), "stubs": (ALL, ALL), "deepbind": (0, ALL), "namespace": (0, 0)}


def run(way, *options, preload=True, **environment):
    """(AllReduces recorded, waits of the host recorded, findings)"""
    folder = tempfile.mkdtemp(prefix="ddpcheck-loaders-")
    try:
        trace = os.path.join(folder, "trace")
        clean = {name: value for name, value in os.environ.items()
                 if not name.startswith(("DDPCHECK", "NCCL_PROFILER", "VLLM")) and name not in ("LD_PRELOAD", "RANK", "WORLD_SIZE")}
        clean.update(LD_LIBRARY_PATH=EMULATOR, DDPCHECK_EMU_DEVICES="2", **environment)
        words = [os.path.join(FOLDER, "loader"), way, FOLDER]
        if preload:
            words = [TOOL, "run", "-q", "-o", trace, *options, "--", *words]
        else:
            clean["DDPCHECK_DIR"] = trace
        done = subprocess.run(words, env=clean, capture_output=True, text=True, timeout=300)
        assert (done.returncode, done.stdout, done.stderr) == (0, "ok\n", ""), "%s %s: %s" % (way, options, done)
        if not preload:
            wait_stored(trace)
        counts = [0, 0]
        for name in os.listdir(trace):
            if name.endswith(".db"):
                database = sqlite3.connect("file:%s?mode=ro" % os.path.join(trace, name), uri=True)
                for i, call in enumerate(("ncclAllReduce", "cudaStreamSynchronize")):
                    counts[i] += database.execute("SELECT COUNT(*) FROM event e JOIN api a ON a.number = e.api WHERE e.phase = 1 AND a.name = ?",
                                                  (call,)).fetchone()[0]
                database.close()
        report = subprocess.run([TOOL, "report", trace], capture_output=True, text=True, timeout=300)
        return counts[0], counts[1], report.stdout
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def equal(got, expected, what):
    assert got == expected, "%s: expected %s, got %s" % (what, expected, got)


for way, (preloaded, plugin) in WAYS.items():
    equal(run(way)[0], preloaded, "%s, preloaded" % way)
    equal(run(way, "--plugin")[0], plugin, "%s, preloaded and plugin" % way)
# In a namespace of its own nothing is preloaded, so that a bare name is not found there, but a path is.
equal(run("namespace", NCCL_PROFILER_PLUGIN=SHIM)[0], ALL, "namespace, plugin by its path")
# As vLLM is told of another NCCL: no LD_PRELOAD, the calls go to the shim by its name.
equal(run("named", preload=False, VLLM_NCCL_SO_PATH=SHIM)[0], ALL, "the shim by its own name")
print("ok")
