"""Hosts of one machine (UTS namespaces), each with `ddpcheck run --hub` and a rank of its own, and a test case that has them.

Only host names differ: NCCL takes such processes for those of other hosts, and so does the emulated one. Network namespaces are
not needed for that, and containers of CI often may not create them.

A program that imports this is called as PROGRAM BUILD [TEST...]."""

import os
import re
import shlex
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import time
import unittest

import parallel
from hub import Hub, await_true, children, free_port, read_file

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "tui"))
from terminal import Terminal

BUILD = os.path.abspath(sys.argv.pop(1))
DDPCHECK = os.path.join(BUILD, "bin", "ddpcheck")
TRAINER = os.path.join(BUILD, "bin", "ddptrain")
HOSTS = 4
SKIPPED = 77


class Host:
    """A host with a rank of its own, or several from this one on. enter: a command that runs it elsewhere."""

    program = TRAINER

    def __init__(self, rank, folder, hub, trainer, master, env=None, options=(), ranks=1, enter=()):
        self.rank = rank
        self.trace = os.path.join(folder, "trace%d" % rank)
        self.errors = os.path.join(folder, "errors%d" % rank)
        each = 'for local in $(seq 0 %d); do RANK=$((%d + local)) LOCAL_RANK=$local "$@" & done; wait' % (ranks - 1, rank)
        command = [*enter, "unshare", "--uts", "sh", "-c", 'hostname "$0" && exec "$@"', "n%d" % rank,
                   DDPCHECK, "run", *(["--hub", hub] if hub else []), "--emulate", str(ranks), "-o", self.trace, *options, "--",
                   "sh", "-c", each, "sh", self.program, *trainer]
        variables = {"RANK": str(rank), "LOCAL_RANK": "0", "WORLD_SIZE": str(HOSTS), "MASTER_ADDR": "127.0.0.1",
                     "MASTER_PORT": str(master), **(env or {})}
        self.start(command, variables)

    def start(self, command, variables):
        with open(self.errors, "w", encoding="utf-8") as errors:
            self.process = subprocess.Popen(command, env={**os.environ, **variables}, stderr=errors,
                                            stdout=subprocess.DEVNULL)

    def said(self):
        return read_file(self.errors)

    def collector(self):
        for child in children(self.process.pid):
            try:
                if "\0collect\0" in read_file("/proc/%d/cmdline" % child):
                    return child
            except (FileNotFoundError, ProcessLookupError):
                pass        # it has ended meanwhile
        return None


class PollingHost(Host):
    """Its ranks query whether ncclCommSplit is done, but the last of the job, which does not call it."""

    program = os.path.join(BUILD, "tests", "job", "job_polls")


class HostWithTui(Host):
    """Its `ddpcheck run` has a terminal."""

    def start(self, command, variables):
        script = os.path.join(os.path.dirname(self.trace), "host%d.sh" % self.rank)
        with open(script, "w", encoding="utf-8") as file:
            file.write("exec %s\n" % shlex.join(["env", *map("=".join, variables.items()), *command]))
        self.terminal = Terminal(os.path.dirname(self.trace), "sh " + script, columns=120, lines=30)


def namespaces_work():
    done = subprocess.run(["unshare", "--uts", "hostname", "n0"], capture_output=True, text=True, check=False)
    return done.stderr.strip() if done.returncode else ""


class Job(unittest.TestCase):
    hang_after = "1"

    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="ddpcheck-test-job-")
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)
        self.hosts = []
        self.addCleanup(self.end_hosts)

    def start_hub(self, **named):
        hub = Hub(BUILD, os.path.join(self.folder, "hub"), "--hang-after", self.hang_after, **named)
        self.addCleanup(hub.__exit__)
        return hub

    def start_hosts(self, hub, *trainer, ranks=1, kind=Host, **named):
        master = free_port()
        self.hosts = [kind(rank, self.folder, hub, trainer, master, options=("--hang-after", self.hang_after), ranks=ranks, **named)
                      for rank in range(0, HOSTS, ranks)]

    def end_hosts(self):
        for host in self.hosts:
            if host.process.poll() is None:
                host.process.terminate()
        for host in self.hosts:
            host.process.wait(60)

    def await_news(self, code, host=0):
        """The line of the job's finding on the first host's terminal."""
        pattern = re.compile(r"^ddpcheck: (?:(\S+): )?(possible )?error %s: (.*)$" % code, re.M)
        try:
            await_true("a line of " + code, lambda: pattern.search(self.hosts[host].said()))
        except AssertionError as error:
            said = ["n%d, collector %s:\n%s" % (each.rank, each.collector(), each.said()) for each in self.hosts]
            raise AssertionError("%s; the hosts said:\n%s" % (error, "\n".join(said))) from error
        return pattern.search(self.hosts[host].said())

    def seconds_since_fault(self, hub):
        """Since the last call that any rank has made: from then on nobody gets on. By the hub's database and this clock."""
        now = time.time()
        with sqlite3.connect("file:%s/job.db?mode=ro" % hub.folder, uri=True) as database:
            (last,), = database.execute("SELECT max(e.time_ns + p.realtime_ns - p.monotonic_ns) FROM event e "
                                        "JOIN process p ON p.id = e.process WHERE e.phase = 1")     # a call is entered
        return now - last / 1e9

    def start_recording(self, hub):
        """The job hangs in an instant; its hosts have collectors."""
        self.start_hosts(hub.url, "--fault", "partial-barrier", "--iterations", "20")
        await_true("the hosts record", lambda: all(host.collector() for host in self.hosts))


def main():
    missing = namespaces_work()
    if missing:
        print("skipped: no UTS namespaces here: " + missing)
        sys.exit(SKIPPED)
    parallel.main()
