"""Random legal programs under `ddpcheck run` on the emulator: none may give an error or a warning; and the same programs with
one fault each, which must be found, and nothing else. random_program.c makes the program of a seed.

    fuzz.py --build DIR [--seeds FIRST-LAST] [--jobs N] [clean|planted]"""

import argparse
import concurrent.futures
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile

# The fault, and the codes of which one must be told.
FAULTS = {
    "count": ["DC102"], "type": ["DC103"], "kind": ["DC101"], "operator": ["DC104"], "root": ["DC105"], "order": ["DC106"],
    "message": ["DC107"], "skip": ["DC101", "DC102", "DC103", "DC104", "DC105", "DC106", "DC201", "DC206"], "host memory": ["DC404"], "no such root": ["DC111"],
    "past the end": ["DC406"], "foreign stream": ["DC402"],
}
RANKS = 4


def run_one(build, seed, fault):
    """The findings that are no notes, as (code, what)."""
    tool, folder = os.path.join(build, "bin", "ddpcheck"), tempfile.mkdtemp(prefix="ddpcheck-fuzz-")
    trace = os.path.join(folder, "trace")
    environment = {**os.environ, "FUZZ_SEED": str(seed), "DDPCHECK_EMU_MISMATCH": "corrupt"}
    if fault:
        environment.update(FUZZ_FAULT=fault, FUZZ_RANK=str(seed % RANKS))
    command = [tool, "run", "--emulate", str(RANKS), "-o", trace, "--timeout", "3" if fault else "60", "--", os.path.join(build, "tests", "fuzz", "random_program")]
    try:
        process = subprocess.Popen(command, cwd=folder, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                   stderr=subprocess.STDOUT, text=True, start_new_session=True)
        try:
            output, _ = process.communicate(timeout=200)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            output, _ = process.communicate()
        done = subprocess.run([tool, "report", "--json", trace], capture_output=True, text=True, timeout=200, check=False)
        lines = [json.loads(line) for line in done.stdout.splitlines()]
        findings = [line for line in lines if line.get("schema", "").startswith("ddpcheck.finding/")]
        told = [(f["code"], f["what"]) for f in findings if f["severity"] != "note" and f.get("state") != "resolved"]
        return told, process.returncode, output
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def judge(build, seed, fault):
    """None, or what is wrong."""
    told, status, output = run_one(build, seed, fault)
    said = "; ".join("%s: %s" % finding for finding in told) or "nothing"
    if not fault and (told or status):
        return "seed %d: told %s (status %s)\n%s" % (seed, said, status, output[-1000:])
    if fault and (len(told) != 1 or told[0][0] not in FAULTS[fault]):
        return "seed %d, '%s' planted on rank %d: told %s" % (seed, fault, seed % RANKS, said)
    return None


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--build", default="build/dev")
    parser.add_argument("--seeds", default="1-20")
    parser.add_argument("--jobs", "-j", type=int, default=2)
    parser.add_argument("what", nargs="?", choices=["clean", "planted"])
    options = parser.parse_args()
    first, _, last = options.seeds.partition("-")
    seeds = range(int(first), int(last or first) + 1)
    work = [(seed, None) for seed in seeds if options.what != "planted"]
    work += [(seed, fault) for seed in seeds for fault in FAULTS if options.what != "clean"]
    build = os.path.abspath(options.build)
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        wrong = [answer for answer in pool.map(lambda item: judge(build, *item), work) if answer]
    for answer in wrong:
        print(answer)
    clean = sum(fault is None for _, fault in work)
    print("%d legal programs and %d with a fault: %d wrong" % (clean, len(work) - clean, len(wrong)))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
