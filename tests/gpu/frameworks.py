"""Checks of programs of PyTorch, CuPy and JAX on real NCCL."""

import functools
import os
import subprocess
import sys

from bench import HERE, ROOT, Failed, Skipped

TORCH = os.path.join(ROOT, "tests", "torch")
sys.path.insert(0, TORCH)
from cases import CASES  # noqa: E402

DRY_TORCH = ("twins",)


@functools.cache
def python_with(module):
    """A Python that has the module."""
    for python in (sys.executable, "python3"):
        if subprocess.run([python, "-c", "import " + module], capture_output=True, timeout=120, check=False).returncode == 0:
            return python
    if module == "torch":
        found = subprocess.run([os.path.join(ROOT, "tools", "setup-torch"), "--find"], capture_output=True, text=True, timeout=60,
                               check=False)
        if found.returncode == 0:
            return os.path.join(found.stdout.strip(), "bin", "python3")
    raise Skipped("no Python module %s here" % module)


def torch(case):
    """A job of tests/torch; the table of its cases says what to expect."""
    def check(bench):
        if bench.emulated and case not in DRY_TORCH:
            raise Skipped("the test torch_ddp runs it on the emulated GPU")
        code, _, way = CASES[case]
        ranks = bench.size(bench.ranks, 2)
        trace = bench.watch(*bench.in_ranks(python_with("torch"), os.path.join(TORCH, "job.py"), case, ranks=ranks),
                            options=("--hang-after", "5"), timeout=100, hangs=code if way == "hang" else None,
                            expect={"ends": 0, "fails": 1}.get(way))
        return bench.expect_findings(trace, [code] if code else [])
    return check


def torch_programs(bench):
    """All correct, one after the other in one job."""
    if bench.emulated:
        raise Skipped("the test torch_train runs them on the emulated GPU")
    trace = bench.watch(*bench.in_ranks(python_with("torch"), os.path.join(TORCH, "train.py")), timeout=200)
    with open(bench.log, errors="replace") as log:
        done = sorted({line.split(": ")[1].strip() for line in log if line.startswith("done: ")})
    found = bench.expect_findings(trace, [])
    return "%s: %s" % (found, ", ".join(done))


def other(module, program):
    """A job of programs/ with that module: clean, or with its last rank out of one operation."""
    def of(code):
        def check(bench):
            if bench.emulated:
                raise Skipped("%s does not run on the emulated GPU: docs/interop.md" % module)
            words = bench.in_ranks(python_with(module), os.path.join(HERE, "programs", program), *(["skip"] if code else []))
            trace = bench.watch(*words, options=("--hang-after", "5"), timeout=80, hangs=code)
            count = bench.query(trace, "SELECT count(*) FROM v_collective")[0][0]
            if not count:
                raise Failed("no operation was recorded")
            return "%s; %d operations" % (bench.expect_findings(trace, [code] if code else []), count)
        return check
    return of


cupy = other("cupy", "cupy_job.py")
jax = other("jax", "jax_job.py")
