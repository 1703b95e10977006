"""The trainer's convolutions beside cuDNN's (through PyTorch) on a GPU: the layers of DCGAN at 64x64 and batch 128.

convolutions.py BUILD: prints a line for each layer, pass and math, the last one the smallest part of cuDNN's speed that
was seen. The generator's transposed convolutions are the same three passes of the same layers, forward and backward
data exchanged. Exit 77 without PyTorch or a GPU. cuDNN may choose its algorithm (benchmark mode), tensors are fp32 in
memory for both; for bf16 cuDNN is given bf16 tensors, so its time has no rounding in it."""

import os
import statistics
import subprocess
import sys
import time

BATCH, KERNEL = 128, 4
# c_in, height and width, c_out, stride, pad: the discriminator of Radford et al. 2016 with a width of 64.
LAYERS = [(3, 64, 64, 2, 1), (64, 32, 128, 2, 1), (128, 16, 256, 2, 1), (256, 8, 512, 2, 1), (512, 4, 1, 1, 0)]
WARM, TIMES, TURNS = 5, 20, 7


def ours(build, layer):
    c_in, size, c_out, stride, pad = layer
    shape = [BATCH, c_in, size, size, c_out, KERNEL, stride, pad]
    out = subprocess.run([os.path.join(build, "bench", "bench_conv")] + [str(v) for v in shape], check=True,
                         capture_output=True, text=True, timeout=300).stdout
    return {(math, kind): float(us) for math, kind, us in (line.split() for line in out.splitlines())}


def microseconds(torch, work):
    def once(times):
        torch.cuda.synchronize()
        begin = time.perf_counter()
        for _ in range(times):
            work()
        torch.cuda.synchronize()
        return (time.perf_counter() - begin) / times * 1e6
    once(WARM)
    return statistics.median(once(TIMES) for _ in range(TURNS))


def cudnn(torch, layer):
    c_in, size, c_out, stride, pad = layer
    times = {}
    for math in ("fp32", "tf32", "bf16"):
        torch.backends.cudnn.allow_tf32 = math == "tf32"
        kind = torch.bfloat16 if math == "bf16" else torch.float32
        x = torch.randn(BATCH, c_in, size, size, device="cuda", dtype=kind)
        w = torch.randn(c_out, c_in, KERNEL, KERNEL, device="cuda", dtype=kind)
        y = torch.nn.functional.conv2d(x, w, stride=stride, padding=pad)

        def backward(of_data, of_weight, x=x, w=w, y=y):
            torch.ops.aten.convolution_backward(y, x, w, None, [stride, stride], [pad, pad], [1, 1], False, [0, 0], 1,
                                                [of_data, of_weight, False])
        times[math, "forward"] = microseconds(
            torch, lambda x=x, w=w: torch.nn.functional.conv2d(x, w, stride=stride, padding=pad))
        times[math, "backward-data"] = microseconds(torch, lambda: backward(True, False))
        times[math, "backward-weight"] = microseconds(torch, lambda: backward(False, True))
    return times


def main():
    try:
        import torch
    except ImportError:
        print("no PyTorch here: cuDNN's times are not to be had")
        return 77
    if not torch.cuda.is_available():
        print("PyTorch finds no GPU")
        return 77
    torch.backends.cudnn.benchmark = True
    worst = None
    for layer in LAYERS:
        own, other = ours(sys.argv[1], layer), cudnn(torch, layer)
        for (math, kind), us in own.items():
            part = other[math, kind] / us
            name = "%s %s of %dx%dx%d to %d channels" % (math, kind, layer[0], layer[1], layer[1], layer[2])
            print("%-55s %9.1f us, cuDNN %9.1f us: %.2f of its speed" % (name, us, other[math, kind], part))
            worst = min(worst or (part, name), (part, name))
    print("least: %.2f of cuDNN's speed, %s, batch %d" % (worst[0], worst[1], BATCH))
    return 0


if __name__ == "__main__":
    sys.exit(main())
