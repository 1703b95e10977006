"""Logs of NCCL_DEBUG and of PyTorch's watchdog: what they say of the ranks, whatever launcher, version and damage."""

import gzip
import os
import random
import re
import unittest

from importer import Importer, main

ID = "0x5ae77eb5ea4ec1ee"


def info(rank, message, level="INFO", place=""):
    return "gpu1:%d:%d [%d] %sNCCL %s %s" % (100 + rank, 100 + rank, rank, place, level, message)


def init(rank, ranks, identity=ID, comm=None, begin=True):
    """Init START and COMPLETE as NCCL 2.18 and later; identity None: as before 2.16."""
    what = "comm %s rank %d nranks %d cudaDev %d busId %x000" % (comm or pointer(rank), rank, ranks, rank, rank + 1)
    if not identity:
        return [info(rank, what + " - Init COMPLETE")]
    return [info(rank, "%s commId %s - Init %s" % (what, identity, word)) for word in ("START", "COMPLETE")[not begin:]]


def pointer(rank, more=0):
    return "0x55f0%x%x0" % (rank, more)


def operation(rank, number, count=1024, name="AllReduce", comm=None, ranks=4, root=0, datatype=7, op=0):
    return info(rank, "%s: opCount %x sendbuff 0x7f%d000000 recvbuff 0x7f%d000000 count %d datatype %d op %d root %d comm %s [nranks=%d] "
                "stream 0x55%d0" % (name, number, rank, rank, count, datatype, op, root, comm or pointer(rank), ranks, rank))


def job(ranks=4, steps=6, missing=None, call=operation, identity=ID):
    """All ranks call `steps` times, in turn, but for the rank `missing`, which leaves out the last."""
    lines = [line for rank in range(ranks) for line in init(rank, ranks, identity)]
    return lines + [call(rank, step, ranks=ranks) for step in range(steps) for rank in range(ranks)
                    if not (rank == missing and step == steps - 1)]


class Samples(Importer):
    def expect(self, name, codes):
        result = self.importing(self.data(name))
        self.assertEqual((result.status, result.err, result.codes()), (0, "", codes))
        return result

    def test_clean_logs(self):
        self.expect("nccl_log/clean.log", {})

    def test_a_rank_that_is_behind(self):
        result = self.expect("nccl_log/missing.log", {"DC905": ["3", "0-2"]})
        self.assertIn("next it has to call ncclAllReduce(count=1024, float32, sum) #5", result.what("DC905"))

    def test_times_tell_that_it_hangs(self):
        result = self.expect("nccl_log/timed.log", {"DC201": ["0,2-3", "1"]})
        self.assertIn("ncclAllReduce(count=1024, bfloat16, avg) #3 of comm fa35 (4 ranks); rank 1 never called it", result.what("DC201"))
        self.assertEqual(result.seconds("DC201"), 60.0)

    def test_other_counts(self):
        result = self.importing(self.data("nccl_log/count.log"))
        self.assertEqual(result.codes(), {"DC102": ["0-1,3", "2"]})

    def test_watchdog_of_a_missing_rank(self):
        result = self.expect("watchdog/missing.log", {"DC201": ["0-2", "3"]})
        self.assertIn("wait in ncclAllReduce(count=9801523) #807", result.what("DC201"))

    def test_watchdog_of_pytorch_2_10(self):
        """Real ones: rank 2 leaves out an all_reduce, or calls all_gather instead."""
        result = self.expect("watchdog/torch-2.10-skip.log", {"DC201": ["0-1", "2"]})
        self.assertIn("ranks 0-1 wait in ncclAllReduce(count=1000) #5 of comm be0b; rank 2 did not call it, or did not return from it", result.what("DC201"))
        self.assertEqual(result.seconds("DC201"), 71.5)
        self.expect("watchdog/torch-2.10-other.log", {"DC101": ["0-1", "2"]})

    def test_watchdog_of_a_mismatch(self):
        self.expect("watchdog/mismatch.log", {"DC101": ["0", "1"]})


