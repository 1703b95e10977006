"""libddpcheck.so in real processes on the fakes of this directory: what it records, and what it must not disturb.

test_shim.py BUILD FAKE-LIBRARIES [TEST..]"""

import os
import stat
import struct
import subprocess
import sys
import tempfile

from rings_name import name_rings
from watch import JOB, NO_SLOT, PROGRAMS, SHIM, UNIQUE, Run, equal, fnv, of, signed, words


def test_collectives():
    with Run(JOB, "collectives").ok() as run:
        records = run.records()
        # api, number, count, datatype, redop, root
        expected = [("ncclAllReduce", 0, 10, 7, 0, -1), ("ncclBroadcast", 1, 11, 8, 255, 1), ("ncclBcast", 2, 12, 0, 255, 2),
                    ("ncclReduce", 3, 13, 1, 2, 3), ("ncclAllGather", 4, 14, 2, 255, -1),
                    ("ncclReduceScatter", 5, 15, 3, 3, -1), ("ncclAlltoAll", 6, 16, 4, 255, -1),
                    ("ncclGather", 7, 17, 5, 255, 0), ("ncclScatter", 8, 18, 6, 255, 1), ("ncclSend", 0, 19, 9, 255, 3),
                    ("ncclSend", 1, 20, 9, 255, 3), ("ncclRecv", 0, 21, 10, 255, 3), ("ncclAllReduce", 9, 22, 7, 5, -1)]
        got = [record for record in records if "op.number" in record and record["phase"] == "ENTER"]
        equal([tuple(record[name] for name in ("api", "op.number", "op.count", "op.datatype", "op.redop", "op.root"))
               for record in got], expected, "operations")
        for at, record in enumerate(got):
            equal((record["op.comm"], record["op.rank"], record["op.group"], record["device"]), (UNIQUE, 2, 0, 0), "member")
            equal((record["op.slot"], record["op.launch"]), (0, at + 1), "progress of " + record["api"])
            leave = [r for r in records if r.get("leave.enter") == record["serial"]]
            equal([(r["api"], r["phase"], r["result"], r["leave.comm"]) for r in leave], [(record["api"], "LEAVE", 0, UNIQUE)],
                  "LEAVE")
            assert record["stack"] and record["flags"] == 1, "call site of %s" % record
        equal(got[2]["op.sendbuff"], got[2]["op.recvbuff"], "ncclBcast is in place")
        equal((got[9]["op.recvbuff"], got[11]["op.sendbuff"]), (0, 0), "unused buffers")
        equal(got[12]["op.scalar"], 0x3F000000, "scalar of PreMulSum (0.5f)")
        equal([(r["started"], r["done"]) for r in of(records, "slot")], [(13, 13)], "progress")
        equal(len(of(records, "cudaMemcpyAsync")), 0, "calls that NCCL makes itself")
        buffers = of(records, "notice_buffer")
        base = of(records, "cudaMalloc")[0]["memory.pointer"]
        equal([(b["buffer.base"], b["buffer.bytes"], b["buffer.pointer"] - base, b["buffer.type"], b["buffer.device"])
               for b in buffers], [(base, 4096, 0, 3, 0)], "buffers, once for each allocation")
        assert buffers[0]["serial"] < got[0]["serial"], "the buffer is told before the operation"
        serials = [record["serial"] for record in records if "serial" in record]
        equal(sorted(serials), list(range(1, len(serials) + 1)), "serials")
        equal([r["end.value"] for r in of(records, "notice_exit")], [0], "exit")
        process = of(records, "process")[0]
        equal((process["program"], process["command"], process["nccl"]), (os.path.realpath(JOB), JOB + " collectives", 22809),
              "process")
        assert process["boot_id"], "no boot id"
        member = of(records, "notice_member")[0]
        equal((member["comm.comm"], member["comm.rank"], member["comm.nranks"], member["comm.device"]), (UNIQUE, 2, 4, 0),
              "member")
        assert member["comm.gpu"], "the GPU has an identity"
        equal([r["phase"] for r in of(records, "ncclCommDestroy")], ["ENTER", "LEAVE"], "destroy")


def test_groups():
    with Run(JOB, "groups").ok() as run:
        records = run.records()
        starts, ends = of(records, "ncclGroupStart"), of(records, "ncclGroupEnd")
        equal([(r["group.depth"], r["group.group"] == starts[0]["serial"]) for r in starts[:2]], [(1, True), (2, True)], "starts")
        equal([(r["phase"], r.get("group.calls")) for r in ends], [("ENTER", 3), ("LEAVE", None), ("ENTER", 0), ("LEAVE", None)],
              "outermost ends")
        operations = [r for r in records if "op.number" in r]
        equal([(r["op.group"], r["op.launch"]) for r in operations],
              [(starts[0]["serial"], 1)] * 3 + [(0, 2)], "one launch per group")
        equal([(r["started"], r["done"]) for r in of(records, "slot")], [(2, 2)], "progress")
        members = [(r["comm.rank"], r["comm.device"], r["comm.nranks"]) for r in of(records, "notice_member")]
        equal(members, [(0, 0, 2), (0, 0, 2), (1, 1, 2)], "members, two of them made in a group")
        gpus = [r["comm.gpu"] for r in of(records, "notice_member")]
        assert gpus[0] == gpus[1] != gpus[2], "identity of GPUs: %s" % gpus


