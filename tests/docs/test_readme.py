"""Runs every command of README.md, and of the pages in docs that show some, on the emulator, in the order in which they
stand there.

`./train` is ddptrain, `torchrun`, `srun` and `python` are stand-ins that start it (the real ones are not on every
machine), mpirun is the real one where there is one. `make` targets are only looked up: tests are run by one of them."""

import os
import re
import shutil
import stat
import subprocess
import sys

from line import Line

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
# Starts 2 ranks of ddptrain whatever it is asked to start.
STAND_IN = "#!/bin/sh\n%s exec ./train --ranks 2 --iterations 3\n"
SRUN = """#!/bin/sh
while [ $# -gt 0 ]; do
    case $1 in
        --export=ALL,*) export $(echo "${1#--export=ALL,}" | tr ',' ' '); shift ;;
        -*) shift ;;
        *) break ;;
    esac
done
exec "$@"
"""
PIDS = "4711,4712"      # of README.md: stands for processes that run
STATUS = {"ddpcheck attach": (0, 1, 2, 3),      # whatever runs on this host
          "ddpcheck report": (0, 1), "ddpcheck doctor": (0, 1), "ddpcheck diff": (0, 1)}     # others: 0


PAGES = ("README.md", "docs/usage.md", "docs/choice.md", "docs/tui.md", "docs/launchers.md", "docs/pytorch.md", "docs/diff.md",
         "docs/front-ends.md", "docs/trainer.md", "docs/speed.md")
RUN_WHOLE_ELSEWHERE = ("docs/speed.md",)        # tests/e2e/slow.py; here a few iterations of each command


def commands(page):
    """Indented lines that start with a command of ours or a variable for one, or set one for those that follow; a line that ends
    with a backslash goes on."""
    with open(os.path.join(ROOT, page)) as text:
        for line in re.sub(r"\\\n +", "", text.read()).splitlines():
            found = re.match(r"    ((?:[A-Z_]+=\S+ )*(?:ddpcheck|export|make|torchrun|mpirun|srun|\./train|python3 bench/)\b.*?)(?:\s+#.*)?$", line)
            if found:
                command = found.group(1).rstrip()
                yield re.sub(r"--iterations \d+", "--iterations 3", command) if page in RUN_WHOLE_ELSEWHERE else command


def script(folder, name, text):
    path = os.path.join(folder, name)
    with open(path, "w") as file:
        file.write(text)
    os.chmod(path, os.stat(path).st_mode | stat.S_IXUSR)


def prepare(line):
    folder = os.path.join(line.folder, "bin")
    os.mkdir(folder)
    for name in ("torchrun", "python"):
        script(folder, name, STAND_IN % "")
    script(folder, "srun", SRUN)
    os.symlink(line.tool, os.path.join(folder, "ddpcheck"))
    shutil.copytree(os.path.join(ROOT, "tests", "data", "flight_recorder", "nccl-skip"), os.path.join(line.folder, "dumps"))
    os.symlink(os.path.dirname(line.shim), os.path.join(line.folder, "lib"))
    os.symlink(os.path.join(ROOT, "bench"), os.path.join(line.folder, "bench"))
    os.mkdir(os.path.join(line.folder, "build"))
    os.symlink(line.build, os.path.join(line.folder, "build", "dev"))
    script(folder, "ddptrain", "#!/bin/sh\nexec %s --dataset-size 512 \"$@\"\n" % line.trainer)
    script(line.folder, "train", "#!/bin/sh\nexec %s --iterations 3 --dataset-size 64 \"$@\"\n" % line.trainer)
    return {**os.environ, "PATH": folder + ":" + os.environ["PATH"], "LD_LIBRARY_PATH": line.emu,
            "DDPCHECK_EMU_DEVICES": "8", "DDPCHECK_HANG_AFTER": "60",
            "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
            "OMPI_MCA_rmaps_base_oversubscribe": "1", "OMPI_MCA_btl": "self,tcp"}


def has_ddpcheck(command, line, environment):
    """The variable leads to what `make` builds, here whatever build is tested."""
    make = subprocess.run(["make", "-n", "build"], cwd=ROOT, capture_output=True, text=True)
    built = os.path.join(line.folder, "source", "build", re.search(r"--preset (\S+)", make.stdout)[1])
    os.makedirs(os.path.dirname(built))
    os.symlink(line.build, built)
    done = subprocess.run(["bash", "-c", command + "; command -v ddpcheck"], cwd=os.path.join(line.folder, "source"),
                          env=environment, capture_output=True, text=True)
    assert done.stdout.strip() == os.path.join(built, "bin", "ddpcheck"), "%s: %s" % (command, done)
    return "has ddpcheck"


def check(command, line, environment):
    if command.startswith("make"):
        done = subprocess.run(["make", "-n", *command.split()[1:]], cwd=ROOT, capture_output=True, text=True)
        assert done.returncode == 0, "%s: %s" % (command, done.stderr)
        return "looked up"
    if command.startswith("export PATH="):
        return has_ddpcheck(command, line, environment)
    if re.search(r"ddpcheck (tui|run .*--tui)", command) and "--once" not in command:
        return "needs a terminal: tests/tui"
    if "mpirun" in command and not shutil.which("mpirun"):
        return "skipped: no mpirun"
    command = command.replace(PIDS, str(os.getpid()))
    done = subprocess.run(["bash", "-c", command], cwd=line.folder, env=environment, stdin=subprocess.DEVNULL,
                          capture_output=True, text=True, timeout=100)
    allowed = next((value for start, value in STATUS.items() if command.startswith(start)), (0,))
    assert done.returncode in allowed, "%s: status %d\n%s%s" % (command, done.returncode, done.stdout, done.stderr)
    return "status %d" % done.returncode


def main():
    found = [command for page in PAGES for command in commands(page)]
    for page, least in (("README.md", 8), ("docs/usage.md", 15)):
        assert len(list(commands(page))) >= least, "%s shows only %s" % (page, list(commands(page)))
    with Line(sys.argv[1], devices=8, name="readme") as line:
        environment = prepare(line)
        for command in found:
            print("%-100s %s" % (command, check(command, line, environment)), flush=True)
            if os.path.exists(os.path.join(line.trace, "collector.lock")):
                line.wait_collector()


if __name__ == "__main__":
    main()
