"""A rank that has made no NCCL call yet, while the others wait for it in set-up, is named with where it is.

test_dormant.py BUILD. Each rank is this file, started by a shell as a launcher
starts it, beside a tool that has its environment."""

import ctypes
import os
import sys
import time

ID_BYTES, RANKS, LATE = 128, 3, 1


class UniqueId(ctypes.Structure):
    _fields_ = [("bytes", ctypes.c_char * ID_BYTES)]


def prepare_data(path):
    while not os.path.exists(path):
        time.sleep(0.05)


def rank_main(folder):
    rank = int(os.environ["RANK"])
    shared, ready = os.path.join(folder, "id"), os.path.join(folder, "ready")
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


def check(build, comes):
    from line import Line
    with Line(build, devices=RANKS, name="dormant") as line:
        shell = "for r in 0 1 2; do RANK=$r LOCAL_RANK=$r WORLD_SIZE=3 sh -c 'sleep 1000 & %s %s rank %s; kill $!' & done; %s wait" % (
            sys.executable, os.path.abspath(__file__), line.folder, "sleep 8; touch %s/ready;" % line.folder if comes else "")
        line.run(["sh", "-c", shell], ["--hang-after", "3", "--timeout", "8" if not comes else "60"])
        findings = line.report()[1]
        opened = [finding for finding in findings if finding["state"] == "open" and finding["severity"] != "note"]
        late = [side["where"] for finding in findings if finding["code"] == "DC209" for side in finding["sides"]
                if side["ranks"] == str(LATE)]
        assert len(late) == 1, findings
        assert "has made no NCCL call yet, in prepare_data() at test_dormant.py:" in late[0], late
        assert len(opened) == (0 if comes else 1), opened


if __name__ == "__main__":
    if sys.argv[1] == "rank":
        rank_main(sys.argv[2])
    else:
        check(sys.argv[1], False)
        check(sys.argv[1], True)
