"""Flight Recorder: real dumps of PyTorch (tests/data/flight_recorder) and such as only a GPU cluster makes, written by flight_dump.py."""

import gzip
import json
import os
import pathlib
import pickle as python_pickle
import re
import sqlite3

import flight_dump as flight
from importer import Importer, main

RANKS = 4
OPERATIONS = 8


def rows(count=OPERATIONS, begin=0):
    return [flight.entry(i, "all_reduce", line=40 + i) for i in range(begin, begin + count)]


class Dumps(Importer):
    def job(self, change=lambda jobs: None, name="dumps", count=OPERATIONS, groups=None, **how):
        """Dumps of four ranks that agree, but for what `change` does to {rank: entries}."""
        jobs = {rank: rows(count) for rank in range(RANKS)}
        change(jobs)
        folder = pathlib.Path(self.folder) / name
        flight.write(folder, {rank: flight.dump(entries, ranks=RANKS, groups=groups) for rank, entries in jobs.items()}, **how)
        return str(folder)

    def codes_of(self, change=lambda jobs: None, **how):
        result = self.importing(self.job(change, name="dumps-%d" % self.count, **how))
        self.assertEqual((result.status, result.err), (0, ""))
        return result

    def expect(self, codes, change=lambda jobs: None, **how):
        result = self.codes_of(change, **how)
        self.assertEqual(result.codes(), codes)
        return result


class Real(Importer):
    def expect(self, name, codes):
        result = self.importing(self.data("flight_recorder/" + name))
        self.assertEqual((result.status, result.err, result.codes()), (0, "", codes))
        return result

    def waits(self, result):
        """The terminal UI's tree of waits: of operations in flight, since a dump has no waits of hosts."""
        text = self.ddpcheck("tui", "--once", "--view", "waits", result.database, COLUMNS="200").stdout
        tree = text.split("who waits for whom")[1].splitlines()[1:]
        return [re.sub(r"  +[0-9.]+ s$", "", line) for line in tree]

    def test_dumps_of_pytorch(self):
        for backend in ("nccl", "gloo"):
            with self.subTest(backend):
                self.expect(backend + "-clean", {})
                for form in ("", ".json"):
                    result = self.expect(backend + "-behind" + form, {"DC201": ["0-1", "2"]})
                    self.assertIn("ranks 0-1 wait in ncclAllReduce(count=500, float32) #9", result.what("DC201"))
                self.assertRegex(self.waits(result)[0], r"^ranks 0-1 wait in ncclAllReduce\(count=500, float32\) #9 of comm ")
                self.assertRegex(self.waits(result)[1], "^  rank 2 has not called it: ")
                result = self.expect(backend + "-skip", {"DC101": ["0-1", "2"]})
                self.assertRegex(self.waits(result)[0], r"^ranks 0-2 wait in ncclAllReduce\(count=500, float32\) #9 of comm ")
                self.assertEqual(self.waits(result)[1], "  no rank is missing: each has called an operation #9")
                self.assertIn("rank 2 calls ncclBroadcast(count=9, float32) as operation #9", result.what("DC101"))
        self.expect("nccl-clean_kinds", {})
        result = self.expect("nccl-behind_kinds", {"DC201": ["1", "2"]})
        self.assertIn("rank 1 waits in ncclSend(count=64, float32, peer=2)", result.what("DC201"))
        result = self.expect("nccl-size", {"DC102": ["0-1", "2"]})
        self.assertIn("rank 2 calls ncclAllReduce(count=501, float32)", result.what("DC102"))
        result = self.expect("nccl-dtype", {"DC103": ["0-1", "2"]})
        self.assertIn("rank 2 calls ncclAllReduce(count=500, float16)", result.what("DC103"))
        self.assertTrue(any(frame["file"].endswith("train.py") for frame in result.findings[0]["sides"][1]["frames"]), result.findings)


