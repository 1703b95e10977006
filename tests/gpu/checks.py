"""The checks of tests/gpu/run, in the order in which they run: what must hold before what is measured."""

import json
import os
import re
import shutil

from bench import HERE, ROOT, Check, Failed, Skipped
from frameworks import CASES, cupy, jax, python_with, torch, torch_programs
from overhead import measure_ddptrain, measure_torch

ISSUED = "SELECT count(*) FROM v_collective"
# Each slot's last words: how far its stream got.
REACHED = """SELECT coalesce(sum(started), 0), coalesce(sum(done), 0)
             FROM (SELECT max(started) AS started, max(done) AS done FROM v_progress GROUP BY process, slot)"""
BLIND = "SELECT count(*) FROM event e JOIN api a ON a.number = e.api WHERE a.name = 'notice_blind'"


def last_line(text):
    return (text.strip().splitlines() or [""])[-1]


def kernels(bench):
    return last_line(bench.command(bench.program("tests", "test_kernels_device"), *bench.size([], ["losses"])))


def sanitizer(tool):
    def check(bench):
        if not shutil.which("compute-sanitizer", path=bench.environment["PATH"]):
            raise Skipped("compute-sanitizer is not installed")
        out = bench.command("compute-sanitizer", "--tool", tool, "--error-exitcode", "1",
                            bench.program("tests", "test_kernels_device"), bench.size("tensor cores", "losses"))
        summary = re.search(r"SUMMARY: (\d+) (error|hazard)s?", out)
        if not summary:
            raise Failed("no summary: " + last_line(out))
        if int(summary[1]):
            raise Failed(summary[0])
        return summary[0]
    return check


def run_jobs(bench, mode, times, options=(), **environment):
    """gpu_jobs on all ranks, under ddpcheck; its trace."""
    folder = os.path.join(bench.work, "meet-" + bench.name)
    shutil.rmtree(folder, ignore_errors=True)
    os.makedirs(folder)
    return bench.watch(*bench.in_ranks(bench.program("tests", "gpu", "gpu_jobs"), mode, folder, str(times)), options=options,
                       timeout=90, **environment)


def compare_progress(bench, trace, expected):
    """Issued operations beside the words that the GPU wrote: none may be missing at the end."""
    issued, (started, done), blind = bench.query(trace, ISSUED), bench.query(trace, REACHED)[0], bench.query(trace, BLIND)
    text = "%d operations issued, %d started and %d done by the GPU's words" % (issued[0][0], started, done)
    if not issued[0][0] == started == done == expected:
        raise Failed("%s, expected %d" % (text, expected))
    return text, blind[0][0]


def progress(bench):
    times = bench.size(200, 10)
    trace = run_jobs(bench, "operations", times)
    bench.expect_findings(trace, [])
    text, blind = compare_progress(bench, trace, times * bench.ranks)
    if blind:
        raise Failed(text + ", but the report says that it is blind")
    return text


def progress_by_events(bench):
    """Where the driver takes no stream writes. The last operations are those that a later call saw."""
    times = bench.size(200, 10)
    trace = run_jobs(bench, "operations", times, DDPCHECK_PROGRESS="events")
    text, blind = compare_progress(bench, trace, times * bench.ranks)
    if not blind:
        raise Failed(text + ", and nothing says that events are queried")
    return text + ", by events; the report says so"


EXACT = """SELECT count(*), coalesce(sum(w2 - w1), 0) FROM event
           WHERE w0 > 0 AND api = (SELECT number FROM api WHERE name = 'notice_timed')"""
NAMED = "SELECT count(DISTINCT w0) FROM event WHERE api = (SELECT number FROM api WHERE name = 'notice_kernels')"


def exact_times(bench):
    """CUPTI's records: nearly all operations have exact times, and what ran beside them has names."""
    times = bench.size(200, 10)
    trace = run_jobs(bench, "operations", times, options=("--timing",))
    (timed, lasted), names, issued = bench.query(trace, EXACT)[0], bench.query(trace, NAMED)[0][0], bench.query(trace, ISSUED)[0][0]
    text = "%d of %d operations have exact times (%.3f ms on average), %d kernels and copies have names" % (
        timed, issued, lasted / 1e6 / max(timed, 1), names)
    if 10 * timed < 9 * issued:
        raise Failed(text)
    return text


def captures(bench):
    texts = []
    for mode in ("writes", "events"):
        trace = run_jobs(bench, "captures", 2, DDPCHECK_PROGRESS=mode)
        bench.expect_findings(trace, [])
        texts.append("%d operations with %s" % (bench.query(trace, ISSUED)[0][0], mode))
    return "captures hold while work is pending: " + ", ".join(texts)


