"""The trainer's faults and their twins: each faulty run must give exactly its finding, each twin none,
from `ddpcheck run` and from bare LD_PRELOAD, and live as well as offline."""

import argparse
import sys
import time

from line import Line, end_group

GAN = ["--model", "gan", "--ranks", "4", "--iterations", "12", "--no-gang"]
CNN = ["--model", "cnn", "--ranks", "4", "--iterations", "12", "--no-gang"]
TINY_BUCKETS = ["--first-bucket-mb", "0", "--bucket-mb", "0"]      # one for each parameter

# Without --no-gang: the launcher ends the others, and with --elastic starts all again.
ELASTIC = ["--model", "gan", "--ranks", "4", "--iterations", "12", "--fault", "crash", "--checkpoint", "checkpoint",
           "--checkpoint-every", "2", "--elastic"]


def fault(name, *more):
    return GAN + ["--fault", name, *more]


# name: arguments, (code, ranks of the faulty side or None) or None for no finding, how the job ends if
# nobody ends it: "hang" (never) or "ends".
SCENARIOS = {
    "clean": (GAN, None, "ends"),
    "clean-cnn": (CNN, None, "ends"),
    "inplace-activation": (fault("inplace-activation"), ("DC307", "0-3"), "ends"),
    "inplace-activation-unchecked": (fault("inplace-activation", "--no-version-check"), ("DC307", "0-3"), "ends"),
    "inplace-activation-twin": (GAN + ["--generator-shortcut", "--inplace-clone"], None, "ends"),
    "inplace-bucket": (fault("inplace-bucket"), ("DC301", "3"), "ends"),
    "inplace-bucket-twin": (GAN + ["--clip", "0.01"], None, "ends"),
    "uneven-updates": (fault("uneven-updates"), ("DC202", None), "hang"),
    "uneven-updates-twin": (GAN + ["--discriminator-updates", "2"], None, "ends"),
    "uneven-updates-shared": (fault("uneven-updates", "--shared-communicator"), ("DC101", "3"), "hang"),
    "same-shard": (["--model", "cnn", "--ranks", "4", "--iterations", "24", "--no-gang", "--fault", "same-shard"],
                   ("DC501", "0-3"), "ends"),
    "clean-hash": (GAN, None, "ends"),
    "clean-cnn-hash": (CNN, None, "ends"),
    "inplace-bucket-hash": (fault("inplace-bucket"), ("DC301", "3"), "ends"),
    "partial-barrier": (fault("partial-barrier"), ("DC201", "3"), "hang"),
    "partial-barrier-twin": (GAN + ["--barrier-every", "5"], None, "ends"),
    "p2p-cycle": (fault("p2p-cycle", "--exchange-every", "3"), ("DC203", None), "hang"),
    "p2p-cycle-twin": (GAN + ["--exchange-every", "3"], None, "ends"),
    "mirrored-no-group": (["--mode", "mirrored", "--ranks", "4", "--iterations", "12", "--fault", "mirrored-no-group"], ("DC201", "0"), "hang"),
    "mirrored-no-group-twin": (["--mode", "mirrored", "--ranks", "4", "--iterations", "12"], None, "ends"),
    "dp-stale-replica": (["--mode", "dp", "--ranks", "4", "--iterations", "12", "--fault", "dp-stale-replica"], ("DC503", "3"), "ends"),
    "dp-stale-replica-twin": (["--mode", "dp", "--ranks", "4", "--iterations", "12"], None, "ends"),
    "dp-gan": (["--mode", "dp", "--model", "gan", "--ranks", "4", "--iterations", "12"], None, "ends"),
    "pipeline-order": (["--mode", "pipeline", "--ranks", "2", "--iterations", "12", "--no-gang", "--fault", "pipeline-order"], ("DC203", "0"), "hang"),
    "pipeline-order-twin": (["--mode", "pipeline", "--ranks", "2", "--iterations", "12", "--no-gang"], None, "ends"),
    "pipeline-gan": (["--mode", "pipeline", "--model", "gan", "--ranks", "2", "--iterations", "12", "--no-gang"], None, "ends"),
    "init-world": (fault("init-world"), ("DC109", "3"), "hang"),
    "init-duplicate": (fault("init-duplicate"), ("DC109", None), "hang"),
    "init-gpu": (fault("init-gpu"), ("DC405", None), "ends"),
    "init-missing": (fault("init-missing"), ("DC209", "3"), "hang"),
    "uneven-inputs": (fault("uneven-inputs"), ("DC206", "0-2"), "hang"),
    "uneven-inputs-twin": (fault("uneven-inputs", "--join"), None, "ends"),
    "shared-comm": (fault("shared-comm"), ("DC507", "3"), "hang"),
    "shared-comm-no-buffers": (fault("shared-comm", "--no-batch-norm"), ("DC507", "3"), "hang"),
    "shared-comm-twin": (GAN + ["--simultaneous", "--shared-communicator"], None, "ends"),
    "comm-order": (fault("comm-order"), ("DC204", "3"), "ends"),
    "comm-order-twin": (GAN + ["--simultaneous"], None, "ends"),
    "oom-skip": (fault("oom-skip"), ("DC504", "3"), "hang"),
    "oom-skip-twin": (fault("oom-skip", "--catch-up"), None, "ends"),
    "accum-mismatch": (CNN + ["--fault", "accum-mismatch"], ("DC505", "3"), "ends"),
    "accum-every": (CNN + ["--fault", "accum-every"], ("DC505", "0-3"), "ends"),
    "accum-twin": (CNN + ["--accumulate", "4"], None, "ends"),
    "forward-twice": (CNN + ["--fault", "forward-twice", *TINY_BUCKETS], ("DC301", "0-3"), "ends"),
    "forward-twice-twin": (CNN + ["--two-passes", "--find-unused", *TINY_BUCKETS], None, "ends"),
    "unused-params": (CNN + ["--fault", "unused-params"], ("DC504", "3"), "hang"),
    "unused-params-twin": (CNN + ["--fault", "unused-params", "--find-unused"], None, "ends"),
    "static-graph": (GAN + ["--static-graph"], None, "ends"),
    "buffers-mismatch": (fault("buffers-mismatch"), ("DC101", "3"), "hang"),
    "buffers-mismatch-twin": (GAN + ["--no-buffer-broadcast"], None, "ends"),
    "model-mismatch": (fault("model-mismatch"), ("DC110", "3"), "hang"),
    "amp-skip": (fault("amp-skip", "--loss-scale", "1024"), ("DC506", "3"), "ends"),
    "amp-skip-twin": (fault("amp-skip", "--loss-scale", "1024", "--agree-overflow"), None, "ends"),
    "amp-skip-hash": (fault("amp-skip", "--loss-scale", "1024"), ("DC506", "3"), "ends"),
    "amp-skip-twin-hash": (fault("amp-skip", "--loss-scale", "1024", "--agree-overflow"), None, "ends"),
    "amp-bf16": (GAN + ["--amp", "bf16"], None, "ends"),
    "wrong-device": (fault("wrong-device"), ("DC403", "3"), "hang"),
    "crash": (fault("crash"), ("DC205", "3"), "hang"),
    "crash-gang": (ELASTIC[:-1], ("DC205", "3"), "ends"),
    "crash-twin": (ELASTIC, None, "ends"),
    "timeout": (fault("partial-barrier", "--timeout", "5"), ("DC201", "3"), "ends"),
    "timeout-twin": (GAN + ["--barrier-every", "5", "--timeout", "30"], None, "ends"),
    "free-in-flight": (fault("free-in-flight"), ("DC306", "3"), "hang"),
    "free-in-flight-twin": (GAN + ["--reduce-copies"], None, "ends"),
    "missing-event": (fault("missing-event"), ("DC303", "3"), "ends"),
    "early-step": (fault("early-step"), ("DC302", "3"), "ends"),
}

