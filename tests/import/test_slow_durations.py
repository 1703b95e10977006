"""Sources that say how long operations took. Flight Recorder with timing and Inspector don't say when one began on the GPU: the
slow rank is named, and that it may be the host or the GPU; without durations nothing is said. Kineto says what else the GPU ran."""

import json
import pathlib
import types

import flight_dump
from importer import Importer, main
from kineto_traces import Group, Trace
from timelines import Timeline

LATE = lambda rank, i: 0.004 if rank == 2 else 0  # noqa: E731
PAUSES = lambda rank, i: 0.050 if rank == 2 and i % 10 == 9 else 0  # noqa: E731


def operations(timeline):
    """Each rank's, in order."""
    ranks = {}
    for row in timeline.rows:
        if row["group"]:
            ranks.setdefault(row["rank"], []).append(row)
    return ranks


class SlowDurations(Importer):
    def flight(self, timeline, has_durations=True):
        dumps = {}
        for rank, rows in operations(timeline).items():
            entries = [flight_dump.entry(i, "all_reduce", sizes=[[1 << 20]], created=flight_dump.EPOCH_NS + int(1e9 * row["issued"]),
                                         **({"duration_ms": 1e3 * row["duration"]} if has_durations else {}))
                       for i, row in enumerate(rows)]
            dumps[rank] = flight_dump.dump(entries, ranks=4)
        folder = pathlib.Path(self.folder) / "dumps"
        flight_dump.write(folder, dumps)
        return self.importing(str(folder))

    def inspector(self, timeline, took=1e6):
        for rank, rows in operations(timeline).items():
            rows.sort(key=lambda row: row["start"] + row["duration"])
            lines = [json.dumps({
                "header": {"id": "0x7f8c496ae9f661", "rank": rank, "n_ranks": 4, "nnodes": 1},
                "metadata": {"inspector_output_format_version": "v4.0", "hostname": "n0", "pid": 100 + rank,
                             "dump_timestamp_us": int(1790000000e6 + 1e6 * (row["start"] + row["duration"]))},
                "coll_perf": {"coll": row.get("operation", "AllReduce"), "coll_sn": row.get("number", i), "coll_msg_size_bytes": 1 << 20,
                              "coll_exec_time_us": int(took * row["duration"])}}) for i, row in enumerate(rows)]
            self.write("inspected/n0-pid%d.log" % (100 + rank), lines)
        return self.importing(str(pathlib.Path(self.folder) / "inspected"))

    def kineto(self, timeline):
        group = Group("0", range(4))
        traces = [Trace(rank, 4, [group], seq=True) for rank in range(4)]
        for row in timeline.rows:
            at, lasts, trace = 1e6 * row["start"], 1e6 * row["duration"], traces[row["rank"]]
            if row["group"]:
                trace.call("allreduce", group, 1 << 20, 1e6 * row["issued"], kernel_at=at, kernel_for=lasts)
            else:
                trace.event("void %s<float>(float*, int)" % row["operation"], "kernel", at, lasts, {"device": row["rank"]}, tid=7)
        for rank, trace in enumerate(traces):
            self.write("traces/rank%d.json" % rank, trace.text())
        return self.importing(str(pathlib.Path(self.folder) / "traces"))

    def expect(self, result, codes, words=()):
        found = {code: ranks for code, ranks in result.codes().items() if code.startswith("DC6")}
        self.assertEqual((result.err, found), ("", codes))
        for word in words:
            self.assertIn(word, result.what(next(iter(codes))))

    def test_late_rank(self):
        words = ("rank 2", "does not say whether the host or the GPU takes it")
        for source in (self.flight, self.inspector):
            self.expect(source(Timeline(late=LATE)), {"DC601": ["2"]}, words)

    def test_coalesced(self):
        """Only the row behind coalesced collectives says how long they took. Ranks wait for the late one there, or before."""
        for late, codes in ((LATE, {"DC601": ["2"]}), (lambda rank, i: 0, {})):
            for waiting in range(2):
                dumps = {}
                for rank, rows in operations(Timeline(late=late)).items():
                    entries = []
                    for i, row in enumerate(rows):
                        created, lasts = flight_dump.EPOCH_NS + int(1e9 * row["issued"]), [1, 1]
                        lasts[waiting] = 1e3 * row["duration"]
                        entries.append(flight_dump.entry(5 * i, "all_reduce", seq=2 * i + 1, created=created, duration_ms=lasts[0]))
                        entries += [flight_dump.entry(5 * i + k, "_reduce_scatter_base", seq=2 * i + 2, created=created + k * 1000,
                                                      sizes=[[4096]], out_sizes=[[1024]]) for k in (1, 2, 3)]
                        entries.append(flight_dump.entry(5 * i + 4, "coalesced", seq=2 * i + 2, created=created + 4000, sizes=[], types=[],
                                                         duration_ms=lasts[1]))
                    dumps[rank] = flight_dump.dump(entries, ranks=4)
                folder = pathlib.Path(self.folder) / "dumps"
                flight_dump.write(folder, dumps)
                self.expect(self.importing(str(folder)), codes)

    def test_pauses(self):
        for source in (self.flight, self.inspector):
            self.expect(source(Timeline(late=PAUSES)), {"DC608": ["2"]}, ("every 10 iterations rank 2",))

    def test_nothing(self):
        for source in (self.flight, self.inspector):
            self.expect(source(Timeline(iterations=600)), {})

    def test_hosts_that_are_less_ahead_now_and_then(self):
        """Hosts issue long before their GPUs begin; all GPUs take 20 ms, and nobody waits."""
        tenth = lambda rank, i: 0.050 if i % 10 == 9 else 0  # noqa: E731
        falls = lambda rank, i: 0.001 * i if rank == 2 else 0  # noqa: E731
        fills = lambda rank, i: -0.015 * min(i, 60)  # noqa: E731
        for later in (PAUSES, tenth, falls, fills):
            rows = [{"group": "0-3", "rank": rank, "issued": 2 + 0.020 * i + later(rank, i), "duration": 0.002}
                    for rank in range(4) for i in range(150)]
            self.expect(self.flight(types.SimpleNamespace(rows=rows)), {})
        for row in rows:
            row["duration"] += 0.004 if row["rank"] != 2 else 0
        self.expect(self.flight(types.SimpleNamespace(rows=rows)), {"DC601": ["2"]})

    def test_operations_beside_each_other(self):
        """Lines are in the order in which operations end: that of the second may come first."""
        rows = [{"group": "0-3", "rank": rank, "operation": operation, "number": i, "start": 0.02 * i + start, "duration": lasts}
                for rank in range(4) for i in range(60)
                for operation, start, lasts in (("AllGather", 0, 0.010), ("ReduceScatter", 0.005, 0.0049 if rank == 1 else 0.0051))]
        database = self.inspector(types.SimpleNamespace(rows=rows)).database
        table = self.ddpcheck("report", "--speed", database).stdout
        self.assertRegex(table, r"AllGather .* 10\.000 ")
        self.assertRegex(table, r"ReduceScatter .* 4\.900 ")

    def test_copies_and_long_names(self):
        group = Group("0", range(2))
        names = {"Memcpy HtoD (Pinned -> Device)": "gpu_memcpy", "Memcpy HtoD (Pageable -> Device)": "gpu_memcpy",
                 "Memset (Device)": "gpu_memset", "void softmax<float>(float*, int)": "kernel",
                 "void f<(g(int)), %s>(int, int)" % ("float, " * 60): "kernel", "void at::%s(int)" % ("long_" * 20): "kernel",
                 "void vllm::cross_device_reduce_1stage<half, 8>(int)": "kernel"}
        for rank in range(2):
            trace = Trace(rank, 2, [group], seq=True)
            for i in range(30):
                trace.call("allreduce", group, 1 << 20, 1e4 * i)
                for at, (name, category) in enumerate(names.items()):
                    trace.event(name, category, 1e4 * i + 1e3 * (at + 1), 500, {"device": rank}, tid=7)
            self.write("traces/rank%d.json" % rank, trace.text())
        database = self.importing(str(pathlib.Path(self.folder) / "traces")).database
        found = self.ddpcheck("report", "--speed", database).stdout
        for name in (*list(names)[:3], "softmax\n", "f\n", "...%s\n" % ("long_" * 6)):
            self.assertIn("  " + name, found)
        self.assertNotIn("cross_device", found)      # it waits for its peers

    def test_kernels_of_a_profile(self):
        self.expect(self.kineto(Timeline()), {})
        self.expect(self.kineto(Timeline(late=LATE)), {"DC601": ["2"]}, ("the host issues late",))
        few = self.kineto(Timeline(iterations=15, late=LATE))
        self.expect(few, {})
        self.assertIn("Fewer than 20 iterations are too few", self.ddpcheck("report", "--speed", few.database).stdout)
        slower = lambda rank, i: 1.5 if rank == 1 else 1  # noqa: E731
        self.expect(self.kineto(Timeline(slower=slower)), {"DC604": ["1"]}, ("1.50 times as long", "attention 1.50 times"))
        kernel = lambda rank, i, name: 2 if rank == 3 and name == "attention" else 1  # noqa: E731
        self.expect(self.kineto(Timeline(kernel=kernel)), {"DC605": ["3"]}, ("attention",))

    def test_kernels_that_wait_for_their_peers(self):
        """Rank 2's host issues late; rank 3 waits for it in a kernel of symmetric memory, and the others in their collective."""
        timeline = Timeline(late=LATE)
        begins = {(row["rank"], row["iteration"]): row["start"] for row in timeline.rows if row["group"]}
        for row in list(timeline.rows):
            if row["rank"] != 3 or not row["group"]:
                continue
            skew = row["start"] - begins[2, row["iteration"]] - 1000.0       # of the clocks, less: how long rank 2 is later
            timeline.rows.append({**row, "group": "", "operation": "c10d::symmetric_memory::barrier_kernel", "duration": -skew})
            row["start"], row["duration"] = row["start"] - skew, row["duration"] + skew
        self.expect(self.kineto(timeline), {"DC601": ["2"]}, ("the host issues late",))

    def test_without_durations(self):
        """When what is done came to be known says nothing of the GPU."""
        for result in (self.flight(Timeline(iterations=600), has_durations=False), self.inspector(Timeline(iterations=600), took=0)):
            self.expect(result, {})


if __name__ == "__main__":
    main()
