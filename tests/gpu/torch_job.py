"""A real PyTorch DDP job on one GPU, several ranks of real NCCL, under the shim.

torch_job.py BUILD RANKS clean|skip|shape: runs itself as the job (with RANK set) and as the one who starts it."""

import json
import os
import socket
import subprocess
import sys
import tempfile
import time

EXPECTED = {"clean": [], "skip": ["DC201"], "shape": ["DC102"]}


def job(kind):
    import datetime
    import torch
    import torch.distributed as dist
    rank, world = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    torch.cuda.set_device(0)
    dist.init_process_group("nccl", timeout=datetime.timedelta(seconds=60))
    torch.manual_seed(0)
    model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(1024, 1024).cuda())
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for step in range(20):
        model(torch.randn(32, 1024, device="cuda")).sum().backward()
        optimizer.step()
        optimizer.zero_grad()
    odd = rank == world - 1
    if kind == "skip" and odd:
        time.sleep(600)         # as a rank that reads data for ever, while the others reduce
    if kind != "clean":
        dist.all_reduce(torch.ones(1001 if kind == "shape" and odd else 1000, device="cuda"))
    torch.cuda.synchronize()
    dist.destroy_process_group()


def start(build, ranks, kind):
    trace = tempfile.mkdtemp(prefix="ddpcheck-torch-")
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    script = ("for r in $(seq 0 %d); do RANK=$r LOCAL_RANK=0 NCCL_HOSTID=host$r %s %s %s %d %s & done; wait"
              % (ranks - 1, sys.executable, os.path.abspath(__file__), build, ranks, kind))
    environment = {**os.environ, "WORLD_SIZE": str(ranks), "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port),
                   "NCCL_SOCKET_IFNAME": "lo", "NCCL_MULTI_RANK_GPU_ENABLE": "1", "DDPCHECK_TORCH_JOB": "1"}
    tool = os.path.join(build, "bin", "ddpcheck")
    subprocess.run([tool, "run", "-o", trace, "--timeout", "20", "--hang-after", "5", "--", "bash", "-c", script],
                   env=environment, timeout=300)
    out = subprocess.run([tool, "report", "--json", trace], capture_output=True, text=True).stdout
    lines = [json.loads(line) for line in out.splitlines()]
    codes = [line["code"] for line in lines if line.get("severity") in ("error", "warning")]
    print("torch %s on %d ranks: expected %s, got %s" % (kind, ranks, EXPECTED[kind], codes))
    return 0 if codes == EXPECTED[kind] else 1


if __name__ == "__main__":
    build, ranks, kind = sys.argv[1], int(sys.argv[2]), sys.argv[3]
    if os.environ.get("DDPCHECK_TORCH_JOB"):
        job(kind)
    else:
        sys.exit(start(build, ranks, kind))
