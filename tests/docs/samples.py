"""Runs the Python samples of the pages as one rank of a job: samples.py [PAGE...] (RANK, WORLD_SIZE, ... in the environment).

A sample is a fragment, as people copy it: the names that it leaves to its program come from `common` and from its row of
PREPARE, or of FAULTY where the page calls it faulty. A sample without a row fails the test, so that none goes unrun. Correct
samples run one after the other in one job; `samples.py faulty PAGE` runs a page's faulty one, which ends the job as it may."""

import glob
import os
import re
import sys
import traceback

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
sys.path.insert(0, os.path.join(ROOT, "tests", "torch"))

import torch  # noqa: E402
import torch.distributed as dist  # noqa: E402

import job  # noqa: E402

TWO_MODELS = ("generator, discriminator = DDP(torch.nn.Sequential(Scale(4), Scale(4)).to(device)), DDP(Scale(4).to(device))")
TWO_MODELS_TWO_GROUPS = ("generator = DDP(torch.nn.Sequential(Scale(4), Scale(4)).to(device), process_group=first)\n"
                         "discriminator = DDP(Scale(4).to(device), process_group=second)")
# What a page's sample needs beside `common`: lines that run before it. "not run: WHY"; "cpu:" for one that reads what it
# computes, since PyTorch's kernels compute nothing on the emulated GPU.
PREPARE = {
    "DC101": "", "DC103": "", "DC104": "", "DC105": "", "DC202": "", "DC204": "", "DC302": "loss = torch.ones(1, device=device)", "DC303": "", "DC308": "",
    "DC301": "limit = 1.0",
    "DC309": "", "DC310": "", "DC403": "", "DC404": "", "DC406": "", "DC503": "cpu:overflow = False", "DC505": "loss = criterion\nmicro_batches = [(x, y)] * 2",
    "DC102": "cpu:x = torch.ones(4 + rank, 4)",
    "DC106": "tensors = {'b': b, 'a': a}",
    "DC107": "if rank == 1:\n    shape = torch.empty(2, dtype=torch.int64, device=device)\n    dist.recv(shape, src=0)\n"
             "    dist.recv(x, src=0)\n    raise SampleDone",
    "DC108": "y = torch.empty_like(x)",
    "DC109": "",
    "DC110": "build_model, config = lambda config: Scale(4).to(device), None",
    "DC111": "dist = Recorded()",
    "DC112": "gradients = {'b': torch.ones(4, device=device), 'a': torch.ones(4, device=device)}",
    "DC113": "not run: symmetric memory needs a kernel of PyTorch's that the emulated GPU does not compute",
    "DC114": "",
    "DC115": "shape, graphs = 1, {}",
    "DC201": "def save():\n    pass",
    "DC203": "right = left = 1 - rank",
    "DC205": "def train():\n    pass",
    "DC206": "cpu:loader = [x] * (2 + rank)",
    "DC207": "operations = [dist.P2POp(dist.isend, x, 1 - rank), dist.P2POp(dist.irecv, y, 1 - rank)]",
    "DC208": "work = dist.all_reduce(x, async_op=True)",
    "DC209": "dist = Recorded()",
    "DC210": "dist = Recorded()",
    "DC211": "dist = Recorded()",
    "DC304": "whole, group = torch.ones(8, device=device), None",
    "DC305": "total, part = torch.ones(8, device=device), torch.ones(4, device=device)\nnodes, rails = first, second",
    "DC306": "bucket = torch.ones(4, device=device)",
    "DC307": "",
    "DC401": "local_rank = rank",
    "DC402": "local_rank = rank",
    "DC405": "",
    "DC407": "class my_extension:\n    scale = staticmethod(lambda x: x.mul_(2))",
    "DC501": "dataset, epochs = torch.utils.data.TensorDataset(torch.ones(4, 4)), 2",
    "DC502": "cpu:",
    "DC504": "cpu:loss = criterion(model(x), y)",
    "DC506": "loss = criterion(model(x), y)",
    "DC507": "generator_loss, discriminator_loss = (criterion(model(x), y) for _ in range(2))",
    "DC601": "step = 100\ndef save_samples():\n    pass",
    "DC602": "model = Scale(4).to(device)",
    "DC603": "model, DistributedDataParallel = Scale(4).to(device), DDP",
    "DC604": "", "DC606": "",
    "DC605": "LengthGroupedSampler, dataset = (lambda dataset, tokens_per_batch: dataset), [x]",
    "DC607": "cpu:losses, loss = [], torch.ones(1)",
    "DC608": "import gc\nstep = 1000",
    "DC609": "LengthGroupedSampler, dataset = (lambda dataset, tokens_per_batch: dataset), [x]",
    "DC610": "",
    "DC801": "", "DC802": "", "DC803": "", "DC804": "ranks = None\ndef evaluate(group):\n    pass", "DC805": "",
    "hashing": "",
    "launchers": "not run: it needs Ray",
    "operate": "not run: it is a cell of a notebook, which serve_test_tools runs",
    "nvtx": "cpu:loader, z = [(x, y)] * 2, x\ngenerator = model",
    "01": "", "02": "", "03": "", "09": "", "13": "", "14": "", "20": "", "22": "", "25": "", "28": "",
    "04": TWO_MODELS,
    "05": "def save():\n    pass",
    "06": "right = left = 1 - rank",
    "07": "def evaluate():\n    pass",
    "08": "if rank:\n    raise SampleDone",
    "10": "",
    "11": "cpu:loader = [x] * (2 + rank)",
    "12": "",
    "15": TWO_MODELS,
    "16": TWO_MODELS_TWO_GROUPS,
    "17": "wide = torch.ones(4, 16, device=device)",
    "18": "wide = torch.ones(4, 16, device=device)",
    "19": "cpu:",
    "21": "cpu:",
    "23": "cpu:",
    "24": "",
    "26": "activation, gradient = x, y",
    "27": "bucket = torch.ones(1 << 20, device=device)",
    "29": "weights = torch.ones(64, device=device)",
    "30": "cpu:",
    "31": "cpu:", "32": "", "33": "",
}
# Of faulty samples: what runs before, and what runs after, which raises where the page's result is not what happened.
BUSY = "import time\ntime.sleep(600 if rank == %d else 0)"     # lives on, so that the peers do not see it end
FAULTY = {
    "03": ("", ""), "08": ("", ""), "24": ("", ""),
    "14": ("cpu:", "gradients = [None] * world_size\ndist.all_gather_object(gradients, inner.weight.grad.sum().item())\n"
           "assert gradients[0] != gradients[1]"),
    "20": ("cpu:batch_size = rank", "assert all(gradient.grad.isnan().any() for gradient in model.parameters())"),
    "01": ("", ""), "02": ("gradients = torch.ones(1 << 20, device=device)", ""), "09": ("bare:", ""), "12": ("", BUSY % 1), "21": ("", ""), "22": ("", ""), "25": ("", ""), "28": ("", ""),
    "04": (TWO_MODELS, ""),
    "05": ("def save():\n    pass", BUSY % 1),
    "06": ("right = left = 1 - rank", ""),
    "07": ("def evaluate():\n    import time\n    time.sleep(600)", ""),
    "10": ("cpu:", "assert sum(len(batch) for batch, in loader) == len(data)"),
    "11": ("loader = [x] * (2 + rank)", BUSY % 0),
    "13": ("cpu:overflow, y = rank == 1, torch.zeros(4, 4)", "all_weights = [None] * world_size\n"
           "dist.all_gather_object(all_weights, model.module.weight.sum().item())\nassert all_weights[0] != all_weights[1]"),
    "15": (TWO_MODELS, ""),
    "16": (TWO_MODELS_TWO_GROUPS, ""),
    "17": ("wide = torch.ones(4, 16, device=device)", ""),
    "18": ("wide = torch.ones(4, 16, device=device)", ""),
    "19": ("def criterion(out, wanted):\n    if rank == 1:\n        raise torch.cuda.OutOfMemoryError('CUDA out of memory (made up)')\n"
           "    return (out - wanted).mean()", BUSY % 1),
    "23": ("cpu:", "assert not torch.equal(replica.weight, model.module.weight)"),
    "26": ("activation, gradient = x, y", ""),
    "27": ("bucket = torch.ones(1 << 20, device=device)", ""),
    # So long that PyTorch's watchdog does not see it done before the next line.
    "29": ("weights, gradients = torch.ones(1 << 20, device=device), torch.ones(1 << 20, device=device)", ""),
    "30": ("cpu:", ""),
}


