"""Pasted stacks of a job that hangs: py-spy dump, gdb, faulthandler; who waits and who is missing."""

import unittest

from importer import Importer, main

PY_SPY = """Process {pid}: python train.py
Python v3.11.4 (/usr/bin/python3.11)

Thread {pid} (idle): "MainThread"
{frames}    main (train.py:50)
    <module> (train.py:60)
Thread 4790 (idle): "Thread-1 (_worker)"
    wait (threading.py:320)
    _worker (pool.py:10)
"""
SYNCHRONIZE = "    synchronize (torch/cuda/__init__.py:792)\n    step (train.py:31)\n"
LOADER = ("    wait (multiprocessing/connection.py:930)\n    _next_data (torch/utils/data/dataloader.py:1327)\n"
          "    load (train.py:12)\n")
GDB = """[New LWP 4801]
Thread 2 (Thread 0x7ffff5a006c0 (LWP 4801) "proxy"):
#0  0x00007ffff7b1a in poll () from /lib/x86_64-linux-gnu/libc.so.6
#1  0x00007ffff7c1a in ncclProxyService () from /usr/lib/libnccl.so.2
Thread 1 (Thread 0x7ffff7d8e740 (LWP 4711) "train"):
#0  __futex_abstimed_wait_common (private=0) at ./nptl/futex-internal.c:57
#1  0x00007ffff7c1a in {called} from {library}
#2  0x000055555555a1 in {function} (rank=0) at train.c:{line}
#3  0x000055555555a9 in main (argc=1, argv=0x7ffe) at train.c:250
"""
FAULTHANDLER = """Timeout (0:05:00)!
Thread 0x00007f2b1c (most recent call first):
  File "/usr/lib/python3.11/threading.py", line 320 in wait
Thread 0x00007f2b2c (most recent call first):
  File "/venv/lib/python3.11/site-packages/torch/distributed/distributed_c10d.py", line 2501 in {collective}
  File "/home/me/train.py", line {line} in step
"""


class Stacks(Importer):
    def expect(self, texts, codes, *words):
        files = [self.write("stack_rank%d.txt" % rank, text.encode()) for rank, text in enumerate(texts)]
        result = self.importing(*files)
        self.assertEqual((result.status, result.codes()), (0, codes), result.err)
        for code in codes:
            for word in words:
                self.assertIn(word, result.what(code))

    def test_py_spy(self):
        one, other = PY_SPY.format(pid=4711, frames=SYNCHRONIZE), PY_SPY.format(pid=4712, frames=LOADER)
        self.expect([one, one, other], {"DC201": ["0-1", "2"]}, "wait in torch.cuda.synchronize; rank 2 is in a data loader")
        self.expect([one, one, one], {})

    def test_py_spy_with_native_frames(self):
        """A pipeline's stages over gloo: the name of the wait is C++'s."""
        receives = ("    0x7fab92689d61 (libc.so.6)\n    std::condition_variable::wait (libstdc++.so.6.0.33)\n"
                    "    c10d::ProcessGroupGloo::RecvWork::wait (libtorch_cpu.so)\n    recv_object (distributed/parallel_state.py:1050)\n")
        broadcasts = "    broadcast (torch/distributed/distributed_c10d.py:2820)\n    recv_requests (scheduler.py:1040)\n"
        one, other = PY_SPY.format(pid=4711, frames=receives), PY_SPY.format(pid=4712, frames=broadcasts)
        self.expect([one, other], {"DC201": ["1", "0"]}, "rank 1 waits in broadcast; rank 0 is in Work.wait")

    def test_autograd_thread(self):
        """DeepSpeed gathers parameters in autograd's thread: that one waits, not the main thread."""
        gathers = PY_SPY.format(pid=4711, frames="    backward (torch/autograd/__init__.py:266)\n") + (
            "Thread 4079 (active)\n    all_gather_into_tensor (torch/distributed/distributed_c10d.py:2709)\n"
            "    all_gather_into_tensor (deepspeed/comm/torch.py:219)\n    allgather_fn (deepspeed/comm/comm.py:320)\n")
        self.expect([gathers, PY_SPY.format(pid=4712, frames=LOADER)], {"DC201": ["0", "1"]},
                    "rank 0 waits in all_gather_into_tensor; rank 1 is in a data loader")

    def test_processes_in_one_file(self):
        text = "".join(PY_SPY.format(pid=pid, frames=SYNCHRONIZE if pid > 4711 else LOADER) for pid in (4711, 4712, 4713))
        result = self.importing(self.write("all.txt", text.encode()))
        self.assertEqual((result.status, result.codes()), (0, {"DC201": ["1-2", "0"]}), result.err)

    def test_gdb(self):
        cuda = GDB.format(called="cudaStreamSynchronize ()", library="/usr/lib/libcudart.so.12", function="meet", line=189)
        asleep = GDB.format(called="__GI___nanosleep ()", library="/lib/libc.so.6", function="load", line=42)
        self.expect([cuda, asleep, cuda], {"DC201": ["0,2", "1"]}, "wait in cudaStreamSynchronize; rank 1 is in nanosleep")
        self.expect([cuda, cuda], {})

    def test_faulthandler(self):
        reduces = FAULTHANDLER.format(collective="all_reduce", line=9)
        self.expect([reduces, reduces, FAULTHANDLER.format(collective="broadcast", line=14)], {"DC101": ["0-1", "2"]},
                    "ranks 0-1 are in all_reduce; rank 2 is in broadcast")
        self.expect([reduces, reduces], {"DC211": ["0-1"]}, "every rank is in all_reduce")


if __name__ == "__main__":
    main()
