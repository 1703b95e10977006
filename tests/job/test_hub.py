"""`ddpcheck hub` as a process: what it prints and writes, how it ends, and its messages when it can't start.

test_hub.py BUILD"""

import concurrent.futures
import itertools
import os
import resource
import shutil
import signal
import socket
import stat
import subprocess
import sys
import tempfile
import time
import unittest

from hub import URL, Hub, Stranger, await_true, digest, free_port, is_sanitized, message, news, read_file, runs

BUILD = os.path.abspath(sys.argv.pop(1))
DDPCHECK = os.path.join(BUILD, "bin", "ddpcheck")


def mode(path):
    return stat.S_IMODE(os.stat(path).st_mode)


def answers(port, line):
    """What nats-server sends after its greeting when a client sends this line."""
    with socket.create_connection(("127.0.0.1", port), timeout=20) as sock:
        file = sock.makefile("rwb")
        greeting = file.readline()
        assert greeting.startswith(b"INFO "), greeting
        file.write(line + b"\r\nPING\r\n")
        file.flush()
        return file.readline()


def binds(sock, port):
    """The threads of a killed process keep its socket a moment longer than it is seen to run."""
    try:
        sock.bind(("127.0.0.1", port))
    except OSError:
        return False
    return True


class HubProcess(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="ddpcheck-test-hub-")
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)

    def hub(self, *options, **named):
        hub = Hub(BUILD, os.path.join(self.folder, named.pop("name", "hub")), *options, **named)
        self.addCleanup(hub.__exit__)
        return hub

    def test_output_is_not_read(self):
        """A hub whose reader is gone, or reads no more, serves its job: it starts a killed server again and ends when it is asked to."""
        for what in "gone", "full":
            reader, writer = os.pipe()
            os.set_blocking(writer, False)
            while what == "full":
                try:
                    os.write(writer, b"x" * 4096)
                except BlockingIOError:
                    break
            os.set_blocking(writer, True)
            if what == "gone":
                os.close(reader)
            hub = self.hub(name=what, stderr=writer)
            os.close(writer)
            first = hub.server()
            os.kill(first, signal.SIGKILL)
            await_true(what + ": another server", lambda hub=hub, first=first: hub.server() not in (None, first))
            self.assertEqual(hub.end()[0], 0, what)
            if what == "full":
                os.close(reader)

    def failure(self, *options, **env):
        """The message of a hub that does not start, on one line."""
        done = subprocess.run([DDPCHECK, "hub", "--dir", os.path.join(self.folder, "other"), *options], text=True,
                              capture_output=True, timeout=300, env=dict(os.environ, **env), check=False)
        self.assertEqual((done.returncode, done.stdout), (2, ""), done)
        self.assertEqual(len(done.stderr.splitlines()), 1, done.stderr)
        return done.stderr

    def test_only_the_token_opens_it(self):
        hub = self.hub()
        self.assertEqual(URL.match(hub.url).groups(), ("nats", hub.token, "127.0.0.1", str(hub.port)))
        self.assertRegex(hub.token, "^[0-9a-f]{32}$")
        self.assertEqual(answers(hub.port, b'CONNECT {"user":"host","pass":"%s","verbose":false}' % hub.token.encode()), b"PONG\r\n")
        for line in (b"CONNECT {}", b'CONNECT {"auth_token":"guess"}', b'CONNECT {"user":"a","pass":"b"}'):
            self.assertEqual(answers(hub.port, line), b"-ERR 'Authorization Violation'\r\n", line)
        await_true("its database's log", lambda: os.path.exists(os.path.join(hub.folder, "job.db-wal")))
        for name in ("nats.conf", "token", "job.db", "job.db-wal", "job.db-shm"):
            self.assertEqual(mode(os.path.join(hub.folder, name)), 0o600, name)
        self.assertEqual(mode(hub.folder), 0o700)
        self.assertEqual(mode(os.path.join(hub.folder, "jetstream")), 0o700)
        command = read_file("/proc/%d/cmdline" % hub.server()) + read_file("/proc/%d/cmdline" % hub.process.pid)
        self.assertNotIn(hub.token, command)

    def test_what_each_user_may_do(self):
        """News, requests and streams are the hub's; hosts send what is theirs; readers only read."""
        hub = self.hub()
        self.assertEqual(mode(os.path.join(hub.folder, "reader-token")), 0o600)
        self.assertRegex(hub.password("reader"), "^read-[0-9a-f]{32}$")
        self.assertNotIn(hub.password("hub"), (hub.token, hub.password("reader")))
        forged = message(news("DC209", "this test says so"))
        its_own = ("PUB ddpcheck.job.digest.n1", "PUB ddpcheck.job.keep.fact.n1.0", "PUB ddpcheck.job.answer.x.n1.1")
        the_hubs = ("PUB ddpcheck.job.keep.news.1", "PUB ddpcheck.job.ask.n1.x.1", "PUB ddpcheck.job.renew", "PUB _INBOX.x",
                    "PUB ddpcheck.job.view.x.1", "PUB $JS.API.STREAM.DELETE.ddpcheck-job", "PUB $JS.API.STREAM.PURGE.ddpcheck-job",
                    "PUB $JS.API.STREAM.UPDATE.ddpcheck-job", "PUB $JS.API.STREAM.CREATE.other",
                    "PUB $JS.API.CONSUMER.CREATE.ddpcheck-job.x.ddpcheck.job.keep.fact.>")
        for user in ("host", "reader"):
            stranger = Stranger(hub, user)
            self.addCleanup(stranger.close)
            for line in its_own:
                self.assertEqual(stranger.refusal(line, b"x") is None, user == "host", (user, line))
            self.assertIsNone(stranger.refusal("PUB ddpcheck.job.read.x.1", b"x"))
            for line in the_hubs:
                self.assertIn("Permissions Violation", stranger.refusal(line, forged) or "", (user, line))
            for subject in ("ddpcheck.job.digest.*", "ddpcheck-hub.>", "ddpcheck.job.keep.fact.>"):     # senders' numbers are there
                self.assertIn("Permissions Violation", stranger.refusal("SUB %s 1" % subject) or "", (user, subject))

    @unittest.skipIf(is_sanitized(BUILD), "a sanitizer needs more address space than the limit")
    def test_made_up_hosts(self):
        """Each makes room for 65,536 processes: they are refused before the hub's memory is short."""
        hub = self.hub()
        resource.prlimit(hub.process.pid, resource.RLIMIT_AS, (3 << 30, 3 << 30))
        stranger = Stranger(hub)
        self.addCleanup(stranger.close)
        made = itertools.count(1)

        def more_are_refused():
            for i in itertools.islice(made, 300):       # the server drops some where the hub is busy
                stranger.send("ddpcheck.job.digest.made%d" % i, message(digest(i, 0, 65535)))
            return "is refused: the hub has no room for it" in hub.said() or not runs(hub.process.pid)

        await_true("they are refused", more_are_refused)
        self.assertTrue(runs(hub.process.pid), hub.said())
        status, _, errors = hub.end()
        self.assertEqual(status, 0, errors)
        self.assertRegex(errors, r"refused messages: \d+")

    def test_a_reader_with_its_own_token(self):
        hub = self.hub()
        for token in (hub.token, hub.password("reader")):
            done = subprocess.run([DDPCHECK, "report", "nats://%s@127.0.0.1:%d" % (token, hub.port)], capture_output=True, text=True,
                                  timeout=300, check=False)
            self.assertIn("No finding", done.stdout, done)
        self.assertIn("can't begin with read-", self.failure(DDPCHECK_HUB_TOKEN="read-by-nobody"))

    def test_hubs_that_start_at_one_time(self):
        """All want one port, and see that it is free. One gets it, the others take another."""
        port = free_port()
        with concurrent.futures.ThreadPoolExecutor(4) as pool:
            hubs = list(pool.map(lambda i: self.hub("--any-port", name="hub%d" % i, port=port), range(4)))
        self.assertEqual(len({hub.port for hub in hubs}), 4)
        for hub in hubs:
            self.assertEqual(answers(hub.port, b'CONNECT {"user":"host","pass":"%s","verbose":false}' % hub.token.encode()), b"PONG\r\n")

    def test_it_listens_only_where_it_was_asked_to(self):
        hub = self.hub(listen="127.0.0.2")
        self.assertIn("@127.0.0.2:", hub.url)
        with self.assertRaises(ConnectionRefusedError):
            socket.create_connection(("127.0.0.1", hub.port), timeout=20)
        inodes = set()
        for fd in os.listdir("/proc/%d/fd" % hub.server()):
            try:
                inodes.add(os.readlink("/proc/%d/fd/%s" % (hub.server(), fd)))
            except FileNotFoundError:
                pass
        listening = [line.split() for table in ("tcp", "tcp6") for line in read_file("/proc/net/" + table).splitlines()[1:]]
        own = [row[1] for row in listening if row[3] == "0A" and "socket:[%s]" % row[9] in inodes]
        self.assertEqual(own, ["0200007F:%04X" % hub.port])

    def test_signals_end_hub_and_server(self):
        for number in (signal.SIGTERM, signal.SIGINT):
            hub = self.hub()
            server = hub.server()
            status, _, errors = hub.end(number)
            self.assertEqual((status, errors), (0, ""))
            self.assertFalse(runs(server))

    def test_the_server_ends_with_a_killed_hub(self):
        hub = self.hub()
        server = hub.server()
        hub.end(signal.SIGKILL)
        await_true("nats-server ends", lambda: not runs(server))

    def test_a_killed_server_is_started_again(self):
        hub = self.hub()
        first = hub.server()
        os.kill(first, signal.SIGKILL)
        await_true("another server", lambda: hub.server() not in (None, first))
        await_true("it answers", lambda: accepts(hub.port))
        self.assertEqual(answers(hub.port, b'CONNECT {"user":"host","pass":"%s","verbose":false}' % hub.token.encode()), b"PONG\r\n")
        _, _, errors = hub.end()
        self.assertEqual(errors, "ddpcheck: hub: nats-server was killed; it is started again\n")

    def test_the_port_of_a_killed_server_is_taken(self):
        """The hub says so once, waits, and starts the server when the port is free again."""
        hub = self.hub()
        server, taken = hub.server(), socket.socket()
        self.addCleanup(taken.close)
        taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        os.kill(hub.process.pid, signal.SIGSTOP)      # it does not see the end before the port is taken
        try:
            os.kill(server, signal.SIGKILL)
            await_true("the port is free", lambda: binds(taken, hub.port))
            taken.listen()
        finally:
            os.kill(hub.process.pid, signal.SIGCONT)
        await_true("the hub says so", hub.said)
        time.sleep(2.5)      # in which it tries again
        self.assertEqual(hub.said(),
                         "ddpcheck: hub: nats-server was killed, and another program listens on its port %d now; end that program: "
                         "the hub starts nats-server again as soon as the port is free\n" % hub.port)
        taken.close()
        await_true("another server", lambda: hub.server() not in (None, server))
        await_true("it answers", lambda: accepts(hub.port))
        _, _, errors = hub.end()
        self.assertEqual(errors.splitlines()[1:], ["ddpcheck: hub: nats-server was killed; it is started again"])

    def test_a_new_hub_on_the_folder_has_the_token(self):
        first = self.hub()
        first.kill()
        again = self.hub()
        self.assertEqual(again.token, first.token)
        self.assertEqual(self.hub(name="env", env={"DDPCHECK_HUB_TOKEN": "given-token"}).token, "given-token")

    def test_an_external_server(self):
        server = self.hub()
        address = "nats://hub:%s@127.0.0.1:%d" % (server.password("hub"), server.port)
        hub = subprocess.Popen([DDPCHECK, "hub", "--external", address, "--dir", os.path.join(self.folder, "beside")], stdout=subprocess.PIPE, text=True)
        self.addCleanup(hub.stdout.close)
        self.assertEqual(hub.stdout.readline().strip(), address)
        hub.terminate()
        self.assertEqual(hub.wait(60), 0)
        self.assertIn("no NATS server answers at nats://127.0.0.1:",
                      self.failure("--external", "nats://t@127.0.0.1:%d" % free_port()))

    def test_tls(self):
        certificate, key = (os.path.join(self.folder, name) for name in ("cert.pem", "key.pem"))
        subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes",
                        "-keyout", key, "-out", certificate, "-days", "2", "-subj", "/CN=localhost",
                        "-addext", "subjectAltName=IP:127.0.0.1"], check=True, capture_output=True)
        hub = self.hub("--tls-cert", certificate, "--tls-key", key)
        self.assertTrue(hub.url.startswith("tls://"))
        refused = self.failure("--external", hub.url)
        self.assertIn("127.0.0.1:%d" % hub.port, refused)
        for authority, message in (("missing.pem", "can't read missing.pem: No such file or directory"),
                                   ("", "127.0.0.1:%d" % hub.port)):        # an empty variable is none
            done = subprocess.run([DDPCHECK, "report", hub.url], env=dict(os.environ, DDPCHECK_HUB_CA=authority), capture_output=True,
                                  text=True, timeout=300, check=False)
            self.assertEqual(done.returncode, 2)
            self.assertIn(message, done.stderr)
            self.assertEqual("can't read" in done.stderr, bool(authority), done.stderr)
        both = self.hub("--tls-cert", certificate, "--tls-key", key, "--tls-ca", certificate, name="both")
        self.assertTrue(both.url.startswith("tls://"))

    def test_messages(self):
        hub = self.hub()
        self.assertIn("port %d is in use" % hub.port, self.failure("--port", str(hub.port), "--listen", "127.0.0.1"))
        self.assertIn("can't listen on 203.0.113.7", self.failure("--port", str(free_port()), "--listen", "203.0.113.7"))
        self.assertIn("--port takes 1 to 65535", self.failure("--port", "70000"))
        self.assertIn("belong together", self.failure("--tls-cert", "x"))
        self.assertIn("DDPCHECK_HUB_TOKEN may have letters", self.failure(DDPCHECK_HUB_TOKEN="with space"))
        self.assertIn("8 to 128 are possible", self.failure(DDPCHECK_HUB_TOKEN="short"))
        self.assertIn("nats-server ended: ", self.failure("--port", str(free_port()), "--tls-cert", "/dev/null",
                                                          "--tls-key", "/dev/null"))
        public = os.path.join(self.folder, "public")
        with open(public, "w", encoding="utf-8") as file:
            file.write("0123456789\n")
        os.chmod(public, 0o644)
        self.assertIn("others can read", self.failure("--token-file", public))


