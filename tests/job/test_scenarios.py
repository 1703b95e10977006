"""A job on four hosts with a hub: one finding for the whole job, the one that the same job on one host gives. Hosts are
processes with a UTS namespace of their own, which the emulated NCCL takes for hosts; server and messages are real.

test_scenarios.py BUILD"""

import glob
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

from findings import OneHost, findings
from hub import PATIENCE_S, Hub, await_true, free_port, read_file
from parallel import main
from sandbox import kill_all

BUILD = os.path.abspath(sys.argv.pop())
DDPCHECK = os.path.join(BUILD, "bin", "ddpcheck")
DDPTRAIN = os.path.join(BUILD, "bin", "ddptrain")
HOSTS = 4
FINDING = re.compile(r"ddpcheck: (?:.+?: )?(?:possible )?(?:error|warning) (DC\d{3}): ")
SKIPPED = 77


def has_namespaces():
    return shutil.which("unshare") and subprocess.run(["unshare", "--uts", "true"], capture_output=True).returncode == 0


class Hosts(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="ddpcheck-job-")
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)
        self.hub = Hub(BUILD, os.path.join(self.folder, "hub"))
        self.addCleanup(self.hub.__exit__)
        self.url = self.hub.url
        self.port = free_port()
        self.runs = []

    def start(self, *options):
        for rank in range(HOSTS):
            env = dict(os.environ, RANK=str(rank), WORLD_SIZE=str(HOSTS), LOCAL_RANK="0", LOCAL_WORLD_SIZE="1",
                       GROUP_RANK=str(rank), TORCHELASTIC_RUN_ID="job", MASTER_ADDR="127.0.0.1",
                       MASTER_PORT=str(self.port), DDPCHECK_HUB=self.hub.url)
            command = ["unshare", "--uts", "sh", "-c", 'hostname n%d; exec "$@"' % rank, "sh", DDPCHECK, "run", "--emulate", "1",
                       "-o", self.path("n%d" % rank), "--", DDPTRAIN, "--iterations", "20", *options]
            with open(self.path("output%d" % rank), "w", encoding="utf-8") as output:
                self.runs.append(subprocess.Popen(command, env=env, stdout=output, stderr=subprocess.STDOUT,
                                                  start_new_session=True))
        self.addCleanup(self.end_all)

    def end_all(self):
        for rank in range(HOSTS):       # programs and collectors lead groups of their own
            self.kill_host(rank)
        for run in self.runs:
            run.wait()

    def path(self, name):
        return os.path.join(self.folder, name)

    def output(self, rank):
        return read_file(self.path("output%d" % rank))

    def codes(self, rank):
        return FINDING.findall(self.output(rank))

    def wait_all(self):
        for run in self.runs:
            run.wait(PATIENCE_S)

    def expect_same(self, code, *options, alike=lambda found: found):
        """The job's findings are those of the same job on one host. Both are ended once they are found."""
        one = OneHost(DDPCHECK, self.path("one"), DDPTRAIN, "--iterations", "20", "--ranks", str(HOSTS), *options, devices=HOSTS)
        self.addCleanup(one.end)
        self.start(*options)
        await_true("a finding on the first host", lambda: self.codes(0))
        for run in self.runs:
            run.terminate()
        self.wait_all()
        self.hub_output = self.hub.end()[2]
        found = findings(DDPCHECK, self.path("hub/job.db"))
        self.assertEqual([finding[0] for finding in found], [code])
        self.assertEqual(alike(found), alike(one.findings()))
        self.assertEqual(self.codes(0), [code], self.output(0) + self.hub_output)     # the first host prints it, the others do not
        for rank in range(1, HOSTS):
            self.assertEqual(self.codes(rank), [], self.output(rank))
        self.expect_same_later(alike(found), alike)

    def expect_same_later(self, found, alike=lambda found: found):
        """From the hosts' databases alone: by the hub's questions over the local transport, and with all records in one analysis."""
        traces = [self.path("n%d" % rank) for rank in range(HOSTS) if glob.glob(self.path("n%d/*.db" % rank))]
        merged = findings(DDPCHECK, "--reanalyse", *traces)
        self.assertEqual(findings(DDPCHECK, "--by-host", *traces), merged)
        self.assertEqual(alike(merged), found)

    def test_what_hosts_find_by_themselves(self):
        """The same fault in each host's memory is one finding of all ranks: live, in job.db, and when their databases are read."""
        self.start("--fault", "inplace-activation", "--image", "16", "--width", "8")
        self.wait_all()
        self.hub.end()
        traces = [self.path("n%d" % rank) for rank in range(HOSTS)]
        merged = findings(DDPCHECK, "--reanalyse", *traces)
        self.assertEqual([(finding[0], finding[3][0][0]) for finding in merged], [("DC307", "0-3")])
        self.assertEqual(findings(DDPCHECK, "--by-host", *traces), merged)
        self.assertEqual(findings(DDPCHECK, self.path("hub/job.db")), merged)
        self.assertEqual([self.codes(rank) for rank in range(HOSTS)], [["DC307"], [], [], []], self.output(0))
        self.assertIn("communicators, findings are printed on the job's first host; report: ", self.output(1))

    def test_a_correct_job(self):
        self.start("--model", "cnn")
        self.wait_all()
        self.hub.end()
        self.assertEqual([run.returncode for run in self.runs], [0] * HOSTS)
        self.assertEqual(findings(DDPCHECK, self.path("hub/job.db")), [])
        self.expect_same_later([])
        for rank in range(HOSTS):
            self.assertEqual(self.codes(rank), [], self.output(rank))

    def test_partial_barrier(self):
        self.expect_same("DC201", "--model", "cnn", "--fault", "partial-barrier")

    def test_a_wait_cycle(self):
        self.expect_same("DC202", "--fault", "uneven-updates", "--image", "16", "--width", "8")

    def test_a_rank_is_missing_in_the_setup(self):
        self.expect_same("DC209", "--model", "cnn", "--fault", "init-missing",
                         # where rank 3 is, only a process of its host that has called NCCL could say
                         alike=lambda found: [(*finding[:3], [(side[0], side[1], side[4]) for side in finding[3]])
                                              for finding in found])

    def test_a_mismatch(self):
        self.expect_same("DC101", "--fault", "buffers-mismatch", "--image", "16", "--width", "8",
                         # the call differs on two communicators at once: which is found first is chance
                         alike=lambda found: [(finding[0], [side[0] for side in finding[3]]) for finding in found])

    def test_a_host_that_dies(self):
        self.start("--model", "cnn", "--fault", "partial-barrier")
        await_true("a finding on the first host", lambda: self.codes(0))
        self.kill_host(2)
        await_true("the silence of n2", lambda: "DC212" in self.codes(0))
        self.assertRegex(self.output(0), r"DC212: host n2 with rank 2 has been silent since .* collectives of comm")

    def kill_host(self, rank):
        """All at once: a collector that saw its ranks die would send how they ended."""
        processes = [int(entry) for entry in os.listdir("/proc") if entry.isdigit() and self.is_of(entry, rank)]
        kill_all(processes)

    def is_of(self, process, rank):
        try:
            with open("/proc/%s/environ" % process, "rb") as file:
                environment = file.read().split(b"\0")
        except OSError:
            return False
        return b"RANK=%d" % rank in environment and b"DDPCHECK_HUB=" + self.url.encode() in environment

    def test_the_hub_is_killed_and_started_again(self):
        self.start("--model", "cnn", "--fault", "partial-barrier")
        self.hub.kill()
        self.hub = Hub(BUILD, self.path("hub"), port=self.hub.port)
        self.addCleanup(self.hub.__exit__)
        await_true("a finding of the second hub", lambda: "DC201" in self.codes(0))


if __name__ == "__main__":
    if not has_namespaces():
        print("skipped: a UTS namespace can't be made here")
        sys.exit(SKIPPED)
    main()
