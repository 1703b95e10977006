"""Which findings are told: --only, --disable, --certain, suppressions and baselines."""

import json
import os
import unittest

from tool import Tool, main

USUAL = {"mismatch": "DC102", "missing": "DC201", "dead": "DC205"}


class Choice(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.tool = Tool(main.build)
        for situation in list(USUAL) + ["clean"]:
            cls.tool.make(situation)

    @classmethod
    def tearDownClass(cls):
        cls.tool.close()

    def write(self, name, text):
        with open(self.tool.path(name), "w") as file:
            file.write(text)
        return name

    def codes(self, *arguments):
        """(status, codes told, summary)."""
        status, lines = self.tool.json("report", *arguments)
        return status, [line["code"] for line in lines if "code" in line], lines[-1]

    def test_codes_and_categories(self):
        for arguments, told in (
                (["--only", "hang"], False), (["--only", "mismatch"], True), (["--only", "Mismatch,hang"], True),
                (["--disable", "DC102"], False), (["--disable", "dc1xx"], False), (["--disable", "hang,DC301"], True),
                (["--only", "mismatch", "--disable", "102"], False), (["--certain"], True)):
            with self.subTest(arguments):
                status, codes, _ = self.codes("mismatch", *arguments)
                self.assertEqual((status, codes), (1, ["DC102"]) if told else (0, []))

    def test_possible(self):
        self.assertEqual(self.codes("missing")[1], ["DC201"])
        status, lines = self.tool.json("report", "missing")
        certainty = [line["certainty"] for line in lines if "code" in line]
        self.assertEqual(self.codes("missing", "--certain")[1], [] if certainty == ["possible"] else ["DC201"])

    def test_generated_lines_suppress(self):
        for situation, code in USUAL.items():
            with self.subTest(situation):
                status, text, err = self.tool.call("report", "--gen-suppressions", situation)
                self.assertEqual((status, err, len(text.splitlines())), (1, "", 2))
                self.assertTrue(text.startswith("# ") and "\n" + code + ":" in text, text)
                self.write("gen.supp", text)
                status, codes, summary = self.codes("--suppressions", "gen.supp", situation)
                self.assertEqual((status, codes, summary["suppressed"], summary["unused"]), (0, [], 1, []))
                status, out, _ = self.tool.call("report", situation, DDPCHECK_SUPPRESSIONS="gen.supp")
                self.assertEqual(status, 0)
                self.assertIn("1 finding suppressed (gen.supp:2).", out)
                status, codes, summary = self.codes("--suppressions", "gen.supp", *[s for s in USUAL if s != situation])
                self.assertEqual((status, summary["suppressed"]), (1, 0))
                self.assertEqual(len(summary["unused"]), 1)

    def test_each_key(self):
        status, lines = self.tool.json("report", "mismatch")
        finding = next(line for line in lines if "code" in line)
        side = finding["sides"][0]
        frame = side["frames"][0]
        name = os.path.basename(frame["file"])
        matching = ["func=" + frame["function"], "func=%s*" % frame["function"][:3], "file=" + frame["file"],
                    "file=" + name, "file=*" + name[1:], "module=*", "call=ncclAllReduce*", "fingerprint=" + finding["fingerprint"],
                    "func=%s;call=nccl*;file=*" % frame["function"], "func = " + frame["function"]]
        failing = ["func=x" + frame["function"], "file=x" + name, "call=ncclBroadcast*", "phase=no such phase",
                   "fingerprint=0", "func=%s;call=cuda*" % frame["function"]]
        for condition in matching + failing:
            for what in "DC102", "dc1xx", "mismatch", "*", "hang":
                with self.subTest(what + ":" + condition):
                    self.write("key.supp", "# a comment\n\n  %s:%s\r\n" % (what, condition))
                    summary = self.codes("--suppressions", "key.supp", "mismatch")[2]
                    suppressed = condition in matching and what != "hang"
                    self.assertEqual(summary["suppressed"], int(suppressed))
                    self.assertEqual([line["line"] for line in summary["unused"]], [] if suppressed else [3])

    def test_unused_lines_are_named(self):
        self.write("unused.supp", "DC102:func=*\nDC301:func=never\n")
        status, out, _ = self.tool.call("report", "--suppressions", "unused.supp", "mismatch")
        self.assertEqual(status, 0)
        self.assertIn("unused.supp:2 suppresses nothing: DC301:func=never", out)
        self.assertIn("No new findings", out)

    def test_baseline(self):
        with open(self.tool.path("base.jsonl"), "w") as file:
            self.tool.call("report", "--json", "mismatch", stdout=file)
        status, codes, summary = self.codes("--baseline", "base.jsonl", "mismatch")
        self.assertEqual((status, codes, summary["known"], summary["gone"]), (0, [], 1, 0))
        status, codes, summary = self.codes("--baseline", "base.jsonl", "missing")
        self.assertEqual((status, codes, summary["known"], summary["gone"]), (1, ["DC201"], 0, 1))
        status, out, _ = self.tool.call("report", "--baseline", "base.jsonl", "clean")
        self.assertIn("0 findings are in the baseline base.jsonl; 1 of it is not there any more.", out)

    def test_bad_files(self):
        for text, message in (
                ("DC301\n", "bad:1: no colon in 'DC301'"), ("DC301:\n", "bad:1: no condition in"),
                ("\nDC777:func=a\n", "bad:2: no finding has the code or category 'DC777'"),
                ("DC301:func\n", "no KEY=GLOB in 'func'"), ("DC301:func=\n", "no KEY=GLOB"), (":func=a\n", "no finding has the code"),
                ("DC301:colour=red\n", "the keys are func, file, module, call, phase and fingerprint, not 'colour'"),
                ("DC301:func=a\0b\n", "this is no text file"), ("DC301:" + "func=a;" * 9 + "\n", "too many conditions")):
            with self.subTest(text):
                self.write("bad", text)
                status, out, err = self.tool.call("report", "--suppressions", "bad", "mismatch")
                self.assertEqual((status, out), (2, ""))
                self.assertIn(message, err)
        for option, name in (("--suppressions", "none"), ("--baseline", "none"), ("--suppressions", "."), ("--baseline", ".")):
            with self.subTest(option + name):
                status, out, err = self.tool.call("report", option, name, "mismatch")
                self.assertEqual((status, out), (2, ""))
                self.assertIn("can't read", err)
        for text in ("hello\n", "{}\n", '{"schema":"ddpcheck.finding/1"}\n', '{"schema":"ddpcheck.finding/1","fingerprint":"xyz"}\n'):
            with self.subTest(text):
                self.write("bad.jsonl", text)
                status, out, err = self.tool.call("report", "--baseline", "bad.jsonl", "mismatch")
                self.assertEqual((status, out), (2, ""))
                self.assertIn("bad.jsonl:1: ", err)
        for arguments, message in ((["--disable", "DC1"], "--disable: no finding has the code 'DC1'"),
                                   (["--only", "hangs"], "--only: no finding has the code 'hangs'"),
                                   (["--json", "--gen-suppressions"], "exclude each other"),
                                   (["--speed", "--gen-suppressions"], "exclude each other")):
            status, out, err = self.tool.call("report", *arguments, "mismatch")
            self.assertEqual((status, out), (2, ""))
            self.assertIn(message, err)


main()
