"""Each rank starts from parameters of its own: rank 0's are not broadcast. The program announces them, from Python.

expect: DC503 certain ranks=0+1 place=here
options: --hash
"""
import ctypes
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import suite

COUNT, HOST_TO_DEVICE = 100, 1
announce = getattr(ctypes.CDLL(None), "ddpcheck_hash", None)


def train(me):
    parameters = me.floats(COUNT)
    values = (ctypes.c_float * COUNT)(*range(me.rank, me.rank + COUNT))
    suite.cuda.cudaMemcpyAsync(parameters, values, 4 * COUNT, HOST_TO_DEVICE, me.stream)
    if suite.TWIN:
        suite.nccl.ncclBroadcast(parameters, parameters, COUNT, suite.FLOAT32, 0, me.comm, me.stream)
    for _ in range(2):
        if announce:
            announce(b"parameters", parameters, ctypes.c_size_t(4 * COUNT), me.comm, me.stream)  # here
    suite.cuda.cudaStreamSynchronize(me.stream)


suite.start(train, ranks=2)
