"""How a log comes in: from a pipe, in the place of a trace, from a directory of anything, out of a log service, or not at all."""

import datetime
import gzip
import json
import os
import sqlite3
import subprocess

from importer import Importer, main

WAITS = ("[rank%d]:[E1123 06:24:44.903881913 ProcessGroupNCCL.cpp:616] [Rank %d] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=7, "
         "OpType=ALLREDUCE, NumelIn=9, NumelOut=9, Timeout(ms)=600000) ran for 600020 milliseconds before timing out.")
RAISED = ["[rank2]: Traceback (most recent call last):", '[rank2]:   File "/app/train.py", line 7, in step',
          '[rank2]:     raise ValueError("bad batch")', "[rank2]: ValueError: bad batch"]
LINES = {0: [WAITS % (0, 0)], 1: [WAITS % (1, 1)], 2: RAISED, 3: [WAITS % (3, 3)]}
BEGIN_NS = 1795415084000000000      # 2026-11-23 06:24:44 UTC


def iso(ns):
    return datetime.datetime.fromtimestamp(ns // 1000000 / 1000, datetime.timezone.utc).isoformat().replace("+00:00", "Z")


def records():
    """(time, line, rank), in the order of time."""
    return sorted((BEGIN_NS + 1000000 * (4 * at + rank), line, rank) for rank, lines in LINES.items() for at, line in enumerate(lines))


def loki(*more, backward=True):
    streams = {}
    for time, line, rank in reversed(records()) if backward else records():
        streams.setdefault(rank, []).append([str(time), line, *more])
    result = [{"stream": {"pod": "job-%d" % rank}, "values": values} for rank, values in streams.items()]
    return {"status": "success", "data": {"resultType": "streams", "result": result, "stats": {"summary": {"message": "no line"}}}}


def log_services():
    """What the services answer, by their documentation."""
    newest = list(reversed(records()))
    return {
        "loki.json": loki(), "loki-forward.json": loki(backward=False), "loki-metadata.json": loki({"trace_id": "a"}),
        "loki-old.json": {"streams": [{"labels": '{job="a"}', "entries": [{"ts": iso(time), "line": line} for time, line, _ in newest]}]},
        "grafana.json": [{"line": line, "timestamp": str(time), "fields": {"pod": "job-%d" % rank}} for time, line, rank in newest],
        "cloudwatch.json": {"events": [{"logStreamName": "algo-%d" % rank, "timestamp": time // 1000000, "message": line, "eventId": "3"}
                                       for time, line, rank in records()], "searchedLogStreams": []},
        "gcloud.json": [{"insertId": "x", "resource": {"labels": {"pod_name": "p%d" % rank}}, "textPayload": line + "\n", "timestamp": iso(time)}
                        for time, line, rank in newest],
        "elastic.json": {"took": 3, "hits": {"hits": [{"_source": {"@timestamp": iso(time), "message": line}} for time, line, _ in records()]}},
    }


class Doors(Importer):
    def errors(self, text):
        findings = [json.loads(line) for line in text.splitlines() if '"ddpcheck.finding' in line]
        return sorted((f["code"], [s["ranks"] for s in f["sides"]]) for f in findings if f["severity"] == "error")

    def test_report_shows_what_import_found(self):
        """In the same words as an analysis anew, which --reanalyse makes; also which communicator comes first."""
        here = os.path.dirname(os.path.abspath(__file__))
        for name in ("default-pg-from-nccl", "lightning-several-groups", "one-rank-behind"):
            database = self.importing(os.path.join(here, "real", name + ".log")).database
            for form in ((), ("--json",), ("--all-ranks", "-v")):
                stored, anew = self.ddpcheck("report", *form, database), self.ddpcheck("report", "--reanalyse", *form, database)
                self.assertEqual((stored.stdout, stored.returncode), (anew.stdout, anew.returncode), name)
                self.assertIn("DC", stored.stdout)
        with sqlite3.connect(database) as changed:
            changed.execute("UPDATE finding SET what = 'as it was stored'")
        self.assertIn("as it was stored", self.ddpcheck("report", database).stdout, "nothing is analysed again")
        self.assertNotIn("as it was stored", self.ddpcheck("report", "--reanalyse", database).stdout)
        self.assertNotIn("as it was stored", self.ddpcheck("report", "--hang-after", "5", database).stdout, "another rule")

    def whole(self):
        return self.write("job.log", [line for lines in LINES.values() for line in lines])

    def temporary(self):
        return [name for name in os.listdir(self.folder) if name.startswith("ddpcheck-")]

    def test_standard_input(self):
        with open(self.whole()) as log:
            done = subprocess.run([os.path.join(main.build, "bin", "ddpcheck"), "import"], cwd=self.folder, stdin=log, capture_output=True, text=True)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertIn("imported.db", done.stdout)
        with open(self.whole()) as log:
            again = subprocess.run([os.path.join(main.build, "bin", "ddpcheck"), "import"], cwd=self.folder, stdin=log, capture_output=True, text=True)
        self.assertEqual(again.returncode, 2)
        self.assertIn("imported.db is there already; name another (-o), or remove it", again.stderr)

    def test_in_the_place_of_a_trace(self):
        """What is no trace is imported by itself, says so, and leaves nothing behind."""
        log = self.whole()
        kept = self.importing(log)
        expected = sorted((f["code"], [s["ranks"] for s in f["sides"]]) for f in kept.findings if f["severity"] == "error")
        for rank, lines in LINES.items():
            self.write("job/rank_%d.log" % rank, lines)
        packed = self.write("job.log.gz", gzip.compress("".join(line + "\n" for lines in LINES.values() for line in lines).encode()))
        for path in (log, packed, os.path.join(self.folder, "job")):
            done = self.ddpcheck("report", "--json", path, TMPDIR=self.folder)
            self.assertEqual((done.returncode, self.errors(done.stdout)), (1, expected), path)
            self.assertIn("%s is no trace: imported for this command only" % path, done.stderr)
            self.assertEqual(self.temporary(), [])
        self.assertIn("in %s." % log, self.ddpcheck("report", log).stdout.splitlines()[0])
        self.assertIn("DC904", self.ddpcheck("tui", "--once", "--view", "findings", log, TMPDIR=self.folder).stdout)
        self.assertIn("DC904", self.ddpcheck("export", "--format", "github", log, TMPDIR=self.folder).stdout)
        self.assertIn("4", self.ddpcheck("sql", log, "select count(*) from process", TMPDIR=self.folder).stdout)
        self.assertEqual(self.ddpcheck("diff", log, packed, TMPDIR=self.folder).stdout.count("no trace"), 0)
        self.assertEqual(self.temporary(), [])

    def test_no_trace_and_no_log(self):
        self.write("words.txt", ["hello"])
        done = self.ddpcheck("report", "words.txt", TMPDIR=self.folder)
        self.assertEqual(done.returncode, 2)
        self.assertIn("words.txt: it is in no format that can be imported", done.stderr)
        os.mkdir(os.path.join(self.folder, "empty"))
        self.assertIn("no trace database (*.db) in empty; record one", self.ddpcheck("report", "empty").stderr)
        self.assertIn("there is no trace nowhere", self.ddpcheck("report", "nowhere").stderr)
        self.assertEqual(self.temporary(), [])

    def test_a_directory_of_anything(self):
        """One message for all files that are no logs, whatever they are; the logs count."""
        for name in ("model.py", "config.yaml", "weights.bin", "notes.md", "data.csv"):
            self.write("run/" + name, bytes(range(256)) if name == "weights.bin" else ["a = 1", "b = 2"])
        for rank, lines in LINES.items():
            self.write("run/logs/rank_%d.log" % rank, lines)
        result = self.importing(os.path.join(self.folder, "run"))
        self.assertEqual(result.status, 0)
        self.assertEqual(len(result.err.splitlines()), 1, result.err)
        self.assertRegex(result.err, r"5 files are passed over \(\S+config.yaml, \S+data.csv, \S+model.py, \.\.\.\): each is in no format")

    def test_not_checked_in_one_line(self):
        database = self.importing(self.whole()).database
        told = self.ddpcheck("report", database).stdout.split("Not checked\n")[1].split("\n\n")[0]
        self.assertEqual(" ".join(told.split()).count("says too little"), 1, told)
        self.assertEqual(told.count("DC301"), 1, told)
        self.assertIn("does not say buffer addresses", self.ddpcheck("report", "-v", database).stdout)

    def test_log_services(self):
        expected = self.errors(self.ddpcheck("report", "--json", self.whole()).stdout)
        self.assertIn(("DC904", ["2"]), expected)
        for name, document in log_services().items():
            for indent in (None, 2):
                with self.subTest(name, indent=indent):
                    done = self.ddpcheck("report", "--json", self.write(name, json.dumps(document, indent=indent)))
                    self.assertEqual(self.errors(done.stdout), expected, done.stderr)

    def test_a_document_that_was_cut(self):
        text = json.dumps(loki())
        result = self.importing(self.write("cut.json", text[:-250]))
        self.assertEqual(result.status, 2)
        self.assertRegex(result.err, "cut.json: byte [0-9]+: ")
        self.assertIn("DC904", result.codes())

    def test_documents_that_are_no_logs(self):
        for name, document in {"package.json": {"name": "x", "message": "hello", "a": [1, {"b": "c"}]}, "chat.json": [{"role": "user", "message": "hi"}],
                               "many.json": [[[[{"line": ["x"] * 9}]]]]}.items():
            self.assertIn("it is in no format", self.importing(self.write(name, json.dumps(document, indent=1))).err)

    def test_other_tools_files_are_named(self):
        def database(name, table):
            connection = sqlite3.connect(os.path.join(self.folder, name))
            connection.execute("CREATE TABLE %s(start INT, end INT)" % table)
            connection.commit()
            connection.close()
            return os.path.join(self.folder, name)
        files = {
            database("rank0.sqlite", "CUPTI_ACTIVITY_KIND_KERNEL"): "an export of Nsight Systems",
            database("nvtx.sqlite", "NVTX_EVENTS"): "an export of Nsight Systems",
            database("results.db", "rocpd_kernel_dispatch"): "a database of rocprof",
            self.write("job.nsys-rep", bytes(range(256))): "a report of Nsight Systems",
            self.write("k_trace.csv", ['"Kind","Agent_Id","Queue_Id"', '"KERNEL_DISPATCH",1,2']): "a table of rocprof",
            self.write("rank0.clog", ["V|1|base_timestamp=1714234567.890", "new_comm|comm=world|rank=0|world_size=8"]): "a clog of torchcomms",
            self.write("host.xplane.pb", bytes(range(256))): "a profile of XLA",
        }
        for path, words in files.items():
            result = self.importing(path)
            self.assertEqual(result.status, 2)
            self.assertIn("%s: it is %s" % (path, words), result.err)
            self.assertIn("record with", result.err)


if __name__ == "__main__":
    main()
