"""`srun ddpcheck run --hub auto` under a real Slurm of four nodes: one finding for the whole job, the one that the same job on one
host gives. The first node has the hub; the nodes find it through the trace directory that they share, or by a common token.

test_slurm.py BUILD"""

import contextlib
import os
import re
import sqlite3
import subprocess
import sys
import unittest

from findings import OneHost, findings
from hub import PATIENCE_S, await_true, read_file
from sandbox import SKIPPED, end_runs, enter, kill_all, read_of, share_trace
from slurm import Slurm, missing

BUILD = os.path.abspath(sys.argv[1])
DDPCHECK = os.path.join(BUILD, "bin", "ddpcheck")
DDPTRAIN = os.path.join(BUILD, "bin", "ddptrain")
HOSTS = ["n0", "n1", "n2", "n3"]
CNN = ["--model", "cnn"]
FINDING = re.compile(r"^(\d): ddpcheck: (?:.+?: )?(?:possible )?(?:error|warning) (DC\d{3}): ", re.M)
JOB_S = 240     # far more than a job takes on a busy machine


def processes_with(variable):
    """Those of the job: nobody else in the sandbox has variables of Slurm's tasks."""
    return [int(entry) for entry in filter(str.isdigit, os.listdir("/proc"))
            if any(each.startswith(variable) for each in read_of(entry, "environ").split(b"\0"))]


def hosts_heard(database):
    """By the hub: a host that it hears only after the job's end is not in its database."""
    try:
        with contextlib.closing(sqlite3.connect("file:%s?mode=ro" % database, uri=True, timeout=PATIENCE_S)) as trace:
            return {host for host, in trace.execute("SELECT DISTINCT host FROM process")}
    except sqlite3.OperationalError:        # it is not made yet
        return set()


