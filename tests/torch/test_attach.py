"""ddpcheck attach to PyTorch jobs that were started without ddpcheck, on emulated GPUs and on gloo: who is missing, and where."""

import json
import os
import re
import socket
import subprocess
import sys
import time

from jobs import HERE, Line, python
from line import end_group

RANKS = 3
# case, backend: code, the line's function of the last rank, words; None: a correct job, which is left alone
CASES = {
    ("evaluates", "nccl"): ("DC201", "evaluate", "rank 2 is in clock_nanosleep"),
    ("loader", "nccl"): ("DC201", "load_batches", "rank 2 is in a data loader"),
    ("lock", "gloo"): ("DC201", "take_lock_twice", "ranks 0-1 wait in all_reduce"),
    ("different", "gloo"): ("DC101", "main", "ranks 0-1 are in all_reduce; rank 2 is in broadcast"),
    ("program", "nccl"): ("DC201", "run_program", "rank 2 is in a wait for another program"),
    ("computes", "nccl"): ("DC210", "compute_alone", "rank 2 is in no call of NCCL or CUDA"),
    ("in-thread", "nccl"): ("DC201", "main", "rank 2 is in a wait for another thread"),
    ("right", "nccl"): None,
}


def free_port():
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        return server.getsockname()[1]


def start_ranks(line, case, backend):
    environment = line.bare_environment(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(free_port()), WORLD_SIZE=str(RANKS), BACKEND=backend)
    for name in ("LD_PRELOAD", "DDPCHECK_DIR"):
        environment.pop(name, None)
    return [subprocess.Popen([python(), os.path.join(HERE, "attach_job.py"), case], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                             stderr=subprocess.STDOUT, text=True, env={**environment, "RANK": str(rank), "LOCAL_RANK": str(rank)}, start_new_session=True)
            for rank in range(RANKS)]


def attach(line, ranks):
    status, out, err = line.call([line.tool, "attach", "--json", *(str(rank.pid) for rank in ranks)])
    if "does not let us look" in err and os.getuid():
        print("skipped: " + err)
        sys.exit(77)
    lines = [json.loads(text) for text in out.splitlines()]
    return status, [each for each in lines if each.get("schema", "").startswith("ddpcheck.finding/")], err


def wait_ready(ranks):
    for rank in ranks:
        seen = ""
        while "ready" not in seen:
            text = rank.stdout.readline()
            assert text, seen
            seen += text


def check(line, case, backend, expected):
    ranks = start_ranks(line, case, backend)
    try:
        wait_ready(ranks)
        end = time.monotonic() + 120
        while True:
            status, findings, err = attach(line, ranks)
            if expected is None or findings or time.monotonic() > end:
                break
        if expected is None:
            # on a busy machine a rank may be late for a moment: a note
            assert status == 0 and all(each["severity"] == "note" for each in findings), (case, status, findings, err)
            assert all("done True" in rank.communicate(timeout=120)[0] and rank.returncode == 0 for rank in ranks), case
            return
    finally:
        for rank in ranks:
            end_group(rank)         # with what it started: a loader's workers
    code, function, words = expected
    assert [each["code"] for each in findings] == [code] and words in findings[0]["what"], (case, findings, err)
    last = [side for side in findings[0]["sides"] if side["ranks"] == str(RANKS - 1)]
    assert last and function in re.findall(r'"function": "(\w+)"', json.dumps(last)), (case, findings)


def main():
    for (case, backend), expected in CASES.items():
        with Line(sys.argv[1], name="attach") as line:
            check(line, case, backend, expected)
            print(case, backend, flush=True)


main()
