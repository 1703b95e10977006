"""NCCL called by ctypes on PyTorch's streams, as vLLM does: a program of our own, its fault and its twin.

test_pynccl.py BUILD"""

import os
import sys

from jobs import HERE, Line, Server, end_group, output, statuses, torch_folder, wait_for

RANKS = 2


def marked(text):
    with open(os.path.join(HERE, "pynccl.py")) as file:
        return next(number for number, line in enumerate(file, 1) if text in line)


def findings_of(line):
    """Those that are still true: on a busy machine a rank may come seconds after the others, which is reported, and withdrawn."""
    return [one for one in line.report()[1] if one["state"] == "open" and not one["code"].startswith("DC6")]


def run(server, line, case, is_over):
    """Runs it until then; returns the ranks' exit statuses, and what they printed."""
    folder = os.path.join(line.folder, case)
    line.trace = os.path.join(folder, "trace")
    leader = server.start(case, folder, DDPCHECK_DIR=line.trace, DDPCHECK_HANG_AFTER="2")
    try:
        wait_for(lambda: statuses(folder) or is_over(), 120)
        return statuses(folder), output(folder)
    finally:
        end_group(leader)
        line.wait_collector()


def main():
    torch_folder()
    with Line(sys.argv[1], devices=RANKS, name="pynccl") as line, Server(line, RANKS, "pynccl") as server:
        ended, text = run(server, line, "clean", lambda: False)
        assert ended == [0] * RANKS, (ended, text)
        assert findings_of(line) == [] and line.query("SELECT COUNT(DISTINCT comm) FROM member_state") == [(1,)], text
        # Where the rank stands is asked 0.15 s after the finding.
        run(server, line, "skip", lambda: line.live_findings() and line.query("SELECT 1 FROM v_thread_stack WHERE rank = 1"))
        (finding,) = findings_of(line)
        assert finding["code"] == "DC201", finding
        waits, misses = finding["sides"]
        assert (waits["ranks"], misses["ranks"]) == ("0", "1"), finding
        assert waits["call"] == "ncclAllReduce(count=1024, float32, sum)", waits
        lines = [frame["line"] for frame in waits["frames"] if frame["file"].endswith("pynccl.py")]
        assert lines[:2] == [marked("self.nccl.ncclAllReduce("), marked("activations = communicator.all_reduce")], waits["frames"]
        assert marked("time.sleep(600)") in [frame["line"] for frame in misses["where_frames"]], misses
    print("clean without a finding; skip: DC201 of rank 1, with the program's lines")


if __name__ == "__main__":
    main()
