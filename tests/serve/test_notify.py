"""ddpcheck serve --notify: a command, or an address that gets a POST, hears of each certain error once, and of its withdrawal."""

import http.server
import json
import os
import queue
import shutil
import sys
import threading
import unittest

from jobs import Jobs
from server import Server

BUILD = sys.argv.pop(1)


def setUpModule():
    global JOBS
    JOBS = Jobs(BUILD)


def tearDownModule():
    JOBS.close()


class Receiver(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.received.put((self.path, self.headers["Content-Type"], json.loads(body)))
        self.send_response(self.server.status)
        self.end_headers()

    def log_message(self, *_):
        pass


class Notify(unittest.TestCase):
    def put(self, name):
        """The trace that is served becomes a copy of another."""
        shutil.rmtree(os.path.join(JOBS.folder, "served"), ignore_errors=True)
        shutil.copytree(os.path.join(JOBS.folder, name), os.path.join(JOBS.folder, "served"))

    def receive(self, status=200):
        receiver = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Receiver)
        receiver.received, receiver.status = queue.Queue(), status
        threading.Thread(target=receiver.serve_forever, daemon=True).start()
        self.addCleanup(receiver.server_close)
        self.addCleanup(receiver.shutdown)
        return receiver, "http://127.0.0.1:%d/hook?secret=x" % receiver.server_address[1]

    def check(self, first, second):
        """The hang as `report --json` has it; then a clean trace is in its place."""
        hang, = JOBS.findings("hang")
        self.assertEqual(first, hang)
        self.assertEqual(second, {**hang, "state": "resolved"})

    def test_an_address(self):
        receiver, url = self.receive()
        self.put("hang")
        with Server(JOBS.line, "--notify", url, "served") as server:
            first = receiver.received.get(timeout=120)
            self.assertEqual(first[:2], ("/hook?secret=x", "application/json"))
            os.utime(os.path.join(JOBS.folder, "served"))       # read again, and nothing is new
            self.put("clean")
            self.check(first[2], receiver.received.get(timeout=120)[2])
            self.assertEqual(server.stop(), "")
            self.assertTrue(receiver.received.empty())

    def test_a_command(self):
        """What is in the finding is input, never a word of the command."""
        self.put("hang")
        os.mkfifo(os.path.join(JOBS.folder, "heard"))
        with Server(JOBS.line, "--notify", "cat > heard", "served"):
            with open(os.path.join(JOBS.folder, "heard"), encoding="utf-8") as heard:
                first = json.load(heard)
            self.put("clean")
            with open(os.path.join(JOBS.folder, "heard"), encoding="utf-8") as heard:
                self.check(first, json.load(heard))

    def test_an_address_that_refuses(self):
        """It is said, without the address, which may have a secret."""
        receiver, url = self.receive(status=403)
        self.put("hang")
        with Server(JOBS.line, "--notify", url, "served") as server:
            receiver.received.get(timeout=120)
            line = server.process.stderr.readline()
            self.assertRegex(line, "^ddpcheck: serve: can't send a finding as --notify asks: .*403")
            self.assertNotIn("secret", line)

    def test_a_clean_job(self):
        receiver, url = self.receive()
        with Server(JOBS.line, "--notify", url, "clean") as server:
            server.wait(lambda status, _: status == 200)
            server.stop()
        self.assertTrue(receiver.received.empty())


if __name__ == "__main__":
    unittest.main()
