"""Jobs started by real launchers, on the emulator: who each process is in the trace, and the rank that a finding names.

test_launchers.py BUILD LAUNCHER: openmpi, hydra, torchrun or late. Exit status 77: this launcher is not on this machine."""

import os
import re
import shutil
import subprocess
import sys

from line import Line

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.join(HERE, "..", "..")
RANKS = 3


def torchrun():
    found = subprocess.run([os.path.join(ROOT, "tools", "setup-torch"), "--find"], capture_output=True, text=True)
    return os.path.join(found.stdout.strip(), "bin", "torchrun") if found.returncode == 0 else None


# launcher: (its program, its arguments, the variables of rank and local rank, the job's name in the trace)
LAUNCHERS = {
    "openmpi": (lambda: shutil.which("mpirun.openmpi"), ["--allow-run-as-root", "--oversubscribe", "-n", str(RANKS)],
                "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_LOCAL_RANK", r"\d+"),
    "hydra": (lambda: shutil.which("mpiexec.hydra"), ["-n", str(RANKS)], "PMI_RANK", "MPI_LOCALRANKID", ""),
    "torchrun": (torchrun, ["--standalone", "--no_python", "--nproc_per_node", str(RANKS)], "RANK", "LOCAL_RANK",
                 r"[0-9a-f-]+"),
}
NAMES = {"openmpi": "openmpi", "hydra": "mpich", "torchrun": "torchrun"}    # in the trace


def launch(name, program, options=()):
    """(exit status, stderr, processes as the trace tells, findings) of the program under this launcher."""
    launcher, arguments, rank, local_rank, _ = LAUNCHERS[name]
    with Line(sys.argv[1], devices=RANKS, name="launchers") as line:
        command = [launcher(), *arguments, *program, rank, local_rank, str(RANKS), line.folder, *options]
        status, out, err = line.run(command, ["--hang-after", "2", "--on-finding", "abort"], 170)
        assert out == "" or options, out    # Hydra explains on stdout how a job was ended
        processes = line.query("SELECT rank, local_rank, world_size, launcher, job FROM process ORDER BY rank")
        findings = [finding for finding in line.report()[1] if finding["severity"] != "note"]
        return status, err, processes, findings


def check(name):
    for program in ([os.path.join(os.path.abspath(sys.argv[1]), "tests", "launchers", "launchers_job")],
                    [sys.executable, os.path.join(HERE, "job.py")]):
        status, err, processes, findings = launch(name, program)
        assert status == 0 and findings == [], (program, status, findings, err)
        assert [row[:4] for row in processes] == [(rank, rank, RANKS, NAMES[name]) for rank in range(RANKS)], processes
        assert all(re.fullmatch(LAUNCHERS[name][4], row[4]) for row in processes), processes
        assert len({row[4] for row in processes}) == 1, processes
    _, err, processes, findings = launch(name, program, ["skip"])      # a job that is ended: its launcher's status is its own
    assert len(findings) == 1, (findings, err)
    assert findings[0]["code"].startswith("DC2"), findings
    assert str(RANKS - 1) in [side["ranks"] for side in findings[0]["sides"]], findings


def check_late():
    """Variables that are set after the process began (by Ray) count: they are read when NCCL is first used."""
    with Line(sys.argv[1], devices=RANKS, name="launchers") as line:
        script = "; ".join("A=%d B=%d %s %s A B %d . late & p%d=$!" % (rank, rank, sys.executable, os.path.join(HERE, "job.py"),
                                                                       RANKS, rank) for rank in range(RANKS))
        waits = " && ".join("wait $p%d" % rank for rank in range(RANKS))
        status, out, err = line.run(["bash", "-c", script.replace("&;", "&") + "; " + waits])
        assert (status, out) == (0, ""), (status, out, err)
        processes = line.query("SELECT rank, local_rank, world_size, launcher FROM process ORDER BY rank")
        assert processes == [(rank, rank, RANKS, "env") for rank in range(RANKS)], processes


def main():
    name = sys.argv[2]
    if name == "late":
        check_late()
    elif not LAUNCHERS[name][0]():
        print("skipped: %s is not on this machine; tools/setup or tools/setup-torch installs it" % name)
        sys.exit(77)
    else:
        check(name)
    print("%s: as expected" % name)


if __name__ == "__main__":
    main()