def host_functions(bench):
    times = bench.size(100, 5)
    trace = run_jobs(bench, "callbacks", times)
    bench.expect_findings(trace, [])
    return "%d host functions ran between collectives; %s" % (times * bench.ranks, compare_progress(bench, trace, times * bench.ranks)[0])


def two_runtimes(bench):
    program = bench.program("tests", "gpu", "gpu_runtimes")
    alone = bench.command(program, expect=None).strip()
    if not re.fullmatch(r"\d+ \d+", alone):
        raise Skipped(alone)
    watched = bench.command(program, LD_PRELOAD=bench.program("lib", "libddpcheck.so"), DDPCHECK_DIR=bench.fresh_trace()).strip()
    majors = [int(version) // 1000 for version in watched.split()]
    if watched != alone or majors != [12, 13]:
        raise Failed("alone %s, under the shim %s" % (alone, watched))
    return "each library gets its own runtime: " + watched


def is_same_function(alone, watched):
    """Two lines of driver_names.c: name, version, flags, symbols. A wrapper has one of the function's symbols."""
    ours, theirs = alone.split(), watched.split()
    return ours[:3] == theirs[:3] and set(theirs[3:]) <= set(ours[3:]) and bool(ours[3:]) == bool(theirs[3:])


def driver_names(bench):
    """What the driver finds by name is the same function under the shim, or the wrapper of that function: of each form, as
    cuCtxSynchronize of CUDA 12 and that of CUDA 13, which takes a context."""
    with open(os.path.join(ROOT, "tests", "interpose", "exports.txt")) as exports:
        names = sorted({re.sub("(_v2)?(_ptsz|_ptds)?$", "", line.strip()) for line in exports if re.match("cu[A-Z]", line)})
    program = bench.program("tests", "gpu", "gpu_driver_names")
    alone = bench.command(program, *names).splitlines()
    watched = bench.command(program, *names, LD_PRELOAD=bench.program("lib", "libddpcheck.so"),
                            DDPCHECK_DIR=bench.fresh_trace()).splitlines()
    other = ["%s, under the shim %s" % pair for pair in zip(alone[:-1], watched[:-1]) if not is_same_function(*pair)]
    if other or len(alone) != len(watched) or alone[-1] != "wrapped 0" or watched[-1] == "wrapped 0":
        raise Failed("; ".join(other) or "alone %s, under the shim %s" % (alone[-1], watched[-1]))
    return "%d answers, each the same function; %s by the shim" % (len(alone) - 1, watched[-1])


def train_command(bench, fault=None, model="gan"):
    return bench.in_ranks(bench.program("bin", "ddptrain"), "--model", model, "--iterations", str(bench.size(50, 20 if fault else 6)),
                          *(["--fault", fault] if fault else []))


def train(codes, options=(), fault=None, model="gan", severities=("error",), hangs=None):
    """ddptrain under ddpcheck: the findings are those codes."""
    def check(bench):
        trace = bench.watch(*train_command(bench, fault, model), options=options, timeout=60, hangs=hangs)
        return "%s; %d collectives" % (bench.expect_findings(trace, codes, severities), bench.query(trace, ISSUED)[0][0])
    return check


def slow_host(bench):
    """A rank whose host is late in each iteration, by exact times. Notes of the other kinds are not looked at: ranks that
    share a GPU do make each other wait."""
    if bench.emulated:
        raise Skipped("the test e2e_test_slow runs it on the emulated GPU")
    trace = bench.watch(*bench.in_ranks(bench.program("bin", "ddptrain"), "--model", "cnn", "--iterations", "200", "--fault", "slow-host",
                                        ranks=2), options=("--timing", ), timeout=80)
    out = bench.command(bench.tool, "report", "--json", trace, expect=None)
    found = [json.loads(line) for line in out.splitlines() if line.startswith("{")]
    late = [one for one in found if one.get("code") == "DC601" and one["state"] == "open"]
    if [one["sides"][0]["ranks"] for one in late] != ["1"]:
        raise Failed("DC601 of %s, expected of rank 1" % [one["sides"][0]["ranks"] for one in late])
    return "DC601: " + late[0]["what"]


def plugin(codes, fault=None):
    """The shim as NCCL's profiler plugin alone, not preloaded."""
    def check(bench):
        trace = bench.fresh_trace()
        bench.command(*train_command(bench, fault), expect=None if fault else 0,
                      until=(lambda: bench.has_finding(trace, codes[0])) if fault else None,
                      DDPCHECK_DIR=trace, NCCL_PROFILER_PLUGIN=bench.program("lib", "libddpcheck.so"))
        bench.command("timeout", "60", "flock", os.path.join(trace, "collector.lock"), "true")
        count = bench.query(trace, ISSUED)
        if not count or not count[0][0]:
            raise Failed("the plugin recorded no collective")
        return "%s; %d collectives recorded by the plugin" % (bench.expect_findings(trace, codes, ("error",)), count[0][0])
    return check


def static_runtime(bench):
    """The calls of a runtime that is linked in, by the driver's names."""
    if bench.emulated:
        raise Skipped("the static runtime asks the driver for tables that the emulated one does not have")
    trace = bench.watch(bench.program("tests", "gpu", "gpu_static_runtime"), options=("--cuda", "all"))
    names = {name for (name,) in bench.query(
        trace, "SELECT DISTINCT a.name FROM event e JOIN api a ON a.number = e.api WHERE e.flags & 64")}
    missing = {"cudaMalloc", "cudaMemcpyAsync", "cudaMemsetAsync", "cudaLaunchKernel", "cudaStreamSynchronize", "cudaFree"} - names
    if missing:
        raise Failed("not recorded as the driver's: " + ", ".join(sorted(missing)))
    return "recorded as the driver's: " + ", ".join(sorted(names))


def hash_bandwidth(bench):
    return last_line(bench.command(bench.program("bench", "bench_payload"), bench.size(2048, 1)))


def overhead(*options):
    return lambda bench: measure_ddptrain(bench, options)


def convolutions(bench):
    if bench.emulated:
        raise Skipped("the emulated cuDNN computes no convolutions")
    return last_line(bench.command(python_with("torch"), os.path.join(HERE, "convolutions.py"), bench.build))


HASH = ("--hash",)
BOTH = ("error", "warning")
CHECKS = [
    Check("kernels", 120, "the kernels beside their references", kernels),
    Check("progress", 60, "the GPU's progress words beside the issued operations", progress),
    Check("progress-events", 60, "the same without stream writes", progress_by_events),
    Check("exact-times", 60, "operations and kernels as CUPTI times them", exact_times),
    Check("captures", 90, "captures while work is pending, in both ways of progress", captures),
    Check("host-functions", 60, "host functions between collectives", host_functions),
    Check("two-runtimes", 60, "CUDA 12 and 13 in one process", two_runtimes),
    Check("driver-names", 60, "functions of the driver by name, in each form", driver_names),
    Check("ddptrain-clean", 90, "a job without a fault", train([])),
    Check("ddptrain-partial-barrier", 120, "a rank skips a barrier", train(["DC201"], fault="partial-barrier", hangs="DC201")),
    Check("ddptrain-slow-host", 120, "a rank whose host is slow", slow_host),
    Check("plugin-clean", 90, "the shim as NCCL's plugin", plugin([])),
    Check("plugin-partial-barrier", 120, "the same, a rank skips a barrier", plugin(["DC201"], fault="partial-barrier")),
    Check("static-runtime", 60, "a program with the runtime linked in", static_runtime),
    Check("hash-clean", 90, "payload hashes, no fault", train([], HASH, severities=BOTH)),
    Check("hash-same-shard", 90, "payload hashes, ranks that train on the same data",
          train(["DC501"], HASH, "same-shard", "cnn", BOTH)),
    Check("kernels-memcheck", 240, "compute-sanitizer over the kernels", sanitizer("memcheck")),
    Check("kernels-racecheck", 300, "its look at shared memory", sanitizer("racecheck")),
    Check("kernels-synccheck", 240, "its look at barriers", sanitizer("synccheck")),
    *[Check("torch-" + case, 150, "a PyTorch job of tests/torch", torch(case)) for case in CASES],
    Check("torch-programs", 240, "PyTorch's ways to use several GPUs, and programs like its examples", torch_programs),
    Check("cupy-clean", 120, "CuPy's communicators", cupy(None)),
    Check("cupy-skip", 120, "the same, a rank skips an operation", cupy("DC201")),
    Check("jax-clean", 150, "JAX's collectives", jax(None)),
    Check("jax-skip", 150, "the same, a rank skips an operation", jax("DC201")),
    Check("hash-bandwidth", 60, "the hash kernel beside a copy", hash_bandwidth, measures=True),
    Check("overhead", 300, "what watching costs, in pairs", overhead(), measures=True),
    Check("overhead-timing", 300, "what exact times cost, in pairs", overhead("--timing"), measures=True),
    Check("torch-overhead", 300, "what watching a PyTorch job costs, in pairs", measure_torch, measures=True),
    Check("convolutions-cudnn", 300, "the convolutions beside cuDNN's", convolutions, measures=True),
    Check("overhead-hash", 300, "what hashing costs, in pairs", overhead("--hash"), measures=True),
]