def test_children():
    with Run(JOB, "children").ok() as run:
        records = run.records()
        splits = of(records, "ncclCommSplit", "ENTER")
        child = signed(fnv(words(UNIQUE, 0, 5)))
        equal([(r["comm.comm"], r["comm.parent"], r["comm.ordinal"], r["comm.color"], r["comm.rank"]) for r in splits],
              [(child, UNIQUE, 0, 5, 1), (0, UNIQUE, 1, -1, 1), (signed(fnv(words(UNIQUE, 2, 6))), UNIQUE, 2, 6, 1)], "splits")
        equal([r["op.comm"] for r in of(records, "ncclAllReduce", "ENTER")][:1], [child], "operation on the child")
        sets = [fnv(struct.pack("<i", rank)) for rank in (3, 2)]
        equal([r["comm.comm"] for r in of(records, "ncclCommShrink", "ENTER")],
              [signed(fnv(words(UNIQUE, 0, 0x6B6E69726873, excluded))) for excluded in sets], "shrunk communicators")
        everyone = of(records, "ncclCommInitAll", "ENTER")[0]["comm.comm"]
        equal([(r["comm.rank"], r["comm.device"]) for r in of(records, "notice_member") if r["comm.comm"] == everyone],
              [(0, 0), (1, 1), (2, 2)], "members of ncclCommInitAll")
        equal([(r["op.comm"], r["op.rank"]) for r in of(records, "ncclAllReduce", "ENTER")][1:], [(everyone, 2)], "its third")
        scalable = signed(fnv(b"\3" * 128))
        equal([r["comm.comm"] for r in of(records, "ncclCommInitRankScalable", "ENTER")], [scalable], "scalable")
        equal(len(of(records, "notice_member")), 9, "members: no colour, no member")


def test_ids_are_equal_across_processes():
    with Run(JOB, "children", RANK="0").ok() as one, Run(JOB, "children", RANK="1").ok() as two:
        mine, yours = one.records(), two.records()
        for api in ("ncclCommInitRank", "ncclCommSplit", "ncclCommShrink", "ncclCommInitRankScalable"):
            equal([r["comm.comm"] for r in of(mine, api, "ENTER")], [r["comm.comm"] for r in of(yours, api, "ENTER")], api)
        assert of(mine, "ncclCommInitAll", "ENTER")[0]["comm.comm"] != of(yours, "ncclCommInitAll", "ENTER")[0]["comm.comm"]


def test_a_shrink_is_not_counted_by_the_rank_that_it_leaves_out():
    with Run(JOB, "children").ok() as stays, Run(JOB, "children", EXCLUDED="1").ok() as left_out:
        mine, yours = stays.records(), left_out.records()
        for api, calls in (("ncclCommSplit", 3), ("ncclCommShrink", 1)):
            ids = [[r["comm.comm"] for r in of(records, api, "ENTER")][-calls:] for records in (mine, yours)]
            equal(ids[0], ids[1], api)


def test_handles_are_reused():
    with Run(JOB, "reuse").ok() as run:
        operations = of(run.records(), "ncclAllReduce", "ENTER")
        lost = of(run.records(), "lost")[0]["control"]
        if not lost:
            equal([(r["op.number"], r["op.rank"]) for r in operations], [(0, 1)] * 10, "numbers of new communicators")
            equal(len({r["op.comm"] for r in operations}), 10, "communicators")
        assert lost or len(operations) == 10


def test_nonblocking():
    with Run(JOB, "nonblocking").ok() as run:
        records = run.records()
        equal([(r["result"], r["leave.comm"]) for r in of(records, "ncclCommGetAsyncError")], [(0, UNIQUE)],
              "only the change is recorded")
        equal([(r["comm.rank"], r["comm.nranks"], r["comm.flags"]) for r in of(records, "notice_member")], [(1, 2, 1)], "member")
        assert of(records, "notice_member")[0]["serial"] > of(records, "ncclCommInitRankConfig", "LEAVE")[0]["serial"]
        equal([(r["started"], r["done"]) for r in of(records, "slot")], [(1, 0)], "not done before NCCL says so")