# Those that hash payloads (ddpcheck run --hash).
HASHED = {"amp-skip-hash", "amp-skip-twin-hash", "clean-hash", "clean-cnn-hash", "dp-gan", "dp-stale-replica", "dp-stale-replica-twin",
          "inplace-bucket-hash", "mirrored-no-group-twin", "same-shard"}

HANG_AFTER_S = 2        # as in tests/suite
QUIET_S = 3             # so long a job stays that hangs: more than HANG_AFTER_S, so that a second, wrong finding would show


def start(line, arguments, way, ends, hashed):
    """Runs the trainer to its end, or until the hang is diagnosed; returns what it printed."""
    program = [line.trainer, *arguments]
    if way == "run":
        options = ["--hang-after", str(HANG_AFTER_S)] + (["--hash"] if hashed else [])
        options += [] if ends else ["--timeout", str(HANG_AFTER_S + QUIET_S)]
        status, out, err = line.run(program, options, timeout=150)
        return out + err
    process = line.start_bare(program, DDPCHECK_HANG_AFTER=str(HANG_AFTER_S), DDPCHECK_HASH="1" if hashed else "0")
    give_up = time.monotonic() + 120
    quiet_until = None
    while process.poll() is None and time.monotonic() < give_up:
        if not ends and line.live_problems() and quiet_until is None:
            quiet_until = time.monotonic() + QUIET_S
        if quiet_until and time.monotonic() > quiet_until:
            break
        time.sleep(0.1)
    out = end_group(process)
    line.wait_collector()
    return out


