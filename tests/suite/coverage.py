"""Which codes have cases: those of the catalogue (design) and those that this build's analyzer has."""

import os
import subprocess

CATALOGUE = ["DC%d" % code for first, last in ((101, 111), (201, 210), (301, 310), (401, 407), (501, 507), (601, 610),
                                               (901, 905)) for code in range(first, last + 1)]
SLOW = "it takes times that a busy machine does not change; tests/import/test_slow_timelines.py has faults and twins"
# Codes that no program of the suite can show, and why.
WITHOUT_CASE = {
    **dict.fromkeys(("DC604", "DC605", "DC606", "DC607", "DC608", "DC609", "DC610"), SLOW),
    "DC212": "a host is silent only to the hub of a job on several; tests/job/test_scenarios.py kills one",
    "DC901": "records are lost when a ring is full, which no small program does; tests/collector fills rings on purpose",
    "DC902": "ranks without a trace run on another host or without ddpcheck; tests/report makes such traces",
    "DC904": "what NCCL's log or RAS said of itself reaches a trace by `ddpcheck import` only; tests/import",
    "DC905": "ranks at different places in a source that can't say whether they wait: imported traces only; tests/import",
}


def known_codes(build):
    done = subprocess.run([os.path.join(build, "bin", "ddpcheck"), "explain", "--list"], capture_output=True, text=True,
                          timeout=120, check=True)
    return [line.split()[0] for line in done.stdout.splitlines() if line.startswith("DC")]


def print_coverage(cases, build):
    """Status 1 if the analyzer has a code with neither case nor reason, or a reason is no longer one."""
    known = known_codes(build)
    bad = 0
    print("code    in this build   cases")
    for code in sorted(set(CATALOGUE) | set(known)):
        names = [case.name for case in cases if case.expect and code in case.expect.codes]
        minimal = [case.name for case in cases if case.minimal and case.expect and case.expect.codes[0] == code]
        said = ", ".join(name + (" (minimal)" if name in minimal else "") for name in names)
        problem = ""
        if code in known and not names and code not in WITHOUT_CASE:
            problem = "  <- no case"
        elif names and code in WITHOUT_CASE:
            problem = "  <- has cases; take it out of WITHOUT_CASE"
        elif len(minimal) > 1 or names and not minimal:
            problem = "  <- %s cases are minimal, one must be" % (len(minimal) or "no")
        bad += bool(problem)
        print("%-7s %-12s %4d   %s%s" % (code, "yes" if code in known else "-", len(names),
                                         said or "(%s)" % WITHOUT_CASE[code] if code in WITHOUT_CASE else said, problem))
    return 1 if bad else 0
