"""torch.profiler's traces: real ones (tests/data/kineto, PyTorch 2.9.1 with NCCL on the emulator, and with gloo), and ones made
by hand with a fault each, beside their clean twins."""

import gzip
import json
import os
import random
import sqlite3

from importer import Importer, main
from kineto_traces import BASE_NS, Group, Trace

WORLD = Group("0", [0, 1, 2, 3])
PAIRS = [Group("1", [0, 1], "pair"), Group("2", [2, 3], "pair")]


class Kineto(Importer):
    def save(self, traces, pack=lambda text: text.encode(), suffix=".json"):
        return [self.write("traces/rank%d%s" % (trace.rank, suffix), pack(trace.text())) for trace in traces]

    def query(self, database, sql):
        with sqlite3.connect("file:%s?mode=ro" % database, uri=True) as db:
            return db.execute(sql).fetchall()

    def job(self, fault=lambda trace, step: False, steps=10, **options):
        """Four ranks, each step an AllReduce of all, a ReduceScatter and an AllGather of pairs; `fault` may do a step itself."""
        traces = []
        for rank in range(4):
            pair = PAIRS[rank // 2]
            trace = Trace(rank, 4, [WORLD, *PAIRS], **options)
            for step in range(steps):
                at = 1000.0 * step + 3 * rank
                if fault(trace, step):
                    continue
                trace.call("allreduce", WORLD, 4096, at + 0.125)
                trace.call("_reduce_scatter_base", pair, 100, at + 100, dtype="BFloat16")
                trace.call("_allgather_base", pair, 100, at + 200, dtype="BFloat16")
                trace.call("broadcast", WORLD, 8, at + 300, dtype="Long", root=1)
                trace.call("wait", WORLD, 0, at + 330, dtype="Byte", kernel_for=None)
            traces.append(trace)
        return traces

    def found(self, traces):
        result = self.importing(*self.save(traces))
        self.assertEqual((result.status, result.err), (0, ""))
        return result


class Clean(Kineto):
    def test_real_traces(self):
        result = self.importing(self.data("kineto/nccl"))
        self.assertEqual((result.status, result.err, result.codes()), (0, "", {}))
        calls = self.query(result.database, 'SELECT name, number, count, datatype, root, "group" IS NOT NULL FROM v_collective '
                           "WHERE rank = 0 AND communicator = (SELECT communicator FROM v_collective ORDER BY seq LIMIT 1) ORDER BY issued_ns")
        self.assertEqual(calls[:12], [
            ("ncclAllReduce", 0, 1024, "float32", None, 0), ("ncclBroadcast", 1, 1024, "float32", 1, 0),
            ("ncclAllGather", 2, 1024, "float32", None, 0), ("ncclReduceScatter", 3, 1024, "float32", None, 0),
            ("ncclAlltoAll", 4, 512, "float32", None, 0), ("ncclReduce", 5, 1024, "float32", 0, 0),
            ("ncclSend", 0, 100, "float32", 1, 0), calls[7], ("ncclSend", 1, 1024, "float32", 1, 1),
            ("ncclRecv", 0, 1024, "float32", 1, 1), ("ncclAllReduce", 7, 1024, "float32", None, 0),
            ("ncclAllReduce", 8, 1024, "float32", None, 0)])
        self.assertEqual(calls[7][:2], ("ncclAllReduce", 6), "the barrier")
        self.assertEqual(self.query(result.database, "SELECT rank, world_size, nccl_version FROM process ORDER BY rank"),
                         [(0, 2, 22705), (1, 2, 22705)])

    def test_gloo_is_not_taken(self):
        result = self.importing(self.data("kineto/gloo"))
        self.assertEqual(result.status, 2)
        self.assertIn("rank0.json.gz: its 30 collectives are gloo's", result.err)

    def test_jobs_of_all_forms(self):
        for options in ({}, {"seq": True}, {"kernels": False}, {"seq": True, "addresses": True}, {"info": False}):
            result = self.found(self.job(**options))
            self.assertEqual(result.codes(), {}, options)
            members = self.query(result.database, "SELECT communicator, rank, nranks, process_rank FROM v_member ORDER BY nranks, 4")
            self.assertEqual([row[1:] for row in members],
                             [(0, 2, 0), (1, 2, 1), (0, 2, 2), (1, 2, 3), (0, 4, 0), (1, 4, 1), (2, 4, 2), (3, 4, 3)])
            self.assertEqual(len({row[0] for row in members}), 3)
            calls = self.query(result.database, "SELECT name, count, datatype, root, count(*) FROM v_collective GROUP BY 1, 2, 3, 4")
            self.assertEqual(calls, [("ncclAllGather", 100, "bfloat16", None, 40), ("ncclAllReduce", 4096, "float32", None, 40),
                                     ("ncclBroadcast", 8, "int64", 1, 40), ("ncclReduceScatter", 100, "bfloat16", None, 40)])

    def test_times_are_those_of_the_file(self):
        result = self.found(self.job(steps=2, addresses=True))
        first = self.query(result.database, "SELECT issued_ns - %d, sendbuff FROM v_collective WHERE rank = 2 ORDER BY issued_ns" % BASE_NS)
        self.assertEqual(first[0][0], 6125)
        self.assertTrue(first[0][1].startswith("0x7f"), first)
        progress = self.query(result.database, "SELECT realtime_ns - %d, started, done FROM v_progress WHERE rank = 0 AND slot = 0 "
                              "ORDER BY seq LIMIT 2" % BASE_NS)
        self.assertEqual(progress, [(30125, 1, 0), (80125, 1, 1)])

    def test_parts_of_different_sizes(self):
        """all_gather and reduce_scatter take lists of tensors that may differ; PyTorch makes broadcasts or reductions of them."""
        for collective, annotation in (("all_gather", "nccl:_broadcast_oop"), ("reduce_scatter", "nccl:_reduce_oop")):
            traces = []
            for rank in range(4):
                trace = Trace(rank, 4, [WORLD])
                for step in range(5):
                    trace.call(collective, WORLD, 10 + rank, 1000.0 * step, lasts=40.0)
                    trace.event(annotation, "user_annotation", 1000.0 * step + 5, 3.0)
                    trace.call(collective, WORLD, 20, 1000.0 * step + 100)
                traces.append(trace)
            result = self.found(traces)
            self.assertEqual(result.codes(), {}, collective)
            counts = self.query(result.database, "SELECT count, count(*) FROM v_collective GROUP BY 1 ORDER BY 1")
            self.assertEqual(counts, [(0, 20), (20, 20)])
            for trace in traces:        # without the annotation it is a mismatch
                trace.events = [event for event in trace.events if event["name"] != annotation]
            self.assertIn("DC102", self.found(traces).codes())

    def test_kernels_of_older_files(self):
        """The kernel's "External id" is its own number, or missing: the launch on the CPU leads to the call."""
        for external in (True, False):
            trace = Trace(0, 4, [WORLD])
            for step in range(10):
                trace.call("allreduce", WORLD, 64, 1000.0 * step)
                args = trace.events[-1]["args"]
                args["correlation"] = 90000 - step
                args.pop("External id")
                if external:
                    args["External id"] = args["correlation"]
                trace.event("cudaLaunchKernelExC", "cuda_runtime", 1000.0 * step + 5, 3.0, {"correlation": 90000 - step})
                trace.event("cudaLaunchKernel", "cuda_runtime", 1000.0 * step + 50, 3.0, {"correlation": 80000 - step})
            result = self.importing(*self.save([trace]))
            self.assertEqual((result.status, result.err), (0, ""), external)
            progress = self.query(result.database, "SELECT realtime_ns - %d, started, done FROM v_progress ORDER BY seq" % BASE_NS)
            self.assertEqual(progress[:4], [(30000, 1, 0), (80000, 1, 1), (1030000, 2, 1), (1080000, 2, 2)])

    def test_packed_files(self):
        result = self.importing(*self.save(self.job(), lambda text: gzip.compress(text.encode()), ".pt.trace.json.gz"))
        self.assertEqual((result.status, result.codes()), (0, {}))
        self.assertEqual(self.query(result.database, "SELECT count(*) FROM v_collective"), [(160,)])

    def test_windows_that_begin_apart(self):
        """With Seq the numbers are the process group's own: a rank whose profiler began later is no mismatch."""
        traces = self.job(fault=lambda trace, step: trace.rank == 1 and step < 3 and self.skip(trace), seq=True)
        result = self.found(traces)
        self.assertEqual(result.codes(), {})
        numbers = self.query(result.database, "SELECT min(number), max(number) FROM v_collective WHERE name = 'ncclAllReduce' "
                             "GROUP BY process ORDER BY process")
        self.assertEqual(numbers, [(0, 18), (6, 18), (0, 18), (0, 18)])

    def skip(self, trace):
        """The step was not recorded."""
        for group, calls in ((WORLD, 2), (PAIRS[trace.rank // 2], 2)):
            trace.seq[group.name] = trace.seq.get(group.name, 0) + calls
        return True

    def test_a_shortened_list_of_ranks(self):
        world = Group("0", list(range(64)))
        traces = []
        for rank in (3, 40, 63):
            trace = Trace(rank, 64, [world])
            for step in range(5):
                trace.call("broadcast", world, 10, 100.0 * step, root=0)
            traces.append(trace)
        result = self.found(traces)
        self.assertEqual(self.query(result.database, "SELECT rank, nranks, process_rank FROM v_member ORDER BY 1"),
                         [(3, 64, 3), (40, 64, 40), (63, 64, 63)])

    def test_a_call_inside_of_another_is_the_operation(self):
        traces = []
        for rank in range(4):
            trace = Trace(rank, 4, [WORLD])
            trace.call("barrier", WORLD, 0, 10.0, lasts=100.0, kernel_for=None, dtype="Byte")
            trace.call("allreduce", WORLD, 1, 20.0, lasts=30.0)
            trace.call("init", WORLD, 0, 22.0, dtype="Byte", kernel_for=None)
            trace.call("barrier", WORLD, 0, 200.0, lasts=10.0, dtype="Byte")
            traces.append(trace)
        result = self.found(traces)
        self.assertEqual(self.query(result.database, "SELECT name, number FROM v_collective WHERE rank = 0"),
                         [("ncclAllReduce", 0), ("ncclAllReduce", 1)])
        self.assertEqual(result.codes(), {})


class Faults(Kineto):
    def expect(self, code, fault, rank="2", **options):
        for seq in (False, True):
            result = self.found(self.job(fault, seq=seq, **options))
            self.assertIn(code, result.codes(), (seq, result.codes()))
            self.assertIn(rank, result.codes()[code], (seq, result.codes()))

    def other(self, rank, **call):
        """At step 5 a rank makes another call than the AllReduce."""
        def fault(trace, step):
            if trace.rank != rank or step != 5:
                return False
            trace.call(**{"collective": "allreduce", "group": WORLD, "count": 4096, "at": 5006.0, **call})
            return True
        return fault

    def test_another_collective(self):
        self.expect("DC101", self.other(2, collective="broadcast", root=0))

    def test_another_count(self):
        self.expect("DC102", self.other(2, count=4095))

    def test_another_datatype(self):
        self.expect("DC103", self.other(2, dtype="Half"))

    def test_another_root(self):
        def fault(trace, step):
            if step == 5:
                trace.call("broadcast", WORLD, 8, 5000.0, root=1 if trace.rank == 2 else 0)
            return step == 5
        self.expect("DC105", fault)

    def test_a_rank_that_stops_early(self):
        """Rank 2 makes no call after step 5; the others wait in the next for a minute, and so does their kernel."""
        def fault(trace, step):
            if step < 6:
                return False
            if step == 6:
                if trace.rank != 2:
                    trace.call("allreduce", WORLD, 4096, 6000.0, kernel_for=None)
                trace.event("aten::add", "cpu_op", 60e6, 1.0)
            return True
        self.expect("DC201", fault)

    def test_a_rank_that_is_always_late(self):
        traces = []
        for rank in range(4):
            trace = Trace(rank, 4, [WORLD])
            for step in range(200):
                at = 200000.0 * step + (80000 if rank == 3 else 0)      # more than clocks of two hosts may differ
                trace.call("allreduce", WORLD, 1000000, at, kernel_at=at + 30, kernel_for=100.0 if rank == 3 else 80100.0)
            traces.append(trace)
        result = self.found(traces)
        self.assertIn("DC601", result.codes())
        self.assertIn("3", result.codes()["DC601"])

    def test_messages(self):
        def trace(rank, count):
            made = Trace(rank, 2, [PAIRS[0]])
            made.call("send" if rank == 0 else "recv", PAIRS[0], 64, 10.0, root=1 - rank)
            made.call("send" if rank == 0 else "recv", PAIRS[0], count, 20.0, root=1 - rank)
            return made
        self.assertEqual(self.found([trace(0, 64), trace(1, 64)]).codes(), {})
        self.assertIn("DC107", self.found([trace(0, 64), trace(1, 32)]).codes())


class Damaged(Kineto):
    def test_a_cut_file_gives_what_it_holds(self):
        text = self.job()[1].text()
        for part in (0.5, 0.9):
            path = self.write("rank1.json", text[:int(len(text) * part)])
            result = self.importing(path)
            self.assertEqual(result.status, 2)
            self.assertIn("rank1.json: byte ", result.err)
            self.assertIn("the text ends inside of", result.err)
            self.assertGreater(self.query(result.database, "SELECT count(*) FROM v_collective")[0][0], 5)

    def test_what_is_no_trace(self):
        deep = '{"schemaVersion": 1, "traceEvents": ' + "[" * 100000
        for text, message in ((deep, "nested deeper than 512 levels"), ('{"schemaVersion": 1, "traceEvents": []}', "no collective calls"),
                              ('{"schemaVersion": 1, "traceEvents": [{"ph": ]}', "']' where a value was to come"),
                              ('{"schemaVersion": 1, "traceEvents": [1, "x", [2]]}', "is no event"),
                              ('{"schemaVersion": 1, "traceEvents": {"a": [1]}}', "no collective calls")):
            result = self.importing(self.write("bad/rank0.json", text))
            self.assertEqual(result.status, 2, text[:60])
            self.assertIn("rank0.json", result.err)
            self.assertIn(message, result.err)

    def test_the_good_of_a_mixture(self):
        paths = self.save(self.job())
        group = Group("9", [5, 7])
        other = Trace(7, 8, [group])
        for step in range(300):
            other.call("allreduce", group, step, 100.0 * step)
        packed = gzip.compress(other.text().encode())
        bad = [self.write("more/rank7.json.gz", packed[:len(packed) // 2]), self.write("more/empty.json", "")]
        result = self.importing(*paths, *bad)
        self.assertEqual(result.status, 2)
        self.assertIn("rank7.json.gz", result.err)
        self.assertIn("empty.json", result.err)
        of_rank = "SELECT count(*) FROM v_collective WHERE process %s (SELECT id FROM process WHERE rank = 7)"
        self.assertEqual(self.query(result.database, of_rank % "NOT IN"), [(160,)])
        self.assertGreater(self.query(result.database, of_rank % "IN")[0][0], 10)

    def test_strange_events_are_said_and_left_out(self):
        traces = self.job()
        document = traces[0].document()
        call = next(event for event in document["traceEvents"] if event["name"] == "record_param_comms")
        strange = [{**call, "args": {**call["args"], "Collective name": "all_to_none"}}, {**call, "args": {}},
                   {key: value for key, value in call.items() if key != "ts"}, {**call, "args": 7},
                   {**call, "ts": "soon", "args": {**call["args"], "Process Group Ranks": {"a": []}}}]
        document["traceEvents"] += strange
        paths = self.save(traces)
        self.write("traces/rank0.json", json.dumps(document))
        result = self.importing(*paths)
        self.assertIn("of an unknown kind: all_to_none", result.err)
        self.assertIn("without \"Collective name\"", result.err)
        self.assertIn("without its time (ts)", result.err)
        self.assertEqual(result.codes(), {})
        self.assertEqual(self.query(result.database, "SELECT count(*) FROM v_collective"), [(160,)])

    def test_recorded_before_nccl_metadata_was_written(self):
        """PyTorch 1.8 to 2.1: a name and a kernel, no group, size or type."""
        def row(name, category, **args):
            return {"ph": "X", "cat": category, "name": name, "pid": 7, "tid": 7, "ts": 100, "dur": 5, "args": args}
        rows = [[row("record_param_comms", "cpu_op", **{"Input Dims": [[], []]})],
                [row("nccl:all_reduce", "user_annotation"), row("ncclKernel_AllReduce_RING_LL_Sum_float(ncclDevComm*)", "kernel", stream=20)],
                [row("ncclKernel_Broadcast_RING_LL_Sum_int8_t(ncclWorkElem)", "Kernel", stream=20)]]
        for events in rows:
            result = self.importing(self.write("old.json", json.dumps({"schemaVersion": 1, "traceEvents": events})))
            self.assertEqual(result.status, 2)
            self.assertIn("old.json: it has %d NCCL operations" % len(events), result.err)
            self.assertIn("record again with PyTorch >= 2.4", result.err)
            self.assertFalse(os.path.exists(result.database))

    def test_what_json_forbids_and_profilers_write(self):
        text = self.job()[0].text().replace('"name": "NVIDIA H100"', '"name": "C:\\new\\x", "x": NaN, "y": -Infinity')
        result = self.importing(self.write("rank0.json", text.encode().replace(b"aten", b"\xff\xfe")))
        self.assertEqual((result.status, result.err), (0, ""))

    def test_chance(self):
        """Bytes that were changed by chance: what is left is taken, or said; nothing crashes (the sanitizer builds look closer)."""
        with gzip.open(self.data("kineto/nccl/rank0.json.gz")) as file:
            text = file.read()
        chance = random.Random(5)
        for _ in range(25):
            changed = bytearray(text)
            for _ in range(chance.randrange(1, 12)):
                at, length = chance.randrange(len(text)), chance.randrange(1, 40)
                changed[at:at + length] = chance.choice((b"", b"[" * 9, b'"', b"-1", b"9" * 30, b"\xff\xfe", text[:length], b"null", b"}"))
            result = self.importing(self.write("rank0.json", bytes(changed)))
            self.assertIn("rank0.json", result.out + result.err if result.status else "rank0.json")

    def test_kernels_without_their_call(self):
        trace = self.job()[0]
        for event in trace.events[-6:]:
            if event["cat"] == "kernel":
                del event["args"]["External id"]
        result = self.importing(*self.save([trace]))
        self.assertIn("NCCL kernels belong to no call of the file", result.err)


main()