class Verdicts(Dumps):
    def test_clean(self):
        self.expect({})

    def test_missing_rank(self):
        def change(jobs):
            for rank, entries in jobs.items():
                entries[-1] = flight.entry(OPERATIONS - 1, "all_reduce", line=99, state="started")
            jobs[2].pop()
        result = self.expect({"DC201": ["0-1,3", "2"]}, change)
        self.assertIn("ranks 0-1,3 wait in ncclAllReduce(count=1024, float32) #8", result.what("DC201"))
        waiting, missing = result.findings[0]["sides"]
        self.assertEqual([(frame["function"], frame["line"]) for frame in waiting["frames"]], [("step", 99), ("main", 12)])
        self.assertIn("last seen in ncclAllReduce(count=1024, float32) #7", missing["where"])
        self.assertEqual(missing["where_frames"][0]["line"], 46)
        self.assertEqual(result.findings[0]["certainty"], "possible")

    def test_other_kind(self):
        def change(jobs):
            jobs[1][3] = flight.entry(3, "_all_gather_base", line=99, out_sizes=[[4096]])
        result = self.expect({"DC101": ["0,2-3", "1"]}, change)
        self.assertIn("rank 1 calls ncclAllGather(count=1024, float32) as operation #4", result.what("DC101"))
        self.assertEqual(result.findings[0]["sides"][1]["frames"][0]["line"], 99)

    def test_other_size(self):
        def change(jobs):
            jobs[3][4] = flight.entry(4, "all_reduce", sizes=[[10, 100]])
        self.assertIn("count=1000", self.expect({"DC102": ["0-2", "3"]}, change).what("DC102"))

    def test_other_shape_of_one_size(self):
        """NCCL takes a count of elements."""
        def change(jobs):
            jobs[3][4] = flight.entry(4, "all_reduce", sizes=[[32, 32]])
        self.expect({}, change)

    def test_other_datatype(self):
        def change(jobs):
            jobs[0][4] = flight.entry(4, "all_reduce", types=["Half"])
        self.expect({"DC103": ["1-3", "0"]}, change)

    def test_datatypes_as_python_names_them(self):
        def change(jobs, odd="float16"):
            for rank, entries in jobs.items():
                entries[4] = flight.entry(4, "all_reduce", types=odd if rank == 1 else "float32")
        self.expect({"DC103": ["0,2-3", "1"]}, change)
        self.expect({}, lambda jobs: change(jobs, "float32"))

    def test_input_and_output_that_do_not_fit(self):
        def change(jobs, kind="all_reduce", **odd):
            for rank, entries in jobs.items():
                entries[4] = flight.entry(4, kind, **(odd if rank == 1 else {}))
        for kind in ("all_reduce", "broadcast", "reduce"):
            self.expect({}, lambda jobs: change(jobs, kind))
            for output in ({"out_sizes": [[1000]]}, {"out_types": ["Half"]}):
                with self.subTest(kind, **output):
                    result = self.expect({"DC904": ["1"]}, lambda jobs: change(jobs, kind, **output))
                    self.assertIn("the input and the output of %s #5 differ" % kind, result.what("DC904"))
        self.expect({"DC102": ["0,2-3", "1"]}, lambda jobs: change(jobs, sizes=[[1000]], out_sizes=[[1024]]))

    def test_output_that_does_not_fit_the_number_of_ranks(self):
        def change(jobs, odd):
            for rank, entries in jobs.items():
                gathered = {"sizes": [[256]], "out_sizes": [[1024]], **(odd if rank == 1 else {})}
                entries[4] = flight.entry(4, "_all_gather_base", **gathered)
        self.expect({}, lambda jobs: change(jobs, {}))
        for odd in ({"out_sizes": [[2048]]}, {"out_types": ["Half"]}):
            with self.subTest(**odd):
                result = self.expect({"DC904": ["1"]}, lambda jobs: change(jobs, odd))
                self.assertIn("the input and the output of all_gather #5 do not fit: one must be 4 times as large", result.what("DC904"))

    def test_datatype_that_nccl_does_not_have_is_not_compared(self):
        def change(jobs):
            jobs[0][4] = flight.entry(4, "all_reduce", types=["QInt8"])
        self.expect({}, change)

    def test_other_state(self):
        def change(jobs):
            jobs[0][-1] = flight.entry(OPERATIONS - 1, "all_reduce", state="started")
        result = self.expect({"DC210": ["0", "1-3"]}, change)
        self.assertIn("rank 0 has not finished ncclAllReduce(count=1024, float32) #8", result.what("DC210"))

    @staticmethod
    def stuck(jobs, state="started", more=0):
        for entries in jobs.values():
            entries[-1] = flight.entry(OPERATIONS - 1, "all_reduce", line=99, state=state)
            entries += [flight.entry(OPERATIONS + i, "all_reduce", line=40, state="scheduled") for i in range(more)]

    def test_all_ranks_are_stuck_in_one_operation(self):
        for how in ({}, {"state": "scheduled"}, {"more": 3}):
            with self.subTest(**how):
                result = self.expect({"DC211": ["0-3"]}, lambda jobs: self.stuck(jobs, **how))
                self.assertIn("ncclAllReduce(count=1024, float32) #8 of comm default_pg (4 ranks), which every rank has called, "
                              "is finished on none", result.what("DC211"))
                self.assertEqual(result.findings[0]["sides"][0]["frames"][0]["line"], 99)

    def test_a_job_that_was_dumped_while_it_got_on_is_not_stuck(self):
        folder = pathlib.Path(self.job(self.stuck))
        just_then = flight.EPOCH_NS + (OPERATIONS - 1) * 1_000_000 + 5_000_000
        for path in folder.iterdir():
            os.utime(path, ns=(just_then, just_then))
        self.assertEqual(self.importing(str(folder)).codes(), {})

    def test_a_mismatch_explains_why_all_are_stuck(self):
        def change(jobs):
            self.stuck(jobs)
            jobs[3][4] = flight.entry(4, "all_reduce", sizes=[[1000]])
        self.expect({"DC102": ["0-2", "3"]}, change)

    def test_a_barrier_against_a_buffer(self):
        def change(jobs):
            jobs[3][4] = flight.entry(4, "all_reduce_barrier", sizes=[[1]], line=77)
        self.expect({"DC101": ["0-2", "3"]}, change)

    def test_no_dump_of_a_rank(self):
        result = self.expect({"DC902": ["2"]}, lambda jobs: jobs.pop(2))
        self.assertEqual(len(result.findings), 1)

    def test_uneven_all_to_all(self):
        def change(jobs):
            for rank, entries in jobs.items():
                entries[2] = flight.entry(2, "all_to_all", sizes=[[100 + rank]], out_sizes=[[103 - rank]])
        self.expect({}, change)

    def test_reduce_scatter_and_gathers(self):
        def change(jobs):
            for rank, entries in jobs.items():
                entries[1] = flight.entry(1, "_reduce_scatter_base", sizes=[[4096]], out_sizes=[[1024]])
                entries[2] = flight.entry(2, "all_gather", sizes=[[16]], out_sizes=[[16]] * RANKS)
                entries[3] = flight.entry(3, "gather", sizes=[[16]], out_sizes=[[16]] * RANKS if rank == 0 else [])
                entries[4] = flight.entry(4, "scatter", sizes=[[16]], out_sizes=[[16]] * RANKS if rank == 0 else [])
        self.expect({}, change)
        def wrong(jobs):
            change(jobs)
            jobs[1][1] = flight.entry(1, "_reduce_scatter_base", sizes=[[4096]], out_sizes=[[512]])
        self.expect({"DC102": ["0,2-3", "1"]}, wrong)


