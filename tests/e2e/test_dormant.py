"""A rank that has made no NCCL call yet, while the others wait for it in set-up, is named with where it is.

test_dormant.py BUILD. Each rank is this file, started by a shell as a launcher
starts it, beside a tool that has its environment."""

import ctypes
import os
import subprocess
import sys
import time

ID_BYTES, RANKS, LATE = 128, 3, 1


class UniqueId(ctypes.Structure):
    _fields_ = [("bytes", ctypes.c_char * ID_BYTES)]


def prepare_data(path):
    while not os.path.exists(path):
        time.sleep(0.05)


def meet(path):
    while not os.path.exists(path):
        time.sleep(0.05)


def rank_main(folder, is_met):
    rank = int(os.environ["RANK"])
    shared, ready = os.path.join(folder, "id"), os.path.join(folder, "ready")
    if not is_met and rank != LATE:
        meet(ready)
    if rank == LATE:
        prepare_data(ready)
    cuda, nccl = ctypes.CDLL("libcudart.so.13"), ctypes.CDLL("libnccl.so.2")
    unique, comm = UniqueId(), ctypes.c_void_p()
    if rank == 0:
        assert nccl.ncclGetUniqueId(ctypes.byref(unique)) == 0
        with open(shared + ".new", "wb") as file:
            file.write(bytes(unique))
        os.rename(shared + ".new", shared)
    prepare_data(shared)
    with open(shared, "rb") as file:
        unique = UniqueId.from_buffer_copy(file.read())
    cuda.cudaSetDevice(rank)
    assert nccl.ncclCommInitRank(ctypes.byref(comm), RANKS, unique, rank) == 0
    assert nccl.ncclCommDestroy(comm) == 0


def start(line, role, before_wait=""):
    return "for r in 0 1 2; do RANK=$r LOCAL_RANK=$r WORLD_SIZE=3 sh -c 'sleep 1000 & %s %s %s %s; kill $!' & done; %s wait" % (
        sys.executable, os.path.abspath(__file__), role, line.folder, before_wait)


def check(build, comes):
    from line import Line
    with Line(build, devices=RANKS, name="dormant") as line:
        shell = start(line, "rank", "sleep 8; touch %s/ready;" % line.folder if comes else "")
        line.run(["sh", "-c", shell], ["--hang-after", "3", "--timeout", "8" if not comes else "60"])
        findings = line.report()[1]
        opened = [finding for finding in findings if finding["state"] == "open" and finding["severity"] != "note"]
        late = [side["where"] for finding in findings if finding["code"] == "DC209" for side in finding["sides"]
                if side["ranks"] == str(LATE)]
        assert len(late) == 1, findings
        assert "has made no NCCL call yet, in prepare_data() at test_dormant.py:" in late[0], late
        assert len(opened) == (0 if comes else 1), opened


def check_uncalled(build):
    """They wait for each other before any of them has called NCCL, until --timeout. What starts them has a number of another
    launcher, as torchrun under srun."""
    from line import Line
    with Line(build, devices=RANKS, name="dormant") as line:
        _, _, printed = line.run([sys.executable, os.path.abspath(__file__), "launcher", start(line, "waits")], ["--timeout", "8"],
                                 environment={"SLURM_PROCID": str(LATE), "SLURM_NTASKS": str(RANKS)})
        found = [finding for finding in line.report()[1] if finding["code"] == "DC211"]
        assert found[0]["what"].startswith("no rank of the job has called NCCL: "), found
        sides = sorted((side["ranks"], side["call"]) for side in found[0]["sides"])
        assert [ranks for ranks, _ in sides] == ["0,2", str(LATE)], sides
        assert "made no NCCL call, in meet() at test_dormant.py:" in sides[0][1], sides
        assert "made no NCCL call, in prepare_data() at test_dormant.py:" in sides[1][1], sides
        assert "no rank called NCCL, 1 error" in printed, printed


if __name__ == "__main__":
    if sys.argv[1] in ("rank", "waits"):
        rank_main(sys.argv[2], sys.argv[1] == "rank")
    elif sys.argv[1] == "launcher":
        sys.exit(subprocess.call(["sh", "-c", sys.argv[2]]))
    else:
        check(sys.argv[1], False)
        check(sys.argv[1], True)
        check_uncalled(sys.argv[1])
