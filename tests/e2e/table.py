"""The scenarios, row by row: the fault without ddpcheck, with it, and the correct twin.

    table.py BUILD [ROW...]                 the table; fails unless every row is as it should be (`make scenarios`)
    table.py BUILD --docs FOLDER [ROW...]   also writes a page for each row, with what was really seen;
                                            'make docs' adds the links at their ends
    table.py --words FOLDER                 writes the words of all pages anew, from questions/, and keeps what was seen
    table.py --check FOLDER                 that the pages have these words and the commands of scenarios.py
"""

import os
import re
import shlex
import subprocess
import sys
import time

from line import Line
from scenarios import HASHED, SCENARIOS, check, start
import slow

# number: (what is asked, scenarios with the fault, correct twins)
ROWS = {
    1: ("an in-place ReLU on a tensor that is saved for backward", ["inplace-activation"], ["inplace-activation-twin"]),
    2: ("a gradient bucket is written in place while its AllReduce runs", ["inplace-bucket", "inplace-bucket-hash"], ["inplace-bucket-twin"]),
    3: ("the fix: out of place, or in place on a clone", [], ["inplace-activation-twin", "inplace-bucket-twin"]),
    4: ("a rank updates the discriminator twice", ["uneven-updates", "uneven-updates-shared"], ["uneven-updates-twin"]),
    5: ("a barrier on some ranks only", ["partial-barrier"], ["partial-barrier-twin"]),
    6: ("blocking sends in a ring", ["p2p-cycle"], ["p2p-cycle-twin"]),
    7: ("a timeout of the process group: who was waited for", ["timeout"], ["timeout-twin"]),
    8: ("one process, all devices, ncclCommInitAll, and the group is forgotten", ["mirrored-no-group"], ["mirrored-no-group-twin"]),
    9: ("wrong initialization", ["init-world", "init-duplicate", "init-gpu", "init-missing"], ["clean"]),
    10: ("the sampler does not shard", ["same-shard"], ["clean-cnn-hash"]),
    11: ("uneven inputs: one rank has a batch more", ["uneven-inputs"], ["uneven-inputs-twin"]),
    12: ("gradient accumulation with no_sync on some ranks, or on none", ["accum-mismatch", "accum-every"], ["accum-twin"]),
    13: ("loss scaling: one rank alone sees an overflow", ["amp-skip", "amp-skip-hash"], ["amp-skip-twin", "amp-skip-twin-hash"]),
    14: ("loss = A(B(x)): two models, each with its own reducer", [], ["clean"]),
    15: ("two models on one communicator, interleaved differently on one rank", ["shared-comm"], ["shared-comm-twin"]),
    16: ("two models on two communicators, in a different order on one rank", ["comm-order"], ["comm-order-twin"]),
    17: ("two forward passes before one backward", ["forward-twice"], ["forward-twice-twin"]),
    18: ("unused parameters without find_unused_parameters", ["unused-params"], ["unused-params-twin"]),
    19: ("out of memory on one rank, caught; it skips its backward", ["oom-skip"], ["oom-skip-twin"]),
    20: ("catch up with zero gradients", [], ["oom-skip-twin"]),
    21: ("a rank dies; elastic restart", ["crash"], ["crash-twin"]),
    22: ("Conv2d: weights on one device, input on another", ["wrong-device"], ["clean"]),
    23: ("DataParallel with a replica that is out of date", ["dp-stale-replica"], ["dp-stale-replica-twin", "dp-gan"]),
    24: ("DDP over Conv2d with a distributed sampler, done right", [], ["clean-cnn", "clean-cnn-hash"]),
    25: ("buffers broadcast from rank 0, switched off on one rank", ["buffers-mismatch"], ["buffers-mismatch-twin"]),
    26: ("model parallel: halves on two devices, sends and receives in a wrong order", ["pipeline-order"], ["pipeline-order-twin", "pipeline-gan"]),
    27: ("a bucket is freed while it is reduced", ["free-in-flight"], ["free-in-flight-twin"]),
    28: ("a bucket is reduced before backward has filled it", ["missing-event"], ["clean"]),
    29: ("the optimizer steps before the reduction is done", ["early-step"], ["clean"]),
    30: ("the model is built differently on one rank", ["model-mismatch"], ["clean"]),
    31: ("all GPUs look busy, and one rank makes the others wait", ["slow-host", "slow-loader"], [slow.RIGHT]),
    32: ("one GPU is slower than the others, or became so", ["slow-device", "throttle-after"], [slow.RIGHT]),
    33: ("now and then an iteration is slow; a link became slow; many small operations", ["gc-pause", "slow-link", "tiny-buckets"], [slow.RIGHT]),
}
ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
ALONE_SECONDS = 15          # whoever has not ended by then hangs
SLOW_SECONDS = 120          # likewise, of slow jobs
QUOTE_LINES = 6
QUESTIONS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "questions")    # NN.md: what a page says in words
SEEN = "## With the trainer"
INTRODUCTION = ("What follows was run with ddptrain: what a user sees without ddpcheck, what ddpcheck reports, and the correct",
                "program.")


