"""ddptrain from outside, with several ranks on the emulator: what it computes, and how its faults show.

run_trainer.py --list, or run_trainer.py --program DDPTRAIN CASE; exit status 77: the case can't run here.

Losses are compared without batch norm where the number of ranks differs: batch norm takes its statistics from a
rank's own batch, so that N ranks with batch B/N do not compute what one with batch B does. With the same number of
ranks everything is compared."""

import argparse
import os
import pty
import re
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time

TOLERANCE = 1e-4        # relative: sums of floats in another order
PROGRAM = None


def start(arguments, environment=None, command=None):
    return subprocess.Popen((command or [PROGRAM]) + arguments, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                            stderr=subprocess.STDOUT, text=True, start_new_session=True,
                            env={**os.environ, **(environment or {})})


def end(process):
    """Kills the process group; returns what it printed."""
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass
    return process.communicate()[0]


def run(arguments, expected=0, timeout=60, **more):
    process = start(arguments.split(), **more)
    try:
        out = process.communicate(timeout=timeout)[0]
    except subprocess.TimeoutExpired:
        raise AssertionError("ddptrain %s hangs:\n%s" % (arguments, end(process)))
    if process.returncode != expected:
        raise AssertionError("ddptrain %s: exit status %d, expected %d:\n%s"
                             % (arguments, process.returncode, expected, out))
    return out


def losses(out):
    found = {int(line[0]): [float(v) for v in re.findall(r" ([0-9.]+)", line[1])]
             for line in re.findall(r"iteration (\d+):(.*)", out)}
    if not found:
        raise AssertionError("no losses in:\n" + out)
    return found


def must_contain(out, *texts):
    for text in texts:
        if text not in out:
            raise AssertionError("expected '%s' in:\n%s" % (text, out))


def must_be_close(one, other, what, tolerance=TOLERANCE):
    if one.keys() != other.keys():
        raise AssertionError("%s: iterations %s and %s" % (what, sorted(one), sorted(other)))
    for iteration in one:
        for a, b in zip(one[iteration], other[iteration], strict=True):
            if abs(a - b) > tolerance * max(abs(a), abs(b)):
                raise AssertionError("%s: iteration %d: %g and %g" % (what, iteration, a, b))


def must_differ(one, other, what):
    if one == other:
        raise AssertionError("%s: the losses are the same: %s" % (what, one))


def must_hang(arguments, *texts, quiet_s=3):
    """The job must still be there, and silent, after a while; then all of it is killed."""
    process = start(arguments.split())
    time.sleep(quiet_s)
    alive = process.poll() is None
    out = end(process)
    if not alive:
        raise AssertionError("ddptrain %s was expected to hang, but ended with %d:\n%s"
                             % (arguments, process.returncode, out))
    must_contain(out, *texts)


