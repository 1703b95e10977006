"""torchrun starts real PyTorch ranks again after one died: both incarnations are in one trace, the loss is told as got over.

test_elastic.py BUILD. On NCCL, on the emulator, with loader processes that the ranks fork."""

import os
import sys

from jobs import HERE, Line, torch_folder

RANKS = 2


def main():
    torchrun = os.path.join(torch_folder(), "bin", "torchrun")
    with Line(sys.argv[1], devices=RANKS, name="elastic") as line:
        status, out, err = line.run(
            [torchrun, "--standalone", "--nproc_per_node", str(RANKS), "--max_restarts", "1", os.path.join(HERE, "job.py"), "restart"],
            ["--timeout", "120"], 300, {"OMP_NUM_THREADS": "1",
             # PyTorch 2.10 finds keys of the first start in the store that it shares with torchrun (a stale unique id: DC109).
             "TORCH_DISABLE_SHARE_RDZV_TCP_STORE": "1"})
        assert status == 0 and "over 2 ranks" in out, (status, out, err)
        processes = line.query("SELECT rank, restart, launcher FROM process ORDER BY restart, rank")
        assert processes == [(rank, restart, "torchrun") for restart in (0, 1) for rank in range(RANKS)], processes
        told = [(finding["code"], finding["state"]) for finding in line.report()[1] if finding["code"].startswith("DC2")]
        assert told == [("DC205", "resolved")], (told, err)
    print("two incarnations of %d ranks: %s" % (RANKS, told))


if __name__ == "__main__":
    main()