def is_slow(name):
    return name in slow.SLOW or name == slow.RIGHT


def command_of(name):
    if is_slow(name):
        variables = "".join("%s=%s " % each for each in slow.environment(name).items())
        return "%sddpcheck run --timing --emulate %d -- ddptrain %s" % (variables, slow.DEVICES, shlex.join(slow.arguments(name)))
    options = " --hash" if name in HASHED else ""
    return "ddpcheck run --emulate 4%s -- ddptrain %s" % (options, shlex.join(SCENARIOS[name][0]))


def alone(line, name):
    """The run without ddpcheck: (what a user sees in a few words, the last lines of the output)."""
    environment = {key: value for key, value in line.bare_environment().items() if key != "LD_PRELOAD"}
    arguments = slow.arguments(name) if is_slow(name) else SCENARIOS[name][0]
    process = subprocess.Popen([line.trainer, *arguments], cwd=line.folder, env=environment, stdin=subprocess.DEVNULL,
                               stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True)
    hangs = False
    try:
        out, _ = process.communicate(timeout=SLOW_SECONDS if is_slow(name) else ALONE_SECONDS)
    except subprocess.TimeoutExpired:
        hangs = True
        os.killpg(process.pid, 9)
        out, _ = process.communicate()
    lines = [text for text in re.sub(r".*\r", "", out).splitlines() if text.strip()]
    if hangs:
        return "hangs", lines[-QUOTE_LINES:]
    return "exits with %d" % process.returncode, lines[-QUOTE_LINES:]


def watched_slow(build, name):
    """Likewise, of a slow job."""
    with Line(build, devices=slow.DEVICES, name=name) as line:
        findings = slow.findings_of(line, name)
        try:
            if name == slow.RIGHT:
                assert findings == [], [each["what"] for each in findings]
                return True, "no finding", ""
            slow.check_found(name, findings)
        except AssertionError as wrong:
            return False, str(wrong), ""
        code = slow.SLOW[name][1]
        text = subprocess.run([line.tool, "report", line.trace], cwd=ROOT, capture_output=True, text=True,
                              env={**os.environ, "COLUMNS": "100"}).stdout
        found = re.search(r"^  (?:\S+: )?(?:possible )?(?:warning|note) %s: .*" % code, text, re.M | re.S)
        return True, code, found[0]


def watched(build, name):
    """What `ddpcheck run` and report say: (findings or None if it is not as expected, words, the report's first part)."""
    if is_slow(name):
        return watched_slow(build, name)
    arguments, expected, ending = SCENARIOS[name]
    with Line(build, name=name) as line:
        out = start(line, arguments, "run", ending == "ends", name in HASHED)
        try:
            said = check(line, expected, out)
        except AssertionError as wrong:
            return False, str(wrong).splitlines()[0], ""
        text = subprocess.run([line.tool, "report", "--allow-missing", line.trace], cwd=ROOT, capture_output=True, text=True,
                              env={**os.environ, "COLUMNS": "100"}).stdout
        if not said:        # what a restarted job left behind
            got_over = re.search(r"^Withdrawn, or the job got over it\n(?:  .*\n)+", text, re.MULTILINE)
            return True, "no finding", got_over[0] if got_over else ""
        return True, expected[0], "\n".join(text.splitlines()[3:])


def first_finding(text):
    """The report's first finding, without what stands below it."""
    return re.split(r"\n(?=\S|  (?:\S+: )?(?:possible )?(?:error|warning|note) DC)", text.strip("\n"))[0].strip("\n")


def faults_of_trainer(build):
    """name: what goes wrong, in the trainer's own words."""
    trainer = os.path.join(build, "bin", "ddptrain")
    lines = subprocess.run([trainer, "--list-faults", "--tabs"], capture_output=True, text=True, check=True).stdout.splitlines()
    column = lines[0].split("\t").index("what")
    return {line.split("\t")[0]: line.split("\t")[column] for line in lines[1:]}


def words(number):
    """The page's part above what was seen: the question, its answer, and how it looks in PyTorch."""
    asked = ROWS[number][0]
    with open(os.path.join(QUESTIONS, "%02d.md" % number)) as file:
        text = file.read()
    return "# %d. %s\n\n%s\n\n%s\n\n%s\n\n" % (number, asked[0].upper() + asked[1:], text.strip("\n"), SEEN, "\n".join(INTRODUCTION))


