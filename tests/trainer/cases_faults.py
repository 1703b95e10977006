"""How faults show without ddpcheck, and that their twins compute what they should."""

import json
import os
import re
import socket
import tempfile
import time

from running import start, end, run, losses, must_contain, must_be_close, must_differ, must_hang

AMP = "--ranks 2 --log-every 1 "
GAN = "--ranks 4 --iterations 8 --log-every 8 "


def case_models_that_differ():
    """Ranks compare their parameters before they touch them."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = str(probe.getsockname()[1])
    ranks = [start(("--iterations 2 --width %d" % (8 - 2 * r)).split(),
                   {"RANK": str(r), "WORLD_SIZE": "2", "MASTER_ADDR": "localhost", "MASTER_PORT": port}) for r in (1, 0)]
    outs = [rank.communicate(timeout=300)[0] for rank in ranks]
    must_contain(outs[0], "rank 1: the generator has other parameters than rank 0's: number 0 (generator.up0.weight) is "
                 "32x24x4x4 here, and 32x32x4x4 on rank 0")
    must_contain(outs[1], "the generator of rank 1 has other parameters")
    must_hang("--ranks 2 --no-gang --fault model-mismatch")


def seconds(out):
    return float(re.search(r"iterations on \d+ ranks? in ([0-9.]+) s", out)[1])


def case_slow_ranks():
    """A slow rank changes no number; the job takes at least the time that it stalls."""
    for model in ("gan", "cnn"):
        options = "--model %s --ranks 2 --iterations 10 --log-every 1 " % model
        right = losses(run(options))
        for fault, least_s in (("slow-host", 10 * 0.03), ("slow-loader", 10 * 0.03), ("gc-pause", 0.2)):
            out = run(options + "--fault " + fault)
            if losses(out) != right:
                raise AssertionError("%s changed the losses" % fault)
            if seconds(out) < least_s - 0.05:        # printed with one digit
                raise AssertionError("%s: %.1f s, of which at least %.1f s are the fault's" % (fault, seconds(out), least_s))


def case_more_work():
    """The faulty rank alone reads larger batches."""
    options = "--model cnn --ranks 2 --iterations 6 --log-every 1 "
    must_differ(losses(run(options + "--fault more-work")), losses(run(options)), "equal and unequal batches")
    must_contain(run(options + "--epochs 1 --fault more-work", expected=2), "needs --iterations instead of --epochs")


def modelled(folder, options, **environment):
    """The losses, and of each rank what the emulated GPUs waited because of the settings."""
    path = os.path.join(folder, "modelled")
    out = run(options, environment={"DDPCHECK_EMU_MODELLED": path, **environment})
    with open(path, encoding="utf-8") as file:
        totals = {each["rank"]: each for each in map(json.loads, file)}
    os.unlink(path)
    return losses(out), totals


def case_slow_hardware():
    """Slow devices and links are settings of the emulated GPU. They change no number either."""
    options = "--model cnn --ranks 2 --iterations 6 --log-every 1"
    right = losses(run(options))
    with tempfile.TemporaryDirectory() as folder:
        slow, totals = modelled(folder, options, DDPCHECK_EMU_KERNEL_TIME="all=0.0005", DDPCHECK_EMU_DEVICE_SPEED="1=0.25")
        # A kernel of rank 0 waits for less than 0.5 ms, one of rank 1 for three times as long as it takes at full speed.
        most, least = (0.0005 * totals["0"]["kernels"], 3 * 0.0005 * totals["1"]["kernels"])
        if not (totals["0"]["slower_s"] <= most and totals["1"]["slower_s"] >= least):
            raise AssertionError("a slow device: %s" % totals)
        linked, totals = modelled(folder, options, DDPCHECK_EMU_LINK_RATE="0-1=20M")
        if not totals["0"]["transfer_s"] == totals["1"]["transfer_s"] > 0:
            raise AssertionError("a slow link: %s" % totals)
        paused, totals = modelled(folder, options, DDPCHECK_EMU_PAUSE="1=0.02/50")
        if totals["0"]["device_pause_s"] != 0 or totals["1"]["device_pause_s"] < 0.02 * (totals["1"]["kernels"] // 50):
            raise AssertionError("pauses: %s" % totals)
    if not slow == linked == paused == right:
        raise AssertionError("slow hardware changed the losses")


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
    out = run(GAN + "--no-gang --fault partial-barrier --timeout 5", expected=1)
    must_contain(out, "rank 0: no collective has completed for 5.0 s (--timeout); still waiting for AllReduce of 1 element "
                 "(barrier) on control", "rank 3: no collective has completed for 5.0 s (--timeout); still waiting for Broadcast")
    for _ in range(5):      # the abort wakes whoever waited: none may go on with communicators that are gone
        out = run(GAN + "--no-gang --log-every 1 --fault partial-barrier --timeout 2", expected=1)
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
                 "rank 3 exited with status 1")


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
