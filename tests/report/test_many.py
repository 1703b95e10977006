"""A job of more hosts than a process usually may have files open: all databases are read, or the reason is said. And one of
more ranks than anyone lists by hand: each is counted."""

import json
import os
import re
import resource
import subprocess
import unittest

from tool import Tool, main

DATABASES, FEW = 300, 64
ENOUGH = DATABASES + 70      # one for each database that is complete, and some for all else
RANKS = 4352       # more than 4,096


class Many(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.tool = Tool(main.build)
        cls.tool.make("missing")
        os.mkdir(cls.tool.path("many"))
        for i in range(DATABASES):
            os.link(cls.tool.path("missing/node-01.db"), cls.tool.path("many/node-%03d.db" % i))

    @classmethod
    def tearDownClass(cls):
        cls.tool.close()

    def report(self, soft, hard):
        done = subprocess.run([self.tool.program, "report", "--json", "many"], cwd=self.tool.folder, capture_output=True, text=True,
                              preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard)))
        return done.returncode, done.stdout, done.stderr

    def hard_limit(self):
        _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        if hard != resource.RLIM_INFINITY and hard < 4 * DATABASES:
            self.skipTest("this user may have only %d files open" % hard)
        return hard

    def test_soft_limit_is_raised(self):
        hard = self.hard_limit()
        status, out, err = self.report(FEW, hard)
        self.assertIn(status, (0, 1, 3), err)
        self.assertEqual(len(set(re.findall(r"node-\d{3}\.db", out))), DATABASES, err)

    def test_complete_databases_need_one_descriptor_each(self):
        self.hard_limit()
        status, out, err = self.report(ENOUGH, ENOUGH)
        self.assertIn(status, (0, 1, 3), err)
        self.assertEqual(len(set(re.findall(r"node-\d{3}\.db", out))), DATABASES, err)

    def test_hard_limit_is_said(self):
        status, _, err = self.report(FEW, FEW)
        self.assertEqual(status, 2)
        self.assertIn("raise the limit (ulimit -n", err)

    def test_names_are_in_one_line(self):
        self.hard_limit()
        done = subprocess.run([self.tool.program, "report", "many"], cwd=self.tool.folder, capture_output=True, text=True)
        self.assertIn(done.returncode, (0, 1, 3), done.stderr)
        self.assertEqual(done.stdout.splitlines()[0].split(" in ")[1], "many/node-[000-%d].db." % (DATABASES - 1))
        self.assertIn("many/node-[000-%d].db: %d databases," % (DATABASES - 1, DATABASES), done.stdout)
        self.assertEqual(done.stdout.count(".db"), 2, done.stdout)

    def test_all_missing_ranks_are_named(self):
        make = os.path.join(main.build, "bench", "bench_rank_traces")
        os.mkdir(self.tool.path("half"))
        subprocess.run([make, self.tool.path("half"), "half", str(RANKS)], check=True)
        done = subprocess.run([self.tool.program, "report", "--json", "half"], cwd=self.tool.folder, capture_output=True, text=True)
        self.assertEqual(done.returncode, 1, done.stderr)
        findings = [line for line in map(json.loads, done.stdout.splitlines()) if line["schema"] == "ddpcheck.finding/1"]
        self.assertEqual([finding["code"] for finding in findings], ["DC201"])
        ranks = [side["ranks"] for side in findings[0]["sides"]]
        self.assertEqual(ranks, ["0-%d" % (RANKS // 2 - 1), "%d-%d" % (RANKS // 2, RANKS - 1)])

    def test_forgotten_communicators_are_counted(self):
        """Two ranks create and destroy 1,000 communicators: the newest are shown, and how many are not."""
        make = os.path.join(main.build, "bench", "bench_comm_traces")
        subprocess.run([make, self.tool.path("comms.db"), "1000"], check=True)
        status, out, err = self.tool.call("report", "comms.db")
        self.assertEqual(status, 0, err)
        said = re.findall(r"^(\d+) communicators are not shown: every rank destroyed them long before the end$", out, re.M)
        others = re.findall(r"^and (\d+) communicators in which every rank is done", out, re.M)
        shown = re.findall(r"^comm .*communicator [0-9a-f]{16}", out, re.M)
        self.assertEqual(len(said), 1, out)
        self.assertGreater(int(said[0]), 500)
        self.assertEqual(int(said[0]) + int(others[0]) + len(shown), 1000 + 1, out)     # and the world's

    def test_nothing_is_said_of_forgotten_ones_without_them(self):
        _, out, _ = self.tool.call("report", "missing")
        self.assertNotIn("not shown", out)


if __name__ == "__main__":
    main()
