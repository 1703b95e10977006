"""A job on four hosts with a network namespace each, which reach the hub over links of their own: a link is cut, and is there again.

test_network.py BUILD"""

import os
import re
import subprocess
import sys
import time

import parallel
from sandbox import SKIPPED, enter

BUILD = sys.argv[1]
HOSTS = ["n0", "n1", "n2", "n3"]
NETWORK, HUB = "172.30.0.", "172.30.0.254"


def ip(*words):
    subprocess.run(["ip", *words], check=True, capture_output=True, text=True)


def open_links():
    """A bridge, and for each host a namespace with an end of a link to it."""
    subprocess.run(["mount", "-t", "tmpfs", "tmpfs", "/run"], check=True)       # names of namespaces are files there
    ip("link", "add", "br0", "type", "bridge")
    ip("address", "add", HUB + "/24", "dev", "br0")
    ip("link", "set", "br0", "up")
    for number, host in enumerate(HOSTS):
        ip("netns", "add", host)
        ip("link", "add", "to-" + host, "type", "veth", "peer", "name", "eth0", "netns", host)
        ip("link", "set", "to-" + host, "master", "br0", "up")
        ip("-n", host, "address", "add", "%s%d/24" % (NETWORK, number + 1), "dev", "eth0")
        ip("-n", host, "link", "set", "eth0", "up")
        ip("-n", host, "link", "set", "lo", "up")


if __name__ == "__main__":
    FOLDER = enter(HOSTS)
    try:
        open_links()
    except (OSError, subprocess.CalledProcessError) as error:
        print("skipped: no links between network namespaces here: %s" % (getattr(error, "stderr", "") or error))
        sys.exit(SKIPPED)

from findings import findings
from hosts import DDPCHECK, Host, Job
from hub import await_true

FINDING = re.compile(r"error (DC201: .*)$", re.M)


class Links(Job):
    def start_hosts(self, hub, *trainer):
        self.hosts = [Host(rank, self.folder, hub, trainer, 29500, env={"MASTER_ADDR": NETWORK + "1"},
                           options=("--hang-after", self.hang_after), enter=("ip", "netns", "exec", host))
                      for rank, host in enumerate(HOSTS)]

    def test_a_link_that_is_cut(self):
        """Its host is silent, which then explains that others wait for it. When it is back the finding is what it was."""
        hub = self.start_hub(listen=HUB)
        self.start_hosts(hub.url, "--model", "cnn", "--fault", "partial-barrier", "--iterations", "20")
        self.assertIn("rank 3 never called it", self.await_news("DC201")[3])
        ip("link", "set", "to-n2", "down")
        began = time.monotonic()
        await_true("the silence of n2", lambda: "DC212: host n2 with rank 2 has been silent since" in hub.said())
        print("n2 was silent after %.1f s" % (time.monotonic() - began))
        ip("link", "set", "to-n2", "up")
        await_true("n2 again", lambda: "DC212 is withdrawn: host n2" in hub.said())
        await_true("the finding of before", lambda: len(set(FINDING.findall(hub.said()))) == 1 < len(FINDING.findall(hub.said())))
        self.end_hosts()
        said = hub.end()[2]
        self.assertEqual(said.count(" error DC212: "), 1, said)
        self.assertEqual([found[0] for found in findings(DDPCHECK, os.path.join(hub.folder, "job.db"))], ["DC201"], said)


if __name__ == "__main__":
    parallel.main()