def test_runtime():
    with Run(JOB, "runtime").ok() as run:
        records = run.records()
        base = of(records, "cudaMalloc")[0]["memory.pointer"]
        launches = of(records, "cudaLaunchKernel")
        name = signed(fnv(b"_Z3addPKfPfi4Pair7Capturem"))
        equal([(r["launch.function"], r["launch.grid"], r["launch.block"]) for r in launches[:2]], [(name, 8, 32), (name, 1, 1)],
              "launches")
        for launch in launches[:2]:
            equal((launch["launch.count"], launch["launch.written"], launch["launch.inferred"]), (4, 0b1110, 0b1100), "pointers")
            equal([launch["launch.pointer[%d]" % i] - base for i in range(4)], [0, 32, 16, 48], "pointers")
        equal((launches[2]["launch.count"], launches[2]["launch.written"], launches[2]["launch.inferred"]), (5, 0b11111, 0b100),
              "a name that says nothing: everything may be written")
        strings = [r["text"] for r in of(records, "notice_string") if r["string.id"] == name]
        equal(strings, ["_Z3addPKfPfi4Pair7Capturem"], "name, told once")
        event = of(records, "cudaEventCreateWithFlags")[0]["event.event"]
        stream = of(records, "cudaStreamCreate")[0]["stream"]
        equal([(r["event.event"], r["stream"]) for r in of(records, "cudaEventRecord") + of(records, "cudaStreamWaitEvent")],
              [(event, stream)] * 2, "events")
        equal([(r["copy.dst"] - base, r["copy.src"] - base, r["copy.bytes"], r["copy.kind"])
               for r in of(records, "cudaMemcpyAsync")], [(32, 0, 16, 3)], "copy")
        equal([(r["phase"], r.get("wait.bytes"), r["stream"]) for r in of(records, "cudaMemcpyAsync_to_pageable")],
              [("ENTER", 8, stream), ("LEAVE", None, 0)] * 2, "copies that the host stands by for")
        equal([(r["phase"], r.get("wait.bytes")) for r in of(records, "cudaMemcpy")], [("ENTER", 8), ("LEAVE", None)], "wait")
        equal([(r["phase"], r["stream"]) for r in of(records, "cudaStreamSynchronize")], [("ENTER", stream), ("LEAVE", 0)], "wait")
        equal([r["wait.dst"] for r in of(records, "cudaFree", "ENTER")], [base], "free")
        last = of(records, "notice_buffer")[-1]
        equal((last["buffer.type"], last["buffer.bytes"]), (1, 0), "pageable host memory")


def test_dynamic_loading():
    with Run(os.path.join(PROGRAMS, "interpose_dynamic")).ok() as run:
        operations = of(run.records(), "ncclAllReduce", "ENTER")
        equal([(r["op.count"], r["op.comm"]) for r in operations], [(5, UNIQUE)], "operation of a program that uses dlsym")
        equal(len(of(run.records(), "cudaMalloc")), 1, "cudaMalloc")


def test_next_is_relative_to_the_caller():
    program = os.path.join(PROGRAMS, "interpose_next")
    with Run(program, preload=False).ok(), Run(program).ok() as run:
        equal(run.files(), [], "ring files")


def test_each_library_calls_its_own_runtime_and_nccl():
    """12 and 13 with the shim as without it, whichever comes first, also where nothing is recorded."""
    program, folder = os.path.join(PROGRAMS, "interpose_versions"), os.path.join(PROGRAMS, "versions")
    for order in ((12, 13), (13, 12)):
        expected = "".join("%d %d %d %d %d\n" % ((number,) * 5) for number in order)
        users = [os.path.join(folder, "libuser%d.so" % number) for number in order]
        for options in ({"preload": False}, {"DDPCHECK_DISABLE": "1"}, {}):
            with Run(program, *users, LD_LIBRARY_PATH=folder, **options) as run:
                equal((run.status, run.out), (0, expected), "calls of libraries linked with %s and %s, %s" % (*order, options))
                equal("a second NCCL" in run.err, not options, "the second NCCL is announced: " + run.err)


def test_threads_reuse_segments():
    with Run(JOB, "threads").ok() as run:
        records = run.records()
        equal(of(records, "lost")[0]["rings"], 4, "rings of two segments: main thread, and one thread at a time")
        equal([r["op.count"] for r in of(records, "ncclAllReduce", "ENTER")], list(range(100, 140)), "operations")
        equal(len({r["thread"] for r in of(records, "ncclAllReduce", "ENTER")} - {os.getpid()}), 40, "threads")


def test_many_threads_at_one_time():
    with Run(JOB, "many_threads").ok() as run:
        records = run.records()
        seen = len(of(records, "ncclAllReduce", "ENTER"))
        equal((seen, of(records, "lost")[0]["rings"]), (300, 602), "threads seen besides the main one, rings")
        equal(header_word(run, 64), 0, "lost_threads of struct ring_file")


def header_word(run, offset):
    """A 64-bit word of struct ring_file."""
    with open(run.files()[0], "rb") as file:
        return int.from_bytes(file.read(offset + 8)[offset:], "little")


def serials_given(run):
    return header_word(run, 56)


