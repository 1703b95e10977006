"""Runs the suite (tests/suite/README.md) and prints how well its faults are told from their correct twins.

    run.py [--build DIR] [CASE or CATEGORY...]      the table; status 1 if anything is missed or wrongly found
    run.py --list                                   all programs as JSON, for another tool
    run.py --score VERDICTS.json                    the same table for what another tool said
    run.py --coverage                               cases per code of the catalogue
"""

import argparse
import json
import os
import sys
from concurrent.futures import ThreadPoolExecutor, as_completed

import cases as suite
import coverage
import job
import score


def parse():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default="build/dev", help="build directory (default: build/dev)")
    parser.add_argument("--jobs", "-j", type=int, default=2, help="programs at a time (default: 2)")
    parser.add_argument("--shard", help="K/N: every N-th case, from the K-th")
    parser.add_argument("--verdicts", help="write the verdicts there, in the form that --score reads")
    parser.add_argument("--verbose", "-v", action="store_true", help="say what each program did; show output and keep traces of bad ones")
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--score", metavar="VERDICTS.json")
    parser.add_argument("--coverage", action="store_true")
    parser.add_argument("names", nargs="*", metavar="CASE")
    return parser.parse_args()


def choose(options):
    chosen = suite.load(options.names)
    if options.shard:
        shard, shards = map(int, options.shard.split("/"))
        chosen = chosen[shard - 1::shards]
    return chosen


def check_built(chosen, build):
    programs = [case.command(program, build)[0] for case in chosen for program, _ in case.programs()]
    missing = [program for program in programs + [os.path.join(build, "bin", "ddpcheck")] if not os.access(program, os.X_OK)]
    if missing:
        raise suite.BadCase("not built (make first): " + ", ".join(missing))


def run_all(chosen, options, result):
    """Returns the verdicts."""
    verdicts = []
    with ThreadPoolExecutor(options.jobs) as pool:
        runs = {pool.submit(job.run, case, program, expect, options.build, options.verbose): (case, program, expect)
                for case in chosen for program, expect in case.programs()}
        for done in as_completed(runs):
            case, program, expect = runs[done]
            verdict, trouble, output = done.result()
            before = result.bad
            result.add(case, program, expect, verdict, trouble)
            verdicts.append(verdict)
            if options.verbose:
                print("%-4s %s %s" % ("ok" if result.bad == before else "BAD", program,
                                      [finding["code"] for finding in verdict["findings"]]))
            if result.bad > before:
                print("--- %s printed:\n%s\n---" % (program, output))
    return verdicts


def score_file(chosen, path, result):
    with open(path, encoding="utf-8") as file:
        verdicts = {verdict["program"]: verdict for verdict in json.load(file)}
    programs = [(case, program, expect) for case in chosen for program, expect in case.programs()]
    unknown = set(verdicts) - {program for _, program, _ in programs}
    if unknown:
        raise suite.BadCase("verdicts about unknown programs: " + ", ".join(sorted(unknown)))
    for case, program, expect in programs:
        if program in verdicts:
            result.add(case, program, expect, verdicts[program])
        else:
            result.troubles.append(program + ": no verdict")


def main():
    options = parse()
    options.build = os.path.abspath(options.build)
    try:
        chosen = choose(options)
        if options.list:
            print(json.dumps([entry for case in chosen for entry in case.listing(options.build)], indent=1))
            return 0
        if options.coverage:
            return coverage.print_coverage(chosen, options.build)
        result = score.Score()
        if options.score:
            score_file(chosen, options.score, result)
        else:
            check_built(chosen, options.build)
            verdicts = run_all(chosen, options, result)
            if options.verdicts:
                with open(options.verdicts, "w", encoding="utf-8") as file:
                    json.dump(sorted(verdicts, key=lambda verdict: verdict["program"]), file, indent=1)
    except suite.BadCase as error:
        print(error, file=sys.stderr)
        return 2
    result.print(suite.CATEGORIES)
    return 1 if result.bad else 0


if __name__ == "__main__":
    sys.exit(main())
