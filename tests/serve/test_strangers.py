"""What strangers may do to `ddpcheck serve`: garbage, large and slow requests, slow readers, many of them. Others are served
meanwhile, nothing of the trace comes without the token, and the server lives."""

import random
import re
import socket
import sys
import unittest

from jobs import Jobs
from server import Server

BUILD = sys.argv.pop(1)
SEED = 39
GOOD = b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n"
OF_ADDRESS = 128         # connections that one address may have (cmd/serve/http_server.c)


def setUpModule():
    global JOBS
    JOBS = Jobs(BUILD)


def tearDownModule():
    JOBS.close()


class Strangers(unittest.TestCase):
    def setUp(self):
        """A server that wants a token, and whose trace is read."""
        self.server = Server(JOBS.line, "hang", listen="0.0.0.0:0")
        self.addCleanup(self.server.stop)
        self.server.host = "127.0.0.1"
        self.authorized = {"Authorization": "Bearer " + self.server.token}
        while self.server.get("/", self.authorized)[0] != 200:
            pass

    def connect(self, source="127.0.0.1", **options):
        connection = socket.create_connection(("127.0.0.1", self.server.port), timeout=300, source_address=(source, 0), **options)
        self.addCleanup(connection.close)
        return connection

    def send(self, data):
        """What has come back for these bytes when a later request was answered, the sender being done with them: the server takes
        them in order, and libmicrohttpd leaves some garbage without an answer until the minute is over."""
        connection, answer = self.connect(), b""
        try:
            connection.sendall(data)
            connection.shutdown(socket.SHUT_WR)
            self.server.get("/healthz")
            connection.setblocking(False)
            while part := connection.recv(65536):
                answer += part
        except OSError:         # closed in the face of the sender, or nothing more has come
            pass
        connection.close()
        return answer

    def check_alive(self):
        self.assertEqual(self.server.get("/healthz")[::2], (200, "ok\n"))
        status, _, text = self.server.get("/", self.authorized)
        self.assertEqual(status, 200)
        self.assertIn("DC201", text)
        self.assertIsNone(self.server.process.poll())

    def check_reveals_nothing(self, answer, what):
        for word in (b"DC201", b"ddptrain", b"ncclAllReduce", b"rank=", self.server.token.encode()):
            self.assertNotIn(word, answer, what)

    def test_garbage(self):
        """Requests with bytes changed, removed, repeated and inserted, and bytes at random."""
        chance = random.Random(SEED)
        begin = [GOOD, b"GET /metrics?token=a HTTP/1.0\r\nCookie: ddpcheck-1=x; a\r\n\r\n", b"POST / HTTP/1.1\r\nContent-Length: 9\r\n\r\nabc",
                 b"GET / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nabcde\r\n0\r\n\r\n", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
                 b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(200)]
        for round in range(600):
            data = bytearray(chance.choice(begin))
            for _ in range(chance.randrange(1, 12)):
                at = chance.randrange(len(data) + 1)
                how = chance.randrange(4)
                if how == 0 and at < len(data):
                    data[at] = chance.randrange(256)
                elif how == 1:
                    del data[at:at + chance.randrange(8)]
                elif how == 2:
                    data[at:at] = data[at:at + 20] * chance.randrange(20)
                else:
                    data[at:at] = bytes(chance.randrange(256) for _ in range(chance.randrange(40)))
            answer = self.send(bytes(data))
            self.check_reveals_nothing(answer, (round, bytes(data)))
            statuses = re.findall(rb"^HTTP/1\.[01] (\d+)", answer)
            self.assertTrue(all(status[:1] == b"4" or status in (b"501", b"505") for status in statuses), (round, bytes(data), answer))
        self.check_alive()

    def test_paths(self):
        """A path is a name in a list: nothing leads to a file, and what is not there looks like what may not be seen."""
        for path in (b"/../../etc/passwd", b"//etc/passwd", b"/%2e%2e/%2e%2e/etc/passwd", b"/..%5c..", b"/hang", b"/hang/vm.db", b"/.",
                     b"/%00", b"/metrics/", b"/metrics%00", b"*", b"http://127.0.0.1/metrics", b"/" + b"a" * 8000, b"/?" + b"&a=b" * 2000):
            answer = self.send(b"GET %s HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n" % path)
            self.assertNotIn(b"root:", answer)
            self.assertTrue(re.match(rb"HTTP/1\.1 4\d\d|$", answer), (path[:40], answer[:40]))     # or closed: it is too large
            self.check_reveals_nothing(answer, path)
        self.check_alive()

    def test_large_requests(self):
        for data in (b"GET / HTTP/1.1\r\nX: " + b"a" * (1 << 20) + b"\r\n\r\n", b"GET / HTTP/1.1\r\n" + b"X: a\r\n" * 100000 + b"\r\n",
                     b"GET /" + b"a" * (1 << 20), b"a" * (1 << 20), b"GET / HTTP/1.1\r\nCookie: " + b"a=b; " * 3000 + b"\r\n\r\n",
                     b"GET / HTTP/1.1\r\nHost: x\r\nContent-Length: 99999999999\r\n\r\n" + b"a" * (1 << 20),
                     b"GET / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n" + b"10000\r\n" + b"a" * 65536):
            answer = self.send(data)
            self.check_reveals_nothing(answer, data[:60])
            self.assertNotIn(b"HTTP/1.1 200", answer)
        with open("/proc/%d/status" % self.server.process.pid, encoding="ascii") as file:
            used_kb = int(re.search(r"VmRSS:\s+(\d+)", file.read()).group(1))
        self.assertLess(used_kb, 100000)
        self.check_alive()

    def test_only_reading(self):
        for method in ("POST", "PUT", "DELETE", "OPTIONS", "TRACE", "CONNECT", "PATCH", "XX"):
            status, headers, text = self.server.get("/", self.authorized, method, body="x" if method == "POST" else None)
            self.assertEqual((status, headers["Allow"]), (405, "GET, HEAD"), method)
            self.assertNotIn("DC201", text)
        self.assertEqual(self.server.get("/", self.authorized, body="x")[0], 400)
        self.check_alive()

    def test_slow_readers(self):
        """They ask for the page again and again and read nothing; who reads is served."""
        line = b"GET / HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\n\r\n" % self.server.token.encode()
        for _ in range(20):
            connection = self.connect()
            connection.setblocking(False)
            try:
                while connection.send(line * 100):
                    pass
            except BlockingIOError:
                pass
            self.check_alive()

    def ask_from_elsewhere(self):
        with self.connect("127.0.0.2") as other:
            other.sendall(GOOD)
            self.assertIn(b" 401 ", other.recv(65536))

    def test_slow_senders(self):
        """One address has all its connections, none with a whole request: another address is served at once, and they are shut
        down within a minute, though one of them sends a byte whenever somebody else was served."""
        held = [self.connect() for _ in range(OF_ADDRESS)]
        for connection in held:
            connection.sendall(b"GET / HTTP/1.1\r\nX: ")
        self.ask_from_elsewhere()
        self.assertEqual(self.connect().recv(1), b"", "one more of the address is refused")
        held[0].settimeout(1)
        while True:
            try:
                held[0].sendall(b"a")
                if not held[0].recv(1):
                    break
            except TimeoutError:
                continue
            except OSError:
                break
        for connection in held[1:]:
            self.assertEqual(connection.recv(1), b"")
        self.ask_from_elsewhere()       # when that is answered, the places of the others are free
        self.check_alive()


if __name__ == "__main__":
    unittest.main()