class Sequences(Dumps):
    @staticmethod
    def ring(jobs, begin):
        for rank, entries in jobs.items():
            jobs[rank] = [flight.entry(i, "all_reduce", seq=500 + i, line=40) for i in range(begin(rank), 40)]

    def test_rings_that_begin_at_different_places(self):
        self.expect({}, lambda jobs: self.ring(jobs, lambda rank: 10 + 3 * rank))

    def test_a_mismatch_in_rings(self):
        def change(jobs):
            self.ring(jobs, lambda rank: 10 + 3 * rank)
            jobs[2][8] = flight.entry(24, "broadcast", seq=524)
        result = self.expect({"DC101": ["0-1,3", "2"]}, change)
        self.assertIn("operation #524", result.what("DC101"))

    def coalesced(self, sizes, state="completed"):
        """Three calls in one launch, and the row that ends them."""
        calls = [flight.entry(3 + i, "_all_gather_base", seq=4, sizes=[[size]], out_sizes=[[size * RANKS]], state="scheduled")
                 for i, size in enumerate(sizes)]
        end = flight.entry(3 + len(sizes), "coalesced", seq=4, sizes=[], types=[], state=state)
        more = [flight.entry(4 + len(sizes) + i, "all_reduce", seq=5 + i) for i in range(3)] if state == "completed" else []
        return [flight.entry(i, "all_reduce") for i in range(3)] + calls + [end] + more

    def test_coalesced(self):
        def change(jobs):
            for rank in jobs:
                jobs[rank] = self.coalesced([8, 16, 32])
        self.expect({}, change)

    def test_coalesced_in_flight(self):
        def change(jobs):
            for rank in jobs:
                jobs[rank] = self.coalesced([8, 16, 32], "started")
            jobs[1] = jobs[1][:3]
        self.assertIn("ranks 0,2-3 wait in ncclAllGather", self.expect({"DC201": ["0,2-3", "1"]}, change).what("DC201"))

    def test_coalesced_of_another_size(self):
        def change(jobs):
            for rank in jobs:
                jobs[rank] = self.coalesced([8, 16, 32] if rank != 3 else [8, 17, 32])
        self.assertIn("count=17", self.expect({"DC102": ["0-2", "3"]}, change).what("DC102"))

    def test_coalesced_broadcasts_and_messages(self):
        """As PyTorch 2.10 writes an uneven all_gather, and batch_isend_irecv behind a collective: the row is no message, and has the
        collective's number."""
        def change(jobs, sizes=(8, 16, 32), message=64):
            for rank, entries in jobs.items():
                entries += [flight.entry(20 + i, "_broadcast_oop", seq=9, sizes=[[size]], state="scheduled") for i, size in enumerate(sizes)]
                entries.append(flight.entry(23, "ALLGATHER_coalesced", seq=9, sizes=[], types=[]))
                entries.append(flight.entry(24, "all_reduce", seq=10, state="started"))
                to, of = (rank + 1) % RANKS, (rank - 1) % RANKS
                size = message if rank == 2 else 64
                entries += [flight.entry(25 + i, name, seq=10, p2p_seq_id=1, sizes=[[64 if i else size]], state="scheduled")
                            for i, name in enumerate(("send %d->%d" % (rank, to), "recv %d<-%d" % (rank, of)))]
                entries.append(flight.entry(27, "coalesced", seq=10, p2p_seq_id=1, sizes=[], types=[]))
        self.expect({"DC211": ["0-3"]}, change)
        self.assertIn("rank 2 sends 65", self.expect({"DC107": ["2", "3"]}, lambda jobs: change(jobs, message=65)).what("DC107"))
        def waits(jobs):
            change(jobs)
            del jobs[1][-4:]
        self.assertIn("#12 of comm", self.expect({"DC201": ["0,2-3", "1"]}, waits).what("DC201"))        # 10, and two more of 9

    @staticmethod
    def messages_of(jobs, size=64, state="completed"):
        jobs[0].append(flight.entry(OPERATIONS, "send 0->1", seq=OPERATIONS, sizes=[[64]], out_sizes=[[64]], p2p_seq_id=1, state=state))
        jobs[1].append(flight.entry(OPERATIONS, "recv 1<-0", seq=OPERATIONS, sizes=[[size]], out_sizes=[[size]], p2p_seq_id=1, state=state))

    def test_messages(self):
        self.expect({}, self.messages_of)
        self.expect({"DC107": ["0", "1"]}, lambda jobs: self.messages_of(jobs, 32, "started"))

    def test_a_message_that_nobody_receives(self):
        def change(jobs):
            self.messages_of(jobs, state="started")
            jobs[1].pop()
        self.assertEqual(list(self.codes_of(change).codes()), ["DC201"])

    @staticmethod
    def pipeline(jobs, skipped):
        """Each rank passes on what it gets, three times; rank 1 leaves out its last send."""
        for rank, entries in jobs.items():
            messages = [name for turn in range(3) for name, present in (
                ("recv %d<-%d" % (rank, rank - 1), rank > 0),
                ("send %d->%d" % (rank, rank + 1), rank < RANKS - 1 and not (skipped and (rank, turn) == (1, 2)))) if present]
            for number, name in enumerate(messages):
                waits = skipped and rank > 1 and name.startswith("recv") and number == len(messages) - 2 + (rank == 3)
                entries.append(flight.entry(OPERATIONS + number, name, seq=OPERATIONS, p2p_seq_id=number + 1, sizes=[[64]],
                                            state="started" if waits else "completed"))
                if waits:
                    break

    def test_who_holds_a_pipeline_up(self):
        """Rank 3 waits for rank 2, which waits for rank 1: that one is named."""
        self.expect({}, lambda jobs: self.pipeline(jobs, False))
        self.expect({"DC201": ["2", "1"]}, lambda jobs: self.pipeline(jobs, True))

    def test_two_that_send_to_each_other(self):
        def change(jobs, first="send 0->1"):
            for rank, name in ((0, first), (1, "send 1->0")):
                jobs[rank].append(flight.entry(OPERATIONS, name, seq=OPERATIONS, p2p_seq_id=1, sizes=[[64]],
                                               state="started" if first == "send 0->1" else "completed"))
        self.expect({"DC203": ["0", "1"]}, change)
        self.expect({}, lambda jobs: change(jobs, "recv 0<-1"))

    def test_a_cycle_through_process_groups(self):
        """0 waits for 2, 2 for 3, 3 for 1 and 1 for 0, each in another group."""
        stands = {0: ("1", 70), 2: ("4", 71), 3: ("2", 72), 1: ("3", 73)}
        def change(jobs, state="started"):
            for rank, (group, line) in stands.items():
                jobs[rank].append(flight.entry(OPERATIONS, "all_reduce", seq=1, pg_id=int(group), process_group=(group, "undefined"),
                                               state=state, line=line))
        groups = {"1": [0, 2], "2": [1, 3], "3": [0, 1], "4": [2, 3]}
        result = self.expect({"DC202": ["0", "2", "3", "1"]}, change, groups=groups)
        self.assertEqual(result.findings[0]["certainty"], "possible")
        self.assertEqual([side["frames"][0]["line"] for side in result.findings[0]["sides"]], [70, 71, 72, 73])

    @staticmethod
    def step(rank, number, part_first):
        """Ranks 2 and 3 reduce among themselves, before or behind what all do: the names of both in their order."""
        part = [("part", 60, number + 1)] if rank > 1 else []
        whole = [("whole", 70, OPERATIONS + number + 1)]
        return part + whole if part_first else whole + part

    def test_two_groups_in_crossed_order_where_nobody_is_missing(self):
        """Every rank has issued both; rank 3 the other one first."""
        def change(jobs, odd):
            for rank, entries in jobs.items():
                calls = [("0", "default_pg", 20), ("1", "undefined", 30)]
                for group, name, line in reversed(calls) if rank == odd else calls:
                    seq = OPERATIONS + 1 if group == "0" else 1
                    entries.append(flight.entry(len(entries), "all_reduce", seq=seq, pg_id=int(group), line=line,
                                                process_group=(group, name), state="scheduled"))
        result = self.expect({"DC202": ["0-2", "3"]}, lambda jobs: change(jobs, 3), groups={"1": [0, 1, 2, 3]})
        self.assertIn("the other way round", result.what("DC202"))
        self.assertEqual([side["frames"][0]["line"] for side in result.findings[0]["sides"]], [20, 30])
        self.expect({"DC211": ["0-3"]}, lambda jobs: change(jobs, None), groups={"1": [0, 1, 2, 3]})

    def test_one_rank_leaves_a_call_of_a_subgroup_or_of_all_out(self):
        """Either way one waits for the other; which of the two calls was always the first says who is wrong."""
        def change(jobs, part_first, skips, skipped):
            for rank, entries in jobs.items():
                calls = [call for number in range(3) for call in self.step(rank, number, part_first)
                         if (rank, number, call[0]) != (skips, 2, skipped)]
                for name, line, seq in calls:
                    last = (name, seq) == (("part", 3) if rank == 2 else ("whole", OPERATIONS + 3))
                    entries.append(flight.entry(len(entries), "all_reduce", seq=seq, pg_id=int(name == "part"), line=line,
                                                process_group=("1", "undefined") if name == "part" else ("0", "default_pg"),
                                                state="started" if last else "completed"))
                    if last:
                        break
        self.expect({"DC201": ["2", "3"]}, lambda jobs: change(jobs, True, 3, "part"), groups={"1": [2, 3]})
        self.expect({"DC201": ["0-1,3", "2"]}, lambda jobs: change(jobs, False, 2, "whole"), groups={"1": [2, 3]})

    def test_messages_of_a_ring_are_not_matched(self):
        """Which of many equal messages is the first that is left can't be told."""
        def change(jobs):
            self.messages_of(jobs, 32)
            for entry in jobs[0]:
                entry["record_id"] += 100
        self.expect({}, change)

    def test_subgroups_of_one_name(self):
        """Ranks that make groups of their own alone give them one name."""
        folder = pathlib.Path(self.folder) / "groups"
        def of(rank):
            mine = [0, 1] if rank < 2 else [2, 3]
            extra = [flight.entry(20 + i, "all_reduce", seq=1 + i, pg_id=1, process_group=("5", "undefined"), sizes=[[7 if rank < 2 else 9]])
                     for i in range(3 if rank < 2 else 5)]
            return flight.dump(rows() + extra, ranks=RANKS, groups={"5": mine})
        flight.write(folder, {rank: of(rank) for rank in range(RANKS)})
        result = self.importing(str(folder))
        self.assertEqual((result.status, result.codes()), (0, {}))
        self.assertIn("3 communicators", result.out)


