"""What watching costs a job, as a ratio: pairs of a run alone and a run under ddpcheck, one right after the other.

The runs of a pair share the machine's mood (clocks, temperature, other work), so the ratio within each pair is what is
kept; which of the two comes first alternates. The interval is that of the sign test: it assumes nothing about the ratios'
distribution. Ranks that share one GPU take turns on it, so the GPU's share of an iteration is as many times longer as there
are ranks, and hides work of the host that would show with a GPU for each: the ratio is a lower bound of the cost."""

import math
import os
import re
import statistics

from bench import HERE, Failed, Skipped
from frameworks import python_with

CONFIDENCE = 0.95


def rate(bench, words, number, watched, options):
    """Images a second, as the job prints them last."""
    if watched:
        trace = os.path.join(bench.fresh_trace(), str(number))
        words = [bench.tool, "run", "-q", "-o", trace, *options, "--", *words]
    rates = re.findall(r"([0-9.]+) images/s$", bench.command(*words), re.MULTILINE)
    if not rates:
        raise Failed("the job printed no rate")
    return float(rates[-1])


def sign_interval(ratios):
    """(lowest, highest, confidence) of an interval that holds the median; the widest there is if it can't be surer."""
    ordered, count = sorted(ratios), len(ratios)
    cut = 0
    while True:
        tail = sum(math.comb(count, i) for i in range(cut + 2)) / 2 ** count
        if cut + 1 >= count - cut - 1 or 1 - 2 * tail < CONFIDENCE:
            break
        cut += 1
    sure = 1 - 2 * sum(math.comb(count, i) for i in range(cut + 1)) / 2 ** count
    return ordered[cut], ordered[count - 1 - cut], sure


def measure(bench, words, options=()):
    ratios = []
    if not bench.emulated:
        rate(bench, words, 0, False, options)      # the first run finds cold caches
    for pair in range(bench.size(bench.pairs, 1)):
        first_watched = pair % 2 == 1
        rates = {watched: rate(bench, words, pair, watched, options) for watched in (first_watched, not first_watched)}
        ratios.append(rates[True] / rates[False])
    low, high, sure = sign_interval(ratios)
    return "rate under ddpcheck%s over rate alone, %d pairs: median %.3f, in %.3f to %.3f with %.0f %% confidence; %d ranks " \
        "share one GPU, so this is a lower bound of the cost with a GPU for each" % (
            "".join(" " + option for option in options), len(ratios), statistics.median(ratios), low, high, 100 * sure, bench.ranks)


def measure_ddptrain(bench, options):
    words = bench.in_ranks(bench.program("bin", "ddptrain"), "--model", "gan", "--iterations", str(bench.size(200, 4)))
    return measure(bench, words, options)


def measure_torch(bench):
    """A small model, so that the host has much to do for each step, which is where watching costs."""
    if bench.emulated:
        raise Skipped("PyTorch's kernels compute nothing on the emulated GPU")
    words = bench.in_ranks(python_with("torch"), os.path.join(HERE, "programs", "torch_rate.py"))
    return measure(bench, words)
