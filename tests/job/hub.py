"""A hub for a test: `ddpcheck hub` as a process, on a port and in a folder of its own."""

import os
import re
import select
import signal
import socket
import subprocess
import time

PATIENCE_S = 60
URL = re.compile(r"^(nats|tls)://([\w-]+)@([^/]+):(\d+)$")


def free_port():
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        return sock.getsockname()[1]


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


class Hub:
    """with Hub(build, folder) as hub: hub.url ..."""

    def __init__(self, build, folder, *options, port=None, env=None, listen="127.0.0.1"):
        self.port = port or free_port()
        self.folder = folder
        command = [os.path.join(build, "bin", "ddpcheck"), "hub", "--port", str(self.port), "--dir", folder, *options]
        if listen:
            command += ["--listen", listen]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                        env=dict(os.environ, **(env or {})))
        ready, _, _ = select.select([self.process.stdout], [], [], PATIENCE_S)
        self.url = self.process.stdout.readline().strip() if ready else ""
        if not URL.match(self.url):
            self.process.kill()
            raise AssertionError("the hub printed %r, and on stderr: %s" % (self.url, self.process.communicate()[1]))
        self.token = URL.match(self.url)[2]

    def server(self):
        """The process number of its nats-server; None if there is none."""
        found = children(self.process.pid)
        return found[0] if found else None

    def end(self, number=signal.SIGTERM):
        self.process.send_signal(number)
        output, errors = self.process.communicate(timeout=PATIENCE_S)
        return self.process.returncode, output, errors

    def kill(self):
        """Kills it; its server ends with it, and the port is free."""
        server = self.server()
        self.end(signal.SIGKILL)
        await_true("nats-server ends", lambda: not server or not runs(server))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.end()
