"""A communicator that waits for its last rank outlives a job in another PID namespace, which can't see its processes.

test_namespaces.py LIBRARIES              the test, with the emulated libraries of that folder
test_namespaces.py LIBRARIES id           prints a new unique id
test_namespaces.py LIBRARIES ID RANKS RANK   joins"""

import ctypes
import glob
import os
import subprocess
import sys
import time

APART = ["unshare", "--pid", "--fork", "--kill-child", "--mount-proc"]
SKIPPED = 77


class UniqueId(ctypes.Structure):
    _fields_ = [("bytes", ctypes.c_ubyte * 128)]


def join(nccl, hexadecimal, ranks, rank):
    cudart = ctypes.CDLL(os.path.join(sys.argv[1], "libcudart.so.13"))
    comm, unique = ctypes.c_void_p(), UniqueId.from_buffer_copy(bytes.fromhex(hexadecimal))
    assert cudart.cudaSetDevice(rank) == 0
    nccl.ncclCommInitRank.argtypes = [ctypes.c_void_p, ctypes.c_int, UniqueId, ctypes.c_int]
    return nccl.ncclCommInitRank(ctypes.byref(comm), ranks, unique, rank)


def python(*arguments):
    return [sys.executable, __file__, sys.argv[1], *arguments]


def new_id():
    return subprocess.run(python("id"), capture_output=True, text=True, check=True, timeout=100).stdout.strip()


def segments():
    return {path for path in glob.glob("/dev/shm/ddpcheck-nccl-*") if os.path.getsize(path)}


def test():
    os.environ["DDPCHECK_EMU_DEVICES"] = "2"
    os.environ["LD_LIBRARY_PATH"] = sys.argv[1]
    if subprocess.run([*APART, "true"], capture_output=True).returncode:
        print("skipped: this user can't make a PID namespace")
        return SKIPPED
    unique, before = new_id(), segments()
    first = subprocess.Popen(python(unique, "2", "0"))
    while not segments() - before:
        assert first.poll() is None, "the first rank has ended"
        time.sleep(0.01)
    other = subprocess.run([*APART, *python("id")], capture_output=True, text=True, timeout=100)
    assert other.returncode == 0, other.stderr
    second = subprocess.run(python(unique, "2", "1"), timeout=100)
    assert (first.wait(100), second.returncode) == (0, 0)
    return 0


def main():
    if len(sys.argv) == 2:
        return test()
    nccl = ctypes.CDLL(os.path.join(sys.argv[1], "libnccl.so.2"))
    if sys.argv[2] != "id":
        return join(nccl, sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))
    unique = UniqueId()
    assert nccl.ncclGetUniqueId(ctypes.byref(unique)) == 0
    print(bytes(unique.bytes).hex())
    return 0


if __name__ == "__main__":
    sys.exit(main())