def same_losses(model, more=""):
    def of(ranks):
        return losses(run("--model %s --no-batch-norm --batch %d --ranks %d --iterations 12 --log-every 3 %s"
                          % (model, 32 // ranks, ranks, more)))
    one = of(1)
    for ranks in (2, 4):
        must_be_close(one, of(ranks), "1 and %d ranks" % ranks)


def case_gan_equal_over_ranks():
    same_losses("gan", "--first-bucket-mb 0.01 --bucket-mb 0.05")


def case_cnn_equal_over_ranks():
    same_losses("cnn")
    same_losses("cnn", "--average premulsum --first-bucket-mb 0 --bucket-mb 0")
    same_losses("cnn", "--average divide --first-bucket-mb 0.01 --bucket-mb 0.01")


def case_math():
    """Rounded multiplicands change the losses, by about as much as the format rounds; without --math nothing changes."""
    plain, tf32, bf16 = (losses(run("--model cnn --ranks 2 --iterations 6 --log-every 2 --math " + math))
                         for math in ("fp32", "tf32", "bf16"))
    must_be_close(plain, losses(run("--model cnn --ranks 2 --iterations 6 --log-every 2")), "--math fp32 and none", 0)
    must_be_close(plain, tf32, "fp32 and tf32", 0.01)
    must_be_close(plain, bf16, "fp32 and bf16", 0.05)
    must_differ(plain, tf32, "fp32 and tf32")
    must_differ(tf32, bf16, "tf32 and bf16")


def case_reducers_agree():
    """Whatever the reducer knows of the graph, it computes the same."""
    for model in ("gan", "cnn"):
        options = "--model %s --ranks 3 --iterations 8 --log-every 2 --first-bucket-mb 0 --bucket-mb 0.01" % model
        plain = losses(run(options))
        must_be_close(losses(run(options + " --find-unused")), plain, "plain and --find-unused")
        must_be_close(losses(run(options + " --static-graph")), plain, "plain and --static-graph")
        run(options + " --find-unused --join --fault uneven-inputs")


def case_accumulation():
    options = "--model cnn --no-batch-norm --ranks 2 --iterations 8 --log-every 2"
    whole = losses(run(options))
    for parts in (2, 8):
        must_be_close(losses(run(options + " --accumulate %d" % parts)), whole, "the batch in one and in %d parts" % parts)
    must_be_close(losses(run(options + " --fault accum-every")), whole, "reducing once and in every micro-step")
    must_differ(losses(run(options + " --fault accum-mismatch")), whole, "reducing after the wrong micro-step")
    run("--model cnn --ranks 2 --iterations 8 --accumulate 4 --fault uneven-inputs --join")
    must_contain(run("--accumulate 4", expected=2), "only --model cnn")
    must_contain(run("--model cnn --accumulate 3", expected=2), "does not divide the batch of 8")


def case_unused_parameters():
    options = "--ranks 2 --iterations 8 --no-gang --fault unused-params"
    must_hang(options, "rank 1: the classifier starts a new iteration, but the reduction of the one before is not finished",
              "No gradient came for classifier.block.weight, classifier.block.bias")
    run(options + " --find-unused")


def case_forward_twice():
    options = "--model cnn --ranks 2 --iterations 6 --log-every 2 --first-bucket-mb 0 --bucket-mb 0 "
    out = run(options + "--no-gang --fault forward-twice", expected=1)
    for rank in range(2):
        must_contain(out, "rank %d: the gradient of classifier.block." % rank, "is complete a second time in one iteration")
    both = losses(run(options + "--two-passes --find-unused"))
    must_be_close(losses(run(options + "--two-passes")), both, "two passes with and without --find-unused")
    must_differ(losses(run(options)), both, "one pass and two")
    must_contain(run("--two-passes", expected=2), "only --model cnn")


def case_models_that_differ():
    """Ranks compare their parameters before they touch them."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = str(probe.getsockname()[1])
    ranks = [start(("--iterations 2 --width %d" % (8 - 2 * r)).split(),
                   {"RANK": str(r), "WORLD_SIZE": "2", "MASTER_ADDR": "localhost", "MASTER_PORT": port}) for r in (1, 0)]
    outs = [rank.communicate(timeout=60)[0] for rank in ranks]
    must_contain(outs[0], "rank 1: the generator has other parameters than rank 0's: number 0 (generator.up0.weight) is "
                 "32x24x4x4 here, and 32x32x4x4 on rank 0")
    must_contain(outs[1], "the generator of rank 1 has other parameters")
    must_hang("--ranks 2 --no-gang --fault model-mismatch")


def modes_equal(model):
    """Every mode computes what one rank does with the same images, without batch norm."""
    options = "--model %s --no-batch-norm --iterations 12 --log-every 3 " % model
    one = losses(run(options + "--batch 16"))
    must_be_close(losses(run(options + "--ranks 2 --batch 8")), one, "one rank and two")
    for micro in (1, 2, 8):
        of_pipeline = run(options + "--mode pipeline --ranks 2 --batch 16 --micro-batches %d" % micro)
        must_be_close(losses(of_pipeline), one, "one rank and a pipeline of %d micro-batches" % micro)
    for devices in (1, 2, 4):
        for mode in ("dp", "mirrored"):
            of_mode = run(options + "--mode %s --ranks %d --batch %d" % (mode, devices, 16 // devices))
            must_be_close(losses(of_mode), one, "one rank and --mode %s on %d devices" % (mode, devices))
    stale = run(options + "--mode dp --ranks 4 --batch 4 --fault dp-stale-replica")
    must_differ(losses(stale), one, "with a replica that is not made new")


def case_modes_equal():
    modes_equal("cnn")


def case_modes_equal_gan():
    modes_equal("gan")


def quality(out):
    """Of the trained model: a classifier's accuracy, or how far a generator's images are from the data's."""
    return float(re.search(r"(?:accuracy|distance) ([0-9.]+) ", out)[1])


def case_modes_learn():
    """With batch norm, too: the master's model, trained on two devices, is as good as that of two processes
    (case_trained_cnn, case_trained_gan)."""
    for mode in ("dp", "mirrored"):
        accuracy = quality(run("--mode %s --ranks 2 --batch 16 --iterations 600" % mode))
        if accuracy < 0.85:
            raise AssertionError("--mode %s: accuracy %g on held-out shapes; expected at least 0.85" % (mode, accuracy))
    distance = quality(run("--model gan --mode mirrored --ranks 2 --image 16 --batch 16 --iterations 150"))
    if distance > 0.25:
        raise AssertionError("--model gan: distance %g of generated images; expected at most 0.25" % distance)


def case_modes_refuse():
    must_contain(run("--mode pipeline --ranks 3", expected=2), "--mode pipeline takes 2 ranks (--ranks), not 3")
    must_contain(run("--mode pipeline --ranks 2 --model gan --fault pipeline-order", expected=2), "needs --model cnn")
    must_contain(run("--mode dp --ranks 2 --model gan --simultaneous", expected=2), "--simultaneous needs --mode ddp")
    must_contain(run("--mode pipeline --ranks 2 --clip 1", expected=2), "--clip needs --mode ddp")
    must_contain(run("--mode pipeline --ranks 2 --batch 9", expected=2), "does not divide")
    must_contain(run("--mode ddp --ranks 2 --fault pipeline-order", expected=2), "needs --mode pipeline")
    must_contain(run("--mode mirrored --ranks 5", expected=2), "there are 4 CUDA devices")
    must_contain(run("--mode mirrored", expected=2, environment={"RANK": "0", "WORLD_SIZE": "2"}), "is one process")
    must_contain(run("--mode dp --fault dp-stale-replica --fault-rank 0", expected=2), "that is the master")
    must_contain(run("--mode dp --timeout 3", expected=2), "--mode dp knows no --timeout")
    must_contain(run("--mode rings", expected=2), "--mode rings: expected")


# What training must reach, and how far runs on 1, 2 and 4 ranks with the same images may be from one another: sums in
# another order, which a GAN's two players make more of with every iteration. docs/trainer.md has this table, too.
#
#   options                                     last iteration's loss   its spread   quality       its spread
#   cnn, batch 32, 300 iterations               0.35 .. 0.60            0.1 %        >= 0.77       0.01
#   gan, batch 32, 300 iterations               0.90 .. 1.45            10 %         <= 0.18       0.03
#
# The quality is the classifier's accuracy on held-out images (chance: 0.25), and the generator's distance to them
# (untrained: 0.68; two sets of the data: 0.07). A discriminator that is fooled half of the time has a loss of 1.386.
TRAINED = "--image 16 --iterations 300 --log-every 150 --no-batch-norm "


def trained(model, lowest, highest, tolerance, good, spread):
    runs = {ranks: run(TRAINED + "--model %s --ranks %d --batch %d" % (model, ranks, 32 // ranks)) for ranks in (1, 2, 4)}
    for ranks, out in runs.items():
        loss = losses(out)[300][0]
        if not lowest <= loss <= highest:
            raise AssertionError("%s on %d ranks: loss %g, expected %g to %g" % (model, ranks, loss, lowest, highest))
        if not good(quality(out)):
            raise AssertionError("%s on %d ranks is not good enough:\n%s" % (model, ranks, out))
        if abs(quality(out) - quality(runs[1])) > spread:
            raise AssertionError("%s on 1 rank and on %d:\n%s\n%s" % (model, ranks, runs[1], out))
        must_be_close(losses(runs[1]), losses(out), "%s on 1 rank and on %d" % (model, ranks), tolerance)


def case_trained_cnn():
    trained("cnn", 0.35, 0.60, 1e-3, lambda accuracy: accuracy >= 0.77, 0.01)
    accuracy = quality(run("--model cnn --ranks 2 --batch 16 --iterations 600 --seed 1"))
    if accuracy < 0.85:
        raise AssertionError("with batch norm: accuracy %g on held-out shapes; expected at least 0.85" % accuracy)


def case_trained_gan():
    untrained = quality(run("--model gan --image 16 --iterations 1"))
    if untrained < 0.6:
        raise AssertionError("the distance of noise to the data is only %g" % untrained)
    trained("gan", 0.90, 1.45, 0.1, lambda distance: distance <= 0.18, 0.03)
    distance = quality(run("--model gan --image 16 --ranks 2 --batch 16 --iterations 300"))
    if distance > 0.15:
        raise AssertionError("with batch norm: distance %g to held-out shapes; expected at most 0.15" % distance)


def case_samples():
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "samples.png")
        run("--ranks 2 --iterations 3 --samples " + path)
        with open(path, "rb") as file:
            head = file.read(24)
        if head[:8] != b"\x89PNG\r\n\x1a\n" or struct.unpack(">II", head[16:24]) != (274, 274):
            raise AssertionError("not a PNG of 274 x 274: %r" % head)


def case_plot():
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "loss.png")
        run("--ranks 2 --iterations 12 --log-every 1 --plot " + path)
        with open(path, "rb") as file:
            head = file.read(24)
        if head[:8] != b"\x89PNG\r\n\x1a\n" or struct.unpack(">II", head[16:24]) != (800, 480):
            raise AssertionError("not a PNG of 800 x 480: %r" % head)
        must_contain(run("--iterations 2 --plot " + os.path.join(folder, "none", "loss.png"), expected=1), "can't write")


def case_progress():
    """On a terminal there is a line with the rate and the time left; elsewhere there is none."""
    ours, theirs = pty.openpty()
    process = subprocess.Popen([PROGRAM, "--model", "cnn", "--iterations", "40"], stdin=subprocess.DEVNULL,
                               stdout=subprocess.PIPE, stderr=theirs)
    os.close(theirs)
    seen = b""
    try:
        while chunk := os.read(ours, 4096):
            seen += chunk
    except OSError:         # Linux: the other side has gone
        pass
    os.close(ours)
    printed = process.communicate(timeout=60)[0].decode()
    if process.returncode != 0 or "images/s," in printed:
        raise AssertionError("exit status %d:\n%s" % (process.returncode, printed))
    last = re.findall(r"iteration (\d+) of 40, (\d+) images/s, (\d+:\d\d) left", seen.decode())[-1]
    if last[0] != "40" or int(last[1]) == 0 or last[2] != "0:00":
        raise AssertionError("the last progress line is %s" % (last,))
    if "left" in run("--model cnn --iterations 4"):
        raise AssertionError("a progress line where there is no terminal")


AMP = "--ranks 2 --log-every 1 "


def case_amp():
    """fp16 and bf16 compute something else than fp32, but not something far from it; the scale comes down by itself."""
    options = AMP + "--model cnn --iterations 30 "
    exact = losses(run(options))
    for how in ("--amp bf16", "--amp fp16 --loss-scale 128"):
        out = run(options + how)
        rounded = losses(out)
        must_differ(rounded, exact, how)
        for iteration in exact:
            if abs(rounded[iteration][0] - exact[iteration][0]) > 0.05 * exact[iteration][0]:
                raise AssertionError("%s: iteration %d: %s instead of %s" % (how, iteration, rounded[iteration], exact[iteration]))
        if "overflow" in out:
            raise AssertionError("%s overflows:\n%s" % (how, out))
    out = run(options + "--amp fp16 --loss-scale 16777216")
    must_contain(out, "rank 0: iteration 1: overflow in fp16, no step is made; the loss scale is 8388608 now")
    if losses(out)[1] != losses(run(options + "--amp fp16"))[1]:
        raise AssertionError("the loss depends on its scale")
    must_contain(run("--ranks 2 --amp fp8", expected=2), "expected fp16 or bf16")


def case_amp_equal_over_ranks():
    """With rounding a sum in another order may round the other way; the losses stay close."""
    def of(ranks):
        return losses(run("--model cnn --no-batch-norm --batch %d --ranks %d --iterations 12 --log-every 3 "
                          "--amp fp16 --loss-scale 128" % (32 // ranks, ranks)))
    one = of(1)
    for ranks in (2, 4):
        must_be_close(one, of(ranks), "fp16 on 1 and %d ranks" % ranks, tolerance=2e-2)


def case_amp_in_modes():
    """Every mode rounds and scales as ddp does; an overflow on any device or stage keeps all from stepping."""
    for model in ("cnn", "gan"):
        options = "--model %s --no-batch-norm --iterations 9 --log-every 3 --amp fp16 " % model
        one = losses(run(options + "--batch 16 --loss-scale 128"))
        for mode, more in (("dp", "--ranks 2 --batch 8"), ("mirrored", "--ranks 2 --batch 8"),
                           ("pipeline", "--ranks 2 --batch 16 --micro-batches 2")):
            of_mode = options + "--mode %s %s " % (mode, more)
            must_be_close(losses(run(of_mode + "--loss-scale 128")), one, "fp16 in ddp and in " + mode, tolerance=2e-2)
            out = run(of_mode + "--loss-scale 1073741824")
            must_contain(out, "iteration 1: overflow in fp16, no step is made; the loss scale is 536870912 now",
                         "iteration 2: overflow in fp16")
            exact = losses(run(of_mode.replace("--amp fp16", "")))
            must_differ(exact, one, "fp32 and fp16 in " + mode)
            must_be_close(losses(run(of_mode.replace("fp16", "bf16"))), exact, "bf16 and fp32 in " + mode, tolerance=0.1)


def case_amp_join():
    """A rank that has run out of data takes part in what the others agree on."""
    for model in ("gan", "cnn"):
        out = run("--model %s --ranks 3 --iterations 6 --amp fp16 --loss-scale 1073741824 --scale-growth 2 --log-every 1 --join "
                  "--fault uneven-inputs" % model)
        must_contain(out, "iteration 7: ", "7 iterations on 3 ranks")


def case_amp_skip():
    options = AMP + "--ranks 4 --iterations 10 --loss-scale 1024 --fault amp-skip "
    out = run(options)
    must_contain(out, "rank 3: an activation of 65520 became infinite in fp16",
                 "rank 3: iteration 6: overflow in fp16, no step is made; the loss scale is 512 now")
    agreed = run(options + "--agree-overflow")
    must_contain(agreed, "rank 0: iteration 6: overflow in fp16, no step is made; the loss scale is 512 now")
    correct = losses(run(options.replace("--fault amp-skip", "--amp fp16")))
    for what, found in (("amp-skip", losses(out)), ("agreed", losses(agreed))):
        must_be_close({i: v for i, v in found.items() if i <= 6}, {i: v for i, v in correct.items() if i <= 6}, what)
        must_differ({i: v for i, v in found.items() if i > 6}, {i: v for i, v in correct.items() if i > 6}, what)


def resume_gives_the_same_losses(model, more=""):
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "checkpoint")
        options = "--model %s --ranks 2 --log-every 1 --dataset-size 96 %s " % (model, more)     # several epochs
        whole = losses(run(options + "--iterations 14"))
        run(options + "--iterations 8 --checkpoint-every 4 --checkpoint " + path)
        out = run(options + "--iterations 14 --resume " + path)
        must_contain(out, "resumed from %s at iteration 8" % path)
        rest = losses(out)
        if rest != {i: v for i, v in whole.items() if i > 8}:
            raise AssertionError("resumed: %s\nuninterrupted: %s" % (rest, whole))
        must_contain(run(options + "--width 4 --resume " + path, expected=2), "written with other options")
        os.truncate(path, os.path.getsize(path) - 7)
        must_contain(run(options + "--resume " + path, expected=2), "cut off or damaged")


def case_resume_gan():
    resume_gives_the_same_losses("gan")


def case_resume_cnn():
    resume_gives_the_same_losses("cnn")


def case_elastic():
    """A rank dies; all are started again and train to the losses of an undisturbed run, which needs all of the
    parameters, moments, sampler and statistics that the checkpoint holds."""
    with tempfile.TemporaryDirectory() as folder:
        for name, model in (("gan", "gan"), ("cnn", "cnn"), ("scaled", "gan --amp fp16")):
            path = os.path.join(folder, name)
            options = "--model %s --ranks 4 --iterations 10 --log-every 1 --dataset-size 96 " % model
            crash = options + "--fault crash --checkpoint %s --checkpoint-every 3 " % path
            out = run(crash + "--elastic")
            must_contain(out, "rank 3 ended with signal 9; ending the others",
                         "starting all 4 ranks again (restart 1 of at most 3)",
                         "rank 0: resumed from %s at iteration 3" % path, "7 iterations on 4 ranks")
            if losses(out) != losses(run(options)):
                raise AssertionError("after a restart %s: %s" % (model, out))
            must_contain(run(options + "--elastic --checkpoint " + path), "resumed from %s at iteration 10" % path)
    must_contain(run("--ranks 4 --fault crash", expected=128 + signal.SIGKILL), "rank 3 ended with signal 9")
    out = run("--ranks 2 --fault wrong-device --elastic --max-restarts 2", expected=1)
    must_contain(out, "starting all 2 ranks again (restart 2 of at most 2)", "gave up after 2 restarts (--max-restarts)")
    if out.count("ended with exit status 1") != 3:
        raise AssertionError("expected three attempts:\n" + out)
    must_contain(run("--ranks 2 --elastic --no-gang", expected=2), "exclude each other")


def case_elastic_refuses():
    """What another attempt can't mend is not tried again."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "checkpoint")
        run("--ranks 2 --iterations 2 --checkpoint " + path)
        out = run("--ranks 2 --iterations 2 --width 4 --elastic --checkpoint " + path, expected=2)
        must_contain(out, "written with other options")
        if "again" in out:
            raise AssertionError("started again:\n" + out)


def case_checkpoint_survives_a_crash():
    """Killed while it writes checkpoints, over and over: what is there is always whole, and no less than before."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "checkpoint")
        reached = 0
        for delay_s in (0.6, 0.75, 0.9, 1.05, 1.2):
            process = start(("--iterations 100000 --checkpoint %s --checkpoint-every 1 --elastic" % path).split())
            time.sleep(delay_s)
            out = end(process)
            must_contain(out if reached else "resumed", "resumed")
            if not os.path.exists(path):
                continue
            found = re.search(r"resumed from \S+ at iteration (\d+)", run("--resume %s --iterations 1" % path))
            if int(found[1]) < reached:
                raise AssertionError("was at iteration %d, is at %s" % (reached, found[1]))
            reached = int(found[1])
        if reached == 0:
            raise AssertionError("no checkpoint was ever written")


def case_resume_amp():
    """The scale and its count go on: it grows every 5 iterations, and the checkpoint is of iteration 8."""
    resume_gives_the_same_losses("gan", "--amp fp16 --loss-scale 4096 --scale-growth 5")


def write_idx(path, dimensions, data):
    with open(path, "wb") as file:
        file.write(bytes([0, 0, 8, len(dimensions)]) + struct.pack(">%dI" % len(dimensions), *dimensions) + bytes(data))


def case_idx_files():
    with tempfile.TemporaryDirectory() as folder:
        images, labels = os.path.join(folder, "images"), os.path.join(folder, "labels")
        write_idx(images, (64, 28, 28), ((i // 784 % 2) * 255 for i in range(64 * 784)))
        write_idx(labels, (64,), (i % 2 for i in range(64)))
        out = run("--model cnn --ranks 2 --iterations 20 --images %s --labels %s" % (images, labels))
        must_contain(out, "accuracy 1.0000 on 64 training images")
        os.truncate(images, 1000)
        must_contain(run("--images %s --labels %s" % (images, labels), expected=2), images + " is cut off")
        must_contain(run("--model cnn --images " + images, expected=2), "needs --labels")


LAUNCHED = "--iterations 4 --log-every 1 --verbose"


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return str(probe.getsockname()[1])


def must_be_launched(out, launcher, device_of):
    """All four ranks know who and where they are, and train to the losses of --ranks 4."""
    for rank in range(4):
        must_contain(out, "rank %d: one of 4 ranks, on device %d, started by %s\n" % (rank, device_of(rank), launcher))
    own = run(LAUNCHED + " --ranks 4")
    must_contain(own, "rank 3: one of 4 ranks, on device 3, started by ddptrain\n")
    if losses(out) != losses(own):
        raise AssertionError("%s: %s\n--ranks 4: %s" % (launcher, out, own))


# launcher: what it sets for a rank, as its documentation says; ranks here are numbered against their devices.
STAND_INS = {
    "torchrun": lambda rank, port: {
        "RANK": rank, "WORLD_SIZE": 4, "LOCAL_RANK": 3 - rank, "LOCAL_WORLD_SIZE": 4, "GROUP_RANK": 0, "GROUP_WORLD_SIZE": 1,
        "ROLE_RANK": rank, "ROLE_WORLD_SIZE": 4, "ROLE_NAME": "default", "MASTER_ADDR": "localhost", "MASTER_PORT": port,
        "TORCHELASTIC_RESTART_COUNT": 0, "TORCHELASTIC_MAX_RESTARTS": 0, "TORCHELASTIC_RUN_ID": "none",
        "TORCHELASTIC_USE_AGENT_STORE": "False"},
    "Slurm": lambda rank, port: {
        "SLURM_PROCID": rank, "SLURM_NTASKS": 4, "SLURM_LOCALID": 3 - rank, "SLURM_NODEID": 0, "SLURM_JOB_ID": 4711,
        "SLURM_STEP_ID": 0, "MASTER_PORT": port},
    "MPICH": lambda rank, port: {
        "PMI_RANK": rank, "PMI_SIZE": 4, "MPI_LOCALRANKID": 3 - rank, "MPI_LOCALNRANKS": 4, "MASTER_PORT": port},
}


def case_launchers():
    for launcher, variables in STAND_INS.items():
        port = free_port()
        ranks = [start(LAUNCHED.split(), {k: str(v) for k, v in variables(rank, port).items()}) for rank in (3, 1, 0, 2)]
        out = "".join(rank.communicate(timeout=60)[0] for rank in ranks)
        if any(rank.returncode for rank in ranks):
            raise AssertionError("%s: %s" % (launcher, out))
        must_be_launched(out, launcher, lambda rank: 3 - rank)
    must_contain(run("--ranks 3", expected=2, environment={"RANK": "0", "WORLD_SIZE": "2"}), "differ")
    must_contain(run("", expected=2, environment={"RANK": "2", "WORLD_SIZE": "2"}), "RANK=2 does not fit to WORLD_SIZE=2")
    must_contain(run("", expected=2, environment={"SLURM_PROCID": "x", "SLURM_NTASKS": "2"}), "SLURM_PROCID=x")


def of_setup(program):
    """A program of the PyTorch that tools/setup-torch installs."""
    setup = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "tools", "setup-torch")
    found = subprocess.run([setup, "--find"], capture_output=True, text=True, timeout=60).stdout.strip()
    return shutil.which(os.path.join(found, "bin", program)) if found else None


def need(program):
    found = os.environ.get("DDPTRAIN_TEST_" + program.upper()) or shutil.which(program) or of_setup(program)
    if not found:
        print(program + " is not installed")
        sys.exit(77)
    return found


def case_mpirun():
    """Open MPI's own."""
    mpirun = [shutil.which("mpirun.openmpi") or need("mpirun"), "--allow-run-as-root", "--oversubscribe", "-n", "4", "-x", "LD_LIBRARY_PATH",
              "-x", "DDPCHECK_EMU_DEVICES", PROGRAM]
    must_be_launched(run(LAUNCHED, command=mpirun), "Open MPI", lambda rank: rank)


def case_torchrun():
    """PyTorch's own, from DDPTRAIN_TEST_TORCHRUN, PATH or tools/setup-torch: also its restarts."""
    torchrun = [need("torchrun"), "--no_python", "--standalone", "--nproc_per_node", "4", "--max_restarts", "2", PROGRAM]
    must_be_launched(run(LAUNCHED, command=torchrun), "torchrun", lambda rank: rank)
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "checkpoint")
        out = run("--iterations 8 --log-every 1 --verbose --fault crash --elastic --checkpoint %s --checkpoint-every 3" % path,
                  command=torchrun)
        must_contain(out, "rank 2: one of 4 ranks, on device 2, started by torchrun again\n",
                     "rank 0: resumed from %s at iteration 3" % path)
        if losses(out) != losses(run("--ranks 4 --iterations 8 --log-every 1")):
            raise AssertionError("after torchrun's restart: " + out)


def case_gang():
    out = run("--ranks 3 --iterations 100000 --fault wrong-device --fault-rank 1", expected=1)
    # Which call meets the device's fault first is a matter of time.
    must_contain(out, "rank 1 ended with exit status 1; ending the others", "discriminator.down0.weight is now on device 2")
    process = start("--ranks 2 --iterations 100000".split())
    time.sleep(1)
    process.terminate()
    out = process.communicate(timeout=30)[0]
    if process.returncode != 128 + signal.SIGTERM:
        raise AssertionError("exit status %d after SIGTERM, expected 143:\n%s" % (process.returncode, out))


GAN = "--ranks 4 --iterations 8 --log-every 8 "


def case_inplace_activation():
    out = run(GAN + "--no-gang --fault inplace-activation", expected=1)
    for rank in range(4):
        must_contain(out, "rank %d: a tensor that is needed to compute a gradient was modified by an in-place operation"
                     % rank)
    must_contain(out, "is at version 1; expected version 0")
    wrong = losses(run(GAN + "--fault inplace-activation --no-version-check"))
    clone = losses(run(GAN + "--inplace-clone"))
    if clone != losses(run(GAN + "--generator-shortcut")):
        raise AssertionError("in place on a clone and out of place differ")
    must_differ(wrong, clone, "in place with the version check off")


def case_inplace_bucket():
    run(GAN + "--clip 0.01")
    run(GAN + "--model cnn --clip 0.01 --join")
    # Whether the clip hits the reduction is chance, as on a GPU: one run of ten has to show it.
    right = losses(run(GAN))
    if not any(losses(run(GAN + "--fault inplace-bucket")) != right for _ in range(10)):
        raise AssertionError("clipping too early on one rank never changed the losses: %s" % right)


def case_early_step():
    right = losses(run(GAN))
    if not any(losses(run(GAN + "--fault early-step")) != right for _ in range(10)):
        raise AssertionError("stepping before the reduction was over never changed the losses: %s" % right)


def case_copies_of_buckets():
    """The reduction of copies computes what the one in place does."""
    for model in ("gan", "cnn"):
        options = "--model %s --ranks 3 --iterations 6 --log-every 2 --first-bucket-mb 0 --bucket-mb 0.01" % model
        must_be_close(losses(run(options + " --reduce-copies")), losses(run(options)), "buckets and copies of them")


def case_order_of_models():
    """Without steps in between the order of the two backward passes changes nothing, nor does sharing a communicator."""
    options = "--no-batch-norm --ranks 3 --iterations 8 --log-every 2 "
    plain = losses(run(options + "--simultaneous"))
    must_differ(losses(run(options)), plain, "updates in turn and at once")
    must_be_close(losses(run(options + "--simultaneous --shared-communicator")), plain, "one and two communicators")
    must_be_close(losses(run(options + "--fault comm-order")), plain, "both orders of the backward passes")
    run(options + "--simultaneous --join --fault uneven-inputs")
    must_hang(options + "--no-gang --fault shared-comm")
    run(options + "--fault comm-order --shared-communicator", expected=2)
    run("--model cnn --simultaneous", expected=2)


def case_uneven_updates():
    options = "--ranks 3 --iterations 8 --log-every 2 "
    must_differ(losses(run(options + "--discriminator-updates 2")), losses(run(options)), "one and two updates")
    run(options + "--discriminator-updates 2 --join --fault uneven-inputs")
    must_hang(options + "--no-gang --fault uneven-updates")
    run(options + "--simultaneous --discriminator-updates 2", expected=2)


def case_same_shard():
    """Four ranks that read the same learn what one rank alone learns; with shards they learn something else."""
    options = "--model cnn --no-batch-norm --iterations 10 --log-every 1 --batch 4"
    alone = losses(run(options))
    must_be_close(losses(run(options + " --ranks 4 --fault same-shard")), alone, "four ranks with the shard of one")
    must_differ(losses(run(options + " --ranks 4")), alone, "four ranks with a shard each")


def case_partial_barrier():
    must_hang(GAN + "--log-every 4 --fault partial-barrier", "iteration 4:")
    out = run(GAN + "--no-gang --fault partial-barrier --timeout 1.5", expected=1)
    must_contain(out, "rank 0: no collective has completed for 1.5 s (--timeout); still waiting for AllReduce of 1 element "
                 "(barrier) on control", "rank 3: no collective has completed for 1.5 s (--timeout); still waiting for Broadcast")
    for _ in range(5):      # the abort wakes whoever waited: none may go on with communicators that are gone
        out = run(GAN + "--no-gang --log-every 1 --fault partial-barrier --timeout 0.5", expected=1)
        if "failed at" in out or "iteration 7" in out or out.count("still waiting for") != 4:
            raise AssertionError("went on after the abort:\n" + out)
    run(GAN + "--barrier-every 5 --timeout 30")


def case_exchange():
    out = run("--model cnn --ranks 2 --iterations 6 --log-every 3 --exchange-every 3")
    told = re.findall(r"after (\d+) iterations: classifier ([0-9.]+) here, ([0-9.]+) on rank 1", out)
    averages = {int(n): [(float(here) + float(there)) / 2] for n, here, there in told}
    must_be_close(losses(out), averages, "the logged average and that of what was exchanged")
    run("--ranks 1 --iterations 4 --exchange-every 2")
    must_hang(GAN + "--fault p2p-cycle --exchange-every 3 --log-every 3", "iteration 6:")


def case_init_faults():
    must_contain(run(GAN + "--fault init-gpu", expected=1), "ncclCommInitRankConfig", "invalid usage")
    must_hang(GAN + "--fault init-missing", "rank 3: still loading data")
    for fault in ("init-world", "init-duplicate"):
        process = start((GAN + "--fault " + fault).split())
        time.sleep(2)
        out, status = end(process), process.returncode
        if status == 0 or "iteration" in out:
            raise AssertionError("%s trained:\n%s" % (fault, out))


def case_uneven_inputs():
    must_hang(GAN + "--fault uneven-inputs", "8 iterations on 4 ranks")
    must_contain(run(GAN + "--fault uneven-inputs --join"), "9 iterations on 4 ranks")
    run(GAN + "--fault uneven-inputs --fault-rank 0 --join")
    for rank in (0, 3):         # also what ranks do together beside training
        out = run("--ranks 4 --iterations 5 --log-every 1 --exchange-every 1 --barrier-every 1 --fault uneven-inputs "
                  "--join --fault-rank %d" % rank)
        must_contain(out, "iteration 6: ", "after 6 iterations: ")
    run(GAN + "--model cnn --fault uneven-inputs --join")


def case_oom_skip():
    must_hang(GAN + "--fault oom-skip", "rank 3: iteration 5: out of device memory")
    must_contain(run(GAN + "--fault oom-skip --catch-up"), "rank 3: iteration 5: out of device memory")
    run(GAN + "--model cnn --fault oom-skip --catch-up")


def case_wrong_device():
    must_contain(run(GAN + "--fault wrong-device", expected=1),
                 "rank 3: discriminator.down0.weight is now on device 0, its input stays on device 3",
                 "rank 3 ended with exit status 1")


CASES = {name[5:]: function for name, function in list(globals().items()) if name.startswith("case_")}


def main():
    global PROGRAM
    parser = argparse.ArgumentParser()
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--program")
    parser.add_argument("case", nargs="?")
    options = parser.parse_args()
    if options.list:
        print("\n".join(CASES))
        return
    PROGRAM = os.path.abspath(options.program)
    CASES[options.case]()
    print(options.case + ": as expected")


if __name__ == "__main__":
    main()
