"""Traces as torch.profiler (Kineto) writes them, made by hand: for tests, and of any size for bench/run.py.

    kineto_traces.py FILE MEGABYTES     a trace of that size, calls among other events as a training job has them
"""

import json
import sys

BASE_NS = 1790857026000000000
ROOTED = ("broadcast", "reduce", "gather", "scatter", "send", "recv")


class Group:
    def __init__(self, name, ranks, description="default_pg"):
        self.name, self.ranks, self.description = name, ranks, description

    def text(self):
        """PyTorch keeps 30 ranks: the first 29, dots, the last."""
        if len(self.ranks) > 30:
            return "[%s, ..., %d]" % (", ".join(map(str, self.ranks[:29])), self.ranks[-1])
        return "[%s]" % ", ".join(map(str, self.ranks))


class Trace:
    """One rank's file. Times are microseconds from the beginning."""

    def __init__(self, rank, world, groups, seq=False, kernels=True, addresses=False, info=True):
        self.rank, self.world, self.groups = rank, world, groups
        self.seq, self.kernels, self.addresses, self.info = {} if seq else None, kernels, addresses, info
        self.events, self.external = [], 100 * (rank + 1)

    def event(self, name, category, at, lasts, args=None, tid=None):
        self.events.append({"ph": "X", "cat": category, "name": name, "pid": 4000 + self.rank, "tid": tid or 4000 + self.rank,
                            "ts": at, "dur": lasts, "args": args or {}})

    def call(self, collective, group, count, at, dtype="Float", root=None, kernel_at=None, kernel_for=50.0, lasts=20.0, **more):
        """A call, its annotation, and behind all other events its kernel."""
        self.external += 2
        size = len(group.ranks)
        given, got = count, count
        if collective in ("_allgather_base", "all_gather"):
            got = count * size
        if collective in ("_reduce_scatter_base", "reduce_scatter"):
            given = count * size
        args = {"External id": self.external, "Record function id": 0, "Collective name": collective, "dtype": dtype,
                "In msg nelems": given, "Out msg nelems": got, "In split size": "[]", "Out split size": "[]",
                "Global rank start": group.ranks[0], "Global rank stride": group.ranks[1] - group.ranks[0] if size > 1 else 0,
                "Group size": size, "Process Group Name": group.name, "Process Group Description": group.description,
                "Process Group Ranks": group.text(), "Rank": root if collective in ROOTED else group.ranks.index(self.rank)}
        if self.addresses:
            args["Input Tensors start"] = "[[%d]]" % (0x7f0000000000 + self.external * 4096)
            args["Output Tensors start"] = "[[%d]]" % (0x7e0000000000 + self.external * 4096)      # far from the input: not in place
        if self.seq is not None and collective not in ("send", "recv", "wait", "init"):
            args["Seq"] = self.seq[group.name] = self.seq.get(group.name, more.pop("first_seq", 0)) + 1
            args["Comms Id"] = 18446744073709551615 - args["Seq"]
        args.update(more)
        self.event("record_param_comms", "cpu_op", at, lasts, args)
        if self.kernels and kernel_for is not None:
            self.event("ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevComm*, unsigned long)", "kernel", kernel_at or at + 30,
                       kernel_for, {"External id": self.external, "device": self.rank % 8, "stream": 17,
                                    "correlation": self.external}, tid=17)

    def document(self):
        """As Kineto orders it: not by time, but thread by thread, kernels last."""
        events = sorted(self.events, key=lambda event: (event["cat"] == "kernel", -event["ts"]))
        document = {"schemaVersion": 1, "deviceProperties": [{"id": 0, "name": "NVIDIA H100"}]}
        if self.info:
            document["distributedInfo"] = {
                "backend": "nccl", "rank": self.rank, "world_size": self.world, "pg_count": len(self.groups),
                "pg_config": [{"pg_name": group.name, "pg_desc": group.description, "backend_config": "cuda:nccl",
                               "pg_size": len(group.ranks), "ranks": group.text()} for group in self.groups],
                "nccl_version": "2.27.5"}
        return {**document, "displayTimeUnit": "ms", "baseTimeNanoseconds": BASE_NS, "traceEvents": events,
                "traceName": "rank%d.json" % self.rank}

    def text(self):
        return json.dumps(self.document(), indent=2)


def other_event(number, at):
    """What else a trace is full of."""
    name = ("aten::addmm", "aten::copy_", "cudaLaunchKernel", "ampere_sgemm_128x64_tn", "autograd::engine::evaluate_function: AddmmBackward0")[number % 5]
    category = ("cpu_op", "cpu_op", "cuda_runtime", "kernel", "cpu_op")[number % 5]
    return ('\n  {\n    "ph": "X", "cat": "%s", "name": "%s", "pid": 4000, "tid": %d,\n    "ts": %d.%03d, "dur": 12.512,\n    "args": {\n'
            '      "External id": %d, "correlation": %d, "Record function id": 0, "Concrete Inputs": ["", "", "", "1", "1"], "Input type": ["float", "float",'
            ' "float", "Scalar", "Scalar"], "Input Strides": [[1], [4096, 1], [1, 4096], [], []], "Input Dims": [[4096], [512, 4096],'
            ' [4096, 4096], [], []], "Ev Idx": %d\n    }\n  },' % (category, name, 4000 + number % 3, at, number % 1000, 10 ** 7 + number, 10 ** 7 + number, number))


def write_large(path, megabytes, rank=0, every=40):
    """A trace of `megabytes`, a call of every `every` events; its kernels lie behind everything else. Returns how many calls."""
    group = Group("0", [0, 1])
    trace = Trace(rank, 2, [group])
    head, tail = json.dumps({**trace.document(), "traceEvents": []}, indent=2).split('"traceEvents": []')
    calls, number, kernels = 0, 0, []
    with open(path, "w", buffering=1 << 20) as file:
        written = file.write(head + '"traceEvents": [')
        while written < megabytes * 1000000:
            piece = []
            for _ in range(1000):
                number += 1
                if number % every:
                    piece.append(other_event(number, number * 10))
                    continue
                trace.events = []
                trace.call("allreduce", group, 1000 + calls % 7, float(number * 10))
                call, kernel = trace.events
                piece.append("\n  " + json.dumps(call) + ",")
                kernels.append((trace.external, number * 10 + 30))
                calls += 1
            written += file.write("".join(piece))
            if len(kernels) > 10000:        # a part of them early, so that this script's memory is bounded, too
                written += file.write("".join(kernel_text(*each) for each in kernels))
                kernels = []
        file.write("".join(kernel_text(*each) for each in kernels))
        file.write('\n  {"name": "end", "ph": "i", "ts": %d}\n]%s' % (number * 10 + 100, tail))
    return calls


def kernel_text(external, at):
    return ('\n  {"ph": "X", "cat": "kernel", "name": "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevComm*, unsigned long)", "pid": 0,'
            ' "tid": 17, "ts": %d, "dur": 50.125, "args": {"External id": %d, "device": 0, "stream": 17, "correlation": %d}},'
            % (at, external, external))


if __name__ == "__main__":
    print("%d calls" % write_large(sys.argv[1], float(sys.argv[2])))
