"""Every SQL example of docs/schema.md, on a trace made by hand and, where the trainer is built, on that of a run."""

import glob
import os
import re
import sqlite3
import subprocess
import unittest

from tool import Tool, main

PAGE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "docs", "schema.md")
with open(PAGE) as page:
    TEXT = page.read()
EXAMPLES = re.findall(r"```sql\n(.*?)```", TEXT, re.S)
SCHEMAS = glob.glob(os.path.join(os.path.dirname(PAGE), "..", "lib", "trace", "schema*.sql"))


class Schema(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.tool = Tool(main.build)

    @classmethod
    def tearDownClass(cls):
        cls.tool.close()

    def run_examples(self, path, may_be_empty):
        database = sqlite3.connect("file:%s?mode=ro" % path, uri=True)
        self.assertGreater(len(EXAMPLES), 10)
        for example in EXAMPLES:
            with self.subTest(example):
                rows = database.execute(example).fetchall()
                empty = any(name in example for name in may_be_empty)
                self.assertTrue(rows or empty, "no rows:\n" + example)
        database.close()

    def test_on_a_trace_made_by_hand(self):
        self.tool.make("missing")
        # The generator has no kernels, memory or analyzer.
        self.run_examples(self.tool.path("missing/node-01.db"), ["v_launch", "v_memory", "v_finding", "finding_act", "member_state", "v_thread_stack", "FROM python", "v_hash", "v_not_checked", "v_dropped", "v_digest", "FROM library", "FROM setting", "FROM speed_state", "notice_run_delay"])

    def test_on_a_real_trace(self):
        trainer = os.path.join(os.path.dirname(self.tool.program), "ddptrain")
        if not os.path.exists(trainer):
            self.skipTest("ddptrain was not built")
        done = subprocess.run([self.tool.program, "run", "--emulate", "2", "-o", self.tool.path("real"), "--timeout", "5",
                               "--hang-after", "2", "--", trainer, "--model", "gan", "--ranks", "2", "--iterations", "12",
                               "--no-gang", "--fault", "partial-barrier"], capture_output=True, text=True, timeout=90)
        paths = glob.glob(self.tool.path("real/*.db"))
        self.assertEqual(len(paths), 1, done.stdout + done.stderr)
        self.run_examples(paths[0], ["v_thread_stack", "FROM python", "v_hash", "v_not_checked", "v_dropped", "v_digest", "FROM library", "FROM setting", "FROM speed_state", "notice_run_delay"])     # of a short C program that ended

    def test_all_tables_and_views_are_described(self):
        names = []
        for path in SCHEMAS:
            with open(path) as schema:
                names += re.findall(r"^CREATE (?:TABLE|VIEW) (?:IF NOT EXISTS )?(\w+)", schema.read(), re.M)
        self.assertGreater(len(names), 10)
        for name in names:
            self.assertIn("`%s`" % name, TEXT)


if __name__ == "__main__":
    main()
