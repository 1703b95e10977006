"""NCCL's own Python package beneath mpi4py, as its documentation shows it.

mpirun -n N python nccl4py_job.py [skip]: `skip`: the last rank leaves the last AllReduce out."""

import sys
import time

import nccl.core as nccl
from nccl.core.interop import torch     # else the first AllReduce imports it: many seconds on a busy machine
from cuda.core import Device
from mpi4py import MPI

world = MPI.COMM_WORLD
rank, size = world.Get_rank(), world.Get_size()
device = Device(rank)
device.set_current()
unique_id = world.bcast(nccl.get_unique_id() if rank == 0 else None, root=0)
communicator = nccl.Communicator.init(nranks=size, rank=rank, unique_id=unique_id)
stream = device.create_stream()
gradients = nccl.mem_alloc(4096)
gradients.fill(0, stream=stream)
for step in range(4):
    if "skip" in sys.argv and rank == size - 1 and step == 3:
        time.sleep(600)                 # its data ran out
    communicator.allreduce(gradients, gradients, nccl.SUM, stream=stream)
    stream.sync()
communicator.destroy()
del gradients       # while the interpreter exits it may not be released any more (DC804)
print("rank %d done" % rank, flush=True)
