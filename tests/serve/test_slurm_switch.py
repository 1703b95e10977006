"""One switch for a cluster, under a real Slurm of four nodes: docs/operate/task-prolog.sh as TaskProlog, and the SPANK plugin. A job
that knows nothing of ddpcheck is watched.

test_slurm_switch.py BUILD"""

import glob
import os
import re
import subprocess
import sys
import unittest

from line import Line
from sandbox import SKIPPED, enter
from slurm import Slurm, missing

BUILD = os.path.abspath(sys.argv.pop(1))
HOSTS = ["n0", "n1", "n2", "n3"]
PROLOG = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "docs", "operate", "task-prolog.sh")
PLUGIN = os.path.join(BUILD, "lib", "ddpcheck", "spank_ddpcheck.so")


class Switched(Slurm):
    """Has the prolog where with_prolog() was called, and the plugin with the settings of with_plugin()."""

    def configure(self):
        super().configure()
        for name in ("prolog.sh", "plugstack.conf"):
            with open(self.path(name), "w", encoding="utf-8", opener=lambda path, flags: os.open(path, flags, 0o755)) as file:
                file.write("#!/bin/sh\n" if name == "prolog.sh" else "")
        with open(self.configuration, "a", encoding="utf-8") as file:
            file.write("TaskProlog=%s\nPlugStackConfig=%s\n" % (self.path("prolog.sh"), self.path("plugstack.conf")))

    def with_prolog(self):
        with open(PROLOG, encoding="utf-8") as file:
            text = file.read()
        with open(self.path("prolog.sh"), "w", encoding="utf-8") as file:
            file.write(text.replace("/opt/ddpcheck", BUILD).replace("/tmp/", self.folder + "/"))

    def with_plugin(self, settings):
        with open(self.path("plugstack.conf"), "w", encoding="utf-8") as file:
            file.write("required %s prefix=%s trace=%s %s\n" % (PLUGIN, BUILD, self.folder, settings))


class Switch(unittest.TestCase):
    def setUp(self):
        self.line = Line(BUILD)
        self.slurm = Switched(os.path.join(FOLDER, self.id()), HOSTS)
        self.slurm.__enter__()
        self.addCleanup(self.slurm.end)

    def run_job(self, *options):
        """How many ranks are in the trace that the job left; 0: it left none."""
        emulated = self.line.bare_environment(DDPCHECK_EMU_DEVICES="1")
        words = ["%s=%s" % (name, emulated[name]) for name in ("LD_LIBRARY_PATH", "LD_AUDIT", "DDPCHECK_EMU_DEVICES")]
        before = set(glob.glob(self.slurm.path("ddpcheck-*")))
        done = subprocess.run(self.slurm.srun("-n", "4", *options, "env", *words, self.line.trainer, "--model", "cnn",
                                              "--dataset-size", "64", "--iterations", "5"),
                              env=self.slurm.env, capture_output=True, text=True, timeout=300)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr + self.slurm.logs())
        traces = set(glob.glob(self.slurm.path("ddpcheck-*"))) - before
        if not traces:
            return 0
        trace, = traces
        status, out, err = self.line.call([self.line.tool, "report", "--allow-missing", trace])
        self.assertEqual(status, 0, out + err)
        return int(re.search(r"(\d+) ranks", out)[1])

    def test_the_prolog(self):
        self.slurm.with_prolog()
        self.assertEqual(self.run_job(), 4)
        before = glob.glob(self.slurm.path("ddpcheck-*"))
        subprocess.run(self.slurm.srun("-n", "4", "true"), env=self.slurm.env, check=True, timeout=300)
        self.assertEqual(glob.glob(self.slurm.path("ddpcheck-*")), before, "a job without NCCL leaves nothing")

    @unittest.skipUnless(os.path.exists(PLUGIN), "needs libslurm-dev")
    def test_the_plugin(self):
        self.slurm.with_plugin("")
        self.assertEqual(self.run_job(), 0)
        self.assertEqual(self.run_job("--ddpcheck"), 4)
        self.slurm.with_plugin("default=on")
        self.assertEqual(self.run_job(), 4)
        self.assertEqual(self.run_job("--ddpcheck=off"), 0)
        wrong = subprocess.run(self.slurm.srun("--ddpcheck=maybe", "true"), env=self.slurm.env, capture_output=True, text=True, timeout=300)
        self.assertNotEqual(wrong.returncode, 0)
        self.assertIn("--ddpcheck takes on or off, not 'maybe'", wrong.stderr)


if __name__ == "__main__":
    if os.geteuid() != 0 or missing():
        print("skipped: %s" % ("not root" if os.geteuid() else "not installed: " + ", ".join(missing())))
        sys.exit(SKIPPED)
    sys.argv.insert(1, BUILD)
    FOLDER = enter(HOSTS)
    unittest.main(argv=sys.argv[:1] + sys.argv[2:])
