"""Real PyTorch DDP jobs (tests/torch/job.py) on one GPU, several ranks of real NCCL, under `ddpcheck run -- torchrun`.

torch_job.py BUILD RANKS CASE: a case of tests/torch/test_ddp.py, whose table says what to expect, or a job that is right."""

import json
import os
import subprocess
import sys
import tempfile

TESTS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "torch")
sys.path.insert(0, TESTS)

from test_ddp import CASES  # noqa: E402

# Each rank takes itself for another host, or NCCL would refuse two on one GPU.
RANK = 'export NCCL_HOSTID=host$RANK NCCL_SOCKET_IFNAME=lo NCCL_MULTI_RANK_GPU_ENABLE=1; exec "$0" "$@"'


def start(build, ranks, case):
    trace = tempfile.mkdtemp(prefix="ddpcheck-torch-")
    tool = os.path.join(build, "bin", "ddpcheck")
    torchrun = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--no_python", "--nproc_per_node", str(ranks)]
    subprocess.run([tool, "run", "-o", trace, "--timeout", "60", "--hang-after", "5", "--", *torchrun, "bash", "-c", RANK,
                    sys.executable, os.path.join(TESTS, "job.py"), case], timeout=500, check=False)
    out = subprocess.run([tool, "report", "--json", trace], capture_output=True, text=True, check=False).stdout
    told = [line["code"] for line in map(json.loads, out.splitlines())
            if line.get("severity") in ("error", "warning") and line.get("state") == "open"]
    code = CASES.get(case, (None,))[0]
    print("torch %s on %d ranks: expected %s, got %s" % (case, ranks, code, told))
    return told != ([code] if code else [])


if __name__ == "__main__":
    sys.exit(start(sys.argv[1], int(sys.argv[2]), sys.argv[3]))