class SampleDone(Exception):
    """A rank has played its part."""


class Recorded:
    """torch.distributed, for samples that set up or end what this job still uses: takes their calls and makes none."""

    def __getattr__(self, name):
        return lambda *arguments, **options: None


def samples():
    """(page, line, text, result) of each Python sample, in order; the result is what a page says of its faulty sample, or None."""
    for path in sorted(glob.glob(os.path.join(ROOT, "docs", "**", "*.md"), recursive=True)):
        with open(path) as page:
            text = page.read()
        for match in re.finditer(r"^```python\n(.*?)^```$", text, re.M | re.S):
            result = None
            if text[:match.start()].endswith("\nFaulty:\n\n"):
                result = re.match(r"\n*(.*)", text[match.end():])[1]
            yield os.path.basename(path)[:-3], text.count("\n", 0, match.start()) + 1, match.group(1), result


def common(groups, device):
    """The names that a training program has."""
    import contextlib
    from datetime import timedelta
    from torch.distributed.algorithms import Join
    from torch.nn.parallel import DistributedDataParallel as DDP
    from torch.utils.data import DataLoader
    from torch.utils.data.distributed import DistributedSampler

    names = {name: torch.ones(4, 4, device=device) for name in ("x", "y", "a", "b", "out")}
    model = DDP(job.Scale(4).to(device))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    gradients = torch.ones(64, device=device)
    names.update(
        torch=torch, dist=dist, os=os, contextlib=contextlib, timedelta=timedelta, Join=Join, DDP=DDP, DataLoader=DataLoader,
        DistributedSampler=DistributedSampler, Scale=job.Scale, Halves=job.Halves, SampleDone=SampleDone, Recorded=Recorded, device=device,
        rank=dist.get_rank(), world_size=dist.get_world_size(), first=groups[0], second=groups[1], model=model,
        optimizer=optimizer, criterion=lambda out, wanted: (out - wanted).square().mean(), gradients=gradients,
        communication=torch.cuda.Stream(), scaler=torch.amp.GradScaler("cuda"))
    names["data"] = torch.utils.data.TensorDataset(torch.ones(4, 4))
    names["sampler"] = DistributedSampler(names["data"])
    return names


