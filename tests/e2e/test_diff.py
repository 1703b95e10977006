"""Two runs of the trainer compared: equal ones are equal, an option more is one difference, two ranks of one trace."""

import json
import os
import sys

from line import Line

BASE = ("--model", "cnn", "--image", "8")


class Runs:
    def __init__(self, line):
        self.line = line

    def record(self, name, *options, ranks=4, status=0):
        self.line.trace = os.path.join(self.line.folder, name)
        got, out, err = self.line.run([self.line.trainer, "--ranks", str(ranks), *BASE, *options])
        assert got == status, (name, got, out, err)

    def diff(self, *arguments, status):
        got, out, err = self.line.call([self.line.tool, "diff", *arguments])
        assert got == status, (arguments, got, out, err)
        return out + err

    def lines(self, *arguments, status, schema):
        text = self.diff("--json", *arguments, status=status)
        return [line for line in map(json.loads, text.splitlines()) if line["schema"] == "ddpcheck." + schema + "/1"]


def calls(side):
    return [operation["call"].split(",")[0] for operation in side["operations"]]


def main(build):
    with Line(build, devices=4, name="diff") as line:
        runs = Runs(line)
        runs.record("good", "--iterations", "6")
        runs.record("again", "--iterations", "6")
        text = runs.diff("good", "again", status=0)
        assert "They called the same operations in the same order" in text and "differs" not in text, text

        # Smaller buckets: two reductions instead of one, in each of the six iterations, on all ranks: one difference.
        runs.record("small", "--iterations", "6", "--bucket-mb", "0.002", "--first-bucket-mb", "0.002")
        found = runs.lines("good", "small", status=1, schema="difference")
        assert len(found) == 1 and found[0]["times"] == 6 and found[0]["ranks"] == "0-3", found
        assert (found[0]["a"]["count"], found[0]["b"]["count"]) == (1, 2) and not found[0]["open"], found
        assert set(calls(found[0]["a"]) + calls(found[0]["b"])) <= {"ncclAllReduce(count=%d" % n for n in (2484, 2340, 144)}, found
        for side in "ab":
            frame = found[0][side]["operations"][0]["frames"][0]
            assert frame["function"] == "reduce_bucket" and frame["file"].endswith("trainer/reducer.c"), frame
        setup = runs.lines("good", "small", status=1, schema="setup_difference")
        assert [each["what"] for each in setup] == ["command"] and setup[0]["b"].endswith("--first-bucket-mb 0.002"), setup
        text = runs.diff("good", "small", status=1)
        assert "reduce_bucket()" in text and "The same 6 times in all" in text and "  1. ranks 0-3" in text, text

        # Two iterations more: the first ends, the second goes on.
        runs.record("longer", "--iterations", "8")
        found = runs.lines("good", "longer", status=1, schema="difference")
        assert len(found) == 1 and found[0]["a"]["at_end"] and found[0]["a"]["count"] == 0 and found[0]["b"]["count"] == 4, found
        back = runs.lines("longer", "good", status=1, schema="difference")
        assert len(back) == 1 and back[0]["a"]["count"] == 4 and back[0]["b"]["at_end"], back

        # Half of the ranks: the world's communicators are compared, rank by rank.
        runs.record("half", "--iterations", "6", ranks=2)
        summary = runs.lines("good", "half", status=1, schema="diff_summary")[0]
        assert summary["only_a"] == "2-3" and summary["only_b"] == "none" and summary["members"] == 4, summary

        # A rank that registers its parameters in another order: it differs from the others, they do not.
        runs.record("order", "--iterations", "6", "--fault", "model-mismatch", "--timeout", "10", status=1)
        runs.diff("order", "--rank", "0", "--with", "2", status=0)
        found = runs.lines("order", "--rank", "0", "--with", "3", status=1, schema="difference")
        assert calls(found[0]["a"])[0] == "ncclBroadcast(count=128" and calls(found[0]["b"])[0] == "ncclBroadcast(count=4", found
        text = runs.diff("good", "order", "--limit", "1", status=1)
        assert "  1. ranks 0-2" in text and "more differences (--limit shows them)" in text, text

        # Two models, whose reducers one rank goes over in another order: the same calls on each communicator.
        runs.record("models", "--iterations", "6", "--model", "gan")
        runs.record("turned", "--iterations", "6", "--model", "gan", "--fault", "comm-order")
        assert not runs.lines("models", "turned", status=1, schema="difference")
        order = runs.lines("models", "turned", status=1, schema="order_difference")
        assert len(order) == 1 and order[0]["ranks"] == "3" and order[0]["a"]["comm"] != order[0]["b"]["comm"], order
        assert order[0]["b"]["operation"]["frames"][0]["function"] == "reduce_bucket", order
        assert "Order: rank 3 calls the same on each communicator" in runs.diff("models", "turned", status=1)
        runs.diff("turned", "--rank", "0", "--with", "1", status=0)

        assert "there is no trace nowhere" in runs.diff("good", "nowhere", status=2)
        assert "no communicator of rank 9" in runs.diff("good", "--rank", "9", "--with", "0", status=2)
        assert "--rank and --with go together" in runs.diff("good", "--rank", "1", status=2)
        runs.diff("good", status=2)


main(sys.argv[1])