def test_forks():
    with Run(JOB, "forks").ok() as run:
        files = run.files()
        equal(len(files), 2, "ring files: the parent, and the child that used NCCL itself")
        by_rank = {tuple(r["comm.rank"] for r in of(run.records(file), "notice_member")): run.records(file) for file in files}
        parent, child = by_rank[(0,)], by_rank[(1,)]
        equal([r["op.count"] for r in of(parent, "ncclAllReduce", "ENTER")], [4], "the parent's operation")
        equal([r["op.count"] for r in of(child, "ncclAllReduce", "ENTER")], [8], "the child's operation")
        equal(len(of(parent, "cudaStreamSynchronize")), 0, "a child that is not watched")
        equal([r["end.value"] for r in of(child, "notice_exit")], [3], "the child's status")


def test_overflow_is_counted():
    with Run(JOB, "overflow").ok() as run:
        records = run.records()
        waits, lost = len(of(records, "cudaStreamSynchronize")), of(records, "lost")[0]["control"]
        assert 0 < waits < 160000, waits
        equal(waits + lost, 160000, "waits written, and waits lost")
        equal(len(of(records, "notice_exit")), 1, "what can't be spared is not lost")
        serials = [r["serial"] for r in records if "serial" in r]
        equal(serials[-1], int(serials_given(run)), "the newest is kept")
        gaps = [(one, other) for one, other in zip(serials, serials[1:]) if other != one + 1]
        equal([other - one - 1 for one, other in gaps], [lost], "one gap, between the oldest and the newest")


def test_result_and_errno_are_the_programs():
    with Run(JOB, "keeps_errno").ok(), Run(JOB, "fails", FAKE_NCCL_RESULT="3").ok() as run:
        records = run.records()
        equal([r["result"] for r in of(records, "ncclAllReduce", "LEAVE")], [3], "result")
        equal([(r["started"], r["done"]) for r in of(records, "slot")], [(1, 1)], "the stream waits for nothing after a launch that failed")


def test_errors_of_queries_are_not_the_programs():
    for failing in ({}, {"FAKE_FAILING_QUERIES": "1"}, {"FAKE_FAILING_QUERIES": "1", "FAKE_OLD_DRIVER": "1"}):
        with Run(JOB, "errors", FAKE_UNAVAILABLE_DEVICE="0", **failing).ok() as run:
            equal(len(of(run.records(), "ncclAllReduce", "ENTER")), 4, "operations, %s" % failing)


def test_cuda_is_not_asked_first():
    with Run(JOB, "unique_id").ok() as run:
        equal([r["device"] for r in of(run.records(), "ncclGetUniqueId")], [-1, -1], "the device is not known yet")
        equal([r["device"] for r in of(run.records(), "cudaMalloc")], [0], "now it is")


def test_capture_has_no_progress():
    with Run(JOB, "collectives", FAKE_CAPTURE="1").ok() as run:
        records = run.records()
        operations = [r for r in records if "op.number" in r]
        equal({(r["op.slot"], r["flags"] & 4) for r in operations}, {(NO_SLOT, 4)}, "captured operations")


def test_structs_of_another_runtime():
    """A runtime may have longer structs than the headers that the shim was built with."""
    with Run(JOB, "collectives", FAKE_OLD_DRIVER="1").ok() as run:
        buffers = of(run.records(), "notice_buffer")
        assert buffers, "no buffer"
        equal({(b["buffer.type"], b["buffer.device"]) for b in buffers}, {(3, 0)}, "buffers, as the runtime knows them")


def test_events_where_writes_are_refused():
    with Run(JOB, "collectives", FAKE_NO_WRITES="1").ok() as run:
        slots = of(run.records(), "slot")
        equal([(r["started"], r["done"]) for r in slots], [(13, 13)], "progress by events")


GONE = 8     # RECORD_FLAG_GONE


def blind_texts(records):
    return ["".join(r["text"] for r in of(records, "notice_string") if r["string.id"] == blind["range.text"])
            for blind in of(records, "notice_blind")]


def test_lost_progress_is_recorded():
    for setting, slots, words in (("FAKE_NO_WRITES", [(13, 13)], "events are queried in later calls"),
                                  ("FAKE_FAILING_WRITES", [(0, 0)], "the driver refused to enqueue a write")):
        with Run(JOB, "collectives", **{setting: "1"}).ok() as run:
            records = run.records()
            equal([(r["started"], r["done"]) for r in of(records, "slot")], slots, setting)
            texts = blind_texts(records)
            assert len(texts) == 1 and words in texts[0], "%s: %s" % (setting, texts)


def test_writes_to_a_destroyed_stream():
    """NCCL refuses the stream as well, and DC306 says why. Where NCCL takes it, its progress is not seen."""
    for result, seen in (("1", True), ("0", False)):
        with Run(JOB, "collectives", FAKE_FAILING_WRITES="400", FAKE_NCCL_RESULT=result) as run:
            texts = blind_texts(run.records())
            equal(texts == [], seen, texts)


