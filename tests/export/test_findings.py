"""Findings in other formats: SARIF by its schema, JUnit by its elements, workflow commands decoded as GitHub does it."""

import csv
import io
import json
import os
import pathlib
import re
import resource
import stat
import subprocess
import sys
import unittest
import xml.etree.ElementTree as xml

import flight_dump
import schema
from jobs import Jobs

HERE = os.path.dirname(os.path.abspath(__file__))
BUILD = sys.argv.pop(1)


def command_text(text):
    """A workflow command's text, as the runner reads it."""
    return text.replace("%0A", "\n").replace("%0D", "\r").replace("%3A", ":").replace("%2C", ",").replace("%25", "%")


def setUpModule():
    global JOBS
    JOBS = Jobs(BUILD)


def tearDownModule():
    JOBS.close()


class Findings(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.jobs = JOBS
        cls.codes = [line.split()[0] for line in
                     JOBS.line.call([JOBS.tool, "explain", "--list", "--color=never"])[1].splitlines() if line.startswith("DC")]

    def sarif(self, *arguments):
        document = json.loads(self.jobs.export("sarif", *arguments))
        with open(os.path.join(HERE, "sarif-2.1.0-part.schema.json")) as file:
            schema.validate(document, json.load(file))
        self.assertEqual(len(document["runs"]), 1)
        return document["runs"][0]

    def test_sarif_of_a_hang(self):
        run = self.sarif("hang")
        self.assertEqual([rule["id"] for rule in run["tool"]["driver"]["rules"]],
                         list(dict.fromkeys(result["ruleId"] for result in run["results"])))
        for rule in run["tool"]["driver"]["rules"]:      # the manual that its source names first
            self.assertRegex(rule.get("helpUri", "https://"), "^https://")
        self.assertEqual(next(rule["helpUri"] for rule in run["tool"]["driver"]["rules"] if rule["id"] == "DC201"),
                         "https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/")
        findings = self.jobs.findings("hang")
        self.assertEqual([result["ruleId"] for result in run["results"]], [finding["code"] for finding in findings])
        self.assertIn("DC201", [result["ruleId"] for result in run["results"]])
        for result, finding in zip(run["results"], findings):
            self.assertEqual(run["tool"]["driver"]["rules"][result["ruleIndex"]]["id"], result["ruleId"])
            self.assertIn(finding["what"], result["message"]["text"])
            self.assertEqual(result["partialFingerprints"], {**result["partialFingerprints"], "ddpcheck/v2": finding["fingerprint"]})
            self.assertEqual(len(result["locations"]), 1)
            self.assertIn(result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"].rsplit("/", 1)[1],
                          ("communicator.c", "device.c", "train.c", "train_cnn.c"))
            self.assertLessEqual(len(result["relatedLocations"]), len(finding["sides"]))     # not one for each rank
            self.assertTrue(result["stacks"] and all(stack["frames"] for stack in result["stacks"]))
            self.assertNotIn("/../", json.dumps(result))

    def test_the_schema_refuses_what_is_wrong(self):
        with open(os.path.join(HERE, "sarif-2.1.0-part.schema.json")) as file:
            rules = json.load(file)
        good = {"version": "2.1.0", "runs": [{"tool": {"driver": {"name": "x"}}, "results": [{"message": {"text": "y"}}]}]}
        self.assertEqual(schema.problems(good, rules, rules), [])
        for change in ({"version": "2.0"}, {"runs": [{}]}, {"more": 1}, {"runs": [{**good["runs"][0], "results": [{"message": {}}]}]},
                       {"runs": [{**good["runs"][0], "results": [{"message": {"text": "y"}, "level": "bad"}]}]}):
            self.assertTrue(schema.problems({**good, **change}, rules, rules), change)

    def test_sarif_of_a_clean_job(self):
        run = self.sarif("clean")
        self.assertEqual(run["results"], [])
        self.assertTrue(run["invocations"][0]["executionSuccessful"])

    def test_fingerprints_are_of_the_fault_not_of_the_run(self):
        one, other = self.sarif("hang"), self.sarif("again")
        self.assertEqual({(r["ruleId"], r["partialFingerprints"]["ddpcheck/v2"]) for r in one["results"]},
                         {(r["ruleId"], r["partialFingerprints"]["ddpcheck/v2"]) for r in other["results"]})

    def test_sources_are_mapped(self):
        uri = self.sarif("hang")["results"][0]["locations"][0]["physicalLocation"]["artifactLocation"]["uri"]
        folder = os.path.dirname(uri[len("file://"):])
        for to, expected in (("my src", "my%20src/"), ("", ""), ("lib/", "lib/")):
            mapped = self.sarif("hang", "--src-prefix", "/elsewhere=x,%s=%s" % (folder, to))
            place = mapped["results"][0]["locations"][0]["physicalLocation"]["artifactLocation"]
            self.assertEqual(place, {"uri": expected + os.path.basename(uri), "uriBaseId": "%SRCROOT%"})
        self.jobs.export("sarif", "hang", "--src-prefix", "nonsense", status=2)

    def junit(self, *arguments):
        root = xml.fromstring(self.jobs.export("junit", *arguments))
        self.assertEqual(root.tag, "testsuites")
        (suite,) = root
        self.assertEqual(suite.tag, "testsuite")
        cases = {}
        for case in suite:
            self.assertEqual(case.tag, "testcase")
            self.assertEqual(set(case.attrib), {"classname", "name"})
            self.assertLessEqual(len(case), 1)
            for result in case:
                self.assertIn(result.tag, ("skipped", "error", "failure", "system-out"))
                self.assertLessEqual(set(result.attrib), {"message", "type"})
            cases[case.get("name").split()[0]] = [result.tag for result in case]
        for name, tag in (("tests", None), ("failures", "failure"), ("errors", "error"), ("skipped", "skipped")):
            self.assertEqual(int(suite.get(name)), len(suite) if tag is None else len(suite.findall("testcase/" + tag)))
        self.assertEqual([code for code in cases if code.startswith("DC")], self.codes)
        return cases, suite

    def test_junit(self):
        cases, suite = self.junit("hang")
        self.assertEqual(cases["DC201"], ["failure"])
        self.assertEqual(cases["DC101"], [])
        self.assertIn("rank 3", suite.find("testcase/failure").text)
        cases, suite = self.junit("clean")
        self.assertFalse(any(cases.values()), cases)
        cases, suite = self.junit("hang", "--disable", "DC201,DC1xx")
        self.assertEqual((cases["DC201"], cases["DC105"], cases["DC301"]), (["skipped"], ["skipped"], []))

    def test_github(self):
        lines = self.jobs.export("github", "hang", "--src-prefix", "/=").splitlines()
        findings = self.jobs.findings("hang")
        self.assertEqual(len(lines), len(findings))
        for line, finding in zip(lines, findings):
            kind, properties, message = re.fullmatch(r"::(error|warning|notice) ([^:]*)::(.*)", line).groups()
            values = dict(item.split("=", 1) for item in properties.split(","))
            self.assertEqual(set(values), {"file", "line", "title"})
            self.assertTrue(values["file"].endswith(".c") and not values["file"].startswith("/") and int(values["line"]) > 0)
            self.assertEqual(command_text(values["title"]), "%s: %s" % (finding["code"], finding["title"]))
            self.assertRegex(command_text(message), "(?s)^%s\n(rank \\d+ \\([^\n]*\n)?ranks" % re.escape(finding["what"]))
        self.assertEqual(self.jobs.export("github", "clean"), "")

    def test_jsonl_is_what_report_prints(self):
        self.assertEqual(self.jobs.export("jsonl", "hang"), self.jobs.line.call([self.jobs.tool, "report", "--json", "hang"])[1])

    def test_only_what_is_chosen(self):
        self.assertEqual(self.sarif("hang", "--only", "DC301")["results"], [])
        base = os.path.join(self.jobs.folder, "base.jsonl")
        self.jobs.export("jsonl", "-o", base, "hang")
        self.assertEqual(self.sarif("again", "--baseline", base)["results"], [])


class Imported(unittest.TestCase):
    """Flight Recorder dumps of 300 ranks, two of which come too late: what they do not say is not a passed test."""

    RANKS, LATE = 300, (7, 291)

    @classmethod
    def setUpClass(cls):
        cls.jobs = JOBS
        folder = pathlib.Path(JOBS.folder)
        dumps = {}
        for rank in range(cls.RANKS):
            entries = [flight_dump.entry(number, "all_reduce", created=flight_dump.EPOCH_NS + number * 2_000_000)
                       for number in range(8 - (rank in cls.LATE))]
            if rank not in cls.LATE:
                entries[-1].update(state="started", time_discovered_completed_ns=None, retired=False)
            dumps[rank] = flight_dump.dump(entries, ranks=cls.RANKS)
        flight_dump.write(folder / "dumps", dumps)
        status, _, err = JOBS.line.call([JOBS.tool, "import", "-q", "-o", "dumps.db", "dumps"])
        assert status == 0, err

    def test_not_checked_is_not_passed(self):
        suite = xml.fromstring(self.jobs.export("junit", "dumps.db"))[0]
        results = {case.get("name").split()[0]: case for case in suite}
        self.assertIsNotNone(results["DC201"].find("failure"))
        self.assertIn("not checked: Flight Recorder does not say", results["DC301"].find("skipped").get("message"))
        self.assertEqual(len(results["DC102"]), 0)
        notes = json.loads(self.jobs.export("sarif", "dumps.db"))["runs"][0]["invocations"][0]["toolExecutionNotifications"]
        self.assertTrue(any("DC105" in note["message"]["text"] for note in notes))
        counts = self.jobs.export("prometheus", "dumps.db")
        self.assertIn('ddpcheck_findings{code="DC201",severity="error"} 1', counts)
        self.assertNotIn('code="DC301"', counts)
        self.assertIn("ddpcheck: not checked: DC105", self.jobs.export("github", "dumps.db"))
        self.assertIn("not checked", self.jobs.export("html", "dumps.db"))

    def test_the_place_is_the_program_s_not_pytorch_s(self):
        self.assertIn("file=/job/train.py,line=40", self.jobs.export("github", "dumps.db"))

    def test_one_result_and_a_small_page_for_many_ranks(self):
        results = json.loads(self.jobs.export("sarif", "dumps.db", "--only", "DC201"))["runs"][0]["results"]
        self.assertEqual(len(results), 1)
        self.assertLessEqual(len(results[0]["relatedLocations"]), 8)
        page = self.jobs.export("html", "dumps.db")
        self.assertLess(len(page), 1000000)
        self.assertEqual(re.findall(r'<li class=behind tabindex=0 title="rank (\d+)', page), [str(rank) for rank in self.LATE])

    def test_what_is_not_known_is_empty(self):
        rows = list(csv.DictReader(io.StringIO(self.jobs.export("csv", "dumps.db"), newline="")))
        self.assertEqual(len(rows), 8 * self.RANKS - len(self.LATE))
        self.assertEqual({(row["sendbuff"], row["redop"], row["stream"], row["device"]) for row in rows}, {("", "", "", "")})
        self.assertEqual({row["count"] for row in rows}, {"1024"})


class Situations(unittest.TestCase):
    """Traces made by hand: empty, cut, of several hosts, of a job that runs."""

    READERS = {"jsonl": lambda text: [json.loads(line) for line in text.splitlines()], "sarif": json.loads, "chrome": json.loads,
               "junit": xml.fromstring, "csv": lambda text: list(csv.reader(io.StringIO(text, newline=""), strict=True)),
               "github": str.splitlines, "prometheus": str.splitlines, "html": str}

    def setUp(self):
        self.maker = os.path.join(JOBS.line.build, "tests", "make_trace")
        if not os.path.exists(self.maker):
            self.skipTest("make_trace was not built")

    def test_all_can_be_exported(self):
        listed = subprocess.run([self.maker, "--list"], capture_output=True, text=True, check=True).stdout.split()
        self.assertGreater(len(listed), 5)
        for name in listed:
            subprocess.run([self.maker, os.path.join(JOBS.folder, "made-" + name), name], check=True)
            for format, read in self.READERS.items():
                self.assertTrue(format == "github" or read(JOBS.export(format, "made-" + name)), (name, format))

    def test_what_is_good_of_a_damaged_trace_is_written(self):
        folder = os.path.join(JOBS.folder, "damaged")
        subprocess.run([self.maker, folder, "mismatch"], check=True)
        (name,) = [name for name in os.listdir(folder) if name.endswith(".db")]
        database = os.path.join(folder, name)
        os.truncate(database, os.path.getsize(database) - 5000)
        out = JOBS.export("junit", "damaged", status=2)
        self.assertIn('<error type="damaged"', out)
        notes = json.loads(JOBS.export("sarif", "damaged", status=2))["runs"][0]["invocations"][0]
        self.assertFalse(notes["executionSuccessful"])
        self.assertIn("cut off", notes["toolExecutionNotifications"][0]["message"]["text"])


class Files(unittest.TestCase):
    """Where it is written."""

    @classmethod
    def setUpClass(cls):
        cls.jobs = JOBS

    def call(self, *arguments, **more):
        done = subprocess.run([self.jobs.tool, "export", *arguments], cwd=self.jobs.folder, capture_output=True, text=True,
                              timeout=300, **more)
        return done.returncode, done.stdout, done.stderr

    def left(self, folder):
        return sorted(os.listdir(os.path.join(self.jobs.folder, folder)))

    def test_the_name_tells_the_format(self):
        os.mkdir(os.path.join(self.jobs.folder, "named"))
        self.assertEqual(self.call("-o", "named/x.sarif", "hang"), (0, "", ""))
        with open(os.path.join(self.jobs.folder, "named/x.sarif")) as file:
            self.assertEqual(json.load(file)["version"], "2.1.0")
        self.assertEqual(self.left("named"), ["x.sarif"])
        mask = os.umask(0)
        os.umask(mask)
        self.assertEqual(stat.S_IMODE(os.stat(os.path.join(self.jobs.folder, "named/x.sarif")).st_mode), 0o666 & ~mask)
        status, out, err = self.call("-o", "named/x.nonsense", "hang")
        self.assertEqual((status, out), (2, ""))
        self.assertIn("missing the format, not shown by the name named/x.nonsense: --format jsonl|", err)

    def test_a_failure_leaves_the_older_file(self):
        folder = os.path.join(self.jobs.folder, "kept")
        os.mkdir(folder)
        with open(os.path.join(folder, "x.html"), "w") as file:
            file.write("older")
        small = lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (32768, 32768))
        status, out, err = self.call("-o", "kept/x.html", "hang", preexec_fn=small)
        self.assertEqual((status, out), (2, ""), err)
        self.assertIn("can't write kept/x.html: File too large", err)
        with open(os.path.join(folder, "x.html")) as file:
            self.assertEqual(file.read(), "older")
        self.assertEqual(self.left("kept"), ["x.html"])

    def test_places_that_can_not_be_written(self):
        for path, why in (("/nowhere/x.sarif", "No such file or directory"), (self.jobs.folder, "Is a directory"),
                          ("/dev/full", "No space left on device"), ("/proc/x.sarif", "")):
            status, out, err = self.call("-f", "sarif", "-o", path, "hang")
            self.assertEqual((status, out), (2, ""), path)
            self.assertIn("can't write " + path, err)
            self.assertIn(why, err)
        with open("/dev/full", "w") as full:
            done = subprocess.run([self.jobs.tool, "export", "-f", "sarif", "hang"], cwd=self.jobs.folder, stdout=full,
                                  stderr=subprocess.PIPE, text=True, timeout=300)
        self.assertEqual(done.returncode, 2)
        self.assertIn("can't write", done.stderr)
        self.assertEqual(done.stderr.count("\n"), 1, done.stderr)

    def test_a_reader_that_leaves(self):
        done = subprocess.run(["bash", "-c", '"$0" export -f jsonl hang | head -c 1 >/dev/null; echo ${PIPESTATUS[0]}', self.jobs.tool],
                              cwd=self.jobs.folder, capture_output=True, text=True, timeout=300)
        self.assertEqual(done.stderr, "")
        self.assertIn(done.stdout.strip(), ("0", "141"))

    def test_bad_input(self):
        with open(os.path.join(self.jobs.folder, "text.db"), "w") as file:
            file.write("no database " * 1000)
        for arguments in (["text.db"], ["nowhere"], ["--format", "word", "hang"]):
            status, out, err = self.call("-f", "sarif", *arguments)
            self.assertEqual((status, out), (2, ""), arguments)
            self.assertTrue(err.startswith("ddpcheck"), err)


if __name__ == "__main__":
    unittest.main()