def ranks_of(text):
    """{0, 1, 2, 5} of "0-2,5"."""
    ends = [part.split("-") for part in text.split(",") if part and part != "none"]
    return {rank for end in ends for rank in range(int(end[0]), int(end[-1]) + 1)}


def check(line, expected, out):
    status, findings, lines = line.report("--fail-on", "warning", "--hang-after", str(HANG_AFTER_S), "--allow-missing")
    serious = [f for f in findings if f["severity"] != "note" and f.get("state") != "resolved"]
    said = ["%s (ranks %s): %s" % (f["code"], f["ranks"], f["what"]) for f in serious]
    wanted = [] if expected is None else [expected[0]]
    if [f["code"] for f in serious] != wanted:
        raise AssertionError("expected %s, got %s\nthe job printed:\n%s" % (wanted, said, out))
    if expected and expected[1] is not None:
        sides = [side["ranks"] for side in serious[0]["sides"]]
        # Ranks that did the same can stand at different places when they are looked at: then they have a side each.
        within = [ranks_of(side) for side in sides if ranks_of(side) <= ranks_of(expected[1])]
        if set().union(*within) != ranks_of(expected[1]):
            raise AssertionError("expected a side with ranks %s, got sides %s" % (expected[1], sides))
    if status != (1 if wanted else 0):
        raise AssertionError("report's exit status is %d with findings %s" % (status, said))
    if any("(a consequence of DC" in f["what"] for f in findings):      # of the same fault: for --verbose only
        for option, shown in ((), False), (("--verbose",), True):
            text = " ".join(line.call([line.tool, "report", *option, "--hang-after", str(HANG_AFTER_S), line.trace])[1].split())
            if ("(a consequence of DC" in text) != shown:
                raise AssertionError("report %s: consequences are%s shown:\n%s" % (option, "" if not shown else " not", text))
    offline = sorted((f["code"], int(f["fingerprint"], 16)) for f in findings)
    live = sorted((code, fingerprint & (1 << 64) - 1) for code, _, fingerprint in line.live_findings())
    if live != offline:
        raise AssertionError("live findings %s differ from offline ones %s" % (live, offline))
    return said


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--build")
    parser.add_argument("--way", choices=["run", "bare"])
    parser.add_argument("scenario", nargs="?")
    options = parser.parse_args()
    if options.list:
        print("\n".join(SCENARIOS))
        return
    arguments, expected, ending = SCENARIOS[options.scenario]
    with Line(options.build, name=options.scenario) as line:
        out = start(line, arguments, options.way, ending == "ends", options.scenario in HASHED)
        said = check(line, expected, out)
    print("%s (%s): %s" % (options.scenario, options.way, said or "no finding, as it should be"))


if __name__ == "__main__":
    sys.exit(main())