def test_calls_of_newer_nccl():
    """NCCL 2.29 to 2.32: what has a config is the plain call; what is not recorded is said, once for a thread."""
    with Run(JOB, "newer").ok() as run:
        records = run.records()
        operations = [(r["api"], r["op.count"], r["op.root"], r["op.comm"] != 0, r["flags"] & GONE) for r in records if "op.count" in r]
        equal(operations, [("ncclAllReduce", 10, -1, True, 0), ("ncclGather", 11, 3, True, 0), ("ncclWaitSignal", 2, 1, True, 0),
                           ("ncclWaitSignal", 3, 0, True, 0), ("ncclWaitSignal", 2, 1, True, 0), ("ncclAllReduce", 12, -1, False, 0)],
              "operations")
        waits = [r for r in of(records, "ncclWaitSignal") if "op.count" in r]
        equal([(r["result"], r["op.number"]) for r in waits], [(0, 1), (5 + (1 << 16), 2), (0, 3)], "which signal, and the last of them")
        equal([len(of(records, api)) for api in ("ncclCommSuspend", "ncclCommResume")], [2, 2], "ENTER and LEAVE")
        texts = blind_texts(records)
        equal(len(texts), 1, "what is not seen")
        assert "ncclCommGrow" in texts[0], texts


def test_abort_writes_no_progress():
    """A write could block behind what is stuck; ncclCommDestroy may write."""
    for job, done in (("nonblocking_abort", 0), ("nonblocking_destroy", 1)):
        with Run(JOB, job).ok() as run:
            equal([(r["started"], r["done"]) for r in of(run.records(), "slot")], [(1, done)], job)


def test_stacks():
    with Run(JOB, "collectives", DDPCHECK_STACKS="1").ok() as run:
        records = run.records()
        operations = [r for r in records if "op.number" in r]
        stacks = {}
        for piece in of(records, "notice_stack"):
            stacks.setdefault(piece["frames.id"], piece)
        for operation in operations:
            assert operation["flags"] & 1 == 0 and operation["stack"] in stacks, "stack of %s" % operation
            assert stacks[operation["stack"]]["frames.count"] >= 2, "at least collectives and main"
        equal(len({r["stack"] for r in operations}), len(operations), "each line has its own stack")
        first = stacks[operations[0]["stack"]]["frames.address[0]"] & 0xFFFFFFFFFFFFFFFF
        modules = of(records, "notice_module")
        inside = [m for m in modules if m["module.start"] <= first < m["module.end"]]
        equal(len(inside), 1, "the innermost frame's module")
        path = "".join(r["text"] for r in of(records, "notice_string") if r["string.id"] == inside[0]["module.path"])
        equal(path, os.path.realpath(JOB), "the shim's own frames are left out")
        assert inside[0]["module.build_id_bytes"] in (0, 20)
    with Run(JOB, "threads", DDPCHECK_STACKS="1").ok() as run:
        records = run.records()
        stacks = {r["stack"] for r in of(records, "ncclAllReduce", "ENTER")}
        equal(len(stacks), 1, "the same stack in 40 threads")
        told = [r["frames.offset"] for r in of(records, "notice_stack") if r["frames.id"] in stacks]
        equal(told, sorted(set(told)), "and told once")


def test_depth_of_stacks():
    """Copies and kernels have the program's line by default, and the return address alone with `nccl`."""
    for setting, whole in (("nccl", False), ("lines", True), ("all", True)):
        with Run(JOB, "runtime", DDPCHECK_STACKS=setting).ok() as run:
            records = run.records()
            frames = {piece["frames.id"]: piece["frames.count"] for piece in of(records, "notice_stack")}
            for api in ("cudaMemcpyAsync", "cudaLaunchKernel"):
                calls = of(records, api)
                assert calls, api
                for call in calls:
                    equal(call["flags"] & 1 == 0, whole, "%s with %s" % (api, setting))
                    assert not whole or frames[call["stack"]] >= 2, "its caller too: %s" % call


def nvtx_ranges(records):
    texts = {r["string.id"]: r["text"] for r in of(records, "notice_string")}
    return [(r["api"][4:], texts.get(r["range.text"])) for r in records if r["api"].startswith("nvtx")]


def test_nvtx():
    expected = [("RangePush", "iteration"), ("RangePush", "forward"), ("RangePop", None), ("Mark", "here"),
                ("RangePush", "registered"), ("RangePop", None), ("RangePop", None),
                ("Mark", "wide"), ("Mark", "attributes"), ("RangeStart", "plain start"),
                ("RangeStart", "wide start"), ("RangeStart", "attributes"), ("Mark", "domain"),
                ("RangeStart", "domain"), ("RangeEnd", None), ("RangeEnd", None),
                ("RangePush", "domain"), ("RangePop", None)]
    with Run(os.path.join(PROGRAMS, "interpose_nvtx"), NVTX_INJECTION64_PATH=SHIM, DDPCHECK_ITERATION="my loop").ok() as run:
        records = run.records()
        equal(nvtx_ranges(records), expected, "ranges")
        ranges = [r for r in records if r["api"].startswith("nvtx")]
        domains = [r["range.domain"] for r in ranges]
        named = domains[4]
        assert named != 0 and domains == [0] * 4 + [named] * 2 + [0] * 6 + [named] * 2 + [0, named, 0, 0], domains
        starts = [r["range.id"] for r in of(records, "nvtxRangeStart")]
        ends = [r["range.id"] for r in of(records, "nvtxRangeEnd")]
        equal((starts, ends), ([1, 2, 3, 4], [1, 4]), "ranges that are started and ended")
        texts = {r["string.id"]: r["text"] for r in of(records, "notice_string")}
        tensors = [(r["api"], r["tensor.tensor"], r["tensor.version"], r["tensor.saved"], texts[r["tensor.name"]])
                   for r in records if r["api"] in ("ddpcheck_save", "ddpcheck_modify", "ddpcheck_use")]
        none = -1      # RECORD_NO_VERSION
        equal(tensors, [("ddpcheck_save", 4096, 2, none, "layer 1"), ("ddpcheck_modify", 4096, 3, none, "relu_"),
                        ("ddpcheck_use", 4096, 3, 2, "")], "tensors")
        settings = [texts[r["range.text"]] for r in of(records, "ddpcheck_iteration")]
        equal(settings, ["my loop"], "DDPCHECK_ITERATION")