class Jobs(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.slurm = Slurm(os.path.join(FOLDER, "slurm"), HOSTS)
        cls.slurm.__enter__()

    @classmethod
    def tearDownClass(cls):
        cls.slurm.end()

    def path(self, name):
        return os.path.join(FOLDER, name)

    def srun(self, command, *fault, **env):
        """`command` is `ddpcheck run` up to its options. The output has a line for each of a rank: "3: ddpcheck: ..."."""
        command = [*command, "--hub", "auto", "--emulate", "1", "--", DDPTRAIN, "--iterations", "20", *fault]
        with open(self.path("output" + self.id()), "w", encoding="utf-8") as output:
            self.output_path = output.name
            return subprocess.Popen(self.slurm.srun("-n", str(len(HOSTS)), "--label", *command), env={**self.slurm.env, **env},
                                    stdout=output, stderr=subprocess.STDOUT)

    def await_first(self, pattern):
        """On the first node's terminal."""
        try:
            await_true("%s in the output" % pattern, lambda: re.search("^0: ddpcheck: " + pattern, read_file(self.output_path), re.M),
                       JOB_S)
        except AssertionError as failed:
            raise AssertionError("%s:\n%s" % (failed, read_file(self.output_path))) from failed

    def run_job(self, command, *fault, hangs=True, is_recorded=lambda: True, **env):
        """A job that hangs is ended, on all nodes, when its first node has the finding and all are recorded."""
        job = self.srun(command, *fault, **env)
        try:
            if hangs:
                self.await_first(r"(?:.+?: )?(?:possible )?error DC\d{3}: ")
                await_true("the hosts' databases", is_recorded, JOB_S)
                end_runs(b"SLURM_JOB_ID=")
            self.status = job.wait(JOB_S)
        finally:
            if job.poll() is None:
                kill_all(processes_with(b"SLURM_JOB_ID="))
                job.wait(JOB_S)
        self.output = read_file(self.output_path)

    def expect_same(self, codes, *fault, hosts=tuple(HOSTS), alike=lambda found: found):
        """The job's findings, in the database of the hub and on the first node's terminal."""
        trace, before = share_trace(FOLDER, self.id())
        one = OneHost(DDPCHECK, self.path("one" + self.id()), DDPTRAIN, "--iterations", "20", "--ranks", str(len(HOSTS)), *fault,
                      devices=len(HOSTS))
        self.addCleanup(one.end)
        expected = {name + ".db" for name in hosts}
        databases = lambda: {name for name in os.listdir(trace) if name.endswith(".db")}
        job = os.path.join(trace, "hub", "job.db")
        self.run_job([*before, DDPCHECK, "run", "-o", trace], *fault, hangs=bool(codes),
                     is_recorded=lambda: databases() >= expected and hosts_heard(job) >= set(hosts))
        self.assertEqual(databases(), expected, self.output)
        report = subprocess.run([DDPCHECK, "report", job], capture_output=True, text=True, timeout=JOB_S, check=False).stdout
        self.assertRegex(" ".join(report.split()), r"job\.db: \d processes on n\[0-\d\], \d+ events, complete", self.output)
        found = findings(DDPCHECK, job)
        self.assertEqual(alike(found), alike(one.findings()), self.output)
        self.assertEqual([finding[0] for finding in found], codes, self.output)
        self.assertEqual(FINDING.findall(self.output), [("0", code) for code in codes], self.output)
        summaries = re.findall(r"^(\d): ddpcheck: 1 rank, .*?, (.*); report: ddpcheck report (.*)", self.output, re.M)
        others = [(str(rank), "no finding", trace) for rank in range(1, len(hosts))]
        first = ("0", "1 error", trace + "/hub/job.db") if codes else ("0", "no finding", trace)
        self.assertEqual(sorted(summaries), [first, *others], self.output)

    def test_a_correct_job(self):
        self.expect_same([], *CNN)
        self.assertEqual(self.status, 0, self.output)

    def test_a_rank_is_missing_in_the_setup(self):
        # Rank 3 never calls NCCL, so that its host has nothing to record, and only another rank of it could report where it is.
        self.expect_same(["DC209"], *CNN, "--fault", "init-missing", hosts=HOSTS[:3],
                         alike=lambda found: [(*finding[:3], [(side[0], side[1], side[4]) for side in finding[3]])
                                              for finding in found])

    def test_a_mismatch(self):
        self.expect_same(["DC109"], *CNN, "--fault", "init-world",
                         # the order of the sides is that in which the ranks arrived
                         alike=lambda found: [(*finding[:3], sorted(finding[3])) for finding in found])

    def test_a_barrier_that_a_rank_leaves_out(self):
        self.expect_same(["DC201"], *CNN, "--fault", "partial-barrier")

    def test_a_wait_cycle(self):
        self.expect_same(["DC202"], "--fault", "uneven-updates", "--image", "16", "--width", "8")

    def test_a_killed_host(self):
        """All of node n2 at once: a collector that saw its rank die would send how it ended."""
        trace, before = share_trace(FOLDER, self.id())
        job = self.srun([*before, DDPCHECK, "run", "-o", trace], *CNN, "--fault", "partial-barrier")
        try:
            self.await_first(r".*error DC201: ")
            kill_all(processes_with(b"SLURM_PROCID=2"))
            self.await_first("possible error DC212: host n2 with rank 2 has been silent since")
        finally:
            kill_all(processes_with(b"SLURM_JOB_ID="))
            job.wait(JOB_S)

    def test_hosts_without_a_common_directory(self):
        """They share a token; the hub's host is the first of SLURM_STEP_NODELIST."""
        trace = self.path("token")
        script = 'folder=$1-$SLURM_PROCID && shift && exec "$0" run -o "$folder" "$@"'
        self.run_job(["sh", "-c", script, DDPCHECK, trace], *CNN, "--fault", "partial-barrier",
                     DDPCHECK_HUB_TOKEN="token-of-this-test")
        self.assertEqual(FINDING.findall(self.output), [("0", "DC201")], self.output)
        self.assertEqual([finding[0] for finding in findings(DDPCHECK, trace + "-0/hub/job.db")], ["DC201"])


if __name__ == "__main__":
    if os.geteuid() != 0 or missing():
        print("skipped: %s" % ("not root" if os.geteuid() else "not installed: " + ", ".join(missing())))
        sys.exit(SKIPPED)
    FOLDER = enter(HOSTS)
    unittest.main(argv=sys.argv[:1] + sys.argv[2:])
