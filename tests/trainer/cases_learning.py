"""What is computed: the same losses in every way to spread training over ranks, and what training reaches."""

from running import run, losses, quality, must_contain, must_be_close, must_differ


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


def case_copies_of_buckets():
    """The reduction of copies computes what the one in place does."""
    for model in ("gan", "cnn"):
        options = "--model %s --ranks 3 --iterations 6 --log-every 2 --first-bucket-mb 0 --bucket-mb 0.01" % model
        must_be_close(losses(run(options + " --reduce-copies")), losses(run(options)), "buckets and copies of them")


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


# What training must reach, and how far runs on 1, 2 and 4 ranks with the same images may be from one another: they add the
# same numbers in another order, and so do processors of different kinds. docs/trainer.md has these figures, too.
#
# A classifier converges, so its last loss is compared. A GAN's two players amplify the difference of the order with every
# iteration: after 40 iterations losses still agree, after 200 they may be apart by a third, and each run is as good as the
# other. So a GAN's first iterations are compared, and at the end the mean quality of three seeds.
#
# The quality is the classifier's accuracy on held-out images (chance: 0.25), and the generator's distance to them
# (untrained: 0.68; two sets of the data: 0.07).
TRAINED = "--image 16 --iterations 300 --no-batch-norm "
GAN_SEEDS = (0, 1, 2)
GAN_EQUAL = range(1, 21)        # iterations whose losses agree up to the order of sums


def case_trained_cnn():
    runs = {ranks: run(TRAINED + "--model cnn --log-every 150 --ranks %d --batch %d" % (ranks, 32 // ranks)) for ranks in (1, 2, 4)}
    for ranks, out in runs.items():
        loss = losses(out)[300][0]
        if not 0.35 <= loss <= 0.60:
            raise AssertionError("on %d ranks: loss %g, expected 0.35 to 0.60" % (ranks, loss))
        if quality(out) < 0.77 or abs(quality(out) - quality(runs[1])) > 0.01:
            raise AssertionError("on %d ranks: accuracy %g, on one %g; expected at least 0.77"
                                 % (ranks, quality(out), quality(runs[1])))
        must_be_close(losses(runs[1]), losses(out), "1 rank and %d" % ranks, 1e-3)
    accuracy = quality(run("--model cnn --ranks 2 --batch 16 --iterations 600 --seed 1"))
    if accuracy < 0.85:
        raise AssertionError("with batch norm: accuracy %g on held-out shapes; expected at least 0.85" % accuracy)


def gan_distances(ranks, first_losses):
    """The distances that the GAN reaches on so many ranks, one for each seed; compares its first losses with those of the
    runs before, which first_losses keeps."""
    distances = []
    for seed in GAN_SEEDS:
        out = run(TRAINED + "--model gan --log-every 1 --seed %d --ranks %d --batch %d" % (seed, ranks, 32 // ranks))
        first = {iteration: losses(out)[iteration] for iteration in GAN_EQUAL}
        must_be_close(first_losses.setdefault(seed, first), first, "seed %d on 1 rank and on %d" % (seed, ranks))
        distances.append(quality(out))
    return distances


def case_trained_gan():
    untrained = quality(run("--model gan --image 16 --iterations 1"))
    if untrained < 0.6:
        raise AssertionError("the distance of noise to the data is only %g" % untrained)
    first_losses, means = {}, {}
    for ranks in (1, 2, 4):
        distances = gan_distances(ranks, first_losses)
        means[ranks] = sum(distances) / len(distances)
        if max(distances) > 0.30 or means[ranks] > 0.19:
            raise AssertionError("on %d ranks: distances %s; expected at most 0.30, and 0.19 in the mean" % (ranks, distances))
    if max(means.values()) - min(means.values()) > 0.04:
        raise AssertionError("the mean distances on 1, 2 and 4 ranks are apart by more than 0.04: %s" % means)
    print("mean distances on 1, 2 and 4 ranks: %s" % means)
    distance = sum(quality(run("--model gan --image 16 --ranks 2 --batch 16 --iterations 300 --seed %d" % seed))
                   for seed in GAN_SEEDS) / len(GAN_SEEDS)
    if distance > 0.15:
        raise AssertionError("with batch norm: mean distance %g to held-out shapes; expected at most 0.15" % distance)


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