def test_nvtx_finds_a_bare_preload():
    """Nobody set NVTX_INJECTION64_PATH: the shim names itself, but only where no profiler is named."""
    with Run(os.path.join(PROGRAMS, "interpose_nvtx")).ok() as run:
        assert len(nvtx_ranges(run.records())) == 18
    with Run(os.path.join(PROGRAMS, "interpose_nvtx"), NVTX_INJECTION64_PATH="/nowhere/libprofiler.so") as run:
        equal((run.status, nvtx_ranges(run.records())), (8, []), "another profiler's ranges")


# What a launcher sets for a process: (what the shim makes of it: launcher, rank, local rank, world size, job, restart).
SLURM = {"SLURM_PROCID": "0", "SLURM_LOCALID": "0", "SLURM_NTASKS": "2", "SLURM_JOB_ID": "4711"}
OPEN_MPI = {"OMPI_COMM_WORLD_RANK": "3", "OMPI_COMM_WORLD_LOCAL_RANK": "1", "OMPI_COMM_WORLD_SIZE": "8", "PMIX_NAMESPACE": "77"}
HYDRA = {"PMI_RANK": "3", "MPI_LOCALRANKID": "1", "PMI_SIZE": "8"}
TORCHRUN = {"RANK": "3", "LOCAL_RANK": "1", "WORLD_SIZE": "8", "GROUP_RANK": "1", "TORCHELASTIC_RUN_ID": "none",
            "TORCHELASTIC_RESTART_COUNT": "2"}
POD = {"RANK": "5", "WORLD_SIZE": "6"}      # Kubeflow: the pod's place among the pods
LAUNCHED = {
    "torchrun": (TORCHRUN, ("torchrun", 3, 1, 8, "none", 2)),
    "torchrun in Slurm": ({**SLURM, **TORCHRUN}, ("torchrun", 3, 1, 8, "none", 2)),
    "torchrun in a pod": ({**POD, **TORCHRUN, "PET_NODE_RANK": "5", "PET_NNODES": "6"}, ("torchrun", 3, 1, 8, "none", 2)),
    "torchrun below mpirun": ({**OPEN_MPI, "OMPI_COMM_WORLD_RANK": "0", **TORCHRUN}, ("torchrun", 3, 1, 8, "none", 2)),
    "Ray Train": ({"RANK": "3", "LOCAL_RANK": "1", "WORLD_SIZE": "8", "RAY_JOB_ID": "02000000"}, ("env", 3, 1, 8, "02000000", -1)),
    "DeepSpeed in Slurm": ({**SLURM, "RANK": "3", "LOCAL_RANK": "1", "WORLD_SIZE": "8"}, ("env", 3, 1, 8, "", -1)),
    "a pod's only process": (POD, ("env", 5, -1, 6, "", -1)),
    "Open MPI": (OPEN_MPI, ("openmpi", 3, 1, 8, "77", -1)),
    "Open MPI in a pod": ({**POD, **OPEN_MPI}, ("openmpi", 3, 1, 8, "77", -1)),
    "MPICH": (HYDRA, ("mpich", 3, 1, 8, "", -1)),
    "MPICH in Slurm": ({**SLURM, **HYDRA}, ("mpich", 3, 1, 8, "", -1)),
    "JAX": ({**SLURM, "JAX_PROCESS_ID": "3", "JAX_NUM_PROCESSES": "8"}, ("jax", 3, -1, 8, "", -1)),
    "Slurm": ({**SLURM, "SLURM_PROCID": "3", "SLURM_RESTART_COUNT": "1"}, ("slurm", 3, 0, 2, "4711", 1)),
    "explicit": ({**TORCHRUN, "DDPCHECK_RANK": "7", "DDPCHECK_LOCAL_RANK": "2", "DDPCHECK_WORLD_SIZE": "9", "DDPCHECK_JOB": "mine"},
                 ("explicit", 7, 2, 9, "mine", -1)),
    "not a number": ({"RANK": "one", "WORLD_SIZE": "8"}, ("none", -1, -1, -1, "", -1)),
    "not a number in Slurm": ({**SLURM, "RANK": "one", "LOCAL_RANK": "0", "WORLD_SIZE": "2"}, ("slurm", 0, 0, 2, "4711", -1)),
    "no launcher": ({}, ("none", -1, -1, -1, "", -1)),
}