class Logs(Importer):
    def of(self, lines, name="job.log"):
        return self.importing(self.write(name, lines))

    def test_launchers(self):
        """The same job behind each launcher's prefix."""
        for prefix in "[rank%d]: ", "[default%d]:", "[1,%d]<stdout>:", "%d: ", "(RayTrainWorker pid=615, ip=10.72.7.%d) ", \
                "2026-11-21T14:03:22.5Z [rank%d]: ":
            with self.subTest(prefix):
                lines = job(missing=2)
                result = self.of([prefix % (int(line.split(":")[1]) - 100) + line for line in lines])
                self.assertEqual((result.status, result.codes()), (0, {"DC905": ["2", "0-1,3"]}), result.err)

    def test_a_file_per_process(self):
        """NCCL_DEBUG_FILE=job.%h.%p.log; one is gzipped, another file is no log."""
        lines = job(missing=1)
        for rank in range(4):
            own = [line for line in lines if line.startswith("gpu1:%d:" % (100 + rank))]
            text = "".join(line + "\n" for line in own).encode()
            self.write("logs/job.gpu1.%d.log" % (100 + rank), gzip.compress(text) if rank == 3 else text)
        result = self.importing(os.path.join(self.folder, "logs"))
        self.assertEqual((result.status, result.codes()), (0, {"DC905": ["1", "0,2-3"]}), result.err)
        self.write("logs/readme.txt", ["nothing to see"])
        result = self.importing(os.path.join(self.folder, "logs"))
        self.assertIn("readme.txt", result.err)
        self.assertEqual(result.codes(), {"DC905": ["1", "0,2-3"]})

    def test_lines_without_times(self):
        """No date is made up, and what RAS says of its own port is a note."""
        warning = info(1, "Call to bind failed: Address already in use", "WARN", "rasSocket.cc:123 ")
        result = self.of(job(missing=2) + [warning])
        self.assertEqual(result.severity("DC904"), "note")
        report = self.ddpcheck("report", result.database)
        self.assertIn("4 processes, recorded at an unknown time.", report.stdout)
        for form in "jsonl", "sarif", "html", "csv":
            self.assertNotIn("1970", self.ddpcheck("export", "--format", form, result.database).stdout, form)

    def test_text_of_another_encoding(self):
        path = self.write("utf16.log", "".join(line + "\r\n" for line in job()).encode("utf-16"))
        refused = self.ddpcheck("import", "-o", path + ".db", path)
        self.assertEqual(refused.returncode, 2)
        self.assertIn("utf16.log: it is UTF-16 text; convert it first: iconv -f UTF-16 -t UTF-8", refused.stderr)

    def test_lines_run_together(self):
        """What ran into another line does no harm but that a call may be lost, which is said."""
        lines = job(steps=8)
        together = lines[:20] + [lines[20] + lines[21]] + lines[22:]
        result = self.of(together)
        self.assertEqual((result.status, result.err, result.codes()), (0, "", {}))

    def test_a_cut_line_is_said(self):
        lines = job(steps=3)
        result = self.of(lines[:-1] + [lines[-1][:60]])
        self.assertEqual(result.status, 2)
        self.assertIn("job.log: 1 lines of NCCL's had lost their end", result.err)

    def test_what_ray_left_out_is_said(self):
        lines = ["(RayTrainWorker pid=%d, ip=10.72.7.6) %s" % (100 + rank, line) for rank, line in enumerate(job(ranks=1, steps=3))]
        result = self.of(lines[:-1] + [lines[-1] + " [repeated 3x across cluster]"])
        self.assertEqual(result.status, 2)
        self.assertIn("RAY_DEDUP_LOGS=0", result.err)

    def test_split_communicators(self):
        """Children of one split with two colours are two communicators."""
        lines = job(steps=1)
        for rank in range(4):
            for word in ("START", "COMPLETE"):
                lines.append(info(rank, "ncclCommSplit comm %s rank %d nranks 2 cudaDev %d nvmlDev %d busId 1000 parent %s splitCount 1 "
                                  "color %d key %d%s Init %s" % (pointer(rank, 1), rank // 2, rank, rank, pointer(rank), rank % 2, rank,
                                                                 "-" if word == "START" else " -", word)))
        child = [operation(rank, 0, comm=pointer(rank, 1), ranks=2, count=7 + rank % 2) for rank in range(4)]
        self.assertEqual(self.of(lines + child).codes(), {})
        child[3] = operation(3, 0, comm=pointer(3, 1), ranks=2, count=7, name="Broadcast")
        self.assertEqual(self.of(lines + child).codes(), {"DC101": ["1", "3"]})

    def test_pointers_are_used_again(self):
        first = job(steps=3)
        ends = [info(rank, "comm %s rank %d nranks 4 cudaDev %d busId 1000 - Destroy COMPLETE" % (pointer(rank), rank, rank)) for rank in range(4)]
        second = job(steps=3, missing=0, identity="0x1234")
        self.assertEqual(self.of(first + ends + second).codes(), {"DC905": ["0", "1-3"]})
        self.assertEqual(self.of(first + second).codes(), {"DC905": ["0", "1-3"]}, "the end was not seen")

    def test_calls(self):
        """NCCL_DEBUG=TRACE, NCCL_DEBUG_SUBSYS=CALL: groups are seen, and nothing is counted twice beside INFO lines."""
        def call(rank, text):
            return "gpu1:%d:%d NCCL CALL %s" % (100 + rank, 100 + rank, text)

        def reduce(rank, count):
            return call(rank, "ncclAllReduce(7f%d000000,7f%d000000,%d,7,0,0,%s,0x55%d0)" % (rank, rank, count, pointer(rank), rank))

        lines = [call(rank, "ncclCommInitRank(%s, 2, %s, %d, %d)" % (pointer(rank), ID, rank, rank)) for rank in range(2)]
        for rank in range(2):
            lines += [call(rank, "ncclGroupStart()"), reduce(rank, 8), reduce(rank, 16), call(rank, "ncclGroupEnd()")]
        self.assertEqual(self.of(lines).codes(), {})
        swapped = lines[:6] + [lines[6], lines[8], lines[7], lines[9]]
        self.assertEqual(self.of(swapped).codes(), {"DC106": ["0", "1"]})
        twice = [line for rank in range(2) for line in init(rank, 2)]
        for rank in range(2):
            for count in (8, 16):
                twice += [operation(rank, 0, count=count, ranks=2), reduce(rank, count)]
        result = self.of(twice)
        self.assertEqual(result.codes(), {})
        self.assertIn("communicator from", result.out)
        report = self.ddpcheck("report", result.database).stdout
        self.assertIn("#1", report)
        self.assertNotIn("#2", report, "each call once")

    def test_before_commids(self):
        """NCCL 2.4: the communicator of all ranks is known by its place; smaller ones are not guessed."""
        self.assertEqual(self.of(job(missing=3, identity=None)).codes(), {"DC905": ["3", "0-2"]})
        lines = job(identity=None)
        for rank in range(4):
            lines += init(rank % 2, 2, None, pointer(rank, 2))[0].replace("gpu1:%d:%d" % (100 + rank % 2, 100 + rank % 2),
                                                                         "gpu1:%d:%d" % (100 + rank, 100 + rank)),
            lines += [operation(rank, 0, comm=pointer(rank, 2), ranks=2, count=rank)] * (rank + 1)
        result = self.of(lines)
        self.assertEqual((result.status, result.codes()), (2, {}))
        self.assertIn("can't be identified", result.err)

    def test_without_init_lines(self):
        """NCCL_DEBUG_SUBSYS=COLL: a launcher's prefix gives the ranks."""
        lines = [line for line in job(missing=1) if "Init" not in line]
        prefixed = ["[rank%d]: %s" % (int(line.split(":")[1]) - 100, line) for line in lines]
        self.assertEqual(self.of(prefixed).codes(), {"DC905": ["1", "0,2-3"]})

    def test_devices_stand_for_ranks_where_a_node_has_one_process_for_each(self):
        lines = [line for line in job(missing=1) if "Init" not in line]
        result = self.of(lines)
        self.assertEqual((result.status, result.codes()), (0, {"DC904": ["none"], "DC905": ["1", "0,2-3"]}))
        self.assertIn("the GPU's number is shown as the rank", result.what("DC904"))

    def test_ranks_are_not_invented(self):
        """Each process sees one GPU; two nodes; a process more: then nothing says who is which rank."""
        lines = [line for line in job(missing=1) if "Init" not in line]
        one_gpu = [re.sub(r" \[\d\] NCCL", " [0] NCCL", line) for line in lines]
        two_nodes = [line.replace("gpu1:", "gpu%d:" % (1 + int(line.split(":")[1]) % 2), 1) for line in lines]
        another = lines + [operation(0, 0, comm=pointer(0, 5), ranks=2).replace("gpu1:100", "gpu1:104")]
        for variant in (one_gpu, two_nodes, another):
            result = self.of(variant)
            self.assertEqual((result.status, result.codes()), (2, {}))
            self.assertIn("NCCL_DEBUG_SUBSYS=INIT", result.err)
            self.assertFalse(os.path.exists(result.database))

    def test_line_numbers_are_no_ranks(self):
        lines = [line for line in job(missing=1, identity=None)]
        numbered = ["[%d] %s" % (number, line) for number, line in enumerate(lines)]
        self.assertEqual(self.of(numbered).codes(), {"DC905": ["1", "0,2-3"]})

    def test_rccl(self):
        """RCCL's COLL lines have the communicator's rank at their end."""
        lines = [line + " task 0 globalrank %d" % (int(line.split(":")[1]) - 100) for line in job(missing=1) if "Init" not in line]
        self.assertEqual(self.of([re.sub(r" \[\d\] NCCL", " [0] NCCL", line) for line in lines]).codes(), {"DC905": ["1", "0,2-3"]})

    def test_two_groups_of_the_same_ranks_are_not_one(self):
        """Data-parallel groups of four on eight GPUs: both have a rank 0, and neither has all ranks."""
        lines = [line for line in job(missing=1, identity=None)]
        others = [re.sub(r"gpu1:1", "gpu2:2", line) for line in job(identity=None)]
        result = self.of(lines + others)
        self.assertEqual((result.status, result.codes()), (2, {}))
        self.assertIn("can't be identified", result.err)

    def test_a_files_name_is_the_rank_of_its_only_process(self):
        lines = [re.sub(r" \[\d\] NCCL", " [0] NCCL", line) for line in job(missing=1) if "Init" not in line]

        def files(name, of):
            folders = [[line for line in lines if of(int(line.split(":")[1]) - 100) == number] for number in range(4)]
            return [self.write(name % number, text) for number, text in enumerate(folders) if text]
        self.assertEqual(self.importing(*files("out/rank_%d.log", lambda rank: rank)).codes(), {"DC905": ["1", "0,2-3"]})
        for name, of in (("nodes/node_rank_%d.log", lambda rank: rank // 2), ("nodes/rank_%d.log", lambda rank: rank // 2)):
            result = self.importing(*files(name, of))
            self.assertEqual((result.status, result.codes()), (2, {}))

    def test_a_launchers_rank_is_the_one_that_people_know(self):
        """A communicator that has the ranks the other way round: its rank 0 is rank 3 of the job."""
        lines = job(missing=1)
        turned = []
        for line in lines:
            rank = int(line.split(":")[1]) - 100
            turned.append("[rank%d]: %s" % (3 - rank, line))
        self.assertEqual(self.of(turned).codes(), {"DC905": ["2", "0-1,3"]})

    def test_collectives_of_no_elements(self):
        """NCCL drops them: ranks may differ in how many they make."""
        lines = job(steps=3)
        self.assertEqual(self.of(lines[:13] + [operation(1, 1, count=0)] + lines[13:]).codes(), {})

    def test_warnings_are_passed_on(self):
        lines = job() + [info(2, "Mismatched collective detected, please check your collective calls at and around rank 2.", "WARN",
                              "init.cc:1247 ")]
        result = self.of(lines)
        self.assertEqual(result.codes(), {"DC904": ["2"]})
        self.assertIn("NCCL WARN: init.cc:1247: Mismatched collective detected", result.what("DC904"))

    def test_a_communicator_that_was_never_made(self):
        lines = [init(rank, 4)[0] for rank in range(3)]
        result = self.of(lines)
        self.assertEqual(result.codes(), {"DC904": ["0-2"]})
        self.assertIn("without \"Init COMPLETE\"", result.what("DC904"))

    def test_wrong_buffers_and_roots(self):
        """What one line shows by itself."""
        lines = [line for rank in range(2) for line in init(rank, 2)]
        result = self.of(lines + [operation(rank, 0, name="Broadcast", root=5, ranks=2) for rank in range(2)])
        self.assertEqual(list(result.codes()), ["DC111"])
        self.assertEqual(self.of(lines + [operation(rank, 0, name="Broadcast", root=rank, ranks=2) for rank in range(2)]).codes(),
                         {"DC105": ["0", "1"]})

    def test_no_order_is_invented(self):
        """Two communicators, streams and one buffer: what orders them is in no log."""
        lines = job(steps=1)
        for rank in range(4):
            lines += init(rank, 4, "0x77", pointer(rank, 3))
        for step in range(3):
            for rank in range(4):
                pair = [operation(rank, step), operation(rank, step, comm=pointer(rank, 3)).replace("stream 0x55", "stream 0x99")]
                lines += pair if rank % 2 else pair[::-1]
        self.assertEqual(self.of(lines).codes(), {})


class Damage(Importer):
    def refused(self, name, content, *words):
        result = self.importing(self.write(name, content))
        self.assertEqual(result.status, 2, result.err)
        for word in words:
            self.assertIn(word, result.err)
        return result

    def test_what_is_no_log(self):
        self.refused("empty.log", b"", "empty.log")
        self.refused("binary.log", bytes(range(256)) * 400, "binary.log")
        self.refused("text.log", ["Epoch 1: loss 0.3"] * 50, "text.log")

    def test_huge_lines(self):
        """A line of megabytes without a newline, and NULs, between good lines."""
        lines = job(missing=3)
        text = "\n".join(lines[:12]) + "\n" + "x" * 5_000_000 + "\n" + "\0" * 100_000 + "\n" + "\n".join(lines[12:]) + "\n"
        result = self.importing(self.write("huge.log", text))
        self.assertEqual(result.codes(), {"DC905": ["3", "0-2"]})

    def test_any_bytes_may_be_wrong(self):
        """Bytes changed by chance: never a crash, and an answer."""
        chance = random.Random(7)
        with open(self.data("watchdog/missing.log"), encoding="utf-8") as file:
            good = ("\n".join(job(missing=3)) + "\n" + file.read()).encode()
        for round in range(12):
            damaged = bytearray(good)
            for _ in range(1 + round * 20):
                damaged[chance.randrange(len(damaged))] = chance.randrange(256)
            self.importing(self.write("damaged.log", bytes(damaged[:chance.randrange(len(damaged))])), options=("--format", "nccl-log"))


if __name__ == "__main__":
    main()
