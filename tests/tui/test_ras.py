"""`ddpcheck tui --ras`: a job as its RAS sees it, live; the connection lost and found again; servers that can't do it."""

import os
import socket
import subprocess
import sys
import tempfile
import threading
import time
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "import"))
from ras_server import RasServer, job    # noqa: E402
from terminal import Terminal            # noqa: E402

build = os.path.abspath(sys.argv[1])
TOOL = os.path.join(build, "bin", "ddpcheck")


class Ras(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="ddpcheck-ras-test-")
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def once(self, *arguments, **environment):
        return subprocess.run([TOOL, "tui", "--once", *arguments], capture_output=True, text=True, timeout=300, cwd=self.folder,
                              stdin=subprocess.DEVNULL, env={**os.environ, "COLUMNS": "100", "TMPDIR": self.folder, **environment})

    def test_a_job_that_comes_to_a_halt(self):
        """It runs, rank 3 stays behind, the connection is lost and comes back: all of it on the screen, in a view that stays."""
        server = RasServer(job([5, 5, 5, 5]))
        with Terminal(self.folder, "cd %s && TMPDIR=%s %s tui --ras %s" % (self.folder, self.folder, TOOL, server.address), 110, 30) as terminal:
            self.assertIn("RAS at " + server.address, terminal.wait(r"(?s)comm ae94 +#5.*0-3"))
            server.state = job([9, 9, 9, 8])
            terminal.wait(r"3 +#8 +-1")
            text = terminal.wait(r"(?s)DC201.*ranks 0-2 wait in", 60)
            self.assertIn("ncclAllReduce #9 of comm ae94", " ".join(text.split()))
            self.assertIn("live", text)
            terminal.keys("2", "Enter")
            terminal.wait("never called it")
            asked = server.asked
            terminal.wait("never called it")
            server.close()
            terminal.wait("RAS at %s: can't connect: Connection refused" % server.address, 60)
            self.assertIn("never called it", terminal.text(), "the view stays")
            server.open(server.port)
            terminal.wait(r"\A(?!(?s:.*can't connect))", 60)
            self.assertIn("never called it", terminal.text())
            server.state = job([20, 20, 20, 20])
            terminal.keys("Escape")
            terminal.keys("1")
            terminal.wait(r"comm ae94 +#20 .*4 issued")
            self.assertGreater(server.asked, asked)
            terminal.keys("q")
            terminal.wait("status=0")
        server.close()
        self.assertEqual([name for name in os.listdir(self.folder) if name.startswith("ddpcheck-ras")], [], "nothing is left behind")

    def test_diagnostics(self):
        """NCCL 2.31 and later has its own, which are shown beside what ddpcheck finds."""
        with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "import", "real", "diag-rccl.log"), encoding="utf-8") as file:
            diagnostics = "".join(line for line in file if not line.startswith("# "))
        server = RasServer(job([7, 7, 7, 7]), diagnostics=diagnostics)
        with Terminal(self.folder, "cd %s && TMPDIR=%s %s tui --ras %s" % (self.folder, self.folder, TOOL, server.address), 110, 30) as terminal:
            terminal.keys("2")
            terminal.wait(r"uncorrected volatile errors", 60)
            terminal.wait(r"NCCL_BUFFSIZE differs")
            terminal.keys("q")
            terminal.wait("status=0")
        server.close()

    def test_trickle(self):
        """A server that sends a byte now and then is given up."""
        listener = socket.create_server(("127.0.0.1", 0))

        def trickle():
            client, _ = listener.accept()
            with client:
                try:
                    while True:
                        client.sendall(b"x")
                        time.sleep(0.5)
                except OSError:
                    pass
        threading.Thread(target=trickle, daemon=True).start()
        done = self.once("--ras", "127.0.0.1:%d" % listener.getsockname()[1])
        listener.close()
        self.assertIn("given up", done.stdout + done.stderr)

    def test_once(self):
        server = RasServer(job([7, 7, 6, 7]))
        done = self.once("--ras", server.address)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertRegex(done.stdout, r"2 +#6 +-1")
        done = self.once("--ras", "auto", NCCL_RAS_ADDR=server.address)
        self.assertRegex(done.stdout, r"2 +#6 +-1")
        server.state = job([7, 7, 6, 7], missing=(1,))
        done = self.once("--ras", server.address, "--view", "findings")
        self.assertIn("considered dead", done.stdout)
        server.close()
        self.assertEqual(os.listdir(self.folder), [])

    def refused(self, address, *words):
        done = self.once("--ras", address)
        self.assertEqual((done.returncode, done.stdout), (2, ""), done.stderr)
        for word in words:
            self.assertIn(word, done.stderr)

    def test_servers_that_cannot_do_it(self):
        server = RasServer(job([1, 1]), knows_json=False)
        self.refused(server.address, "text only", "NCCL 2.28.7 or later")
        server.knows_json = True
        server.state = "no JSON at all"
        self.refused(server.address, "RAS answered no JSON")
        server.state = ""
        self.refused(server.address, "without an answer")
        server.state = {"communicators": 5}
        self.refused(server.address, "no list \"communicators\"")
        server.close()
        self.refused(server.address, "Connection refused", "NCCL_RAS_ADDR")

    def test_what_is_no_ras(self):
        with socket.socket() as listener:
            listener.bind(("127.0.0.1", 0))
            listener.listen()
            silent = "127.0.0.1:%d" % listener.getsockname()[1]
            self.refused(silent, "no answer")       # it accepts, and says nothing
        for address in "x:y", ":", "[::1", "host:":
            self.refused(address, "ddpcheck: ")
        done = self.once("--ras", "localhost:1", "trace")
        self.assertEqual(done.returncode, 2)
        self.assertIn("not a trace", done.stderr)


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[2:]])
