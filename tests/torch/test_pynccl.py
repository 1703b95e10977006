"""NCCL called by ctypes on PyTorch's streams, as vLLM does: a program of our own, its fault and its twin.

test_pynccl.py BUILD"""

import os
import sys

from jobs import HERE, Line, torch_folder

RANKS = 2


def start(line, *arguments, options=()):
    torchrun = os.path.join(torch_folder(), "bin", "torchrun")
    return line.run([torchrun, "--standalone", "--nproc_per_node", str(RANKS), os.path.join(HERE, "pynccl.py"), *arguments],
                    options, 200, {"OMP_NUM_THREADS": "1", "TORCH_CPP_LOG_LEVEL": "ERROR", "GLOG_minloglevel": "2", "TMPDIR": line.folder})


def marked(text):
    with open(os.path.join(HERE, "pynccl.py")) as file:
        return next(number for number, line in enumerate(file, 1) if text in line)


def findings_of(line):
    """Those that are still true: on a busy machine a rank may come seconds after the others, which is reported, and withdrawn."""
    return [one for one in line.report()[1] if one["state"] == "open" and not one["code"].startswith("DC6")]


def main():
    with Line(sys.argv[1], devices=RANKS, name="pynccl") as line:
        status, out, err = start(line)
        assert status == 0, (status, out, err)
        assert "%d ranks, 1 communicator, no finding" % RANKS in err, err
        assert findings_of(line) == [], err
    with Line(sys.argv[1], devices=RANKS, name="pynccl-skip") as line:
        _, out, err = start(line, "skip", options=("--hang-after", "2", "--timeout", "30"))
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
