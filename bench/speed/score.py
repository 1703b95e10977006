"""Measures how much of what slows the made-up jobs ddpcheck finds: precision and recall of rank, kind and share.

    score.py BUILD SEEDS [--jobs FOLDER | --after N] [--results FILE] [--list]

    SEEDS            1-500 to tune with, 501-1000 to measure with
    --jobs FOLDER    where generate.py wrote jobs; those that it lacks are generated, and removed afterwards
    --after N        jobs end N iterations after their last cause began: how soon it is found (not with --jobs)
    --results FILE   writes what was found in each job, as JSON lines
    --list           lists what was missed or wrong

What counts as right is in README.md."""

import argparse
import json
import multiprocessing
import os
import re
import subprocess
import sys
import tempfile

from generate import generate, seeds

RANK_CODES = ("DC601", "DC604", "DC605", "DC606", "DC607", "DC608", "DC609", "DC610")
NOTE_CODES = ("DC602", "DC603")
NEEDED, LEAST = 0.10, 0.03      # shares: of what has to be found, and of what may be
PERCENT = re.compile(r"(\d+(?:\.\d+)?) ?%")
SLOWER = re.compile(r"iterations take ([\d.]+) (m?s) instead of ([\d.]+) (m?s)")       # DC607; its percentage is the confidence


def rank_set(text):
    """"0-2,5" -> {0, 1, 2, 5}"""
    found = set()
    for first, last in re.findall(r"(\d+)(?:-(\d+))?", text or ""):
        found.update(range(int(first), int(last or first) + 1))
    return found


def share_of(what):
    """The share of an iteration that the sentence of a finding states; None if it states none."""
    slower, percent = SLOWER.search(what), PERCENT.search(what)
    if slower:
        now, before = (float(slower.group(i)) * {"ms": 1e-3, "s": 1}[slower.group(i + 1)] for i in (1, 3))
        return 1 - before / now
    return float(percent.group(1)) / 100 if percent else None


def findings_of(lines, world):
    """The findings of section 6 in what `ddpcheck report --json` printed: code, ranks, share.

    The ranks are the first side's: those that cause it. A finding without ranks is about all of the job. Withdrawn ones do not count."""
    found = []
    for line in lines:
        record = json.loads(line)
        if record["schema"].startswith("ddpcheck.finding/") and record["code"] in RANK_CODES + NOTE_CODES \
                and record.get("state") != "resolved":
            sides = record["sides"]
            ranks = rank_set(sides[0]["ranks"] if sides else record["ranks"]) or range(world)
            found.append({"code": record["code"], "ranks": sorted(ranks),
                          "share": share_of(record["what"]), "what": record["what"]})
    return found


def names(cause, finding):
    """The finding names ranks of the cause, and none that have nothing to do with it."""
    ranks, allowed = set(finding["ranks"]), set(cause["ranks"]) | set(cause["visible"])
    return bool(ranks & set(cause["ranks"])) and ranks <= allowed


def last_stage(truth):
    """The ranks of a pipeline's last stage, where it has the logits beside its layers."""
    stage = truth["grid"]["tp"] * truth["grid"]["dp"]
    return set(range(truth["ranks"] - stage, truth["ranks"])) if truth.get("uneven") else set()


def has_reason(truth, finding):
    """Something in the job is as the finding reports: where, or, of slower iterations, that they became slower."""
    if finding["code"] == "DC610" and set(finding["ranks"]) == last_stage(truth):
        return True
    return any(names(cause, finding) or finding["code"] == "DC607" and cause["since"] for cause in truth["causes"])


def judge_cause(cause, findings):
    """Whether at least half of its ranks, or of those that cost as much alone, are named; and by findings of its kind and share."""
    named = [finding for finding in findings if finding["code"] in RANK_CODES + NOTE_CODES and names(cause, finding)]
    covered = set().union(*(finding["ranks"] for finding in named)) if named else set()
    rank = any(len(covered & set(ranks)) * 2 >= len(ranks) for ranks in [cause["ranks"], *cause["enough"]])
    rank |= cause["kind"] == "slow-link" and bool(named)
    kind = any(finding["code"] in cause["accepted"] for finding in named)
    shares = [finding["share"] for finding in named if finding["share"] is not None]
    near = any(abs(share - true) <= max(0.03, 0.3 * true) for share in shares for true in (cause["share"], cause["alone"]))
    return {"found rank": rank and bool(named), "found kind": rank and kind, "found share": near}