def test_launchers():
    for name, (environment, expected) in LAUNCHED.items():
        with Run(JOB, "keeps_errno", **environment).ok() as run:
            process = of(run.records(), "process")[0]
            equal(tuple(process[key] for key in ("launcher", "rank", "local_rank", "world_size", "job", "restart")), expected, name)


def test_dormant_programs_leave_nothing():
    for program in (["ls", "/"], ["bash", "-c", "echo a; (echo b); exit 3"], [sys.executable, "-c", "import ctypes; print(1)"],
                    ["sleep", "0.01"]):
        with Run(*program, preload=False) as plain, Run(*program) as watched:
            equal((watched.status, watched.out, watched.err), (plain.status, plain.out, plain.err), program[0])
            equal(os.listdir(watched.folder), [], "left by " + program[0])


def test_disabled():
    with Run(JOB, "collectives", DDPCHECK_DISABLE="1").ok() as run:
        equal(os.listdir(run.folder), [], "left behind")


def test_hashing_that_can_not_be():
    """The fake driver loads no modules: that is said once, in the trace as well, and the job does not notice."""
    with Run(JOB, "collectives", DDPCHECK_HASH="1") as run:
        equal((run.status, run.out, run.err), (0, "ok\n", "ddpcheck: payloads are not hashed: the CUDA driver has not the "
              "functions that it takes\n"), "what the job said")
        records = run.records()
        equal([r["hashing.entries"] for r in of(records, "notice_hashing")], [0], "hashing")
        equal(len(of(records, "notice_blind")), 1, "what is not seen")
        equal(of(records, "hash"), [], "hashes")
    with Run(JOB, "collectives").ok() as run:
        equal(of(run.records(), "notice_hashing"), [], "nobody asked for hashes")


def test_default_directory():
    with Run(JOB, "keeps_errno", trace=False).ok() as run:
        run.trace = os.path.join(run.folder, "ddpcheck-trace")
        equal(len(run.files()), 1, "ring files")
        mode = os.lstat(run.rings())
        equal((stat.S_IMODE(mode.st_mode), mode.st_uid), (0o700, os.geteuid()), "directory of the rings")


def test_missing_function():
    with tempfile.TemporaryDirectory() as folder:
        source = os.path.join(folder, "empty.c")
        with open(source, "w", encoding="ascii") as file:
            file.write("int empty_library;\n")
        for name in ("libnccl.so.2", "libcudart.so.13"):
            subprocess.run(["cc", "-shared", "-fPIC", "-Wl,-soname," + name, "-o", os.path.join(folder, name), source],
                           check=True)
        with Run(JOB, "collectives", LD_LIBRARY_PATH=folder, LD_BIND_NOW="") as run:
            equal((run.status, run.out), (9, ""), "the job sees the error")
            lines = run.err.splitlines()
            equal([line for line in lines if line.startswith("ddpcheck: ")],
                  ["ddpcheck: missing real function: no loaded library has ncclCommInitRank; the call fails"], "said once")


def test_directory_that_can_not_be_used():
    with tempfile.NamedTemporaryFile() as file:
        with Run(JOB, "collectives", DDPCHECK_DIR=file.name + "/trace") as run:
            equal((run.status, run.out), (0, "ok\n"), "the job is undisturbed")
            equal(len(run.err.splitlines()), 1, "one line")
            assert run.err.startswith("ddpcheck: can't use the trace directory"), run.err


def test_directory_of_another_user():
    """Nothing is recorded where another user could replace it, and the job goes on."""
    with tempfile.TemporaryDirectory() as folder:
        trace = os.path.join(folder, "trace")
        os.mkdir(trace)
        os.chmod(trace, 0o777)
        why = "every user may write into it"
        for prepare in (lambda: None, lambda: (os.chmod(trace, 0o755), os.chown(trace, 12345, -1))):
            prepare()
            with Run(JOB, "collectives", DDPCHECK_DIR=trace + "/") as run:
                equal((run.status, run.out), (0, "ok\n"), "the job is undisturbed")
                assert len(run.err.splitlines()) == 1 and why in run.err, run.err
                equal(os.listdir(trace), [], "written")
            if os.geteuid():
                break
            why = "it belongs to user 12345"


