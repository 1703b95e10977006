"""RAS and Inspector: they count, or tell of what finished; what that allows is said, and no more."""

import contextlib
import json
import sqlite3
import unittest

from importer import Importer, main
from ras_server import job


class Samples(Importer):
    def expect(self, name, codes):
        result = self.importing(self.data(name))
        self.assertEqual((result.status, result.err, result.codes()), (0, "", codes))
        return result

    def test_ras(self):
        self.expect("ras/clean.json", {})
        result = self.expect("ras/behind.json", {"DC905": ["3", "0-2"]})
        self.assertIn("next it has to call ncclAllReduce #1407", result.what("DC905"))
        result = self.expect("ras/parted.json", {"DC904": ["3"]})
        self.assertIn("AllReduce 1406, not 1407; Broadcast 2, not 1", result.what("DC904"))
        self.expect("ras/dead.json", {"DC904": ["2"]})
        result = self.expect("ras/error.json", {"DC904": ["1"]})
        self.assertIn("remote process error", result.what("DC904"))

    def test_several_snapshots_tell_that_it_hangs(self):
        result = self.expect("ras/hang.json", {"DC201": ["0-2", "3"]})
        self.assertIn("ranks 0-2 wait in ncclAllReduce #1407 of comm ae94", result.what("DC201"))
        self.assertEqual(result.seconds("DC201"), 60.0)

    def test_a_rank_that_does_not_answer_any_more(self):
        """The others went one further, and stand still since; dead or silent, it is the one that is missing."""
        def snapshot(state, time):
            return json.dumps({**state, "timestamp": "2026-11-21 " + time})

        before, after = job([10] * 4), job([11, 11, 10, 11], missing=(2,))
        text = snapshot(before, "14:03:22") + snapshot(after, "14:03:32") + snapshot(after, "14:04:32")
        codes = self.importing(self.write("dead.json", text)).codes()
        self.assertEqual((codes["DC904"], codes["DC205"]), (["2"], ["0-1,3", "2"]))
        codes = self.importing(self.write("mute.json", text.replace('"considered_dead": true', '"considered_dead": false'))).codes()
        self.assertEqual((codes["DC904"], codes["DC201"]), (["2"], ["0-1,3", "2"]))

    def test_events(self):
        """`ncclras -m -f json`: a process that came is nothing, one that died is."""
        event = {"timestamp": "2025-12-19 13:07:07", "group": "LIFECYCLE", "event": "PEER_DEAD",
                 "peer": {"host": "10.0.0.45", "pid": 1524345, "cuda_devs": [1], "nvml_devs": [1]}, "details": ""}
        result = self.importing(self.write("monitor.json", json.dumps({**event, "event": "PEER_JOIN"}) + json.dumps(event, indent=2)))
        self.assertEqual((result.err, result.codes()), ("", {"DC904": ["none"]}))
        self.assertIn("the process is considered dead", result.what("DC904"))
        self.assertEqual(self.importing(self.write("joined.json", json.dumps({**event, "event": "PEER_JOIN"}))).codes(), {})

    def test_a_running_job_in_several_snapshots(self):
        """Ranks that stand at different places and go on are no hang."""
        with open(self.data("ras/behind.json"), encoding="utf-8") as file:
            first = json.load(file)
        second = json.loads(json.dumps(first).replace("1407", "1500").replace("1406", "1500").replace("14:03:22", "14:04:22"))
        self.assertEqual(self.importing(self.write("two.json", json.dumps(first) + json.dumps(second))).codes(), {})

    def test_inspector(self):
        self.expect("inspector/clean.log", {})
        result = self.expect("inspector/behind.log", {"DC905": ["3", "0-2"]})
        self.assertIn("rank 3 of comm 007f (4 ranks) is behind: finished 1407 collectives, ranks 0-2 1408", result.what("DC905"))

    def test_inspector_laid_out(self):
        """What a formatter (jq, an editor) made of it: several lines a record, or a list."""
        with open(self.data("inspector/behind.log"), encoding="utf-8") as file:
            records = [json.loads(line) for line in file]
        texts = ["\n".join(json.dumps(record, indent=2) for record in records), json.dumps(records, indent=4), json.dumps(records),
                 ",\n".join(json.dumps(record) for record in records), "".join(json.dumps(record) for record in records)]
        for text in texts:
            result = self.importing(self.write("behind.json", text))
            self.assertEqual((result.status, result.err, result.codes()), (0, "", {"DC905": ["3", "0-2"]}))

    def test_a_cut_record_takes_no_other_with_it(self):
        with open(self.data("inspector/behind.log"), encoding="utf-8") as file:
            records = [json.loads(line) for line in file]
        texts = [json.dumps(record, indent=2) for record in records]
        texts[1] = texts[1][:len(texts[1]) // 2]
        result = self.importing(self.write("cut.json", "\n".join(texts)))
        self.assertEqual((result.status, result.codes()), (2, {"DC905": ["3", "0-2"]}))
        self.assertIn("1 lines could not be read", result.err)

    def test_inspector_of_groups(self):
        """The header has the rank in the communicator: that in the largest one is the job's."""
        def record(rank, ranks, comm, number, pid, kind="AllReduce"):
            return json.dumps({"header": {"id": comm, "rank": rank, "n_ranks": ranks, "nnodes": 2},
                               "metadata": {"inspector_output_format_version": "v4.2", "dump_timestamp_us": 1748030517748202 + number * 1000,
                                            "hostname": "node%d" % (pid // 2), "pid": 500 + pid % 2},
                               "coll_perf": {"coll": kind, "coll_algo": "RING", "coll_sn": number, "coll_exec_time_us": 61.5}})

        files = []
        for rank in range(4):
            lines = []
            for number in range(40 if rank == 3 else 50):
                lines += [record(rank % 2, 2, "0xaa%d" % (rank // 2), number, rank, "AllGather"), record(rank, 4, "0x1f", number, rank)]
            files.append(self.write("node%d/nccl-inspector/pid%d.log" % (rank // 2, 500 + rank % 2), lines))
        result = self.importing(*files)
        self.assertEqual((result.status, result.err), (0, ""))
        self.assertEqual([[side["ranks"] for side in finding["sides"]] for finding in result.findings], [["3", "0-2"], ["3", "2"]])

    def test_inspector_without_the_size_of_communicators(self):
        lines = []
        for rank, pid in ((0, 40), (1, 41), (2, 42), (3, 43)):
            for number in range(40 if rank == 3 else 50):
                lines.append(json.dumps({"header": {"id": "0x1f", "rank": rank},
                                         "metadata": {"dump_timestamp_us": 1748030517748202 + number * 1000, "hostname": "n", "pid": pid},
                                         "coll_perf": {"coll": "AllReduce", "coll_sn": number, "coll_exec_time_us": 61.5}}))
        result = self.importing(self.write("pids.log", "\n".join(lines)))
        self.assertEqual((result.status, result.err), (0, ""))
        with contextlib.closing(sqlite3.connect(result.database)) as database:
            self.assertEqual(database.execute("SELECT rank FROM process ORDER BY rank").fetchall(), [(0,), (1,), (2,), (3,)])

    def test_together(self):
        """Two sources in one import: each speaks for itself."""
        result = self.importing(self.data("ras/behind.json"), self.data("inspector/clean.log"), self.data("nccl_log/clean.log"))
        self.assertEqual((result.status, result.codes()), (0, {"DC905": ["3", "0-2"]}))


class Damage(Importer):
    def refused(self, name, content, *words, options=()):
        result = self.importing(self.write(name, content), options=options)
        self.assertEqual(result.status, 2, result.err)
        for word in words:
            self.assertIn(word, result.err)
        return result

    def test_a_cut_snapshot(self):
        with open(self.data("ras/hang.json"), encoding="utf-8") as file:
            text = file.read()
        result = self.refused("cut.json", text[:-200], "cut.json", "byte ", "the snapshots before it (2) were taken")
        self.assertEqual(result.codes(), {"DC905": ["3", "0-2"]})

    def test_files_of_the_same_tools_that_are_not_read(self):
        self.refused("nccl_inspector_metrics_GPU-1.prom", '# TYPE nccl_bus_bandwidth_gbs gauge\nnccl_bus_bandwidth_gbs{version="v5.1"} 98.5\n',
                     "GPU-1.prom: it is NCCL Inspector's metrics for Prometheus", "import Inspector's logs")
        self.refused("ncclprof.json", '[\n{"name": "Group API", "cat": "GROUP_API", "ph": "b", "id": 0, "pid": 7, "tid": 1, "ts": 1.0}\n]\n',
                     "ncclprof.json: it is a timeline of NCCL's example profiler")

    def test_a_log_that_has_their_words(self):
        with open(self.data("nccl_log/missing.log"), encoding="utf-8") as file:
            log = file.read()
        expected = self.importing(self.write("job.log", log)).codes()
        words = ["exporting nccl_bus_bandwidth_gbs", 'no "GROUP_API" events'] + 2100 * ["step"]
        result = self.importing(self.write("job.log", "\n".join(words) + "\n" + log))
        self.assertEqual((result.status, result.codes()), (0, expected))

    def test_what_is_none_of_it(self):
        self.refused("list.json", "[1, 2]", "list.json", options=("--format", "ras"))
        self.refused("none.json", '{"communicators": 7}', "no list \"communicators\"", options=("--format", "ras"))
        self.refused("empty.json", "", "empty.json: it names no rank", options=("--format", "ras"))
        self.refused("ranks.json", '{"nccl_version": "?", "communicators": [{"hash": 5, "ranks": [{"rank": -3}, 8, {"rank": 1e99}]}, 3, null]}',
                     "ranks.json")

    def test_lines_of_inspector_that_are_damaged(self):
        with open(self.data("inspector/behind.log"), encoding="utf-8") as file:
            lines = file.read().splitlines()
        lines[3] = lines[3][:100]
        lines[4] = '{"header": {"id": 5}}'
        lines.insert(7, '{"header":{"id":"0x7f8c496ae9f661","rank":0,"n_ranks":4},"coll_perf":{"coll":"NewKind","coll_sn":3}}')
        result = self.refused("some.log", lines, "some.log: 2 lines could not be read, the first: line 4", "1 operations of a kind")
        self.assertEqual(result.codes(), {"DC905": ["3", "0-2"]})


if __name__ == "__main__":
    main()
