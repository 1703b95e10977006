"""A real Slurm of several nodes on one machine: munged, slurmctld, and a slurmd on each host of the sandbox."""

import os
import shutil
import subprocess

from hub import PATIENCE_S, await_true
from sandbox import on_host

PROGRAMS = ("munged", "slurmctld", "slurmd", "srun", "sinfo")
TUNABLES = "GLIBC_TUNABLES"
CONTROLLER_PORT, NODE_PORT = 16817, 17000       # nobody else is in the sandbox

CONFIGURATION = """ClusterName=test
SlurmctldHost=head
SlurmctldPort={controller}
SlurmUser=root
AuthType=auth/munge
CredType=cred/munge
AuthInfo=socket={folder}/socket
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/%n
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/%n.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
MpiDefault=none
SelectType=select/linear
SchedulerType=sched/builtin
SlurmdParameters=config_overrides
SlurmdTimeout=0
InactiveLimit=0
MessageTimeout=60
PartitionName=all Nodes=ALL Default=YES
"""


def program(name):
    return shutil.which(name, path=os.environ.get("PATH", "") + ":/usr/sbin:/sbin")


def missing():
    """Which programs are not here; empty: all are."""
    return [name for name in PROGRAMS if not program(name)]


class Slurm:
    """with Slurm(folder, ["n0", "n1"]) as slurm: subprocess.run([*slurm.srun("-n", "2"), "hostname"], env=slurm.env)"""

    def __init__(self, folder, nodes):
        self.folder, self.nodes, self.daemons = folder, nodes, []
        self.configuration = os.path.join(folder, "slurm.conf")
        # Tests under TSan ask for more static TLS than fits the small stacks of Slurm's threads: only the tasks get that variable.
        self.env = {name: value for name, value in os.environ.items() if name != TUNABLES}
        self.env["SLURM_CONF"] = self.configuration

    def path(self, name):
        return os.path.join(self.folder, name)

    def configure(self):
        os.makedirs(self.folder, mode=0o755)
        with open(self.path("key"), "wb", opener=lambda path, flags: os.open(path, flags, 0o600)) as file:
            file.write(os.urandom(128))
        with open(self.configuration, "w", encoding="utf-8") as file:
            file.write(CONFIGURATION.format(folder=self.folder, controller=CONTROLLER_PORT))
            for number, node in enumerate(self.nodes):
                file.write("NodeName=%s Port=%d CPUs=4 State=UNKNOWN\n" % (node, NODE_PORT + number))

    def start(self, *command):
        with open(self.path("daemons.log"), "a", encoding="utf-8") as log:
            self.daemons.append(subprocess.Popen(command, env=self.env, stdin=subprocess.DEVNULL, stdout=log, stderr=log))

    def are_idle(self):
        done = subprocess.run([program("sinfo"), "-h", "-N", "-o", "%t"], env=self.env, capture_output=True, text=True,
                              timeout=PATIENCE_S, check=False)
        return done.stdout.split() == ["idle"] * len(self.nodes)

    def __enter__(self):
        self.configure()
        self.start(program("munged"), "--foreground", "--key-file", self.path("key"), "--socket", self.path("socket"),
                   "--log-file", self.path("munged.log"), "--pid-file", self.path("munged.pid"),
                   "--seed-file", self.path("munged.seed"))
        await_true("munged answers", lambda: os.path.exists(self.path("socket")))
        self.start(program("slurmctld"), "-D", "-f", self.configuration)
        for node in self.nodes:
            self.start(*on_host(node, program("slurmd"), "-D", "-N", node, "-f", self.configuration))
        try:
            await_true("all nodes are idle", self.are_idle)
        except BaseException:
            self.end()
            raise
        return self

    def srun(self, *options):
        tunables = [",%s=%s" % (TUNABLES, os.environ[TUNABLES])] if TUNABLES in os.environ else []
        return [program("srun"), "".join(["--export=ALL", *tunables]), "--nodes", str(len(self.nodes)), *options]

    def logs(self):
        """The end of each daemon's log, for a test that failed."""
        text = ""
        for name in sorted(os.listdir(self.folder)):
            if name.endswith(".log"):
                with open(self.path(name), encoding="utf-8", errors="replace") as file:
                    text += "== %s\n%s" % (name, "".join(file.readlines()[-20:]))
        return text

    def end(self):
        for daemon in reversed(self.daemons):
            daemon.kill()           # after SIGTERM slurmctld may wait for its nodes for a minute
            daemon.wait()

    def __exit__(self, *_):
        self.end()
