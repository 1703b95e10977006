"""NCCL the way vLLM's pynccl calls it: a class of ctypes functions over the libnccl.so.2 that the loader finds by name, with
tensors' pointers and PyTorch's current stream. The unique id goes around by gloo.

torchrun --nproc_per_node N pynccl.py [skip]: `skip`: the last rank leaves the last AllReduce out."""

import ctypes
import os
import sys
import time

import torch
import torch.distributed as dist

FLOAT, SUM = 7, 0                       # ncclFloat32, ncclSum of nccl.h


class UniqueId(ctypes.Structure):
    _fields_ = [("internal", ctypes.c_byte * 128)]


class Nccl:
    """The functions that it needs, with the types of nccl.h."""

    FUNCTIONS = {
        "ncclGetUniqueId": [ctypes.POINTER(UniqueId)],
        "ncclCommInitRank": [ctypes.POINTER(ctypes.c_void_p), ctypes.c_int, UniqueId, ctypes.c_int],
        "ncclAllReduce": [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_void_p,
                          ctypes.c_void_p],
        "ncclCommDestroy": [ctypes.c_void_p],
    }

    def __init__(self):
        library = ctypes.CDLL("libnccl.so.2")
        for name, types in self.FUNCTIONS.items():
            function = getattr(library, name)
            function.argtypes, function.restype = types, ctypes.c_int
            setattr(self, name, function)


def check(result):
    if result:
        raise RuntimeError("NCCL failed: %d" % result)


class Communicator:
    def __init__(self):
        self.nccl, unique_id, self.comm = Nccl(), UniqueId(), ctypes.c_void_p()
        rank, size = dist.get_rank(), dist.get_world_size()
        if rank == 0:
            check(self.nccl.ncclGetUniqueId(ctypes.byref(unique_id)))
        box = [bytes(unique_id.internal)]
        dist.broadcast_object_list(box)
        ctypes.memmove(unique_id.internal, box[0], 128)
        check(self.nccl.ncclCommInitRank(ctypes.byref(self.comm), size, unique_id, rank))

    def all_reduce(self, tensor):
        out = torch.empty_like(tensor)
        check(self.nccl.ncclAllReduce(tensor.data_ptr(), out.data_ptr(), tensor.numel(), FLOAT, SUM, self.comm,
                                      torch.cuda.current_stream().cuda_stream))
        return out


def main():
    rank = int(os.environ["LOCAL_RANK"])
    torch.cuda.set_device(rank)
    dist.init_process_group("gloo")
    communicator = Communicator()
    is_odd = rank == dist.get_world_size() - 1
    activations = torch.ones(16, 64, device="cuda")
    for step in range(6):
        if "skip" in sys.argv and is_odd and step == 5:
            time.sleep(600)             # the scheduler sent it no batch
        activations = communicator.all_reduce(activations) * 0.5
        torch.cuda.synchronize()
    check(communicator.nccl.ncclCommDestroy(communicator.comm))
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
