"""Ranks for Python cases: NCCL and the CUDA runtime through ctypes, one process per rank.

    import suite

    def rank_main(me):
        bucket = me.floats(1024)
        suite.nccl.ncclAllReduce(bucket, bucket, 1024, suite.FLOAT32, suite.SUM, me.comm, me.stream)
        suite.cuda.cudaStreamSynchronize(me.stream)

    suite.start(rank_main, ranks=2)

Calls through suite.nccl and suite.cuda end the process where they fail. suite.TWIN says that the fault is to be mended.
"""

import ctypes
import os
import sys

TWIN = sys.argv[1:] == ["twin"]
FLOAT32, SUM = 7, 0
STREAM_NON_BLOCKING = 1
ID_BYTES = 128
PIPES = "SUITE_PIPES"


class UniqueId(ctypes.Structure):
    _fields_ = [("bytes", ctypes.c_char * ID_BYTES)]


class Library:
    """Functions of a library, each checked. Handles and pointers are c_void_p, counts size_t."""

    def __init__(self, name):
        self.library = ctypes.CDLL(name)

    def __getattr__(self, name):
        function = getattr(self.library, name)

        def checked(*arguments):
            result = function(*[wide(argument) for argument in arguments])
            if result:
                sys.exit("%s: %d" % (name, result))
        return checked


def wide(argument):
    """ctypes passes a Python integer as int, which would cut sizes and handles; the callee takes what it needs."""
    return ctypes.c_size_t(argument) if isinstance(argument, int) else argument


cuda = nccl = None


class Rank:
    """rank, ranks, comm and stream of this process."""

    def __init__(self, rank, ranks, unique):
        self.rank, self.ranks = rank, ranks
        self.stream, self.comm = ctypes.c_void_p(), ctypes.c_void_p()
        cuda.cudaSetDevice(rank)
        cuda.cudaStreamCreateWithFlags(ctypes.byref(self.stream), STREAM_NON_BLOCKING)
        nccl.ncclCommInitRank(ctypes.byref(self.comm), ranks, unique, rank)

    def floats(self, count):
        """Device memory, set to 0."""
        memory = ctypes.c_void_p()
        cuda.cudaMalloc(ctypes.byref(memory), 4 * count)
        cuda.cudaMemset(memory, 0, 4 * count)
        cuda.cudaDeviceSynchronize()
        return memory


def run_rank(function, rank, ranks, pipes):
    """The child: rank 0 makes the unique id and hands it to the others."""
    global cuda, nccl
    os.environ.update(RANK=str(rank), LOCAL_RANK=str(rank), WORLD_SIZE=str(ranks))
    cuda, nccl = Library("libcudart.so.13"), Library("libnccl.so.2")
    unique = UniqueId()
    if rank == 0:
        nccl.ncclGetUniqueId(ctypes.byref(unique))
        for _, end in pipes[1:]:
            os.write(end, bytes(unique))
    else:
        unique = UniqueId.from_buffer_copy(os.read(pipes[rank][0], ID_BYTES))
    me = Rank(rank, ranks, unique)
    function(me)
    cuda.cudaStreamSynchronize(me.stream)
    nccl.ncclCommDestroy(me.comm)


def execute(rank, ranks, pipes):
    """The child becomes a program of its own that has a rank from the beginning, as launchers start them."""
    ends = [end for pipe in pipes for end in pipe]
    for end in ends:
        os.set_inheritable(end, True)
    os.execve(sys.executable, [sys.executable, *sys.argv],
              {**os.environ, "RANK": str(rank), "LOCAL_RANK": str(rank), "WORLD_SIZE": str(ranks), PIPES: " ".join(map(str, ends))})


def start(function, ranks, first=None):
    """Runs function(rank) in `ranks` processes; exits with 1 if one of them failed. first(rank): what comes before they use
    CUDA, in a program of its own."""
    if PIPES in os.environ:
        ends, rank = [int(end) for end in os.environ[PIPES].split()], int(os.environ["RANK"])
        first(rank)
        run_rank(function, rank, ranks, list(zip(ends[::2], ends[1::2])))
        return
    pipes = [os.pipe() for _ in range(ranks)]
    for rank in range(ranks):
        if os.fork() == 0:
            ctypes.CDLL(None).prctl(1, 9, 0, 0, 0)         # PR_SET_PDEATHSIG, SIGKILL
            if first:
                execute(rank, ranks, pipes)
            run_rank(function, rank, ranks, pipes)
            sys.exit(0)
    sys.exit(1 if any([os.wait()[1] for _ in range(ranks)]) else 0)
