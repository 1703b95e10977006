"""A hub for a test: `ddpcheck hub` as a process, on a port and in a folder of its own."""

import os
import re
import select
import signal
import socket
import struct
import subprocess
import tempfile
import time

PATIENCE_S = 60
URL = re.compile(r"^(nats|tls)://([\w-]+)@([^/]+):(\d+)$")


GIVEN = set()


def free_port():
    """One that this program has not had before: tests run beside each other."""
    while True:
        with socket.socket() as sock:
            sock.bind(("127.0.0.1", 0))
            port = sock.getsockname()[1]
        if port not in GIVEN:
            GIVEN.add(port)
            return port


def is_sanitized(build):
    with open(os.path.join(build, "CMakeCache.txt"), encoding="utf-8") as cache:
        return re.search(r"^DDPCHECK_SANITIZE:[^=]*=(address|thread|undefined)", cache.read(), re.M) is not None


def await_true(what, predicate, patience_s=PATIENCE_S):
    until = time.monotonic() + patience_s
    while not predicate():
        if time.monotonic() > until:
            raise AssertionError("waited %g s in vain: %s" % (patience_s, what))
        time.sleep(0.02)


def read_file(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def children(pid):
    return [int(child) for child in read_file("/proc/%d/task/%d/children" % (pid, pid)).split()]


def runs(pid):
    try:
        return read_file("/proc/%d/stat" % pid).rsplit(") ", 1)[1][0] != "Z"
    except FileNotFoundError:
        return False


def is_free(port):
    """Nobody listens there. The threads of a killed process keep its socket a moment longer than it is seen to run."""
    with socket.socket() as sock:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            sock.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True


class Hub:
    """with Hub(build, folder) as hub: hub.url ..."""

    def __init__(self, build, folder, *options, port=None, env=None, listen="127.0.0.1", stderr=None):
        self.folder = folder
        # A port that is free now may be another program's a moment later: then the hub takes another one.
        where = ["--port", str(port)] if port else ["--port", str(free_port()), "--any-port"]
        command = [os.path.join(build, "bin", "ddpcheck"), "hub", *where, "--dir", folder, *options]
        if listen:
            command += ["--listen", listen]
        self.errors = tempfile.NamedTemporaryFile("w", prefix="ddpcheck-test-hub-errors-", encoding="utf-8")
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=stderr or self.errors, text=True,
                                        env=dict(os.environ, **(env or {})))
        ready, _, _ = select.select([self.process.stdout], [], [], PATIENCE_S)
        self.url = self.process.stdout.readline().strip() if ready else ""
        if not URL.match(self.url):
            self.process.kill()
            self.process.communicate()
            raise AssertionError("the hub printed %r, and on stderr: %s" % (self.url, self.said()))
        self.token = URL.match(self.url)[2]
        self.port = int(URL.match(self.url)[4])

    def said(self):
        """Its stderr so far."""
        with open(self.errors.name, encoding="utf-8") as file:
            return file.read()

    def password(self, user):
        """Of a user of its server: hub, host, reader."""
        return re.search(r'user: "%s", password: "([^"]+)"' % user, read_file(os.path.join(self.folder, "nats.conf")))[1]

    def server(self):
        """The process number of its nats-server; None if there is none."""
        found = children(self.process.pid)
        return found[0] if found else None

    def end(self, number=signal.SIGTERM):
        self.process.send_signal(number)
        output, _ = self.process.communicate(timeout=PATIENCE_S)
        return self.process.returncode, output, self.said()

    def kill(self):
        """Kills it; its server ends with it, and the port is free."""
        server = self.server()
        self.end(signal.SIGKILL)
        await_true("nats-server ends", lambda: not server or not runs(server))
        await_true("its port is free", lambda: is_free(self.port))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.end()


def message(*items, version=3, magic=b"DDPJ", sender=0):
    """A message as lib/job/message.h has it; items are (kind, bytes)."""
    body = b"".join(struct.pack("<HHI", kind, 0, len(data)) + data for kind, data in items)
    return struct.pack("<4sHHIIQ", magic, version, 24, 24 + len(body), 0, sender) + body


BEAT = (10, struct.pack("<QIIII", 0, 1, 0, 0, 0))


def digest(comm, rank, process):
    """A member that has issued nothing."""
    return 11, struct.pack("<QiiII3QQ3Q", comm, rank, 8, process, 0, 0, 0, 0, 0, 0, 0, 0)


def news(code, text):
    """A certain error that the hub has just found, and that is open."""
    return 30, struct.pack("<QQQIBBBB8s256s2048s512s2048s", 0, 0, time.time_ns(), 77, 0, 0, 0, 0, code.encode(), b"train.c:1", text.encode(), b"", b"")


class Stranger:
    """A client of the hub's server that sends what it likes: with the token of hosts, or as another user."""

    def __init__(self, hub, user="host"):
        self.socket = socket.create_connection(("127.0.0.1", hub.port), timeout=PATIENCE_S)
        self.file = self.socket.makefile("rwb")
        self.file.readline()
        self.write(b'CONNECT {"user":"%s","pass":"%s","verbose":false,"pedantic":false}' % (user.encode(), hub.password(user).encode()))

    def refusal(self, line, data=None):
        """The server's words about what is sent; None if it accepts that."""
        self.write(line.encode() + (b" %d\r\n%s" % (len(data), data) if data is not None else b""))
        self.write(b"PING")
        while True:
            answer = self.file.readline()
            if answer == b"PONG\r\n":
                return None
            if answer.startswith(b"-ERR"):
                while self.file.readline() != b"PONG\r\n":
                    pass
                return answer.decode()

    def write(self, line):
        self.file.write(line + b"\r\n")
        self.file.flush()

    def send(self, subject, data, times=1):
        for _ in range(times):
            self.write(b"PUB %s %d\r\n%s" % (subject.encode(), len(data), data))

    def send_to_stream(self, subject, data):
        """Sends it until a stream of the server has it: the hub makes its own after it has printed its address."""
        self.write(b"SUB _INBOX.stored 2")
        while not select.select([self.socket], [], [], 0.2)[0]:
            self.write(b"PUB %s _INBOX.stored %d\r\n%s" % (subject.encode(), len(data), data))
        words = self.file.readline().split()
        assert words[0] == b"MSG", words
        self.file.read(int(words[-1]) + len(b"\r\n"))
        self.write(b"UNSUB 2")

    def hears(self, subject):
        """The subject of the next message to one like this."""
        self.write(b"SUB %s 1" % subject.encode())
        while True:
            words = self.file.readline().split()
            assert words, "the server ended the connection"
            if words[0] == b"PING":
                self.write(b"PONG")
            elif words[0] == b"MSG":
                self.file.read(int(words[-1]) + len(b"\r\n"))     # what it says may be any bytes
                return words[1].decode()

    def close(self):
        self.file.close()
        self.socket.close()
