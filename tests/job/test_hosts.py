"""A job on four "hosts" of one machine (UTS namespaces), each with `ddpcheck run --hub` and a rank of its own, over a real
nats-server: one finding for the whole job, live, and the same in the hub's job.db.

test_hosts.py BUILD"""

import glob
import json
import os
import re
import shutil
import signal
import socket
import sqlite3
import subprocess
import time
import unittest

from hosts import BUILD, DDPCHECK, HOSTS, Host, HostWithTui, Job, PollingHost, main
from hub import BEAT, Hub, Stranger, await_true, free_port, is_free, is_sanitized, message, news


class Jobs(Job):
    def report(self, *databases):
        done = subprocess.run([DDPCHECK, "report", "--json", *databases], capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 1, done.stderr)
        lines = [json.loads(line) for line in done.stdout.splitlines()]
        return [line for line in lines if line.get("severity") == "error"]

    def sides(self, finding):
        return [(side["ranks"], side.get("did")) for side in finding["sides"]]

    def test_a_barrier_that_a_rank_leaves_out(self):
        hub = self.start_hub()
        self.start_hosts(hub.url, "--fault", "partial-barrier", "--iterations", "20")
        news = self.await_news("DC201")
        self.assertIn("ranks 0-2 wait in ncclAllReduce", news[3])
        self.assertIn("rank 3 never called it", news[3])
        self.assertIn("train.c:", news[1])
        self.end_hosts()
        text = subprocess.run([DDPCHECK, "report", *(host.trace for host in self.hosts)], capture_output=True, text=True, check=False).stdout
        self.assertNotIn("the clock of", text)
        for host in self.hosts[1:]:         # one terminal has it
            self.assertNotIn("error DC", host.said())
        self.check_answer(hub)
        self.assertIn("error DC201", hub.end()[2])
        job = self.report(os.path.join(hub.folder, "job.db"))
        merged = self.report(*[host.trace for host in self.hosts])
        self.assertEqual([(finding["code"], self.sides(finding)) for finding in job],
                         [(finding["code"], self.sides(finding)) for finding in merged])
        self.assertEqual([finding["code"] for finding in job], ["DC201"])
        self.check_part(hub)

    def check_answer(self, hub):
        """With the job's own settings the report of one host's trace asks the hub, and no other hub."""
        for url, said in (hub.url, "The hub answers:"), (hub.url + "/other", "The hub had reported to this host:"):
            done = subprocess.run([DDPCHECK, "report", self.hosts[3].trace], capture_output=True, text=True, check=False,
                                  env={**os.environ, "DDPCHECK_HUB": url})
            self.assertRegex(" ".join(done.stdout.split()), re.escape(said) + r" \S*train.c:\d+: error DC201: ranks 0-2 wait in ncclAllReduce")

    def check_part(self, hub):
        """The trace of one host says that it is a part, where the job's hub is, without the token, and what that had reported."""
        done = subprocess.run([DDPCHECK, "report", self.hosts[3].trace], capture_output=True, text=True, check=False)
        said = " ".join(done.stdout.split())
        self.assertEqual(done.returncode, 1, done)
        self.assertIn("This is the part of n3 in a job on several hosts.", said)
        self.assertRegex(said, r"The hub had reported to this host: \S*train.c:\d+: error DC201: ranks 0-2 wait in ncclAllReduce")
        self.assertNotIn("No finding so far", said)
        done = subprocess.run([DDPCHECK, "report", "--json", self.hosts[3].trace], capture_output=True, text=True, check=False)
        part = json.loads(done.stdout.splitlines()[0])["databases"][0]["hub"]
        self.assertEqual((part["address"], [each["code"] for each in part["findings"]]), (hub.url.split("@")[1], ["DC201"]))

    def test_ranks_that_only_query(self):
        """Nobody is in a call that waits. The finding is that of one host with the same ranks."""
        hub = self.start_hub()
        self.start_hosts(hub.url, self.folder, kind=PollingHost)
        self.assertIn("ranks 0-2 wait in ncclCommSplit", self.await_news("DC109")[3])
        job = self.report(os.path.join(hub.folder, "job.db"))
        self.assertEqual([(finding["code"], finding["certainty"], self.sides(finding)) for finding in job],
                         [("DC109", "possible", [("0-2", None), ("3", None)])])
        await_true("where rank 3 stands", lambda: self.report(os.path.join(hub.folder, "job.db"))[0]["sides"][1]["where"] == "in pause")

    def test_from_a_fault_to_its_line(self):
        """All ranks wait, so that nothing has to be waited for: it is found long before the silence that counts as a hang."""
        self.hang_after = "600"
        top = self.folder
        for code, *trainer in (("DC201", "--model", "cnn", "--fault", "partial-barrier"),
                               ("DC202", "--fault", "uneven-updates", "--image", "16", "--width", "8"),
                               ("DC101", "--fault", "buffers-mismatch", "--image", "16", "--width", "8")):
            self.folder = os.path.join(top, code)       # a hub is for one job
            os.mkdir(self.folder)
            hub = self.start_hub()
            self.start_hosts(hub.url, *trainer, "--iterations", "20")
            self.await_news(code)
            print("%s: %.2f s from the fault to its line" % (code, self.seconds_since_fault(hub)), flush=True)
            self.end_hosts()

    def test_the_first_host_starts_the_hub(self):
        """--hub auto: the hosts share a token; the hub ends with the job."""
        port = free_port()
        self.start_hosts("auto", "--fault", "partial-barrier", "--iterations", "20",
                         env={"DDPCHECK_HUB_TOKEN": "token-of-this-test", "DDPCHECK_HUB_PORT": str(port)})
        self.assertIn("rank 3 never called it", self.await_news("DC201")[3])
        self.end_hosts()
        for host in self.hosts[1:]:
            self.assertNotIn("error DC", host.said())
        with self.assertRaises(ConnectionRefusedError):
            socket.create_connection(("127.0.0.1", port), timeout=20)

    def test_the_tui_of_each_host(self):
        """It shows the whole job as soon as there are two hosts: on the first its hub's database, elsewhere a copy of it."""
        port, master, screens = free_port(), free_port(), []
        env = {"DDPCHECK_HUB_TOKEN": "token-of-this-test", "DDPCHECK_HUB_PORT": str(port)}
        trainer = ("--model", "cnn", "--fault", "partial-barrier", "--iterations", "20")
        for rank in (0, 2):
            host = HostWithTui(rank, self.folder, "auto", trainer, master, env=env, ranks=2, options=("--tui",))
            self.addCleanup(host.terminal.close)
            shown = "trace0/hub/job.db" if rank == 0 else "nats://127.0.0.1:%d/" % port
            screens.append((host.terminal, shown))
        for terminal, shown in screens:
            text = terminal.wait("(?s)%s.*DC201.*ranks 0-2 wait in ncclAllReduce.*rank 3 never called it" % re.escape(shown))
            self.assertNotIn("token-of-this-test", text)
        for terminal, _ in screens:
            terminal.close()
        await_true("the job ends with its terminals", lambda: not glob.glob(os.path.join(self.folder, "trace0", "hub-*.url")))

    def test_a_wrong_token(self):
        """Said once by each host; the job runs and is recorded as it would without a hub."""
        hub = self.start_hub()
        self.start_hosts(hub.url.replace(hub.token, "guess"), "--fault", "partial-barrier", "--iterations", "20", ranks=2)
        self.await_own_finding()
        for host in self.hosts:
            self.assertEqual(host.said().count("is the token right?"), 1, host.said())
        self.assertEqual(hub.end()[2], "")

    def test_a_hub_that_stays_away(self):
        """Its hosts leave the job's finding to it for ten seconds, as it may come back. Then each says what it sees."""
        hub = self.start_hub()
        self.start_hosts(hub.url, "--fault", "partial-barrier", "--iterations", "20", ranks=2)
        await_true("the hosts record", lambda: all(host.collector() for host in self.hosts))
        hub.kill()
        self.await_own_finding()

    def await_own_finding(self):
        """The second of two hosts has the rank that is missing, and one that waits for it."""
        self.assertIn("rank 2 waits in ncclAllReduce", self.await_news("DC201", host=1)[3])

    def test_certificates(self):
        """Hosts and readers need one of the hub's authority."""
        certificate, key = (os.path.join(self.folder, name) for name in ("cert.pem", "key.pem"))
        subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes",
                        "-keyout", key, "-out", certificate, "-days", "2", "-subj", "/CN=localhost",
                        "-addext", "subjectAltName=IP:127.0.0.1"], check=True, capture_output=True)
        options = ("--tls-cert", certificate, "--tls-key", key, "--tls-ca", certificate)
        hub = Hub(BUILD, os.path.join(self.folder, "hub"), "--hang-after", self.hang_after, *options)
        self.addCleanup(hub.__exit__)
        self.assertTrue(hub.url.startswith("tls://"))
        variables = {"DDPCHECK_HUB_CA": certificate, "DDPCHECK_HUB_CERT": certificate, "DDPCHECK_HUB_KEY": key}
        self.start_hosts(hub.url, "--fault", "partial-barrier", "--iterations", "20", env=variables)
        self.assertIn("rank 3 never called it", self.await_news("DC201")[3])
        self.end_hosts()
        refused = subprocess.run([DDPCHECK, "report", hub.url], capture_output=True, text=True, check=False,
                                 env={**os.environ, "DDPCHECK_HUB_CA": certificate})     # no certificate of its own
        self.assertEqual(refused.returncode, 2, refused)
        self.assertNotIn(hub.token, refused.stderr)
        report = subprocess.run([DDPCHECK, "report", hub.url], capture_output=True, text=True, check=False,
                                env={**os.environ, **variables})
        self.assertIn("DC201", report.stdout, report)

    def test_a_killed_hub(self):
        """Hub and server are killed while the hosts connect; a new hub on the folder goes on with the job."""
        hub = self.start_hub()
        self.start_hosts(hub.url, "--fault", "partial-barrier", "--iterations", "20")
        await_true("the hosts record", lambda: all(host.collector() for host in self.hosts))
        hub.kill()
        self.start_hub(port=hub.port)
        self.assertIn("rank 3 never called it", self.await_news("DC201")[3])
        for host in self.hosts:
            self.assertNotIn("is the token right?", host.said())

    def test_a_killed_server(self):
        """The server alone is killed, once while the hosts connect: the hub starts it again."""
        hub = self.start_hub()
        self.start_hosts(hub.url, "--fault", "partial-barrier", "--iterations", "20")
        await_true("the hosts record", lambda: all(host.collector() for host in self.hosts))
        os.kill(hub.server(), signal.SIGKILL)
        self.assertIn("rank 3 never called it", self.await_news("DC201")[3])
        for host in self.hosts:
            self.assertNotIn("is the token right?", host.said())

    def test_killed_collectors(self):
        """Each has a successor, which takes over what it has stored. The first are killed as soon as they are there."""
        hub = self.start_hub()
        self.start_recording(hub)
        killed = [host.collector() for host in self.hosts]
        for collector in killed:
            os.kill(collector, signal.SIGKILL)
        self.await_digests(hub)
        await_true("successors", lambda: not {host.collector() for host in self.hosts} & {None, *killed})
        for host in self.hosts:
            os.kill(host.collector(), signal.SIGKILL)
        self.assertIn("rank 3 never called it", self.await_news("DC201")[3])
        self.assertNotIn("DC212", hub.said())

    def test_findings_that_come_before_rank_0(self):
        """A collector hears what the hub has found as soon as it connects, and knows its ranks later. Its successor hears it again."""
        self.hang_after = "60"
        hub = self.start_hub()
        stranger = self.stranger(hub)
        stranger.send_to_stream("ddpcheck.job.keep.news.early", message(news("DC209", "this test says so")))
        self.start_recording(hub)
        self.await_news("DC209")
        killed = self.hosts[0].collector()
        os.kill(killed, signal.SIGKILL)
        await_true("a successor", lambda: self.hosts[0].collector() not in (None, killed))
        while not stranger.hears("ddpcheck.job.digest.*").split(".")[-1].startswith("n0"):
            pass
        time.sleep(1)   # it reports what it hears at once
        self.assertEqual(self.hosts[0].said().count("error DC209: this test says so"), 1)

    def test_a_cut_network(self):
        """Nobody is heard, since the server stands still for longer than a host may be silent: no host is said to be. What
        was lost is sent again."""
        hub = self.start_hub()
        self.start_recording(hub)
        os.kill(hub.server(), signal.SIGSTOP)
        time.sleep(9)
        os.kill(hub.server(), signal.SIGCONT)
        self.assertIn("rank 3 never called it", self.await_news("DC201")[3])
        self.assertNotIn("DC212", hub.said())

    def test_a_deleted_stream(self):
        """The hub makes it anew, and all send again what was kept in it."""
        hub = self.start_hub()
        os.kill(hub.process.pid, signal.SIGSTOP)
        try:
            self.start_recording(hub)
            self.await_digests(hub)
            self.delete_stream(hub)
        finally:
            os.kill(hub.process.pid, signal.SIGCONT)
        self.assertIn("rank 3 never called it", self.await_news("DC201")[3])
        self.assertEqual(self.hosts[0].said().count("error DC201"), 1)

    def test_a_server_that_lost_its_files(self):
        hub = self.start_hub()
        os.kill(hub.process.pid, signal.SIGSTOP)      # it does not start the server again too soon
        try:
            self.start_recording(hub)
            self.await_digests(hub)
            os.kill(hub.server(), signal.SIGKILL)
            await_true("its port is free", lambda: is_free(hub.port))
            shutil.rmtree(os.path.join(hub.folder, "jetstream"))
        finally:
            os.kill(hub.process.pid, signal.SIGCONT)
        self.assertIn("rank 3 never called it", self.await_news("DC201")[3])
        self.assertEqual(self.hosts[0].said().count("error DC201"), 1)

    def test_facts_that_nobody_keeps(self):
        """Each host says so, once, and reports by itself until they are kept."""
        hub = self.start_hub()
        os.kill(hub.process.pid, signal.SIGSTOP)
        try:
            self.delete_stream(hub)
            self.start_recording(hub)
            for host in self.hosts:
                await_true("it says so", lambda host=host: "the hub's server has kept nothing of what this host sent" in host.said())
        finally:
            os.kill(hub.process.pid, signal.SIGCONT)
        self.assertIn("rank 3 never called it", self.await_news("DC201")[3])
        for host in self.hosts:
            self.assertEqual(host.said().count("has kept nothing of what"), 1)

    def delete_stream(self, hub):
        self.assertIsNone(self.stranger(hub).refusal("PUB $JS.API.STREAM.DELETE.ddpcheck-job", b""))

    def test_hosts_that_are_cut_off(self):
        """All of them: they are silent, in one line, then they are there again, and the job goes on."""
        hub = self.start_hub()
        self.start_recording(hub)
        collectors = [host.collector() for host in self.hosts]
        self.await_digests(hub)
        for collector in collectors:
            os.kill(collector, signal.SIGSTOP)
        try:
            await_true("four silent hosts", lambda: "possible error DC212: %d hosts (n[0-%d]) with ranks" % (HOSTS, HOSTS - 1) in hub.said())
            self.assertEqual(hub.said().count("possible error DC212"), 1)
        finally:
            for collector in collectors:
                os.kill(collector, signal.SIGCONT)
        await_true("four hosts again", lambda: "DC212 is withdrawn: " in hub.said())
        self.assertIn("rank 3 never called it", self.await_news("DC201")[3])

    def await_digests(self, hub):
        """Of each host one."""
        heard, stranger = set(), self.stranger(hub)
        while len(heard) < HOSTS:
            heard.add(stranger.hears("ddpcheck.job.digest.*"))

    @unittest.skipIf(is_sanitized(BUILD), "the library that shifts clocks has no sanitizer")
    def test_clocks_that_are_off(self):
        """A host 60 s ahead and one 10 s behind: the finding is there as with one clock, and it is said whose clocks are off."""
        hub = self.start_hub()
        shifts = {0: 60, 1: -10}
        master = free_port()
        library = os.path.join(BUILD, "tests", "job", "libclock_shift.so")
        self.hosts = [Host(rank, self.folder, hub.url, ("--fault", "partial-barrier", "--iterations", "20"), master,
                           options=("--hang-after", self.hang_after),
                           env={"LD_PRELOAD": library, "CLOCK_SHIFT_S": str(shifts.get(rank, 0))}) for rank in range(HOSTS)]
        self.assertIn("rank 3 never called it", self.await_news("DC201")[3])
        await_true("the hub says so", lambda: hub.said().count("the clock of host") == len(shifts))
        self.assertRegex(hub.said(), r"the clock of host n0 is (59|60)\.\d s ahead of that of the hub")
        self.assertRegex(hub.said(), r"the clock of host n1 is 1[01]\.\d s behind that of the hub")
        database = os.path.join(hub.folder, "job.db")
        text = subprocess.run([DDPCHECK, "report", database], capture_output=True, text=True, check=False).stdout
        self.assertRegex(text, r"the clock of n0 was (59|60)\.\d s ahead of the hub's")
        self.assertNotIn("DC212", text)
        with sqlite3.connect(database) as connection:
            times = [row[0] for row in connection.execute("SELECT realtime_ns - monotonic_ns FROM process")]
        self.assertLess(max(times) - min(times), 1e9)
        self.end_hosts()
        self.compare_clocks_of_databases()

    def compare_clocks_of_databases(self):
        """Without a hub, by the collectives that the hosts took part in: the first is ahead, the second behind the other two."""
        traces = [host.trace for host in self.hosts]
        for how in ("--reanalyse", "--by-host"):
            text = subprocess.run([DDPCHECK, "report", how, *traces], capture_output=True, text=True, check=False).stdout
            self.assertRegex(text, r"the clock of n0 was (59|60)\.\d s ahead of that of other hosts", text)
            self.assertRegex(text, r"the clock of n1 was (9|10)\.\d s behind that of other hosts", text)
            self.assertIn("error DC201", text)
            self.assertNotIn("DC212", text)
        done = subprocess.run([DDPCHECK, "report", "--json", *traces], capture_output=True, text=True, check=False)
        clocks = {clock["host"]: round(clock["offset_ns"] / 1e9) for clock in json.loads(done.stdout.splitlines()[0])["clocks"]}
        self.assertEqual(clocks, {"n0": -60, "n1": 10})

    def stranger(self, hub):
        """One that may send and hear everything."""
        stranger = Stranger(hub, "hub")
        self.addCleanup(stranger.close)
        return stranger

    def test_the_first_host_ends(self):
        """The terminal of the lowest rank that is left has what is found later: that its neighbour is silent."""
        self.hang_after = "600"
        hub = self.start_hub()
        self.start_hosts(hub.url, "--iterations", "1000000")
        self.await_digests(hub)
        self.hosts[0].process.terminate()
        self.hosts[0].process.wait(60)
        collector = self.hosts[2].collector()
        os.kill(collector, signal.SIGSTOP)
        try:
            line = self.await_line("possible error DC212: host n2 with rank 2 has been silent", host=1)
        finally:
            os.kill(collector, signal.SIGCONT)
        self.await_line("DC212 is withdrawn", host=1)
        self.assertNotIn("DC212", self.hosts[3].said())
        self.assertEqual(self.hosts[1].said().count(line), 1)

    def await_line(self, words, host):
        await_true("a line with " + words, lambda: words in self.hosts[host].said())
        return words

    def test_messages_that_make_no_sense(self):
        """Of a stranger with the token: refused, counted, said once by each who gets them. The job's finding is there."""
        hub = self.start_hub()
        self.start_recording(hub)
        stranger = self.stranger(hub)
        host = stranger.hears("ddpcheck.job.digest.*").rsplit(".", 1)[1]
        stranger.send("ddpcheck.job.ask.%s.hub.1" % host, message(BEAT, version=0), times=3)
        stranger.send("ddpcheck.job.digest.noise", os.urandom(64), times=3)
        stranger.send("ddpcheck.job.digest.old", message(BEAT, version=0), times=2)
        stranger.send("ddpcheck.job.digest.cut", message(BEAT)[:-1])
        stranger.send("ddpcheck.job.digest." + host, message(BEAT, sender=1))
        refusals = {"noise": "what came is no message of ddpcheck", "cut": "a message of 55 bytes says that it has 56", host: "another sender has its name",
                    "old": "a message has version 0, this ddpcheck reads version 3: use one version of ddpcheck on all hosts"}
        for name, why in refusals.items():
            line = "ddpcheck: hub: a message of host %s is refused: %s\n" % (name, why)
            await_true("a refusal of " + name, lambda line=line: line in hub.said())
        self.assertIn("rank 3 never called it", self.await_news("DC201")[3])
        refused = [other.said().count("a message of the job's hub is refused: a message has version 0") for other in self.hosts]
        self.assertEqual(sorted(refused), [0] * (HOSTS - 1) + [1])
        said = hub.end()[2]
        self.assertEqual(said.count("is refused: "), len(refusals), said)
        self.assertIn("ddpcheck: hub: refused messages: 7\n", said)

    def test_another_job(self):
        """A job of another name on the same server: the hub takes nothing of it."""
        self.hang_after = "60"
        hub = self.start_hub()
        self.start_hosts(hub.url + "/other", "--iterations", "3")
        for host in self.hosts:
            self.assertEqual(host.process.wait(120), 0, host.said())
        self.stranger(hub).send("ddpcheck.other.digest.n9", os.urandom(64))
        stranger = self.stranger(hub)
        stranger.send("ddpcheck.job.digest.last", os.urandom(64))
        await_true("a refusal", lambda: "host last is refused" in hub.said())
        self.assertEqual(len(hub.end()[2].splitlines()), 2)     # that, and how many
        with sqlite3.connect(os.path.join(hub.folder, "job.db")) as database:
            self.assertEqual(database.execute("SELECT count(*) FROM process").fetchone(), (0,))

    def test_a_job_without_faults(self):
        self.hang_after = "60"      # hosts of a busy machine are seconds apart
        hub = self.start_hub()
        self.start_hosts(hub.url, "--iterations", "3")
        for host in self.hosts:
            self.assertEqual(host.process.wait(120), 0, host.said())
            self.assertNotIn("error", host.said())
        self.assertEqual(hub.end()[2], "")


if __name__ == "__main__":
    main()
