"""Logs as people have them: a file per rank, a pipe, the first line of interest late in the file."""

import gzip
import os
import shutil
import subprocess

from importer import Importer, main


def timed_out(rank, op="ALLREDUCE", count=4096, seq=808, enqueued=811, completed=807, out=None):
    head = "[rank%d]:[E626 06:24:44.903881%03d ProcessGroupNCCL.cpp:616] " % (rank, rank)
    return [head + "[Rank %d] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=%d, OpType=%s, NumelIn=%d, NumelOut=%d, "
            "Timeout(ms)=600000) ran for 600020 milliseconds before timing out." % (rank, seq, op, count, out or count),
            head + "[PG ID 0 PG GUID 0(default_pg) Rank %d] Exception (either an error or timeout) detected by watchdog at work: %d, "
            "last enqueued NCCL work: %d, last completed NCCL work: %d." % (rank, seq, enqueued, completed)]


class OneFileEach(Importer):
    def importing_each(self, ranks, name="job.%d.log"):
        paths = [self.write(name % rank, lines) for rank, lines in ranks.items()]
        return self.importing(*paths)

    def test_another_operation(self):
        """What one file shows, several show: whose lines come first does not matter."""
        for other in range(4):
            lines = {rank: timed_out(rank, op="BROADCAST" if rank == other else "ALLREDUCE") for rank in range(4)}
            whole = self.importing(self.write("whole.log", sum(lines.values(), []))).codes()
            self.assertEqual(list(whole), ["DC101"])
            self.assertEqual(self.importing_each(lines).codes(), whole)

    def test_a_local_rank_in_the_name(self):
        """torchrun names a node's files by local rank: what the lines begin with is the rank in the job."""
        raised = ["Traceback (most recent call last):", '  File "/home/me/train.py", line 7, in step', "ValueError: bad batch"]
        for head, rank in ((["[rank10]:[W626 06:24:44.1 ProcessGroupNCCL.cpp:1] hello"], "10"), ([], "2"),
                           (["[rank10]: hello", "[rank11]: hello"], "none")):
            result = self.importing(self.write("node1/attempt_0/2/stderr.log", head + raised))
            self.assertEqual(result.codes(), {"DC904": [rank]})

    def test_another_count(self):
        for other in range(4):
            lines = {rank: timed_out(rank, count=64 if rank == other else 4096) for rank in range(4)}
            self.assertEqual(list(self.importing_each(lines).codes()), ["DC102"])

    def test_nccls_lines_before_commids(self):
        """The largest communicator of all files is that of all ranks."""
        def line(rank, message):
            return "gpu1:%d:%d [%d] NCCL INFO %s" % (100 + rank, 100 + rank, rank, message)

        def lines(rank):
            pointer = "0x55f0%x00" % rank
            return [line(rank, "comm %s rank %d nranks 2 cudaDev %d busId %x000 - Init COMPLETE" % (pointer, rank, rank, rank)),
                    line(rank, "AllReduce: opCount 0 sendbuff 0x7f0 recvbuff 0x7f0 count %d datatype 7 op 0 root 0 comm %s [nranks=2] "
                         "stream 0x550" % (8 + rank, pointer))]
        result = self.importing_each({rank: lines(rank) for rank in range(2)})
        self.assertEqual((result.status, list(result.codes())), (0, ["DC102"]), result.err)


