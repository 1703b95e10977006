"""How the hub takes jobs of many ranks: job.c plays their collectors to a real `ddpcheck hub` with its nats-server.

    job.py BUILD [RANKS ...] [--end END] [--seconds S]      default: 64, 512, 4,096, 16,384 and 131,072 ranks; END: skipped

Prints, for each number of ranks: what travels while the job gets on, and the processor time that it costs; how long after a fault the
hub names it, what it asks for until then, and how much memory it has used; and the exponents of the growth by least squares."""

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time

from ranks import exponent

RANKS = (64, 512, 4096, 16384, 131072)
TICKS = os.sysconf("SC_CLK_TCK")


def used(pid):
    """(processor seconds so far, peak memory in MB) of a process."""
    with open("/proc/%d/stat" % pid) as file:
        fields = file.read().rsplit(")", 1)[1].split()
    with open("/proc/%d/status" % pid) as file:
        peak = int(re.search(r"VmHWM:\s+(\d+)", file.read()).group(1))
    return (int(fields[11]) + int(fields[12])) / TICKS, peak / 1024


def server_of(pid):
    with open("/proc/%d/task/%d/children" % (pid, pid)) as file:
        return int(file.read().split()[0])


def measure(build, ranks, end, seconds):
    folder = tempfile.mkdtemp(prefix="ddpcheck-bench-")
    hub = subprocess.Popen([os.path.join(build, "bin/ddpcheck"), "hub", "--dir", folder, "--listen", "127.0.0.1", "--any-port"],
                           stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        url = hub.stdout.readline().strip()
        server = server_of(hub.pid)
        play = subprocess.Popen([os.path.join(build, "bench/bench_job"), url, end, str(ranks), str(seconds)], stdout=subprocess.PIPE,
                                text=True)
        parts, before = {}, (used(hub.pid)[0], used(server)[0], 0, 0)
        for line in play.stdout:
            name, lasted, messages, sent, pace, text = line.rstrip("\n").split(" ", 5)
            now = (used(hub.pid)[0], used(server)[0], int(messages), int(sent))
            parts[name] = [float(lasted)] + [b - a for a, b in zip(before, now)] + [pace, text]
            before = now
        if play.wait():
            raise SystemExit("bench: bench_job failed with %d" % play.returncode)
        return parts, used(hub.pid)[1], used(server)[1]
    finally:
        hub.terminate()
        hub.communicate()
        shutil.rmtree(folder)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("build")
    parser.add_argument("ranks", nargs="*", type=int)
    parser.add_argument("--end", default="skipped")
    parser.add_argument("--seconds", type=float, default=10)
    options = parser.parse_args()
    steady, found = [], []
    for ranks in options.ranks or RANKS:
        parts, hub_mb, server_mb = measure(options.build, ranks, options.end, options.seconds)
        lasted, hub, server, messages, sent, pace, _ = parts["steady"]
        print("%7d ranks  steady: %6.0f messages/s %7.2f MB/s  hub %5.1f %%  nats-server %5.1f %% of a processor; digests every %s s"
              % (ranks, messages / lasted, sent / lasted / 1e6, 100 * hub / lasted, 100 * server / lasted, pace))
        steady.append((ranks, hub / lasted))
        lasted, hub, server, messages, sent, pace, text = parts["found"]
        print("%7s        fault:  named after %.2f s; hub %.2f s, nats-server %.2f s of processor; %.1f MB sent; hub's peak %.0f MB, "
              "nats-server's %.0f MB\n%16s%s" % ("", lasted, hub, server, sent / 1e6, hub_mb, server_mb, "", text), flush=True)
        found.append((ranks, hub))
    for name, points in (("while the job gets on", steady), ("from the fault on", found)):
        points = [point for point in points if point[1] > 0.1]
        if len(points) > 1:
            print("the hub's processor time %s: ranks^%.2f from %d to %d" % (name, exponent(points), points[0][0], points[-1][0]))


if __name__ == "__main__":
    main()