class Forms(Dumps):
    @staticmethod
    def faulty(jobs):
        jobs[3][4] = flight.entry(4, "all_reduce", sizes=[[1000]])

    def test_pickled_again_by_python(self):
        for protocol in range(2, 6):
            with self.subTest(protocol):
                again = lambda content: python_pickle.dumps(content, protocol=protocol)
                self.expect({"DC102": ["0-2", "3"]}, self.faulty, to_bytes=again)
                self.expect({}, to_bytes=again)

    def test_shared_frames(self):
        """PyTorch writes a frame that occurs again as a reference."""
        shared = flight.frames(40)
        def change(jobs):
            for rank in jobs:
                jobs[rank] = [flight.entry(i, "all_reduce", frames=list(shared)) for i in range(4)]
            jobs[3][3] = flight.entry(3, "all_reduce", frames=list(shared), sizes=[[2]])
        result = self.expect({"DC102": ["0-2", "3"]}, change, to_bytes=lambda content: flight.pickle(content, shared))
        self.assertEqual([frame["line"] for frame in result.findings[0]["sides"][1]["frames"]], [40, 12])

    def test_json(self):
        def to_json(content):
            content = json.loads(json.dumps(content))
            for entry in content["entries"]:
                del entry["frames"]
                for key in ("time_discovered_started_ns", "time_discovered_completed_ns"):
                    entry[key] = entry[key] or 0
            content["pg_status"] = {pg: {key: str(value) for key, value in status.items()} for pg, status in content["pg_status"].items()}
            return json.dumps(content).encode()
        self.expect({"DC102": ["0-2", "3"]}, self.faulty, to_bytes=to_json)
        self.expect({}, to_bytes=to_json)

    def test_keys_of_hand_made_dumps(self):
        def underscored(content):
            content["entries"] = [{("pg_name_" if key == "process_group" else key + "_"): (value[0] if key == "process_group" else value)
                                   for key, value in entry.items()} for entry in content["entries"]]
            return json.dumps(content).encode()
        self.expect({"DC102": ["0-2", "3"]}, self.faulty, to_bytes=underscored)

    def test_versions(self):
        def older(version):
            def to_bytes(content):
                content["version"] = version
                major, minor = map(int, version.split("."))
                if (major, minor) < (2, 3):
                    del content["pg_status"]
                if (major, minor) < (1, 2):
                    del content["pg_config"]
                elif (major, minor) < (2, 0):
                    content["pg_config"] = {int(key): value for key, value in content["pg_config"].items()}
                for entry in content["entries"]:
                    for key in ("thread_id", "thread_name", *(("collective_seq_id", "p2p_seq_id", "input_dtypes", "output_dtypes") if major < 2 else ())):
                        if key == "collective_seq_id":
                            entry["seq_id"] = entry[key]
                        del entry[key]
                return flight.pickle(content)
            return to_bytes
        for version in ("1.1", "1.2", "2.0", "2.2", "2.3", "2.5", "2.9", "2.10", "2.11"):
            with self.subTest(version):
                self.expect({"DC102": ["0-2", "3"]}, self.faulty, to_bytes=older(version))
                self.expect({}, to_bytes=older(version))

    def test_two_jobs_in_one_folder(self):
        folder = self.job(prefix="old_rank_")
        self.job(self.faulty, prefix="comm_lib_trace_rank_")
        result = self.importing(folder)
        self.assertEqual((result.status, result.codes()), (0, {"DC102": ["0-2", "3"]}))
        self.assertIn("8 processes and 2 communicators", result.out)

    def test_gzipped(self):
        folder = pathlib.Path(self.job(self.faulty))
        for path in list(folder.iterdir()):
            (folder / (path.name + ".gz")).write_bytes(gzip.compress(path.read_bytes()))
            path.unlink()
        self.assertEqual(self.importing(str(folder)).codes(), {"DC102": ["0-2", "3"]})