class Apart(Importer):
    """What is not about one hang, or one rank, is not compared."""

    def at(self, ranks, time, **work):
        return [line.replace("E626 06:24:44", time) for rank in ranks for line in timed_out(rank, **work)]

    def hangs(self, *paths):
        """The operations of the errors, each with the ranks that wait in it, and the whole text."""
        result = self.importing(*paths)
        text = " ".join(self.ddpcheck("report", result.database).stdout.split())
        return sorted((f["code"], [side["ranks"] for side in f["sides"]]) for f in result.findings if f["severity"] != "note"), text

    def test_jobs_of_two_months(self):
        found, text = self.hangs(self.write("a.log", self.at((0, 1, 2), "E412 03:04:01")),
                                 self.write("b.log", self.at((1, 2, 3), "E1103 09:04:01", op="BROADCAST", seq=77, enqueued=77, completed=76)))
        self.assertEqual(found, [("DC904", ["0-2"]), ("DC904", ["1-3"])])
        self.assertEqual(text.count("for 600 s"), 2)

    def test_a_restart_in_one_log(self):
        """The same ranks, group and numbers, 100 min later; and within minutes, which is one hang."""
        first = self.at((0, 1, 2, 3), "E1103 09:04:01")
        for time, codes in (("E1103 10:44:01", ["DC904", "DC904"]), ("E1103 09:14:01", ["DC101"])):
            found, _ = self.hangs(self.write("job.log", first[:-2] + self.at((3,), time, op="BROADCAST")))
            self.assertEqual([code for code, _ in found], codes, found)

    def test_attempts(self):
        """torchelastic's attempts are apart however close they are."""
        for rank in range(4):
            self.write("run/attempt_0/%d/stderr.log" % rank, self.at((rank,), "E1103 09:04:01"))
            self.write("run/attempt_1/%d/stderr.log" % rank, self.at((rank,), "E1103 09:24:01", op="BROADCAST") if rank != 1 else ["hello"])
        found, _ = self.hangs(os.path.join(self.folder, "run"))
        self.assertEqual(found, [("DC904", ["0,2-3"]), ("DC904", ["0-3"])])

    def test_an_exception_of_another_day(self):
        raised = ["[rank3]: Traceback (most recent call last):", '[rank3]:   File "/home/me/train.py", line 7, in step', "[rank3]: ValueError: bad batch"]
        waits = [line.replace("ALLREDUCE, NumelIn=4096, NumelOut=4096", "_ALLGATHER_BASE, NumelIn=4096, NumelOut=16384")
                 for line in self.at((0, 1, 2), "E1103 09:04:01")]
        for time, is_cause in (("E1103 09:02:00", True), ("E1101 09:02:00", False)):
            before = ["[rank3]:[W%s.1 ProcessGroupNCCL.cpp:1] hello" % time[1:]] + raised
            _, text = self.hangs(self.write("rank.log", before), self.write("job.log", waits))
            self.assertEqual("rank 3 did not come: rank 3 raised ValueError" in text, is_cause, text)

    def test_local_ranks_of_two_nodes(self):
        raised = ["Traceback (most recent call last):", '  File "/home/me/train.py", line 7, in step', "ValueError: bad batch"]
        for node in (0, 1):
            for rank in range(4):
                self.write("node%d/attempt_0/%d/stderr.log" % (node, rank), raised if rank == 2 else ["hello"])
        found, text = self.hangs(os.path.join(self.folder))
        self.assertEqual(found, [("DC904", ["none"]), ("DC904", ["none"])])
        for node in (0, 1):
            self.assertIn("node%d/attempt_0/2/stderr.log: local rank 2 raised ValueError" % node, text)

    def test_a_sibling_says_that_ranks_are_local(self):
        raised = ["Traceback (most recent call last):", '  File "/home/me/train.py", line 7, in step', "ValueError: bad batch"]
        self.write("job/attempt_0/0/stderr.log", ["[rank8]:[W1103 09:04:01.1 ProcessGroupNCCL.cpp:1] hello"])
        self.write("job/attempt_0/2/stderr.log", raised)
        found, text = self.hangs(os.path.join(self.folder, "job"))
        self.assertEqual(found, [("DC904", ["none"])])
        self.assertIn("local rank 2 raised", text)

    def test_no_day_is_invented(self):
        undated = [line.replace("E626 06:24:44.903881%03d " % rank, "E ") for rank in (0, 1, 2) for line in timed_out(rank)]
        result = self.importing(self.write("job.log", undated))
        text = self.ddpcheck("report", result.database).stdout
        self.assertIn("recorded over 10 min 1 s on an unknown day.", text)
        self.assertNotRegex(text, r"[0-9]{4}-[0-9]{2}-[0-9]{2}|[0-9]{2}:[0-9]{2}:[0-9]{2}")
        self.assertEqual([finding["first"] for finding in result.findings], [None])


class OddLines(Importer):
    def test_a_list_with_nothing_before_it(self):
        """AddressSanitizer sees what is read before a line."""
        self.assertEqual(self.importing(self.write("job.log", ["ranks: 3]", *timed_out(0), "ready ranks: 1]"])).codes(), {"DC904": ["0"]})