def replace_words(folder):
    with open(os.path.join(folder, "README.md"), "w") as file:
        file.write(index())
    for number in ROWS:
        path = os.path.join(folder, "%02d.md" % number)
        with open(path) as file:
            seen = re.search(r"^### .*", file.read(), re.M | re.S)
        with open(path, "w") as file:
            file.write(words(number) + seen[0])


def page(number, parts, what):
    lines = []
    for name, symptom, quote, finding, is_twin in parts:
        lines += ["### %s%s" % (name, ", correct" if is_twin else ""), "", "    " + command_of(name), ""]
        if what.get(name):
            lines += [what[name][0].upper() + what[name][1:] + ".", ""]
        if symptom:
            lines += ["Without ddpcheck it %s%s" % (symptom, ":" if quote else " and prints nothing."), ""]
            lines += [*("    " + text for text in quote), ""] if quote else []
        if finding:
            lines += ["ddpcheck report:", "", *("    " + text if text else "" for text in first_finding(finding).splitlines()), ""]
        else:
            lines += ["ddpcheck finds nothing.", ""]
    return words(number) + "\n".join(lines).rstrip("\n") + "\n"


def row(build, number, folder):
    """Prints the row; returns whether it is as it should be."""
    _, faults, twins = ROWS[number]
    parts, right, shown = [], True, []
    for name in faults + twins:
        is_twin = name in twins
        symptom, quote = ("", [])
        if name not in SCENARIOS and not is_slow(name):
            shown.append((name, "", "not built", False))
            right = False
            continue
        if not is_twin:
            with Line(build, name=name) as line:
                symptom, quote = alone(line, name)
        good, said, text = watched(build, name)
        right &= good
        shown.append((name, symptom, said, good))
        parts.append((name, symptom, quote, text, is_twin))
    for i, (name, symptom, said, good) in enumerate(shown):
        print("%4s  %-28s %-14s %-12s %s" % (number if i == 0 else "", name, symptom, said if good else "WRONG", "" if good else said), flush=True)
    if folder and right:
        with open(os.path.join(folder, "%02d.md" % number), "w") as file:
            file.write(page(number, parts, faults_of_trainer(build)))
    return right


def index():
    lines = ["# Scenarios", "", "These pages answer %d questions that users of data-parallel training ask. Each page has the answer in three" % len(ROWS),
             "sentences, and the fault and its fix in PyTorch. Then it shows the same fault in ddptrain: what a user sees without",
             "ddpcheck, ddpcheck's report, and a correct twin that must give no finding. `make scenarios` runs them all, and the pages",
             "quote real output; the test docs_samples runs the PyTorch samples.", "",
             "| page | what happens | names in `make scenarios` |", "| --- | --- | --- |"]
    for number, (asked, faults, twins) in ROWS.items():
        lines.append("| [%d](%02d.md) | %s | %s |" % (number, number, asked, ", ".join(faults + twins)))
    return "\n".join(lines) + "\n"


def check_pages(folder):
    with open(os.path.join(folder, "README.md")) as file:
        assert file.read().startswith(index()), "README.md is not up to date; write it anew: table.py BUILD --docs %s 3" % folder
    for number, (_, faults, twins) in ROWS.items():
        with open(os.path.join(folder, "%02d.md" % number)) as file:
            text = file.read()
        assert text.startswith(words(number)), "%02d.md has other words than questions/; write them anew: table.py --words %s" % (number, folder)
        for name in faults + twins:
            assert "    " + command_of(name) + "\n" in text, "%02d.md lacks %s; write it anew: table.py BUILD --docs %s %d" % (number, name, folder, number)
    stray = set(os.listdir(folder)) - {"%02d.md" % number for number in ROWS} - {"README.md"}
    assert not stray, stray


def main():
    arguments = sys.argv[1:]
    if arguments[0] == "--check":
        check_pages(arguments[1])
        return
    if arguments[0] == "--words":
        replace_words(arguments[1])
        return
    folder = None
    if "--docs" in arguments:
        at = arguments.index("--docs")
        folder = arguments[at + 1]
        os.makedirs(folder, exist_ok=True)
        del arguments[at:at + 2]
    numbers = [int(word) for word in arguments[1:]] or list(ROWS)
    begin = time.monotonic()
    print("%4s  %-28s %-14s %-12s" % ("row", "scenario", "alone it", "ddpcheck"))
    if folder:
        with open(os.path.join(folder, "README.md"), "w") as file:
            file.write(index())
    wrong = [number for number in numbers if not row(arguments[0], number, folder)]
    print("%d of %d rows are right, %.0f s" % (len(numbers) - len(wrong), len(numbers), time.monotonic() - begin))
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