def run(page, line, text, groups):
    prepare = PREPARE[page]
    if prepare.startswith("not run"):
        return prepare
    on_host = prepare.startswith("cpu:")
    names = common(groups, torch.device("cpu") if on_host else torch.device("cuda", torch.cuda.current_device()))
    try:
        exec(prepare.removeprefix("cpu:"), names)
        exec(compile("\n" * line + text, page + ".md", "exec"), names)
        if page == "hashing":
            names["announce_parameters"](names["model"])
    except SampleDone:
        pass
    torch.cuda.synchronize()
    return "ran"


def run_faulty(page, groups):
    """Raises what the sample raises; never returns where it hangs."""
    (text, line), = [(text, line) for of, line, text, result in samples() if of == page and result]
    before, after = FAULTY[page]
    on_host = before.startswith("cpu:")
    if before == "bare:":       # nothing has created a communicator yet
        names, before = {"torch": torch, "dist": dist}, ""
    else:
        names = common(groups, torch.device("cpu") if on_host else torch.device("cuda", torch.cuda.current_device()))
    exec(before.removeprefix("cpu:"), names)
    exec(compile("\n" * line + text, page + ".md", "exec"), names)
    exec(after, names)
    torch.cuda.synchronize()


def main():
    rank = int(os.environ["RANK"])
    torch.cuda.set_device(rank)
    failed, wanted = 0, sys.argv[1:]
    if wanted[:1] == ["faulty"]:
        dist.init_process_group("gloo" if FAULTY[wanted[1]][0].startswith("cpu:") else "nccl")
        run_faulty(wanted[1], (dist.new_group(), dist.new_group()))
        dist.destroy_process_group()
        return
    dist.init_process_group("cpu:gloo,cuda:nccl")
    groups = dist.new_group(), dist.new_group()
    for page, line, text, result in samples():
        if result or (wanted and page not in wanted):
            continue
        try:
            outcome = run(page, line, text, groups)
        except BaseException:
            failed += 1
            outcome = "failed\n" + traceback.format_exc()
        if rank == 0 or outcome.startswith("failed"):
            print("rank %d %s.md:%d: %s" % (rank, page, line, outcome), flush=True)
        if outcome.startswith("failed"):
            os._exit(1)         # the other rank may wait for what this one has not called
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
