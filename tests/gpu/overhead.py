"""ddptrain on a GPU with and without the shim, runs alternating: the ratio of the medians of its iteration rate.

overhead.py BUILD RANKS [OPTION-OF-RUN...], for example --hash"""

import os
import re
import socket
import statistics
import subprocess
import sys
import tempfile

RUNS = 5


def once(build, ranks, watched, options=()):
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    program = os.path.join(build, "bin", "ddptrain")
    script = ("for r in $(seq 0 %d); do RANK=$r LOCAL_RANK=0 NCCL_HOSTID=host$r %s --model gan --iterations 200 & done; wait"
              % (ranks - 1, program))
    environment = {**os.environ, "WORLD_SIZE": str(ranks), "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port),
                   "NCCL_SOCKET_IFNAME": "lo", "NCCL_MULTI_RANK_GPU_ENABLE": "1"}
    command = ["bash", "-c", script]
    if watched:
        command = [os.path.join(build, "bin", "ddpcheck"), "run", "-q", "-o", tempfile.mkdtemp(), *options, "--"] + command
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300)
    rates = re.findall(r"([0-9.]+) images/s", done.stdout + done.stderr)
    if done.returncode or not rates:
        raise SystemExit("ddptrain failed: " + done.stdout + done.stderr)
    return float(rates[-1])


def main():
    build, ranks, options = sys.argv[1], int(sys.argv[2]), sys.argv[3:]
    once(build, ranks, False)
    rates = {False: [], True: []}
    for _ in range(RUNS):
        for watched in (False, True):
            rates[watched].append(once(build, ranks, watched, options))
    plain, shim = statistics.median(rates[False]), statistics.median(rates[True])
    print("ddptrain, %d ranks: %.0f images/s alone, %.0f under the shim%s, ratio %.3f"
          % (ranks, plain, shim, "".join(" " + option for option in options), shim / plain))


if __name__ == "__main__":
    main()