class Watchdog(Importer):
    """A watchdog that ended the job is a finding, whatever else is known."""

    def of(self, *ranks, **what):
        return self.importing(self.write("job.log", sum((timed_out(rank, **what) for rank in ranks), [])))

    def test_silent_ranks(self):
        gather = {"op": "_ALLGATHER_BASE", "count": 100, "out": 400}
        result = self.of(0, 1, 3, **gather)
        self.assertEqual(result.codes(), {"DC904": ["0-1,3"], "DC902": ["2"]})
        self.assertIn("ranks 0-1,3 waited in _ALLGATHER_BASE (SeqNum=808, 100 -> 400 elements) of process group 0(default_pg) for 600 s; "
                      "of rank 2 of its 4 ranks nothing is heard", result.what("DC904"))
        self.assertEqual(result.severity("DC904"), "error")

    def test_all_are_there(self):
        result = self.of(0, 1, 2, 3, op="_REDUCE_SCATTER_BASE", count=400, out=100)
        self.assertEqual(result.codes(), {"DC211": ["0-3"]})
        self.assertIn("all 4 ranks called", result.what("DC211"))

    def test_a_size_is_never_guessed(self):
        result = self.of(0, 1, 2)
        self.assertEqual(result.codes(), {"DC904": ["0-2"]})
        self.assertIn("how many ranks it has is not in the log", result.what("DC904"))

    def test_operations_without_a_kind(self):
        for op in "SEND", "RECV", "COALESCED", "UNKNOWN", "ALLTOALL", "ALLTOALL_BASE", "GATHER", "SCATTER", "BARRIER":
            self.assertIn("waited in %s (SeqNum=808" % op, self.of(0, 1, op=op).what("DC904"))

    def test_several_groups_of_one_name_are_not_compared(self):
        """Ranks 0 and 4 are both rank 0 of their own process group 5."""
        lines = [line.replace("PG ID 0 PG GUID 0(default_pg)", "PG 5").replace("Rank 4]", "Rank 0]")
                 for rank in (0, 4) for line in timed_out(rank, seq=8 + rank, enqueued=20 * (rank + 1))]
        result = self.importing(self.write("job.log", lines))
        self.assertEqual(list(result.codes()), ["DC904"])
        self.assertIn("several groups have this name", result.what("DC904"))

    def test_lines_without_a_group(self):
        """Other numbers may be other groups; the same number is the same work as that of a named one."""
        lines = [timed_out(rank, seq=seq)[0] for rank, seq in ((0, 96120), (7, 64088))]
        self.assertEqual(list(self.importing(self.write("job.log", lines)).codes()), ["DC904"])
        lines = timed_out(0, op="BROADCAST") + timed_out(1)[:1] + timed_out(2)
        self.assertEqual(self.importing(self.write("job.log", lines)).codes(), {"DC101": ["1-2", "0"]})
        lines = timed_out(0) + timed_out(1)[:1] + timed_out(2)
        self.assertEqual(self.importing(self.write("job.log", lines)).codes(), {"DC904": ["0-2"]})

    def test_missing_ranks_may_be_inside_the_call(self):
        lines = timed_out(0) + timed_out(1) + [timed_out(2, seq=-1, enqueued=807)[1].replace("detected by watchdog at work: -1, ", "")]
        result = self.importing(self.write("job.log", lines))
        self.assertEqual(result.codes(), {"DC201": ["0-1", "2"]})
        self.assertIn("rank 2 did not call it, or did not return from it", result.what("DC201"))


