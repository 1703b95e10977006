"""Every Python sample of the pages runs under PyTorch, on two emulated ranks, and ddpcheck finds nothing in it.

test_samples.py BUILD [PAGE...]"""

import os
import socket
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "torch"))

from jobs import Line, python  # noqa: E402

RANKS, SECONDS = 2, 400


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def start_ranks(line, pages):
    port = free_port()
    return [subprocess.Popen(
        [python(), os.path.join(HERE, "samples.py"), *pages], cwd=line.folder, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT, text=True, env=line.bare_environment(
            OMP_NUM_THREADS="1", RANK=str(rank), LOCAL_RANK=str(rank), WORLD_SIZE=str(RANKS), MASTER_ADDR="127.0.0.1",
            MASTER_PORT=str(port))) for rank in range(RANKS)]


def main():
    python()
    with Line(sys.argv[1], devices=RANKS, name="samples") as line:
        ranks = start_ranks(line, sys.argv[2:])
        try:
            texts = [rank.communicate(timeout=SECONDS)[0] for rank in ranks]
        finally:
            for rank in ranks:
                rank.kill()
        print("\n".join(texts))
        assert [rank.returncode for rank in ranks] == [0] * RANKS, "a sample failed"
        assert ": ran" in texts[0], "no sample ran"
        line.wait_collector()
        # Not DC6xx: on a busy machine one rank does come later than the other.
        found = {finding["code"] for finding in line.report()[1] if not finding["code"].startswith("DC6")}
        assert not found, "ddpcheck found %s" % sorted(found)


if __name__ == "__main__":
    main()
