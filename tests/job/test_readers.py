"""Readers on any host: report, tui, export, diff and sql take the address of a hub, while the job runs and afterwards.

test_readers.py BUILD"""

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

from findings import findings
from hosts import BUILD, DDPCHECK, Job, main
from hub import PATIENCE_S, Hub, await_true

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "tui"))
from terminal import Terminal  # noqa: E402


class Readers(Job):
    def setUp(self):
        super().setUp()
        self.temporary = tempfile.mkdtemp(prefix="ddpcheck-test-readers-")
        self.addCleanup(shutil.rmtree, self.temporary, ignore_errors=True)

    def read(self, *command, status=0):
        done = subprocess.run([DDPCHECK, *command], capture_output=True, text=True, timeout=PATIENCE_S, check=False,
                              env={**os.environ, "TMPDIR": self.temporary})
        self.assertEqual(done.returncode, status, done)
        self.assertEqual(os.listdir(self.temporary), [])        # nothing is left behind
        return done.stdout + done.stderr

    def start_hang(self):
        hub = self.start_hub()
        self.start_recording(hub)
        self.await_news("DC201")
        return hub, hub.url.replace(hub.token + "@", "")

    def test_each_command_takes_the_address_of_a_hub(self):
        hub, name = self.start_hang()
        job = os.path.join(hub.folder, "job.db")
        report = self.read("report", hub.url, status=1)
        self.assertIn("1 error in %s.\n" % name, report)
        self.assertIn("The job is still running; this is a snapshot.", report)
        self.assertNotIn(hub.token, report)
        self.assertEqual(findings(DDPCHECK, hub.url), findings(DDPCHECK, job))
        self.assertRegex(self.read("tui", "--once", "--view", "findings", hub.url), "(?s)DC201.*rank 3 never called it")
        self.assertRegex(self.read("sql", "--csv", hub.url, "SELECT count(DISTINCT host) AS hosts FROM process"), "hosts\n4\n")
        self.assertIn("DC201", self.read("export", "-f", "junit", hub.url))
        self.assertIn("A: %s, ranks 0-3" % name, self.read("diff", hub.url, job))
        self.end_hosts()

    def test_a_job_that_gets_on(self):
        """Nobody was asked for records: how far the ranks are is known from their digests."""
        self.hang_after = "60"
        hub = self.start_hub()
        self.start_hosts(hub.url, "--iterations", "1000000")
        query = "SELECT count(*) > 2, min(done) > 0 FROM (SELECT comm, min(done) AS done FROM member_state GROUP BY comm)"
        await_true("all members have got on", lambda: "1,1" in self.read("sql", "--csv", hub.url, query))
        screen = self.read("tui", "--once", hub.url)
        self.assertRegex(screen, r"4 processes, [3-9] communicators, .*running")
        self.assertNotIn("finished", screen)
        self.assertRegex(self.read("report", hub.url, status=3),
                         r"No finding so far in nats://[0-9.:]+\.\n4 processes")

    def test_a_job_that_is_over(self):
        self.hang_after = "60"
        hub = self.start_hub()
        self.start_hosts(hub.url, "--iterations", "3")
        for host in self.hosts:
            self.assertEqual(host.process.wait(PATIENCE_S), 0, host.said())
        await_true("the hub has heard the end of all", lambda: subprocess.run([DDPCHECK, "report", hub.url], capture_output=True,
                                                                              timeout=PATIENCE_S, check=False).returncode == 0)
        report = json.loads(self.read("report", "--json", hub.url).splitlines()[0])
        self.assertEqual([(each["complete"], each["collecting"]) for each in report["databases"]], [(True, False)])

    def test_who_has_no_hub(self):
        hub = self.start_hub()
        said = self.read("report", hub.url.replace(hub.token, "guess"), status=2)
        self.assertIn("is the token right?", said)
        said = self.read("report", hub.url + "/other", status=2)
        self.assertRegex(said, "no hub answers at nats://[0-9.:]+/other: a NATS server is there")
        self.assertNotIn(hub.token, said)

    @unittest.skipUnless(shutil.which("tmux"), "tmux is missing")
    def test_the_tui_follows_the_job(self):
        """It is there before the job, and stays while the hub is killed and another one takes its place."""
        hub = self.start_hub()
        command = "TMPDIR=%s %s tui %s" % (self.temporary, DDPCHECK, hub.url)
        with Terminal(self.folder, command, 100, 30) as terminal:
            terminal.wait(hub.url.replace(hub.token + "@", ""))
            self.start_recording(hub)
            terminal.wait(r"train\.c:\d+: error DC201")
            hub.kill()
            terminal.wait("trying again")
            again = Hub(BUILD, hub.folder, "--hang-after", self.hang_after, port=hub.port)
            self.addCleanup(again.__exit__)
            await_true("the next hub's finding", lambda: "DC201" in again.said())
            await_true("it is shown", lambda: re.search(r"(?s) live .*error DC201(?!.*trying again)", terminal.text()))
            terminal.keys("q")
            terminal.wait("status=0")
        self.assertEqual(os.listdir(self.temporary), [])


if __name__ == "__main__":
    main()