class Readers(Dumps):
    """The trace is like any other."""

    def test_findings_are_stored(self):
        result = self.codes_of(Forms.faulty)
        self.assertIn("1 error, 0 warnings: ddpcheck report ", result.out)
        with sqlite3.connect("file:%s?mode=ro" % result.database, uri=True) as database:
            stored = database.execute("SELECT code, ranks, place FROM v_finding ORDER BY side").fetchall()
            members = database.execute("SELECT shown_rank, issued, done FROM member_state ORDER BY shown_rank").fetchall()
            mode = database.execute("PRAGMA journal_mode").fetchone()[0]
        step = "all_reduce at /venv/torch/distributed/distributed_c10d.py:2810"
        self.assertEqual(stored, [("DC102", "0-2", step), ("DC102", "3", step)])
        self.assertEqual(members, [(rank, OPERATIONS + 1, OPERATIONS + 1) for rank in range(RANKS)])     # numbers begin with 1
        self.assertEqual(os.listdir(self.folder).count(os.path.basename(result.database)), 1)
        self.assertEqual([name for name in os.listdir(self.folder) if "partial" in name or "-wal" in name], [])
        self.assertIn(mode, ("delete", "wal"))

    def test_the_terminal_shows_it(self):
        def change(jobs):
            for entries in jobs.values():
                entries[-1] = flight.entry(OPERATIONS - 1, "all_reduce", line=99, state="started")
            jobs[2].pop()
        shown = self.ddpcheck("tui", "--once", "--ascii", self.codes_of(change).database)
        self.assertEqual(shown.returncode, 0, shown.stderr)
        self.assertIn("rank 2 never called it", " ".join(shown.stdout.split()))