class Auto(unittest.TestCase):
    """`run --hub auto` where another job's hub is, or was."""
    setUp, hub = HubProcess.setUp, HubProcess.hub

    def start(self, shell, **env):
        """A run whose program is this line of a shell; its trace directory is the test's folder."""
        run = subprocess.Popen([DDPCHECK, "run", "--hub", "auto", "-o", self.folder, "--", "sh", "-c", shell], stdin=subprocess.PIPE,
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=dict(os.environ, **env))
        self.addCleanup(end_run, run)
        return run

    def test_a_program_that_does_not_call_nccl(self):
        """No host comes to its hub, which ends by itself soon after the run that started it has said that it ends."""
        hub = subprocess.Popen([DDPCHECK, "hub", "--one-job", "none", "--dir", self.folder, "--port", str(free_port()), "--any-port"],
                               stdout=subprocess.PIPE, text=True)
        self.addCleanup(end_run, hub)
        self.assertRegex(hub.stdout.readline(), "^nats://")
        hub.send_signal(signal.SIGUSR1)
        hub.communicate(timeout=120)
        self.assertEqual(hub.returncode, 0)

    def test_the_port_of_another_job(self):
        """Without a token of the user's the hub takes another port. With one the other hosts would look for it where the other job's
        hub is, so the job does not start."""
        other = self.hub(name="other")
        address = self.start("cat %s/hub-none.url; read end" % self.folder, DDPCHECK_HUB_PORT=str(other.port)).stdout.readline()
        self.assertRegex(address, r"^nats://[0-9a-f]{32}@\S+:\d+/none\n$")
        self.assertNotIn(":%d/" % other.port, address)
        run = self.start("echo began", DDPCHECK_HUB_PORT=str(other.port), DDPCHECK_HUB_TOKEN=other.token)
        self.assertEqual(run.communicate(timeout=120),
                         ("", "ddpcheck: port %d is in use, perhaps by the hub of another job; set DDPCHECK_HUB_PORT to another one on "
                          "all hosts\nddpcheck: the hub did not start\n" % other.port))
        self.assertEqual(run.returncode, 2)

    def test_the_address_of_a_killed_run(self):
        """Nobody listens there: the other hosts wait for that of this run."""
        path = os.path.join(self.folder, "hub-pods-127.0.0.1.url")
        stale = "nats://0123456789@127.0.0.1:%d/pods-127.0.0.1" % free_port()
        with open(path, "w", encoding="utf-8", opener=lambda name, flags: os.open(name, flags, 0o600)) as file:
            file.write(stale + "\n")
        env = {"MASTER_ADDR": "127.0.0.1", "RANK": "1"}
        second = self.start("cat %s" % path, **env)
        first = self.start("cat %s; read end" % path, **dict(env, RANK="0"))
        address = first.stdout.readline()
        self.assertRegex(address, "^nats://[0-9a-f]{32}@127.0.0.1:")
        self.assertEqual(second.communicate(timeout=120)[0], address)


def end_run(run):
    run.kill()
    run.communicate()


def accepts(port):
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=20):
            return True
    except ConnectionRefusedError:
        return False


if __name__ == "__main__":
    unittest.main()
