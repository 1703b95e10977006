"""Reports of small traces made by hand (make_trace.c): the text against tests/report/golden, JSON, exit statuses.

    test_report.py BUILD [--update]     --update writes the golden files anew: read the difference before you commit
"""

import fcntl
import os
import re
import unittest

from tool import Tool, main

# situation: (status, codes of the findings that are still true)
EXPECTED = {
    "clean": (0, []),
    "mismatch": (1, ["DC102"]),
    "missing": (1, ["DC201"]),
    "dead": (1, ["DC205"]),
    "lost": (0, ["DC901"]),
    "cut": (3, []),
    "running": (1, ["DC201"]),
    "hosts": (1, ["DC201"]),
    "empty": (3, []),
}
GOLDEN = os.path.join(os.path.dirname(os.path.abspath(__file__)), "golden")


class Report(unittest.TestCase):
    maxDiff = None

    @classmethod
    def setUpClass(cls):
        cls.tool = Tool(main.build)
        for situation in EXPECTED:
            cls.tool.make(situation)

    @classmethod
    def tearDownClass(cls):
        cls.tool.close()

    def compare(self, name, text):
        path = os.path.join(GOLDEN, name + ".txt")
        if main.update:
            with open(path, "w") as file:
                file.write(text)
        with open(path) as file:
            self.assertEqual(file.read(), text)

    def test_situations_are_all_expected(self):
        self.assertEqual(sorted(self.tool.situations()), sorted(EXPECTED))

    def test_text(self):
        for situation, (status, _) in EXPECTED.items():
            with self.subTest(situation):
                got, out, err = self.tool.call("report", situation)
                self.compare(situation, out)
                self.assertEqual((got, err), (status, ""))

    def test_text_fits_80_columns(self):
        for situation in EXPECTED:
            _, out, _ = self.tool.call("report", situation)
            for line in out.splitlines():
                self.assertLessEqual(len(line), 80, line)
                self.assertEqual(line, line.rstrip())

    def test_verbose(self):
        """A finding fits a screen; --verbose adds when, which process and every stack."""
        _, out, _ = self.tool.call("report", "--verbose", "missing")
        self.compare("missing-verbose", out)
        for word in "since ", "process ", "loss_read()":
            self.assertIn(word, out)
        for situation in EXPECTED:
            _, out, _ = self.tool.call("report", situation)
            findings = out.split("\n\ncomm ")[0].count("\n")
            self.assertLess(findings, 24, situation)

    def test_narrow_and_wide(self):
        for columns in 40, 100, 1000:
            _, out, _ = self.tool.call("report", "missing", COLUMNS=str(columns))
            widest = max(len(line) for line in out.splitlines())
            self.assertLessEqual(widest, min(max(columns, 60), 120))

    def test_every_rank(self):
        _, out, _ = self.tool.call("report", "--all-ranks", "clean")
        self.compare("clean-all-ranks", out)

    def test_json(self):
        for situation, (status, codes) in EXPECTED.items():
            with self.subTest(situation):
                got, lines = self.tool.json("report", situation)
                self.assertEqual(got, status)
                schemas = [line["schema"] for line in lines]
                self.assertEqual((schemas[0], schemas[-1]), ("ddpcheck.report/1", "ddpcheck.summary/1"))
                findings = [line for line in lines if line["schema"] == "ddpcheck.finding/1"]
                self.assertEqual([f["code"] for f in findings if f["state"] == "open"], codes)
                members = [line for line in lines if line["schema"] == "ddpcheck.member/1"]
                self.assertEqual(len(members), 0 if situation == "empty" else 4)

    def test_json_of_a_finding(self):
        _, lines = self.tool.json("report", "missing")
        finding, = [line for line in lines if line["schema"] == "ddpcheck.finding/1"]
        self.assertEqual((finding["comm"], finding["number"]), ("0x5ae77eb5ea4ec1ee", 3))
        self.assertRegex(finding["fingerprint"], "^[0-9a-f]{16}$")
        waiting = [side for side in finding["sides"] if side["ranks"] == "0-2"][0]
        self.assertEqual(waiting["call"], "ncclAllReduce(count=1, float32, sum)")
        self.assertEqual(waiting["act"]["did"], "called")
        self.assertEqual(waiting["act"]["call"],
                         {"function": "ncclAllReduce", "count": 1, "datatype": "float32", "redop": "sum"})
        self.assertEqual(waiting["phase"], "barrier")
        self.assertEqual([(f["function"], f["file"], f["line"]) for f in waiting["frames"]],
                         [("barrier", "trainer/collectives.c", 61), ("train_step", "trainer/train.c", 104),
                          ("main", "trainer/main.c", 40)])
        self.assertIn("3", [side["ranks"] for side in finding["sides"]])

    def test_fingerprint_is_of_the_fault(self):
        prints = {}
        for situation in "missing", "hosts", "running", "mismatch":
            _, lines = self.tool.json("report", situation)
            prints[situation], = [line["fingerprint"] for line in lines if line["schema"] == "ddpcheck.finding/1"]
        self.assertEqual(prints["missing"], prints["hosts"])
        self.assertEqual(prints["missing"], prints["running"])
        self.assertNotEqual(prints["missing"], prints["mismatch"])

    def test_hosts_are_judged_together(self):
        """Each host alone lacks ranks; both together do not, in any way of naming them."""
        status, lines = self.tool.json("report", "hosts/node-01.db")
        self.assertEqual(status, 3)
        self.assertEqual(lines[-1]["unseen"], 2)
        for paths in ["hosts/node-01.db", "hosts/node-02.db"], ["hosts/node-02.db", "hosts/node-01.db"], ["hosts"]:
            status, lines = self.tool.json("report", *paths)
            self.assertEqual((status, lines[-1]["unseen"], lines[-1]["errors"]), (1, 0, 1))

    def test_hosts_by_themselves(self):
        """What is between them is asked for as a hub would: the same report but for when the hang was last seen, and for the line that
        says what was not checked."""
        def comparable(line):
            if line["schema"] != "ddpcheck.finding/1":
                return line
            return {**line, "last": None}

        status, lines = self.tool.json("report", "--by-host", "hosts")
        unchecked = [line for line in lines if line["schema"] == "ddpcheck.not-checked/1"]
        self.assertEqual([line["codes"] for line in unchecked], ["DC204, DC210, DC308, DC501-DC507, DC601-DC610"])
        merged = self.tool.json("report", "--reanalyse", "hosts")
        self.assertEqual((status, [comparable(line) for line in lines if line not in unchecked]),
                         (merged[0], [comparable(line) for line in merged[1]]))
        self.assertEqual(self.tool.json("report", "hosts"), merged)       # two small databases are merged
        self.assertIn("--reanalyse checks them", " ".join(self.tool.call("report", "--by-host", "hosts")[1].split()))
        self.assertEqual(self.tool.json("report", "--by-host", "missing"), self.tool.json("report", "missing"))   # one database
        self.assertEqual(self.tool.call("report", "--by-host", "--reanalyse", "hosts")[0], 2)
        status, _, errors = self.tool.call("report", "--by-host", "--speed", "hosts")
        self.assertEqual((status, "--speed compares all records of all hosts" in errors), (2, True))

    def test_exports_of_hosts_by_themselves(self):
        """The same findings in each format, and a word on what was not checked."""
        def exported(name, *options):
            status, text, errors = self.tool.call("export", "-f", name, *options, "hosts")
            self.assertEqual(status, 0, errors)
            return text

        self.assertEqual(set(exported("github").splitlines()) - set(exported("github", "--by-host").splitlines()), set())
        for name in "csv", "chrome":
            self.assertEqual(exported(name, "--by-host"), exported(name), name)
        for name in "html", "sarif", "junit", "github", "jsonl":
            self.assertNotIn("DC501-DC507", exported(name), name)
        for name in "html", "sarif", "github", "jsonl":
            self.assertIn("DC501-DC507", exported(name, "--by-host"), name)
        cases = [set(re.findall(r'<testcase [^>]*name="(DC\d+)[^>]*>\s*<skipped', exported("junit", *options))) for options in ([], ["--by-host"])]
        self.assertTrue({"DC204", "DC501", "DC507", "DC608"} <= cases[1], cases)
        self.assertTrue(not cases[0] and "DC201" not in cases[1] and "DC508" not in cases[1], cases)
        for command, why in (("diff", "compares every call"), ("tui", "merges nothing")):
            status, _, errors = self.tool.call(command, "--by-host", "hosts", "hosts")
            self.assertEqual((status, why in errors), (2, True), errors)

    def test_exit_status(self):
        for status, *arguments in [
                (0, "mismatch", "--only", "DC201"), (1, "mismatch", "--only", "DC102"), (1, "mismatch", "--only", "201,dc1xx"),
                (1, "mismatch", "--fail-on", "error"), (0, "cut", "--allow-missing"), (0, "empty", "--allow-missing"),
                (1, "running", "--allow-missing"), (1, "clean", "mismatch")]:
            with self.subTest(arguments):
                self.assertEqual(self.tool.call("report", *arguments)[0], status)

    def test_silence_that_is_a_hang(self):
        """The job is silent for 15 s: less than that is a hang, more is not, as long as the job goes on."""
        self.assertEqual(self.tool.call("report", "running", "--hang-after", "5")[0], 1)
        self.assertEqual(self.tool.call("report", "running", "--hang-after", "60")[0], 3)

    def test_while_the_collector_runs(self):
        """Whoever holds the directory's lock is the collector."""
        with open(self.tool.path("running/collector.lock"), "w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            _, lines = self.tool.json("report", "running")
            _, out, _ = self.tool.call("report", "--verbose", "running")
        os.unlink(self.tool.path("running/collector.lock"))
        self.assertTrue(lines[-1]["collecting"])
        self.assertIn("is still running; this is a snapshot", out)
        self.assertIn(" ago", out)

    def test_color(self):
        _, plain, _ = self.tool.call("report", "mismatch")
        self.assertNotIn("\033", plain)
        for colored, arguments, environment in [
                (True, ["--color", "always"], {"NO_COLOR": "1"}), (True, [], {"FORCE_COLOR": "1"}),
                (False, [], {"NO_COLOR": "1"}), (False, ["--color=never"], {"FORCE_COLOR": "1"})]:
            _, out, _ = self.tool.call("report", "mismatch", *arguments, **environment)
            self.assertEqual("\033[" in out, colored, (arguments, environment))
            if colored:
                self.assertEqual(re.sub("\033\\[[0-9;]*m", "", out), plain)

    def test_the_usual_directory(self):
        status, out, err = self.tool.call("report")
        self.assertEqual((status, out), (2, ""))
        self.assertIn("there is no trace at ddpcheck-trace", err)
        os.symlink("clean", self.tool.path("ddpcheck-trace"))
        self.assertEqual(self.tool.call("report")[0], 0)
        os.unlink(self.tool.path("ddpcheck-trace"))

    def test_full_disk(self):
        for option in [], ["--json"]:
            with open("/dev/full", "w") as full:
                status, _, err = self.tool.call("report", *option, "clean", stdout=full)
            self.assertEqual(status, 2)
            self.assertIn("No space left", err)
            self.assertEqual(err.count("\n"), 1, err)


if __name__ == "__main__":
    main()