class NotChecked(Dumps):
    def test_what_a_dump_can_not_show(self):
        result = self.codes_of()
        report = self.ddpcheck("report", "--json", result.database)
        lines = [json.loads(line) for line in report.stdout.splitlines()]
        told = {line["lacks"]: line for line in lines if line["schema"] == "ddpcheck.not-checked/1"}
        self.assertIn("DC301", told["ADDRESSES"]["codes"])
        self.assertEqual((told["REDOP"]["codes"], told["REDOP"]["source"], told["REDOP"]["ranks"]), ("DC104", "Flight Recorder", "0-3"))
        self.assertNotIn("START", told)
        text = self.ddpcheck("report", "-v", result.database).stdout
        self.assertIn("Not checked\n  DC105: Flight Recorder does not say the root of a collective\n", text)
        text = self.ddpcheck("report", result.database).stdout
        self.assertIn("Not checked\n  DC104-DC105, DC109, ", text)
        self.assertEqual(" ".join(text.split()).count("Flight Recorder does not say"), 1, text)

    def test_a_ring_of_one_rank(self):
        def change(jobs):
            for entry in jobs[2]:
                entry["record_id"] += 100
        result = self.codes_of(change)
        text = self.ddpcheck("report", "-v", result.database).stdout
        self.assertIn("DC107-DC108, DC113, DC203: Flight Recorder does not say sends and receives (rank 2)", " ".join(text.split()))


class Damage(Dumps):
    def refused(self, content, words, name="bad_rank_0", status=2):
        """The bad file is named with its place, the good ones are taken, and what they show is found."""
        folder = self.job(Forms.faulty, name="mixed-%d" % self.count)
        bad = self.write(os.path.join(folder, name), content)
        result = self.importing(folder)
        self.assertEqual((result.status, result.codes()), (status, {"DC102": ["0-2", "3"]}), result.err)
        first, *last = result.err.strip().splitlines()
        self.assertTrue(first.startswith("ddpcheck: %s: " % bad) and words in first, first)
        self.assertEqual(last, ["ddpcheck: 1 of 5 files could not be read, or not to the end"] if status else [])

    def test_one_message_each(self):
        whole = flight.pickle(flight.dump(rows()))
        self.refused(b"", "it is empty")
        self.refused(whole[:-1], "it was cut off at byte %d" % (len(whole) - 1))
        self.refused(whole[:1000], "damaged at byte")
        self.refused(flight.pickle({**flight.dump(rows()), "version": "3.0"}), "its version is 3.0, this ddpcheck reads 1.1 to 2.x")
        self.refused(whole, "which rank it is of stands in its name only", "no_number")
        self.refused(flight.pickle(["version"]), "it holds no dictionary")
        self.refused(flight.pickle({"version": "2.10", "entries": 7}), '"entries" is no list')
        self.refused(b"neither this nor that\n", "no format that can be imported", status=0)
        self.refused(json.dumps(flight.dump(rows())).encode()[:900], "it is damaged at line 1")
        self.refused(gzip.compress(whole)[:-20], "after byte", "bad_rank_0.gz")

    def test_entries_that_can_not_be_taken(self):
        content = flight.dump([flight.entry(0, "all_reduce"), flight.entry(1, "teleport")])
        content["entries"].append(7)
        result = self.importing(self.write("odd_rank_0", flight.pickle(content)))
        self.assertEqual(result.status, 2)
        self.assertIn("entry 1 (nccl:teleport) is left out: no such operation is known", result.err)
        self.assertIn("entry 2 is left out: it is no dictionary", result.err)

    def test_many_complaints_are_cut_short(self):
        for rank in range(40):
            self.write("many/odd_rank_%d" % rank, flight.pickle(flight.dump([flight.entry(i, "teleport") for i in range(5)], ranks=40)))
        result = self.importing(os.path.join(self.folder, "many"))
        lines = result.err.splitlines()
        self.assertEqual(result.status, 2)
        self.assertLess(len(lines), 45)
        self.assertIn("ddpcheck: ... and 2 more in that file", lines)
        self.assertEqual(lines[-2:], ["ddpcheck: ... and 170 more, in all files", "ddpcheck: 40 of 40 files could not be read, or not to the end"])

    def test_code_is_not_run(self):
        trap = os.path.join(self.folder, "it-ran")

        class Hostile:
            def __reduce__(self):
                return os.system, ("touch " + trap,)

        for protocol in range(2, 6):
            content = python_pickle.dumps({"version": "2.10", "entries": [Hostile()]}, protocol=protocol)
            self.refused(content, "can run code: no Flight Recorder dump has it; nothing was run")
        self.assertFalse(os.path.exists(trap))

    def test_a_rank_told_twice(self):
        folder = pathlib.Path(self.job(Sequences.messages_of))
        (folder / "nccl_trace_rank_1.gz").write_bytes(gzip.compress((folder / "nccl_trace_rank_1").read_bytes()))
        result = self.importing(str(folder))
        self.assertEqual((result.status, result.codes()), (2, {}))
        self.assertIn("nccl_trace_rank_1.gz: rank 1 of this job was read already, from %s/nccl_trace_rank_1\n" % folder, result.err)

    def test_nothing_but_damage(self):
        database = os.path.join(self.folder, "none.db")
        done = self.ddpcheck("import", "-o", database, self.write("x_rank_0", b"\x80\x02"))
        self.assertEqual(done.returncode, 2)
        self.assertIn("nothing was imported", done.stderr)
        self.assertFalse(os.path.exists(database))

    def test_usage(self):
        folder = self.job()
        taken = self.write("taken.db", b"")
        for arguments, words in ((("-o", "x.db"), "name files or directories"),
                                 (("-o", taken, folder), "is there already"), (("-o", "x.db", "--format", "flight", folder), "no format 'flight'"),
                                 (("-o", "nowhere/x.db", folder), "nowhere")):
            done = self.ddpcheck("import", *arguments)
            self.assertEqual(done.returncode, 2)
            self.assertIn(words, done.stderr)


