"""The 3 a.m. test: eleven jobs hang, each by another fault. The first screen of `ddpcheck tui` beside the hanging job, 80x24, at
most two keys: it has the rank at fault, the code, a line of the user's source and the fix, and cuts none of it."""

import os
import re
import signal
import subprocess
import sys
import tempfile
import unittest

from terminal import Terminal

build = os.path.abspath(sys.argv[1])
TOOL = os.path.join(build, "bin", "ddpcheck")
TRAINER = os.path.join(build, "bin", "ddptrain")
GAN = ["--model", "gan", "--ranks", "4", "--iterations", "12", "--no-gang", "--fault"]
CNN = ["--model", "cnn", "--ranks", "4", "--iterations", "12", "--no-gang", "--fault"]
KEYS = 2
ASLEEP = os.path.join(build, "tests", "suite", "hang", "rank_asleep")

# fault: (arguments of ddptrain, or a program that sleeps, code, the rank at fault as the screen names it, keys)
FAULTS = {
    "partial-barrier": (GAN + ["partial-barrier"], "DC201", r"rank 3 never called it", []),
    "uneven-updates": (GAN + ["uneven-updates"], "DC202", r"ranks 0-2 in [^;]* wait for rank 3", []),
    "shared communicator": (GAN + ["uneven-updates", "--shared-communicator"], "DC101", r"rank 3", []),
    "p2p-cycle": (GAN + ["p2p-cycle", "--exchange-every", "3"], "DC203", r"ranks? [0-3]", []),
    "mirrored-no-group": (["--mode", "mirrored", "--ranks", "4", "--iterations", "12", "--fault", "mirrored-no-group"], "DC201",
                          r"rank 0", []),
    "pipeline-order": (["--mode", "pipeline", "--ranks", "2", "--iterations", "12", "--no-gang", "--fault", "pipeline-order"],
                       "DC203", r"rank 0", []),
    "shared-comm": (GAN + ["shared-comm"], "DC507", r"rank 3", []),
    "oom-skip": (GAN + ["oom-skip"], "DC504", r"rank 3", []),
    "unused-params": (CNN + ["unused-params"], "DC504", r"rank 3", []),
    "asleep": ([ASLEEP], "DC201", r"rank 0 never called it", []),
    "model-mismatch": (GAN + ["model-mismatch"], "DC110", r"rank 3", []),
}
# Where the rank at fault is, if it is in no call: its stack was captured.
CAPTURED = {"asleep": r"rank 0 is at \S*suite\.c:\d+, in suite_nap_ms\(\)"}


class Night(unittest.TestCase):
    def look(self, folder, code, rank, keys, captured):
        with Terminal(folder, "cd %s && %s tui --wait 100 trace" % (folder, TOOL), 80, 24) as terminal:
            terminal.keys(*keys) if keys else None
            text = terminal.wait(r"\S+\.c:\d+: (possible )?error %s[^\n]*\n(?s:.*)%s(?s:.*)\nFix: " % (code, captured))
            terminal.resize(40, 10)
            small = terminal.wait(r"(?s)\A.*%s.*1No.*\? q\s*\Z" % code)
            small += self.scroll(terminal, small)
        # What stands above the table, without its line ends.
        words = " ".join(text.split("\n\n")[0].split("\n", 1)[1].split())
        self.assertRegex(words, rank)
        self.assertNotRegex(words, r"\w\.\.\.( |$)", "something is cut")
        self.assertRegex(words, r"Fix: .*\.$", "the fix is cut")
        self.assertNotRegex(text, r"\A.* ([2-9]|\d\d) of \d+  Now", "the worst rows are not on the screen")
        self.assertNotRegex(text.split("\n")[1], r"(communicator|device)\.c", "a wrapper, and no line of the user's")
        return text + "\n" + self.look_at_small(small, code, rank)

    def scroll(self, terminal, small):
        """What the small screen cut follows, whole, one key further."""
        if "..." not in small:
            return ""
        self.assertRegex(small, r"\A.* j: more  ")
        terminal.keys("NPage")
        more = terminal.wait(r"(?s)\nIn full:\n.*? q\s*\Z")
        self.assertNotRegex(more.split("In full:")[1], r"\w\.\.\.")
        return more

    def look_at_small(self, text, code, rank):
        """40x10, where the table has no room, and at times only the first sentences of the fix and half of what happened have."""
        words = " ".join(" ".join(text.split("? q")[0].split("\n")[1:-1]).split("In full:")[0].split())
        self.assertRegex(words, r"\S+\.c:\d+: (possible )?error %s" % code)
        self.assertRegex(words, rank)
        self.assertRegex(words, r"Fix: [^.]*\.( [^.]*\.)*$", "the fix is cut")
        return text

    def test_ten_faults(self):
        self.assertGreaterEqual(len(FAULTS), 10)
        for name, (arguments, code, rank, keys) in FAULTS.items():
            self.assertLessEqual(len(keys), KEYS)
            with self.subTest(name), tempfile.TemporaryDirectory(prefix="ddpcheck-night-") as folder:
                program = ["--hang-after", "2", "--", *arguments] if arguments[0] == ASLEEP else ["--", TRAINER, *arguments]
                job = subprocess.Popen([TOOL, "run", "-q", "--emulate", "4", "-o", os.path.join(folder, "trace"), *program],
                                       stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                                       start_new_session=True)
                try:
                    text = self.look(folder, code, rank, keys, CAPTURED.get(name, ""))
                    print("== " + name + "\n" + text, flush=True)
                    self.assertIsNone(job.poll(), "the job did not hang")
                finally:
                    if job.poll() is None:
                        job.send_signal(signal.SIGTERM)
                        try:
                            job.wait(30)
                        except subprocess.TimeoutExpired:
                            os.killpg(job.pid, signal.SIGKILL)
                            job.wait()


if __name__ == "__main__":
    if not os.path.exists(TRAINER):
        print("ddptrain was not built")
        sys.exit(0)
    unittest.main(argv=[sys.argv[0], *sys.argv[2:]])
