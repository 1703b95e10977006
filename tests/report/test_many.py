"""A job of more hosts than a process usually may have files open: all databases are read, or the reason is said."""

import os
import re
import resource
import subprocess
import unittest

from tool import Tool, main

DATABASES, FEW = 1100, 256


class Many(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.tool = Tool(main.build)
        cls.tool.make("missing")
        os.mkdir(cls.tool.path("many"))
        for i in range(DATABASES):
            os.link(cls.tool.path("missing/node-01.db"), cls.tool.path("many/node-%04d.db" % i))

    @classmethod
    def tearDownClass(cls):
        cls.tool.close()

    def report(self, soft, hard):
        done = subprocess.run([self.tool.program, "report", "--json", "many"], cwd=self.tool.folder, capture_output=True, text=True,
                              preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard)))
        return done.returncode, done.stdout, done.stderr

    def test_soft_limit_is_raised(self):
        _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        if hard != resource.RLIM_INFINITY and hard < 4 * DATABASES:
            self.skipTest("this user may have only %d files open" % hard)
        status, out, err = self.report(FEW, hard)
        self.assertIn(status, (0, 1, 3), err)
        self.assertEqual(len(set(re.findall(r"node-\d{4}\.db", out))), DATABASES, err)

    def test_hard_limit_is_said(self):
        status, _, err = self.report(FEW, FEW)
        self.assertEqual(status, 2)
        self.assertIn("raise the limit (ulimit -n", err)


if __name__ == "__main__":
    main()
