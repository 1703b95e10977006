"""Rank 1 tries, through a shell, Python programs that fail, before it uses CUDA and between two reductions: what a rank starts
has the rank's variables, and is none.

expect: none
"""
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import suite


def probe(rank):
    if rank == 1:
        os.system('"%s" -c "import no_such_module" 2>/dev/null || true' % sys.executable)
        os.system('"%s" -c "import sys; sys.exit(1)" || true' % sys.executable)


def train(me):
    gradients = me.floats(100)
    for _ in range(2):
        suite.nccl.ncclAllReduce(gradients, gradients, 100, suite.FLOAT32, suite.SUM, me.comm, me.stream)
        suite.cuda.cudaStreamSynchronize(me.stream)
        probe(me.rank)


suite.start(train, ranks=2, first=probe)