class Inputs(Importer):
    lines = sum((timed_out(rank, op="BROADCAST" if rank == 3 else "ALLREDUCE") for rank in range(4)), [])

    def test_hours_of_training_first(self):
        """The first line of interest may come behind any amount of other text."""
        path = self.write("long.log", ["step %d: loss 0.3" % step for step in range(400_000)] + self.lines)
        self.assertEqual(list(self.importing(path).codes()), ["DC101"])

    def test_pipes(self):
        text = "".join(line + "\n" for line in self.lines).encode()
        for name, content in ("plain", text), ("packed", gzip.compress(text)):
            database = os.path.join(self.folder, name + ".db")
            done = subprocess.run([os.path.join(main.build, "bin", "ddpcheck"), "import", "-o", database, "-"], input=content,
                                  capture_output=True, timeout=100, check=False)
            self.assertEqual((done.returncode, done.stderr), (0, b""))
            self.assertIn('"DC101"', self.ddpcheck("report", "--json", database).stdout)
        fifo = os.path.join(self.folder, "job.pipe")
        os.mkfifo(fifo)
        with subprocess.Popen(["sh", "-c", 'cat "$0" >"$1"', self.write("job.log", self.lines), fifo]) as writer:
            self.assertEqual(list(self.importing(fifo).codes()), ["DC101"])
            self.assertEqual(writer.wait(100), 0)

    def test_a_pipe_in_a_directory_is_not_opened(self):
        self.write("logs/job.log", self.lines)
        os.mkfifo(os.path.join(self.folder, "logs", "left.pipe"))
        result = self.importing(os.path.join(self.folder, "logs"))
        self.assertEqual((result.status, list(result.codes())), (0, ["DC101"]))

    def test_zstd(self):
        """Alone, in several frames, and cut: what precedes the cut is read, and the cut is said."""
        if not shutil.which("zstd"):
            self.skipTest("no zstd program")
        plain = self.write("job.log", self.lines)
        packed = subprocess.run(["zstd", "-qc", plain], capture_output=True, check=True).stdout
        self.assertEqual(list(self.importing(self.write("job.log.zst", packed)).codes()), ["DC101"])
        with open(plain, "rb") as file:
            halves = file.read().splitlines(keepends=True)
        frames = b"".join(subprocess.run(["zstd", "-qc"], input=b"".join(part), capture_output=True, check=True).stdout
                          for part in (halves[:3], halves[3:]))
        database = os.path.join(self.folder, "stdin.db")
        done = subprocess.run([os.path.join(main.build, "bin", "ddpcheck"), "import", "-q", "-o", database, "-"], input=frames,
                              capture_output=True, timeout=100, check=False)
        self.assertEqual((done.returncode, done.stderr), (0, b""))
        self.assertIn('"DC101"', self.ddpcheck("report", "--json", database).stdout)
        cut = self.importing(self.write("cut.zst", packed[:len(packed) - 8]))
        self.assertEqual(cut.status, 2)
        self.assertIn("cut.zst", cut.err)

    def test_a_log_that_was_rotated(self):
        """The oldest part has the highest number and is packed; each part alone says too little."""
        parts = [self.lines[:3], self.lines[3:5], self.lines[5:]]
        self.write("logs/job.log.2.gz", gzip.compress("".join(line + "\n" for line in parts[0]).encode()))
        self.write("logs/job.log.1", parts[1])
        self.write("logs/job.log", parts[2])
        result = self.importing(os.path.join(self.folder, "logs"))
        self.assertEqual((result.status, list(result.codes())), (0, ["DC101"]))

    def test_a_log_beside_dumps(self):
        """What a job's folder holds: each source speaks for itself, and what is none of them is said."""
        shutil.copytree(self.data("flight_recorder/nccl-skip"), os.path.join(self.folder, "job"))
        self.write("job/train.log", self.lines)
        self.write("job/model.bin", bytes(range(256)) * 40)
        result = self.importing(os.path.join(self.folder, "job"))
        self.assertEqual(result.status, 0)
        self.assertIn("model.bin: it is in no format", result.err)
        sides = sorted([side["ranks"] for side in finding["sides"]] for finding in result.findings if finding["code"] == "DC101")
        self.assertEqual(sides, [["0-1", "2"], ["0-2", "3"]])

    def test_reports_of_ras_in_a_row(self):
        """Three equal ones: it stands still. Counts that rise: it runs."""
        def report(first, second):
            return ["Communicators... (0.00s)", "=============", "", "Group     Comms     Nodes     Ranks     Ranks     Ranks    Status  Errors",
                    "    #  in group  per comm  per node  per comm  in group", "    0         1         1         4         4         4   RUNNING  MISMATCH",
                    "", "Warnings", "========", "", "#0-0 (27a079b828ff1a75) MISMATCH", "  Communicator ranks have different AllReduce operation counts",
                    "  3 ranks have launched up to operation %d" % first,
                    "  Rank 2 has launched up to operation %d -- GPU 2 managed by process 1650386 on node node1" % second, ""]
        result = self.importing(self.write("ras.txt", 3 * report(64, 60)))
        self.assertEqual(result.codes(), {"DC904": ["none"], "DC905": ["2", "0-1,3"]})
        self.assertIn("3 reports in a row have the same counts", result.what("DC904"))
        rising = self.importing(self.write("ras.txt", report(64, 60) + report(80, 79) + report(99, 98)))
        self.assertEqual(rising.codes(), {"DC905": ["2", "0-1,3"]})
        self.assertIn("98", rising.what("DC905"))

    def test_a_tail(self):
        """tail -c cuts the first line."""
        text = "\n".join(["x" * 50] + self.lines) + "\n"
        self.assertEqual(list(self.importing(self.write("tail.log", text[20:])).codes()), ["DC101"])


if __name__ == "__main__":
    main()
