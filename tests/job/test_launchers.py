"""`--hub auto` under mpirun of Open MPI and of MPICH and torchrun on two hosts: one finding for the whole job, from the hub of the first host.
The agent by which they reach the other host, ssh elsewhere, enters a UTS namespace here.

test_launchers.py BUILD [TEST...]"""

import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import unittest

from findings import findings
from hub import await_true, read_file
from sandbox import end_runs, enter, on_host, share_trace

BUILD = os.path.abspath(sys.argv[1])
DDPCHECK = os.path.join(BUILD, "bin", "ddpcheck")
DDPTRAIN = os.path.join(BUILD, "bin", "ddptrain")
SOURCE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
HOSTS = ["n0", "n1"]
RANKS_A_HOST = 2
FINDING = re.compile(r"^ddpcheck: (?:.+?: )?(?:possible )?error (DC\d{3}): ranks 0-2 .*rank 3 never called it", re.M)
JOB_S = 240     # far more than a job takes on a busy machine


def find_torchrun():
    """That of tools/setup-torch, unless the build has a sanitizer."""
    if "DDPCHECK_TEST_NO_TORCH" in os.environ:
        return None
    found = subprocess.run([os.path.join(SOURCE, "tools", "setup-torch"), "--find"], capture_output=True, text=True, check=False)
    path = os.path.join(found.stdout.strip(), "bin", "torchrun")
    return path if found.returncode == 0 and os.path.exists(path) else None


class Launchers(unittest.TestCase):
    def setUp(self):
        self.trace, self.before = share_trace(FOLDER, self.id().rsplit(".", 1)[1])
        self.ddpcheck = [*self.before, DDPCHECK, "run", "--hub", "auto", "--emulate", str(RANKS_A_HOST), "-o", self.trace, "--"]
        self.ddptrain = [DDPTRAIN, "--iterations", "20", "--model", "cnn", "--fault", "partial-barrier"]

    def need(self, program):
        if not program:
            self.skipTest("it is not on this machine")
        return program

    def agent(self):
        """What a launcher calls instead of ssh: `agent HOST COMMAND`, the command as words of a shell."""
        path = os.path.join(FOLDER, "agent")
        with open(path, "w", encoding="utf-8") as file:
            words = " ".join("'%s'" % word for word in on_host("$host", "sh", "-c", "$*")).replace("'$host'", '"$host"')
            file.write("#!/bin/sh\nwhile [ \"${1#-}\" != \"$1\" ]; do shift; done\nhost=$1; shift\nexec %s\n"
                       % words.replace("'$*'", '"$*"'))
        os.chmod(path, 0o755)
        return path

    def check(self, output, status):
        self.assertEqual(FINDING.findall(output), ["DC201"], output)
        job = os.path.join(self.trace, "hub", "job.db")
        self.assertEqual([(found[0], [side[0] for side in found[3]]) for found in findings(DDPCHECK, job)],
                         [("DC201", ["0-2", "3"])], output)
        shown = subprocess.run([DDPCHECK, "tui", "--once", self.trace], capture_output=True, text=True, check=False)
        self.assertIn("DC201", shown.stdout + shown.stderr)     # of the hub's job.db: no host has found it by itself
        databases = {name for name in os.listdir(self.trace) if name.endswith(".db")}
        self.assertEqual(databases, {name + ".db" for name in HOSTS}, output)
        self.assertNotEqual(status, 0)

    def start(self, *command):
        output = tempfile.NamedTemporaryFile("w", dir=FOLDER, encoding="utf-8")
        self.addCleanup(output.close)
        return subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT), output.name

    def end_when_found(self, *started):
        """What each has printed. The first has the finding; then all are ended."""
        try:
            await_true("the finding", lambda: FINDING.search(read_file(started[0][1])), JOB_S)
        finally:
            end_runs()
            for run, _ in started:
                run.wait(JOB_S)
        return [read_file(output) for _, output in started]

    def launch(self, *command):
        run = self.start(*command)
        self.check(self.end_when_found(run)[0], run[0].returncode)

    def test_mpich(self):
        mpirun = self.need(shutil.which("mpiexec.hydra"))
        self.launch(mpirun, "-launcher", "ssh", "-launcher-exec", self.agent(), "-hosts", ",".join(HOSTS),
                    "-ppn", str(RANKS_A_HOST), "-n", str(RANKS_A_HOST * len(HOSTS)), *self.ddpcheck, *self.ddptrain)

    def test_torchrun(self):
        """Its agents on the two hosts find each other by c10d; each runs below ddpcheck. The first host is the endpoint's."""
        torchrun = self.need(find_torchrun())
        with socket.socket() as sock:
            sock.bind(("", 0))
            port = sock.getsockname()[1]
        options = ["--nnodes", str(len(HOSTS)), "--nproc-per-node", str(RANKS_A_HOST), "--rdzv-backend", "c10d",
                   "--rdzv-endpoint", "%s:%d" % (HOSTS[0], port), "--rdzv-id", "job", "--no-python"]
        started = [self.start(*on_host(host, *self.ddpcheck), torchrun, *options, "--local-addr", host, *self.ddptrain)
                   for host in HOSTS]
        outputs = self.end_when_found(*started)
        self.assertNotIn("DC201", outputs[1])       # the first host prints it
        self.check("".join(outputs), started[0][0].returncode)

    def test_open_mpi(self):
        mpirun = self.need(shutil.which("mpirun.openmpi"))
        hosts = ",".join("%s:%d" % (host, RANKS_A_HOST) for host in HOSTS)
        self.launch(mpirun, "--allow-run-as-root", "--mca", "plm_rsh_agent", self.agent(), "--mca", "oob_tcp_if_include", "lo",
                    "--host", hosts, "-n", str(RANKS_A_HOST * len(HOSTS)), *self.ddpcheck, *self.ddptrain)


if __name__ == "__main__":
    FOLDER = enter(HOSTS)
    unittest.main(argv=sys.argv[:1] + sys.argv[2:])
