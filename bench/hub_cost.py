"""What a hub costs the collectors of a job: `ddptrain` on two hosts (UTS namespaces) of two ranks each, with and without a hub, in turn.

    hub_cost.py BUILD [ITERATIONS [RUNS]]

Prints the processor time of the two collectors together, of hub and nats-server, and how long the job took."""

import os
import statistics
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "tests", "job"))
OPTIONS = sys.argv[2:]
del sys.argv[2:]

from hosts import BUILD, Host
from hub import Hub, free_port

TICKS = os.sysconf("SC_CLK_TCK")
HOSTS, RANKS = 2, 2


def used(process):
    """Processor seconds so far; 0 for none."""
    try:
        with open("/proc/%s/stat" % process) as file:
            fields = file.read().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / TICKS
    except OSError:
        return 0


def run_job(folder, hub, iterations):
    """(seconds, processor seconds of each collector's last look) of a job."""
    began, master, last = time.monotonic(), free_port(), {}
    hosts = [Host(rank, folder, hub, ["--model", "cnn", "--iterations", iterations], master, ranks=RANKS)
             for rank in range(0, HOSTS * RANKS, RANKS)]
    while any(host.process.poll() is None for host in hosts):
        for host in hosts:
            collector = host.collector() if host.process.poll() is None else None
            if collector:
                last[collector] = max(last.get(collector, 0), used(collector))
        time.sleep(0.05)
    if any(host.process.returncode for host in hosts):
        raise SystemExit("bench: the job failed: " + hosts[0].said())
    return time.monotonic() - began, sum(last.values())


def measure(iterations, with_hub):
    with tempfile.TemporaryDirectory(prefix="ddpcheck-bench-") as folder:
        if not with_hub:
            return (*run_job(folder, "", iterations), 0, 0)
        with Hub(BUILD, os.path.join(folder, "hub")) as hub:
            server = hub.server()
            result = run_job(folder, hub.url, iterations)
            return (*result, used(hub.process.pid), used(server))


def main():
    iterations, runs = (OPTIONS + ["400", "5"][len(OPTIONS):])[:2]
    results = {False: [], True: []}
    for _ in range(int(runs)):
        for with_hub in results:
            results[with_hub].append(measure(iterations, with_hub))
    for with_hub, of in results.items():
        seconds, collectors, hub, server = (statistics.median(column) for column in zip(*of))
        spread = max(one[1] for one in of) - min(one[1] for one in of)
        print("%-14s %6.1f s, both collectors %5.2f s of processor (spread %.2f s)%s"
              % ("with a hub" if with_hub else "without", seconds, collectors, spread,
                 "; hub %.2f s, nats-server %.2f s" % (hub, server) if with_hub else ""))


if __name__ == "__main__":
    main()
