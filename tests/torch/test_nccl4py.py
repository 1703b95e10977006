"""NCCL's Python package with mpi4py: a job of our own, its fault and its twin.

test_nccl4py.py BUILD. Where PyTorch's environment (tools/setup-torch) has no nccl4py, or there is no mpirun, it is skipped."""

import os
import shutil
import subprocess
import sys

from jobs import HERE, SKIPPED, Line, python

RANKS = 2
JOB = os.path.join(HERE, "nccl4py_job.py")
MPIRUN = ["mpirun", "--allow-run-as-root", "--oversubscribe", "-n", str(RANKS)]


def marked(text):
    with open(JOB) as file:
        return next(number for number, line in enumerate(file, 1) if text in line)


def start(line, *arguments, options=()):
    return line.run([*MPIRUN, python(), JOB, *arguments], options, 200, {"TMPDIR": line.folder})


def findings_of(line):
    """Those that are still true: on a busy machine a rank may come seconds after the others, which is reported, and withdrawn."""
    return [one for one in line.report()[1] if one["state"] == "open" and not one["code"].startswith("DC6")]


def main():
    packages = subprocess.run([python(), "-c", "import nccl.bindings, mpi4py"], capture_output=True, timeout=200)
    if packages.returncode or not shutil.which("mpirun"):
        print("skipped: nccl4py, mpi4py or mpirun is missing")
        sys.exit(SKIPPED)
    with Line(sys.argv[1], devices=RANKS, name="nccl4py") as line:
        status, out, err = start(line)
        assert status == 0 and out.count("done") == RANKS, (status, out, err)
        assert "%d ranks, 1 communicator, no finding" % RANKS in err and findings_of(line) == [], err
    with Line(sys.argv[1], devices=RANKS, name="nccl4py-skip") as line:
        _, out, err = start(line, "skip", options=("--hang-after", "2", "--timeout", "20"))
        (finding,) = findings_of(line)
        assert finding["code"] == "DC201" and [side["ranks"] for side in finding["sides"]] == ["0", "1"], finding
        place = "nccl4py_job.py:%d: possible error DC201" % marked("communicator.allreduce")
        assert place in err.replace("\n", " "), "not the program's line, but one of the package's:\n" + err
        assert marked("time.sleep(600)") in [frame["line"] for frame in finding["sides"][1]["where_frames"]], finding
    print("clean without a finding; skip: DC201 of rank 1, with the program's lines")


if __name__ == "__main__":
    main()
