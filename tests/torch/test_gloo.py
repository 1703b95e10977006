"""A PyTorch job that uses no GPU is not disturbed: torchrun, its ranks, loader processes that are forked.

test_gloo.py BUILD. The job runs twice, with and without `ddpcheck run`; its output and status are the same, byte by byte,
and the shim, though loaded, left nothing in any process: no thread, no open file; in the trace is no database."""

import json
import os
import re
import subprocess
import sys

from jobs import HERE, Line, torch_folder

RANKS = 2
# Runs in every Python process of the job when it ends; what each finds goes to a file of its own.
WITNESS = '''
import atexit, glob, json, os, sys
def look():
    folder = os.environ.get("DDPCHECK_TEST_WITNESS")
    if not folder:
        return
    def read(path):
        try:
            with open(path, errors="replace") as file:
                return file.read()
        except OSError:         # a thread that is gone
            return ""
    files = []
    for link in glob.glob("/proc/self/fd/*"):
        try:
            files.append(os.readlink(link))
        except OSError:
            pass
    found = {"who": " ".join(sys.argv[-2:]), "loaded": "libddpcheck.so" in read("/proc/self/maps"),
             "threads": [read(path).strip() for path in glob.glob("/proc/self/task/*/comm")],
             "files": [file for file in files if "ddpcheck" in file]}
    with open(os.path.join(folder, "%d.json" % os.getpid()), "w") as file:
        json.dump(found, file)
atexit.register(look)
from multiprocessing import util
util.Finalize(None, look, exitpriority=0)
util.register_after_fork(look, lambda _: util.Finalize(None, look, exitpriority=0))
'''


def without_numbers(text):
    """Times, process numbers and ports differ from run to run."""
    return sorted(re.sub(r"\d+", "N", line) for line in text.splitlines())


def without_gloo(text):
    """gloo's own lines come in any order, also in one line."""
    return "".join(re.findall("^step.*\n", text, re.M))


def run(line, watched):
    witness = os.path.join(line.folder, "witness-%s" % watched)
    os.mkdir(witness)
    with open(os.path.join(line.folder, "sitecustomize.py"), "w") as file:
        file.write(WITNESS)
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "DDPCHECK_TEST_WITNESS": witness, "PYTHONPATH": line.folder}
    torchrun = [os.path.join(torch_folder(), "bin", "torchrun"), "--standalone", "--nproc_per_node", str(RANKS),
                os.path.join(HERE, "job.py"), "clean"]
    before = [line.tool, "run", "-q", "-o", line.trace, "--"] if watched else []
    done = subprocess.run(before + torchrun, cwd=line.folder, env=environment, capture_output=True, text=True, timeout=300)
    found = []
    for name in sorted(os.listdir(witness)):
        with open(os.path.join(witness, name)) as file:
            found.append(json.load(file))
    return done.returncode, done.stdout, done.stderr, found


def main():
    torch_folder()
    with Line(sys.argv[1], devices=RANKS, name="gloo") as line:
        plain, watched = run(line, False), run(line, True)
        assert plain[0] == watched[0] == 0, (plain[:3], watched[:3])
        assert without_gloo(plain[1]) and without_gloo(plain[1]) == without_gloo(watched[1]), (plain[1], watched[1])
        assert without_numbers(watched[2]) == without_numbers(plain[2]), (plain[2], watched[2])
        assert not any(one["loaded"] for one in plain[3]), plain[3]
        assert len(watched[3]) == 1 + RANKS * (1 + 2), watched[3]      # torchrun; each rank has two loaders
        for one in watched[3]:
            assert one["loaded"], one
            assert one["files"] == [] and "ddpcheck" not in one["threads"], one
        assert not any(name.endswith(".db") for name in os.listdir(line.trace)), os.listdir(line.trace)
    print("%d processes of torchrun on gloo: dormant" % len(watched[3]))


if __name__ == "__main__":
    main()
