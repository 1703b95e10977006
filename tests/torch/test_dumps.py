"""Real Flight Recorder dumps, made now: `ddpcheck import` and `report` name the rank, and say no less than torchfrtrace.

test_dumps.py BUILD. On NCCL (emulated) and gloo; PyTorch's own analyzer can't read what gloo writes."""

import json
import os
import subprocess
import sys
import time

from jobs import HERE, Line, python

# case: (code, what torchfrtrace says of it).
CASES = {
    "clean": (None, None),
    "skip": ("DC101", "COLLECTIVE_TYPE_MISMATCH"),
    "size": ("DC102", "SIZE_OR_SYNTAX_MISMATCH"),
    "dtype": ("DC103", "COLLECTIVE_DTYPE_MISMATCH"),
    "behind": ("DC201", "missing ranks: {2}"),
}
BACKENDS = {"nccl": ["clean", "skip", "size", "dtype", "behind", "behind.json"], "gloo": ["clean", "skip", "behind", "behind.json"]}


def make(line, backend, cases):
    emulation = {"LD_AUDIT": line.redirect, "DDPCHECK_EMU_DEVICES": "3"} if backend == "nccl" else {}
    command = [python(), os.path.join(HERE, "dumps.py"), os.path.join(line.folder, backend), backend, *cases]
    status, _, err = line.call(command, 400, emulation)
    assert status == 0, err
    later = time.time() + 30            # a watchdog writes them when its timeout is over: until then nothing happened
    for folder, _, names in os.walk(os.path.join(line.folder, backend)):
        for name in names:
            os.utime(os.path.join(folder, name), (later, later))


def analyzers_say(folders):
    done = subprocess.run([python(), os.path.join(HERE, "verdicts.py"), *folders], capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr
    return {os.path.basename(one["folder"]): one["says"] for one in map(json.loads, done.stdout.splitlines())}


def findings(line, folder):
    database = folder + ".db"
    status, out, err = line.call([line.tool, "import", "-q", "-o", database, folder])
    assert status == 0, (folder, out, err)
    status, out, err = line.call([line.tool, "report", "--json", database])
    assert status in (0, 1), (folder, err)
    lines = [json.loads(text) for text in out.splitlines()]
    return [one for one in lines if one.get("schema", "").startswith("ddpcheck.finding/") and one["severity"] != "note"]


def check(line, folder, case):
    code = CASES[case.removesuffix(".json")][0]
    told = [(finding["code"], [side["ranks"] for side in finding["sides"]]) for finding in findings(line, folder)]
    assert told == ([(code, ["0-1", "2"])] if code else []), "%s: expected %s of rank 2, got %s" % (folder, code, told)


def main():
    python()
    with Line(sys.argv[1], name="dumps") as line:
        for backend, cases in BACKENDS.items():
            make(line, backend, cases)
            for case in cases:
                check(line, os.path.join(line.folder, backend, case), case)
        pickles = [case for case in BACKENDS["nccl"] if not case.endswith(".json")]
        theirs = analyzers_say([os.path.join(line.folder, "nccl", case) for case in pickles])
        for case in pickles:
            expected = CASES[case][1]
            assert (expected in theirs[case]) if expected else "rror" not in theirs[case], (case, theirs[case])
    print("%d sets of dumps: the odd rank is named" % sum(map(len, BACKENDS.values())))


if __name__ == "__main__":
    main()
