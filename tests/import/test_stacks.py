"""Pasted stacks of a job that hangs: py-spy dump, gdb, faulthandler; who waits and who is missing."""

import json
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
LLDB = """(lldb) thread backtrace all
* thread #1, name = 'train', stop reason = signal SIGSTOP
  * frame #0: 0x00007ffff7a1 {frame}
    frame #1: 0x0000555500aa train`{function}(rank=0) at train.c:{line}:9
    frame #2: 0x0000555500bb train`main(argc=1) at train.c:250:3
  thread #2, name = 'cuda-EvtHandlr'
    frame #0: 0x00007ffff7b2 libc.so.6`poll + 79
"""


def py_spy_json(pid, frames):
    """As `py-spy dump --json` prints a process."""
    frames = [{"name": name, "filename": file, "module": None, "short_filename": file, "line": line, "locals": None, "is_entry": False}
              for name, file, line in frames]
    return json.dumps([{"pid": pid, "thread_id": 1, "thread_name": "MainThread", "os_thread_id": pid, "active": False, "owns_gil": False,
                        "frames": frames, "process_info": {"pid": pid, "command_line": "python train.py", "parent": None}}])


def live_group(pids, function, line):
    """As `ddpcheck stacks --pid PID,... --json` prints threads with equal stacks."""
    native = {"function": "cudaStreamSynchronize" if line else "read", "symbol": None, "file": None, "line": 0, "module": "libcudart.so.12",
              "address": "0x00007f12"}
    own = {"function": function, "symbol": function, "file": "train.c", "line": line or 7, "module": "train", "address": "0x0000555"}
    return json.dumps({"schema": "ddpcheck.live-stack/1", "pids": pids, "ranks": "", "all_ranks_known": False, "threads": 1, "main": True,
                       "name": "train", "state": "S", "in": "", "lock_holder": 0, "python": False,
                       "frames": [dict(native, symbol=native["function"]), own]})


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

    def test_py_spy_as_json(self):
        waits = [("synchronize", "torch/cuda/__init__.py", 792), ("step", "train.py", 31)]
        loads = [("_next_data", "torch/utils/data/dataloader.py", 1327), ("load", "train.py", 12)]
        one, other = py_spy_json(4711, waits), py_spy_json(4712, loads)
        self.expect([one, one, other], {"DC201": ["0-1", "2"]}, "wait in torch.cuda.synchronize; rank 2 is in a data loader")
        self.expect([one, one, one], {})

    def test_stacks_as_json(self):
        """One file of all processes: they are numbered by their pids."""
        waits, reads = live_group("4711-4712", "step", 31), live_group("4713", "load", 0)
        text = (waits + "\n" + reads + "\n").encode()
        result = self.importing(self.write("all.json", text))
        self.assertEqual((result.status, result.codes()), (0, {"DC201": ["0-1", "2"]}), result.err)

    def test_lldb(self):
        one = LLDB.format(frame="libcudart.so.12`cudaStreamSynchronize + 90", function="meet", line=189)
        other = LLDB.format(frame="libc.so.6`__GI___pthread_mutex_lock + 9", function="log_line", line=17)
        self.expect([one, other, one], {"DC201": ["0,2", "1"]}, "rank 1 is in pthread_mutex_lock")
        self.expect([one, one], {})

    def test_files_without_a_rank(self):
        """Each is a process of its own, whatever stands before its first thread."""
        one = "warning: no debug information\n" + GDB.format(called="cudaStreamSynchronize", library="/usr/lib/libcudart.so", function="meet", line=189)
        other = GDB.format(called="read", library="/lib/libc.so.6", function="load", line=12)
        files = [self.write(name, text.encode()) for name, text in (("a.txt", one), ("b.txt", other), ("c.txt", one))]
        result = self.importing(*files)
        self.assertEqual((result.status, result.codes()), (0, {"DC201": ["0,2", "1"]}), result.err)

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