class SeveralNodes(Dumps):
    def faulty(self):
        jobs = {rank: rows() for rank in range(RANKS)}
        jobs[2][5] = flight.entry(5, "all_reduce", sizes=[[999]])
        return {rank: flight.pickle(flight.dump(entries, ranks=RANKS)) for rank, entries in jobs.items()}

    NAMES = ("nccl_trace_rank_container-node{node:02}_{rank}", "host{node}.pci3_rank_{rank}", "node{node}/comm_lib_trace_rank_{rank}",
             "10.0.0.{node}_rank_{rank}.pickle", "nccl_trace_rank_10.0.0.{node}_{rank}", "rank{rank}_host{node}", "trace_rank-{rank:05}_1790000000",
             "rank_{rank}/nccl_trace.pickle", "Rank{rank}-of-4_attempt_1.pkl")

    def test_names_by_node(self):
        """Nodes put their names around the rank, or have a directory each: it is one job all the same."""
        for number, names in enumerate(self.NAMES):
            with self.subTest(names):
                folder = "names-%d/" % number
                for rank, content in self.faulty().items():
                    self.write(folder + names.format(node=rank // 2, rank=rank), content)
                result = self.importing(os.path.join(self.folder, folder))
                self.assertEqual((result.status, result.codes()), (0, {"DC102": ["0-1,3", "2"]}), result.err)

    def test_attempts_of_one_job(self):
        """Two files of a rank are of two jobs, whatever the number behind the rank counts."""
        for rank, content in self.faulty().items():
            for attempt in range(2):
                self.write("attempts/rank_%d_attempt_%d" % (rank, attempt), content if attempt else flight.pickle(flight.dump(rows(), ranks=RANKS)))
        result = self.importing(os.path.join(self.folder, "attempts"))
        self.assertEqual((result.status, result.codes()), (0, {"DC102": ["0-1,3", "2"]}), result.err)
        self.assertIn("8 processes and 2 communicators", result.out)

    def test_a_set_without_the_culprit(self):
        """The others wait, in what, and for whom."""
        for rank in (0, 1, 3):
            entries = rows() + [flight.entry(OPERATIONS, "all_reduce", state="started")]
            self.write("dumps/rank_%d" % rank, flight.pickle(flight.dump(entries, ranks=RANKS)))
        result = self.importing(os.path.join(self.folder, "dumps"))
        self.assertEqual((result.codes(), result.severity("DC902")), ({"DC902": ["2"]}, "error"))
        self.assertIn("nothing of 2: what they did is not checked; all ranks that have a file wait in "
                      "ncclAllReduce(count=1024, float32) #9", result.what("DC902"))

    def test_a_set_without_the_culprit_in_several_groups(self):
        """It is named once, by its rank in the job, with the group in which others wait for it."""
        pairs = {str(1 + first): [first, first + 2] for first in range(2)}
        for rank in (0, 1, 2):
            name = str(1 + rank % 2)
            entries = rows() + [flight.entry(OPERATIONS, "all_reduce", seq=1, pg_id=1, process_group=(name, "replicas"),
                                             state="started" if rank == 1 else "completed")]
            dump = flight.dump(entries, ranks=RANKS, groups={name: pairs[name]})
            self.write("dumps/rank_%d" % rank, flight.pickle(dump))
        result = self.importing(os.path.join(self.folder, "dumps"))
        self.assertEqual(([finding["code"] for finding in result.findings], result.codes(), result.severity("DC902")),
                         (["DC902"], {"DC902": ["3"]}, "error"))
        self.assertIn("has 2 ranks, and this trace has nothing of 3:", result.what("DC902"))

    def test_a_set_without_one_file_that_says_why(self):
        """A mismatch explains why the others wait: the rank without a file is no error beside it."""
        for rank in (0, 1, 3):
            entries = rows() + [flight.entry(OPERATIONS, "all_reduce", state="started", sizes=[[1000 if rank == 1 else 1024]])]
            self.write("dumps/rank_%d" % rank, flight.pickle(flight.dump(entries, ranks=RANKS)))
        result = self.importing(os.path.join(self.folder, "dumps"))
        self.assertEqual((result.codes(), result.severity("DC902")), ({"DC102": ["0,3", "1"], "DC902": ["2"]}, "note"))

    def test_an_empty_dump_is_said_to_be_empty(self):
        for rank in range(2):
            self.write("dumps/rank_%d" % rank, flight.pickle(flight.dump([])))
        result = self.importing(os.path.join(self.folder, "dumps"))
        self.assertEqual(result.status, 2)
        self.assertIn("it holds no operation: Flight Recorder was off", result.err)

    def test_a_rank_with_no_active_operation(self):
        """TORCH_INCLUDE_ONLY_ACTIVE: its dump has no entries, and pg_status says how far it got."""
        for rank in range(2):
            dump = flight.dump([] if rank else [flight.entry(OPERATIONS, "all_reduce", state="started")])
            dump["pg_status"] = {"0": {"last_enqueued_collective": OPERATIONS - rank, "last_started_collective": OPERATIONS - rank,
                                       "last_completed_collective": OPERATIONS - 1}}
            self.write("dumps/rank_%d" % rank, flight.pickle(dump))
        result = self.importing(os.path.join(self.folder, "dumps"))
        self.assertNotIn("it holds no operation", result.err)
        self.assertEqual(result.codes(), {"DC201": ["0", "1"]})
        self.assertNotIn("days", self.ddpcheck("report", result.database).stdout)    # it has no time of its own

    def test_backend_xccl(self):
        jobs = {rank: [{**row, "profiling_name": "xccl:all_reduce"} for row in rows()] for rank in range(RANKS)}
        jobs[1][4]["input_sizes"] = [[7]]
        for rank, entries in jobs.items():
            self.write("xpu/rank_%d" % rank, flight.pickle(flight.dump(entries, ranks=RANKS)))
        self.assertEqual(self.importing(os.path.join(self.folder, "xpu")).codes(), {"DC102": ["0,2-3", "1"]})


class Torchcomms(Dumps):
    """Its numbers count the calls of all communicators of a process; groups are described by their backend."""
    def dumps(self, skip=None, first=0, prefix="comm_lib_trace_rank_", to_bytes=lambda dump: json.dumps(dump).encode()):
        for rank in range(RANKS):
            rows = []
            for step in range(6):
                if rank < 2:
                    rows.append(("half", step, "reduce_scatter_single"))
                if (rank, step) != (skip, 5):
                    rows.append(("world", step, "all_reduce"))
            entries = [flight.entry(number, name, seq=number, process_group=[group, "nccl"], pg_id=int(group == "half"), op_id=number,
                                    state="completed" if step < 5 or skip is None else "scheduled", is_p2p=False,
                                    out_sizes=[[512 if group == "half" else 1024]])
                       for number, (group, step, name) in enumerate(rows)][first:]
            dump = flight.dump(entries, ranks=RANKS)
            dump["pg_config"] = {name: {"name": name, "desc": "nccl", "ranks": ranks}
                                 for name, ranks in (("world", "[0,1,2,3]"), ("half", "[0,1]"))[:1 + (rank < 2)]}
            dump["pg_status"] = {}
            self.write("comms/%s%d" % (prefix, rank), to_bytes(dump))
        return self.importing(os.path.join(self.folder, "comms"))

    def test_clean(self):
        result = self.dumps()
        self.assertEqual((result.status, result.codes()), (0, {}))

    def test_a_missing_rank(self):
        for to_bytes in (lambda dump: json.dumps(dump).encode(), flight.pickle):
            self.assertEqual(self.dumps(skip=3, to_bytes=to_bytes).codes(), {"DC201": ["0-2", "3"]})

    def test_a_ring_that_has_lost_its_beginning(self):
        result = self.dumps(skip=3, first=2)
        self.assertEqual(result.status, 2)
        self.assertIn("torchcomms' numbers count the calls of all communicators together", result.err)
        self.assertEqual([ranks for ranks in result.codes()["DC201"] if set(ranks) & set("01")], [])


class Diverged(Dumps):
    """Calls that look the same to NCCL at different lines: one rank has left one out before the finding."""
    @staticmethod
    def flags(jobs, lines, waits):
        """Adds reductions of one element, lines(rank) at which each rank makes them; the last of `waits` ranks is in flight."""
        for rank, entries in jobs.items():
            for line in lines(rank):
                entries.append(flight.entry(len(entries), "all_reduce", sizes=[[1]], line=line))
            if rank in waits:
                entries[-1] = flight.entry(len(entries) - 1, "all_reduce", sizes=[[1]], line=line, state="started")

    def origin(self, lines, waits=(0, 1, 3)):
        result = self.expect({"DC201": ["0-1,3", "2"]}, lambda jobs: self.flags(jobs, lines, waits))
        return (result.findings[0]["origin"] or {"what": ""})["what"]

    def test_a_call_that_was_left_out(self):
        said = self.origin(lambda rank: [70] if rank == 2 else [60, 70])
        self.assertEqual(said, "possibly rank 2 left out one call (or the others made one more) at #9: it was at step() /job/train.py:70, "
                         "the others at step() /job/train.py:60; since then it is one call ahead")

    def test_the_last_call_was_left_out(self):
        self.assertEqual("", self.origin(lambda rank: [60] if rank == 2 else [60, 70]))

    def test_ranks_that_call_at_lines_of_their_own(self):
        """As the branches of `if rank == 0` do, each time."""
        own = [50, 40] * 2 + [50]
        odd = [51, 40] * 2 + [51]
        self.assertEqual("", self.origin(lambda rank: odd if rank == 2 else own + [70]))


class Coalesced(Dumps):
    def of(self, calls):
        """calls(rank): the rows of one coalesced operation, before the row that closes it."""
        def change(jobs):
            for rank, entries in jobs.items():
                made = calls(rank)
                entries[:] = entries[:2] + [{**row, "collective_seq_id": 3} for row in made]
                entries += [flight.entry(2 + len(made), "coalesced", seq=3, sizes=[], types=[])]
        return self.codes_of(change)

    def test_other_sizes(self):
        result = self.of(lambda rank: [flight.entry(2, "all_reduce"), flight.entry(3, "all_reduce", sizes=[[210 if rank == 1 else 200]])])
        self.assertEqual(result.codes(), {"DC102": ["0,2-3", "1"]})

    def test_all_reduce_coalesced(self):
        def change(jobs):
            for rank, entries in jobs.items():
                entries[5] = flight.entry(5, "allreduce_coalesced", sizes=[[8], [210 if rank == 1 else 200]], types=["Float", "Float"])
        self.assertEqual(self.codes_of(change).codes(), {"DC102": ["0,2-3", "1"]})


if __name__ == "__main__":
    main()
