"""Writes Flight Recorder dumps as PyTorch does: the opcodes of torch::jit::Pickler (protocol 2, no classes), its memo of texts
and of shared containers, the fields of version 2.10 in their order. Nothing of PyTorch is needed."""
import struct

EPOCH_NS = 1_790_000_000_000_000_000


class Pickler:
    """texts are remembered by value, containers that occur again (`shared`) by identity"""

    def __init__(self, shared=()):
        self.out = bytearray(b"\x80\x02")
        self.memo = {}
        self.shared = {id(value) for value in shared}

    def put(self, key):
        index = self.memo[key] = len(self.memo)
        self.out += b"q" + bytes([index]) if index < 256 else b"r" + struct.pack("<I", index)

    def get(self, key):
        index = self.memo[key]
        self.out += b"h" + bytes([index]) if index < 256 else b"j" + struct.pack("<I", index)

    def integer(self, value):
        if 0 <= value < 256:
            self.out += b"K" + bytes([value])
        elif 0 <= value < 65536:
            self.out += b"M" + struct.pack("<H", value)
        elif -(1 << 31) <= value < 1 << 31:
            self.out += b"J" + struct.pack("<i", value)
        else:
            self.out += b"\x8a\x08" + struct.pack("<q", value)

    def text(self, value):
        if value in self.memo:
            return self.get(value)
        data = value.encode()
        self.out += b"X" + struct.pack("<I", len(data)) + data
        self.put(value)

    def container(self, value):
        if id(value) in self.memo:
            return self.get(id(value))
        if isinstance(value, tuple):
            for item in value:
                self.add(item)
            self.out += {1: b"\x85", 2: b"\x86", 3: b"\x87"}[len(value)]
            return None
        items = [x for pair in value.items() for x in pair] if isinstance(value, dict) else value
        self.out += b"}(" if isinstance(value, dict) else b"]("
        for item in items:
            self.add(item)
        self.out += b"u" if isinstance(value, dict) else b"e"
        if id(value) in self.shared:
            self.put(id(value))
        return None

    def add(self, value):
        if value is None:
            self.out += b"N"
        elif value is True or value is False:
            self.out += b"\x88" if value else b"\x89"
        elif isinstance(value, int):
            self.integer(value)
        elif isinstance(value, float):
            self.out += b"G" + struct.pack(">d", value)
        elif isinstance(value, str):
            self.text(value)
        else:
            self.container(value)


def pickle(value, shared=()):
    pickler = Pickler(shared)
    pickler.add(value)
    return bytes(pickler.out + b".")


def frames(line, function="step", file="/job/train.py"):
    return [{"name": "all_reduce", "filename": "/venv/torch/distributed/distributed_c10d.py", "line": 2810},
            {"name": function, "filename": file, "line": line},
            {"name": "main", "filename": file, "line": 12}]


def entry(record, name, seq=None, **more):
    """One row. more: any field, and `line`: where train.py calls it."""
    line = more.pop("line", 40)
    state = more.get("state", "completed")
    created = more.pop("created", EPOCH_NS + record * 1_000_000)
    sizes, types = more.pop("sizes", [[1024]]), more.pop("types", ["Float"])
    row = {
        "frames": more.pop("frames", None) or frames(line),
        "record_id": record, "pg_id": 0, "process_group": ("0", "default_pg"), "thread_name": "pt_main", "thread_id": "4711",
        "collective_seq_id": record + 1 if seq is None else seq, "p2p_seq_id": 0, "op_id": record + 1,
        "profiling_name": "nccl:" + name, "time_created_ns": created,
        "input_sizes": sizes, "input_dtypes": types, "output_sizes": more.pop("out_sizes", sizes),
        "output_dtypes": more.pop("out_types", types), "state": state,
        "time_discovered_started_ns": created + 100_000 if state != "scheduled" else None,
        "time_discovered_completed_ns": created + 900_000 if state == "completed" else None,
        "retired": state == "completed", "timeout_ms": 600_000, "is_p2p": name.startswith(("send", "recv")),
    }
    row.update(more)
    return row


def dump(entries, ranks=2, version="2.10", groups=None):
    """groups: more process groups, name to its ranks"""
    def config(name, desc, members):
        return {"name": name, "desc": desc, "ranks": "[" + ", ".join(map(str, members)) + "]"}
    done = [e["collective_seq_id"] for e in entries if not e["is_p2p"]]
    completed = [e["collective_seq_id"] for e in entries if not e["is_p2p"] and e["state"] == "completed"]
    return {
        "version": version,
        "pg_config": {"0": config("0", "default_pg", range(ranks)), **{n: config(n, "undefined", r) for n, r in (groups or {}).items()}},
        "comm_lib_version": "2.27.5",
        "pg_status": {"0": {"last_enqueued_collective": max(done, default=-1), "last_started_collective": max(done, default=-1),
                            "last_completed_collective": max(completed, default=-1)}},
        "entries": entries,
    }


def write(directory, dumps, prefix="nccl_trace_rank_", to_bytes=pickle):
    """dumps: rank to dump"""
    directory.mkdir(parents=True, exist_ok=True)
    for rank, content in dumps.items():
        (directory / f"{prefix}{rank}").write_bytes(to_bytes(content))
