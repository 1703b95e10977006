"""ddpcheck explain, and docs/findings, which are its texts."""

import os
import subprocess
import unittest

from tool import Tool, main

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")


class Explain(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.tool = Tool(main.build)
        cls.codes = [line.split()[0] for line in cls.tool.call("explain", "--list")[1].splitlines() if line.startswith("DC")]

    @classmethod
    def tearDownClass(cls):
        cls.tool.close()

    def test_codes_are_in_order_and_single(self):
        self.assertGreater(len(self.codes), 10)
        self.assertEqual(self.codes, sorted(set(self.codes)))

    def test_every_code(self):
        for code in self.codes:
            with self.subTest(code):
                status, out, err = self.tool.call("explain", code)
                self.assertEqual((status, err), (0, ""))
                self.assertTrue(out.startswith(code + ": "))
                self.assertGreater(len(out.split()), 40, "too short to explain anything")
                if code != "DC212" and not code.startswith("DC9"):      # a silent host, and the trace: not the program
                    for part in "Minimal reproducer", "Fix (C/CUDA)", "Fix (PyTorch)", "Source of the rule":
                        self.assertIn("\n%s\n" % part, out)

    def test_prose_fits_80_columns(self):
        for code in self.codes:
            for line in self.tool.call("explain", code)[1].splitlines():
                listing = line.startswith("    ")
                self.assertTrue(listing or len(line) <= 80, "%s: %s" % (code, line))

    def test_ways_to_name_a_code(self):
        expected = self.tool.call("explain", "DC102")[1]
        for name in "dc102", "102":
            self.assertEqual(self.tool.call("explain", name)[1], expected)

    def test_families(self):
        hang = self.tool.call("explain", "hang")
        self.assertEqual(hang[0], 0)
        self.assertIn("DC201  error", hang[1])
        self.assertNotIn("DC101", hang[1])
        self.assertIn(hang[1], self.tool.call("explain", "DC2xx")[1])

    def test_unknown_code(self):
        status, out, err = self.tool.call("explain", "DC1O2")
        self.assertEqual((status, out), (2, ""))
        self.assertIn("did you mean DC102", err)
        status, out, err = self.tool.call("explain", "DC999")
        self.assertEqual((status, out), (2, ""))
        self.assertNotIn("did you mean", err)
        self.assertIn("\n  DC901  records were lost\n", err)
        self.assertNotIn("DC101", err)
        status, _, err = self.tool.call("explain", "segfault")
        self.assertEqual(status, 2)
        self.assertIn("--list", err)
        self.assertEqual(self.tool.call("explain")[0], 2)

    def test_pages_are_up_to_date(self):
        done = subprocess.run([os.path.join(ROOT, "tools", "docs"), "--check", self.tool.program,
                               os.path.join(ROOT, "docs", "findings")], capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)


if __name__ == "__main__":
    main()
