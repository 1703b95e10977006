"""The same as job.c, with NCCL and CUDA through ctypes, as vLLM's pynccl loads them.

job.py RANK-VARIABLE LOCAL-RANK-VARIABLE RANKS FOLDER [skip|late]: with `late` the process learns its rank after it began,
as Ray's workers do, by assignments to os.environ: RANK-VARIABLE is another variable then."""

import ctypes
import os
import sys
import time

COUNT, STEPS, SKIPPED = 1000, 6, 3
FLOAT32, SUM, ID_BYTES = 7, 0, 128


class UniqueId(ctypes.Structure):
    _fields_ = [("bytes", ctypes.c_byte * ID_BYTES)]


def check(result):
    if result:
        sys.exit("call failed with %d" % result)


def agree(nccl, rank, folder):
    """Rank 0 leaves the job's unique id in the folder that all ranks see."""
    path, unique = os.path.join(folder, "id"), UniqueId()
    if rank == 0:
        check(nccl.ncclGetUniqueId(ctypes.byref(unique)))
        with open(path + ".made", "wb") as file:
            file.write(bytes(unique))
        os.rename(path + ".made", path)
    while not os.path.exists(path):
        time.sleep(0.01)
    with open(path, "rb") as file:
        return UniqueId.from_buffer_copy(file.read())


def main():
    rank, device, ranks = int(os.environ[sys.argv[1]]), int(os.environ[sys.argv[2]]), int(sys.argv[3])
    folder, mode = sys.argv[4], (sys.argv + ["", ""])[5]
    nccl, cuda = ctypes.CDLL("libnccl.so.2"), ctypes.CDLL("libcudart.so.13")
    version, comm, stream, gradients = ctypes.c_int(), ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_void_p()
    check(nccl.ncclGetVersion(ctypes.byref(version)))
    check(cuda.cudaSetDevice(device))
    if mode == "late":      # after libraries were loaded and asked for their versions
        os.environ.update(RANK=str(rank), LOCAL_RANK=str(device), WORLD_SIZE=str(ranks))
    unique = agree(nccl, rank, folder)
    check(cuda.cudaStreamCreateWithFlags(ctypes.byref(stream), 1))
    check(cuda.cudaMalloc(ctypes.byref(gradients), ctypes.c_size_t(4 * COUNT)))
    check(cuda.cudaMemset(gradients, 0, ctypes.c_size_t(4 * COUNT)))
    check(cuda.cudaDeviceSynchronize())
    check(nccl.ncclCommInitRank(ctypes.byref(comm), ranks, unique, rank))
    for step in range(STEPS):
        if mode != "skip" or rank != ranks - 1 or step != SKIPPED:
            check(nccl.ncclAllReduce(gradients, gradients, ctypes.c_size_t(COUNT), FLOAT32, SUM, comm, stream))
            check(cuda.cudaStreamSynchronize(stream))
    check(nccl.ncclCommDestroy(comm))


main()
