"""Samples in the form of what people posted: each names its thread, the verdict that helps, and words that it must have.

    # thread: owner/repository#number
    # expect: CODE RANKS RANKS...     an error or warning and its sides' ranks; * any, none: no rank is known. No line: no error
    # says: words of a finding

The score: useful (all that is expected, and no other error), nothing useful, wrong, refused."""

import collections
import glob
import json
import os
import re

from importer import Importer, main

FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "real")


def read_sample(path):
    with open(path, encoding="utf-8") as file:
        lines = file.read().splitlines()
    header = collections.defaultdict(list)
    for line in lines:
        match = re.match(r"# (thread|expect|says): (.*)", line)
        if match:
            header[match.group(1)].append(match.group(2))
    return header, [line for line in lines if not re.match(r"# \w+: ", line)]


class Real(Importer):
    def judge(self, path):
        """One of "useful", "nothing useful", "wrong", "refused", and why."""
        header, lines = read_sample(path)
        self.assertTrue(header["thread"], path)
        result = self.importing(self.write(os.path.basename(path), lines))
        if not os.path.exists(result.database):
            return "refused", result.err
        told = [finding for finding in result.findings if finding["severity"] != "note"]
        if not header["expect"]:
            return ("wrong", told[0]["what"]) if told else ("useful", "")
        texts = " ".join(finding["what"] for finding in told)
        if not told:
            return "nothing useful", "no finding"
        for expected in header["expect"]:
            code, *ranks = expected.split()
            found = [[side["ranks"] for side in finding["sides"]] for finding in told if finding["code"] == code]
            if not found or (ranks != ["*"] and ranks not in found):
                return "wrong", "%s expected, told %s" % (expected, [(f["code"], [s["ranks"] for s in f["sides"]]) for f in told])
        if any(finding["code"] not in [line.split()[0] for line in header["expect"]] for finding in told):
            return "wrong", "more: %s" % texts
        missing = [words for words in header["says"] if words not in texts]
        return ("nothing useful", "no word of '%s' in %s" % (missing[0], texts)) if missing else ("useful", "")

    def test_score(self):
        score, wrong = collections.Counter(), []
        paths = sorted(glob.glob(os.path.join(FOLDER, "*.log")))
        for path in paths:
            verdict, why = self.judge(path)
            score[verdict] += 1
            if verdict != "useful":
                wrong.append("%s: %s: %s" % (os.path.basename(path), verdict, why))
        print("%d samples: %s" % (len(paths), json.dumps(score)))
        self.assertGreaterEqual(len(paths), 60)
        self.assertEqual(wrong, [], "\n".join(wrong))


if __name__ == "__main__":
    main()
