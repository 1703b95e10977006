"""A machine of its own for a test, made of namespaces: processes, network, mounts, /dev/shm and host name are its own. Whatever
the test starts in it ends with it, even if the test is killed, and every port is free. Its hosts are UTS namespaces: NCCL takes
processes with another host name for those of another host, and so does the emulated one."""

import fcntl
import os
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "interpose"))
from rings_name import name_rings

INSIDE = "DDPCHECK_TEST_SANDBOX"
UNSHARE = ["unshare", "--uts", "--net", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc"]
SIOCGIFFLAGS, SIOCSIFFLAGS, SIOCSIFADDR, IFF_UP = 0x8913, 0x8914, 0x8916, 1
NETWORK = "10.0.0."
SKIPPED = 77


def refusal():
    """Why there are no such namespaces here; empty: there are."""
    if not shutil.which("unshare"):
        return "unshare (util-linux) is missing"
    done = subprocess.run([*UNSHARE, "mount", "-t", "tmpfs", "tmpfs", "/dev/shm"], capture_output=True, text=True, check=False)
    return done.stderr.strip() if done.returncode else ""


def enter(hosts):
    """Runs this program again in a sandbox with these host names, and exits with its status; inside, returns the folder of the
    test. Folder and /dev/shm are in memory and end with the sandbox."""
    if INSIDE in os.environ:
        return prepare(os.environ[INSIDE], hosts)
    reason = refusal()
    if reason:
        print("skipped: no namespaces here: " + reason)
        sys.exit(SKIPPED)
    folder = tempfile.mkdtemp(prefix="ddpcheck-test-job-")
    try:
        sys.exit(subprocess.run([*UNSHARE, sys.executable, *sys.argv], env={**os.environ, INSIDE: folder}, check=False).returncode)
    finally:
        os.rmdir(folder)


def prepare(folder, hosts):
    for path in (folder, "/dev/shm"):
        subprocess.run(["mount", "-t", "tmpfs", "tmpfs", path], check=True)
    os.chmod("/dev/shm", 0o1777)
    os.chmod(folder, 0o755)
    addresses = os.path.join(folder, "hosts")
    with open(addresses, "w", encoding="utf-8") as file:
        names = ["head", *hosts]
        file.write("127.0.0.1 localhost\n" + "".join("%s%d %s\n" % (NETWORK, i + 1, name) for i, name in enumerate(names)))
    subprocess.run(["mount", "--bind", addresses, "/etc/hosts"], check=True)
    os.mkdir(rings_of(folder), 0o700)
    socket.sethostname("head")
    open_network()
    return folder


def open_network():
    """What `ip link set lo up; ip address add 10.0.0.1/8 dev lo` does: all of 10.0.0.0/8 is here. Who resolves a name with
    AI_ADDRCONFIG, as Slurm does, gets nothing where there are only addresses of 127.0.0.0/8."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        request = struct.pack("16sh22x", b"lo", 0)
        flags = struct.unpack("16sh22x", fcntl.ioctl(sock, SIOCGIFFLAGS, request))[1]
        fcntl.ioctl(sock, SIOCSIFFLAGS, struct.pack("16sh22x", b"lo", flags | IFF_UP))
        fcntl.ioctl(sock, SIOCSIFADDR, struct.pack("16sH2x4s16x", b"lo:0", socket.AF_INET, socket.inet_aton(NETWORK + "1")))


def on_host(name, *command):
    """The command, on a host of this name with a folder of its own for rings (share_trace)."""
    script = 'mount -t tmpfs -o mode=700 tmpfs "$1" && hostname "$0" && shift && exec "$@"'
    return ["unshare", "--uts", "--mount", "sh", "-c", script, name, rings_of(os.environ[INSIDE]), *command]


def rings_of(folder):
    return os.path.join(folder, "rings")


def share_trace(folder, name):
    """(a trace directory for all hosts, what a host runs before its command). The hosts' collectors are separate, as if each
    had a /dev/shm of its own, while the emulated NCCL reaches all ranks through the one that there is."""
    trace = os.path.join(folder, name)
    os.mkdir(trace, 0o700)
    rings = name_rings(rings_of(folder), trace)
    return trace, ["sh", "-c", 'mkdir -m 700 -p "$0" && exec "$@"', rings]


def read_of(process, what):
    """Of /proc; empty if the process has ended."""
    try:
        with open("/proc/%s/%s" % (process, what), "rb") as file:
            return file.read()
    except OSError:
        return b""


def end_runs(variable=b""):
    """Ends each `ddpcheck run` of the sandbox, as Ctrl-C would, or those that have this variable."""
    for entry in filter(str.isdigit, os.listdir("/proc")):
        is_run = b"/ddpcheck\0run\0" in b"/" + read_of(entry, "cmdline")
        if is_run and any(each.startswith(variable) for each in read_of(entry, "environ").split(b"\0")):
            os.kill(int(entry), signal.SIGTERM)


def kill_all(processes):
    """As if at one time: none sees another one die. Children before their parents: the kernel lets the stopped children of a parent
    that dies go on, with SIGHUP (setpgid(2), orphaned process groups), and a collector then says good-bye."""
    for number, order in (signal.SIGSTOP, sorted(processes)), (signal.SIGKILL, sorted(processes, reverse=True)):
        for process in order:
            try:
                os.kill(process, number)
            except ProcessLookupError:
                pass        # it has ended meanwhile