def test_full_file_system():
    if os.geteuid():
        print("  not root: skipped")
        return
    with tempfile.TemporaryDirectory() as folder:
        mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=%d" % (900 * 1024), "tmpfs", folder], capture_output=True)
        if mounted.returncode:
            print("  can't mount a tmpfs: skipped")
            return
        try:
            trace = os.path.join(folder, "trace")
            os.mkdir(trace)
            rings = name_rings(folder, trace)
            os.mkdir(rings, 0o700)
            with Run(JOB, "collectives", DDPCHECK_DIR=trace).ok() as run:
                run.trace = trace
                equal(len([r for r in run.records() if "op.number" in r]), 13, "operations in the smallest rings")
                os.remove(run.files()[0])
                run.trace = "/nonexistent"
            full = os.open(os.path.join(folder, "full"), os.O_WRONLY | os.O_CREAT)
            try:
                while os.write(full, b"x" * 4096):
                    pass
            except OSError:
                os.close(full)
            with Run(JOB, "collectives", DDPCHECK_DIR=trace) as run:
                equal((run.status, run.out), (0, "ok\n"), "the job is undisturbed")
                assert run.err.startswith("ddpcheck: can't reserve") and run.err.count("\n") == 1, run.err
                equal(os.listdir(rings), [], "left behind")
        finally:
            subprocess.run(["umount", folder], check=True)


def test_budget_of_a_small_file_system():
    """Processes with hundreds of threads leave fifteen sixteenths of it to others, and say what they could not record."""
    size = 32 << 20
    if os.geteuid():
        print("  not root: skipped")
        return
    with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryDirectory() as trace:
        if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=%d" % size, "tmpfs", folder], capture_output=True).returncode:
            print("  can't mount a tmpfs: skipped")
            return
        try:
            rings = name_rings(folder, trace)
            os.mkdir(rings, 0o700)
            for processes in (1, 2, 3):
                with Run(JOB, "many_threads", DDPCHECK_DIR=trace).ok() as run:
                    run.trace = "/nonexistent"
                equal(len(os.listdir(rings)), processes, "each process has a ring file")
                used = sum(os.stat(os.path.join(rings, name)).st_blocks * 512 for name in os.listdir(rings))
                # A process's header and first segment are granted in any case.
                assert used <= size / 16 + processes * 128 * 1024, "%d bytes used by %d processes" % (used, processes)
            for name in sorted(os.listdir(rings)):
                with open(os.path.join(rings, name), "rb") as file:
                    file.seek(64)      # lost_threads of struct ring_file
                    assert int.from_bytes(file.read(8), "little") > 0, "what was not recorded is counted"
        finally:
            subprocess.run(["umount", folder], check=True)


def test_little_shared_memory_is_left_to_others():
    """With less than 32 MB free in /dev/shm the rings are in TMPDIR; with a container's 64 MB they are there."""
    inside = ("unshare", "-m", "sh", "-c", 'mount -t tmpfs -o "size=$SIZE" tmpfs /dev/shm && exec "$0" "$@"')
    if subprocess.run([*inside, "true"], capture_output=True, env={**os.environ, "SIZE": "1m"}, timeout=300).returncode:
        print("  can't mount in a namespace: skipped")
        return
    with tempfile.TemporaryDirectory() as folder:
        with Run(*inside, JOB, "collectives", SIZE="24m", TMPDIR=folder).ok() as run:
            equal(os.path.dirname(run.rings()), folder, "the rings' parent")
            equal(len([r for r in run.records() if "op.number" in r]), 13, "operations")
        with Run(*inside, JOB, "collectives", SIZE="64m", TMPDIR=folder).ok() as run:
            equal(os.path.dirname(run.rings()), "/dev/shm", "the rings' parent")


def test_collector_is_started():
    with tempfile.TemporaryDirectory() as folder:
        collector = os.path.join(folder, "collector")
        with open(collector, "w", encoding="ascii") as file:
            file.write('#!/bin/sh\necho "$@" preload="$LD_PRELOAD" > %s/started\nls -l /proc/self/fd > %s/fds\n' % (folder, folder))
        os.chmod(collector, 0o755)
        with Run(JOB, "collectives", DDPCHECK_COLLECT="1", DDPCHECK_COLLECTOR=collector).ok() as run:
            with open(os.path.join(folder, "started"), encoding="ascii") as file:
                equal(file.read(), "collect --daemon %s preload=\n" % os.path.realpath(run.trace), "the collector's arguments")
        with Run(JOB, "collectives", DDPCHECK_COLLECT="1", DDPCHECK_COLLECTOR="/nonexistent") as run:
            equal((run.status, run.out), (0, "ok\n"), "the job is undisturbed")
            assert run.err.startswith("ddpcheck: no collector program found") and run.err.count("\n") == 1, run.err
            assert len(run.records()) > 20, "the records wait in the rings"


def main():
    wanted = sys.argv[3:]
    tests = [(name, test) for name, test in globals().items() if name.startswith("test_") and (not wanted or name in wanted)]
    failed = 0
    for name, test in tests:
        try:
            test()
            print("passed", name)
        except (AssertionError, subprocess.SubprocessError, IndexError, KeyError) as error:
            failed += 1
            print("FAILED %s: %s: %s" % (name, type(error).__name__, error))
    print("%d tests, %d failed" % (len(tests), failed))
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
