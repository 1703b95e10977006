"""ranks.py N PROGRAM...: starts N ranks of a job on one GPU, each as a host of its own; the status of the first that failed."""

import os
import socket
import subprocess
import sys


def main():
    count = int(sys.argv[1])
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    ranks = [subprocess.Popen(sys.argv[2:], env={**os.environ, "RANK": str(rank), "WORLD_SIZE": str(count), "LOCAL_RANK": "0",
                                                 "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port),
                                                 "NCCL_HOSTID": "host%d" % rank}) for rank in range(count)]
    statuses = [rank.wait() for rank in ranks]
    return next((abs(status) for status in statuses if status), 0)


if __name__ == "__main__":
    sys.exit(main())