def observable(truth, cause):
    """Whether what was recorded can show the cause at all: a stage of a pipeline all of whose ranks are slower from the start
    looks like one with more layers, unless launches or kernels are recorded."""
    if cause["kind"] not in ("slow-host", "slow-device") or truth["has"]["issued"] or truth["has"]["kernels"] or truth["grid"]["pp"] == 1:
        return True
    stage = truth["grid"]["tp"] * truth["grid"]["dp"]
    peers = {first + one for first in (rank // stage * stage for rank in cause["ranks"]) for one in range(stage)}
    return not peers <= set(cause["ranks"])


def judge(truth, findings):
    """What a report found of a job's causes, and what it reported that is none."""
    causes = [{**cause, **judge_cause(cause, findings)} for cause in truth["causes"]]
    ranked = [finding for finding in findings if finding["code"] in RANK_CODES]
    wrong = [finding for finding in ranked if not has_reason(truth, finding)]
    return {"truth": truth, "causes": causes, "findings": findings, "reported": len(ranked), "wrong": len(wrong)}


def run(command):
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=1800)
    if done.returncode not in (0, 1, 3):
        raise RuntimeError("%s: status %d: %s" % (" ".join(command), done.returncode, done.stderr.strip()[-500:]))
    return done.stdout


def score(task):
    """Imports a job and judges its report."""
    tool, seed, folder, after = task
    with tempfile.TemporaryDirectory(prefix="ddpcheck-speed-") as own:
        place = os.path.join(folder or own, "%04d" % seed)
        if not os.path.exists(os.path.join(place, "truth.json")):
            generate(own, seed, after)
            place = os.path.join(own, "%04d" % seed)
        with open(os.path.join(place, "truth.json"), encoding="utf-8") as file:
            truth = json.load(file)
        timeline = next(name for name in sorted(os.listdir(place)) if name.startswith("timeline."))
        database = os.path.join(own, "job.db")
        run([tool, "import", "--format", "timeline", "-o", database, os.path.join(place, timeline)])
        return judge(truth, findings_of(run([tool, "report", "--json", database]).splitlines(), truth["ranks"]))


def percent(part, whole):
    return "%5.1f %% of %4d" % (100 * part / whole, whole) if whole else "      -       "


def needed(outcomes):
    """The causes that have to be found; how the program is written (notes) is in a row of its own."""
    return [cause for outcome in outcomes for cause in outcome["causes"]
            if cause["share"] >= NEEDED and cause["code"] in RANK_CODES and observable(outcome["truth"], cause)]


def row(label, outcomes, causes):
    reported = sum(outcome["reported"] for outcome in outcomes)
    right = reported - sum(outcome["wrong"] for outcome in outcomes)
    return "%-24s %s  %s  %s  %s" % (label, *(percent(sum(cause["found " + name] for cause in causes), len(causes))
                                             for name in ("rank", "kind", "share")), percent(right, reported))


def size(outcome):
    ranks = outcome["truth"]["ranks"]
    return "%4d and more ranks" % next(least for least in (4096, 1024, 256, 32, 8, 0) if ranks >= least)


def groups(outcomes):
    """(title, {label: outcomes}) of the tables that show one property of a job."""
    for title, label in (("causes", lambda outcome: "%d" % len(outcome["causes"])), ("ranks", size),
                         ("noise", lambda outcome: outcome["truth"]["noise"]),
                         ("kernels recorded", lambda outcome: str(outcome["truth"]["has"]["kernels"]))):
        table = {}
        for outcome in outcomes:
            table.setdefault(label(outcome), []).append(outcome)
        yield title, table


def show_tables(outcomes):
    head = "%-24s %-15s %-15s %-15s %-15s" % ("", "rank found", "kind right", "share near", "findings right")
    print(head + "\n" + row("all", outcomes, needed(outcomes)))
    for title, table in groups(outcomes):
        print("\nby %s:" % title)
        for label in sorted(table):
            print(row("  " + label, table[label], needed(table[label])))
    print("\nby kind, causes of %d %% and more:" % (100 * NEEDED))
    every = [cause for outcome in outcomes for cause in outcome["causes"]]
    for kind in sorted({cause["kind"] for cause in every}):
        print(row("  " + kind, [], [cause for cause in every if cause["kind"] == kind and cause["share"] >= NEEDED]))
    print("\nsmaller causes:")
    for low, high in ((0.05, NEEDED), (LEAST, 0.05), (0.0, LEAST)):
        print(row("  %g to %g %%" % (100 * low, 100 * high), [], [cause for cause in every if low <= cause["share"] < high]))


def show_aims(outcomes):
    """The figures that the project aims at."""
    clean = [outcome for outcome in outcomes if not outcome["causes"]]
    print("\nclean jobs without a wrong one   %s   (aim: 99.5 %%)" % percent(sum(not one["wrong"] for one in clean), len(clean)))
    for label, count, aim in (("rank, one cause", lambda one: one == 1, 99), ("rank, several", lambda one: one > 1, 95)):
        causes = needed([outcome for outcome in outcomes if count(len(outcome["causes"]))])
        print("%-30s %s   (aim: %d %%)" % (label, percent(sum(cause["found rank"] for cause in causes), len(causes)), aim))
    causes = needed(outcomes)
    hidden = sum(not observable(outcome["truth"], cause) and cause["share"] >= NEEDED for outcome in outcomes for cause in outcome["causes"])
    print("%-30s %s   (aim: 95 %%)" % ("kind", percent(sum(cause["found kind"] for cause in causes), len(causes))))
    print("%-30s %d" % ("not observable, not counted", hidden))


def show_misses(outcomes):
    for outcome in sorted(outcomes, key=lambda one: one["truth"]["seed"]):
        missed = [cause for cause in needed([outcome]) if not (cause["found rank"] and cause["found kind"])]
        if missed or outcome["wrong"]:
            truth = outcome["truth"]
            print("\n%d: %s, %d ranks, grid %s, %s" % (truth["seed"], truth["style"], truth["ranks"], truth["grid"], truth["noise"]))
            for cause in outcome["causes"]:
                print("  is     %s %s ranks %s since %d: %.1f %%%s" % (
                    cause["kind"], cause["mode"], cause["ranks"][:8], cause["since"], 100 * cause["share"],
                    "  MISSED" if cause in missed else ""))
            for finding in outcome["findings"]:
                print("  found  %s ranks %s: %s%s" % (finding["code"], finding["ranks"][:8], finding["what"][:100],
                                                      "" if has_reason(truth, finding) else "  WRONG"))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build")
    parser.add_argument("seeds", type=seeds)
    source = parser.add_mutually_exclusive_group()
    source.add_argument("--jobs")
    source.add_argument("--after", type=int)
    parser.add_argument("--results")
    parser.add_argument("--list", action="store_true")
    options = parser.parse_args()
    tasks = [(os.path.join(os.path.abspath(options.build), "bin", "ddpcheck"), seed, options.jobs, options.after) for seed in options.seeds]
    outcomes = []
    with multiprocessing.Pool() as pool:
        for outcome in pool.imap_unordered(score, tasks):
            outcomes.append(outcome)
            if sys.stderr.isatty():
                print("\r%d of %d" % (len(outcomes), len(tasks)), end="", file=sys.stderr)
    if options.results:
        with open(options.results, "w", encoding="utf-8") as file:
            file.writelines(json.dumps(outcome) + "\n" for outcome in sorted(outcomes, key=lambda one: one["truth"]["seed"]))
    show_tables(outcomes)
    show_aims(outcomes)
    if options.list:
        show_misses(outcomes)


if __name__ == "__main__":
    main()
