"""View 8 of `ddpcheck tui`, Speed: on imported timelines in a real terminal, against tests/tui/golden, and on a job that runs.

    test_speed.py BUILD [--update]     --update writes the golden files anew: look at them before you commit
"""

import os
import shutil
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "import"))

from terminal import Terminal
from timelines import Timeline

GOLDEN = os.path.join(os.path.dirname(os.path.abspath(__file__)), "golden")
update = "--update" in sys.argv
build = os.path.abspath(sys.argv[1])
TOOL = os.path.join(build, "bin", "ddpcheck")
TRAINER = os.path.join(build, "bin", "ddptrain")
SIZES = {"80x24": (80, 24), "120x40": (120, 40), "40x10": (40, 10)}

JOBS = {
    # Two communicators: a GPU that is slow from iteration 40 on, and a late host.
    "mixed": lambda: Timeline(ranks=8, width=4, iterations=80, slower=lambda rank, i: 1.5 if rank == 3 and i >= 40 else 1,
                              late=lambda rank, i: 0.004 if rank == 6 else 0),
    "thousand": lambda: Timeline(ranks=1000, iterations=32, slower=lambda rank, i: 1.5 if rank in (640, 641) else 1,
                                 late=lambda rank, i: 0.004 if rank == 17 else 0).without_kernels(),
    "link": lambda: Timeline(ranks=8, width=2, transfer=lambda group, i: 4 if group == 4 else 1),
    "pause": lambda: Timeline(iterations=80, late=lambda rank, i: 0.05 if rank == 1 and i % 10 == 9 else 0),
    "even": lambda: Timeline(),
    "short": lambda: Timeline(iterations=12),
}


class Speed(unittest.TestCase):
    maxDiff = None

    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.mkdtemp(prefix="ddpcheck-speed-")
        for name, timeline in JOBS.items():
            path = os.path.join(cls.folder, name)
            with open(path + ".csv", "w") as file:
                file.write(timeline().csv())
            os.utime(path + ".csv", (1795271000, 1795271000))       # a source without a clock has that of its file
            subprocess.run([TOOL, "import", "-o", path, path + ".csv"], check=True, capture_output=True, timeout=300)

    @classmethod
    def tearDownClass(cls):
        shutil.rmtree(cls.folder)

    def terminal(self, what, size=(80, 24)):
        return Terminal(self.folder, "cd %s && %s tui %s" % (self.folder, TOOL, what), *size)

    def compare(self, name, text):
        path = os.path.join(GOLDEN, "speed-%s.txt" % name)
        if update:
            with open(path, "w") as file:
                file.write(text)
        with open(path) as file:
            self.assertEqual(file.read(), text)

    def test_golden(self):
        for name in "mixed", "thousand":
            for title, size in SIZES.items():
                with self.subTest(name + title), self.terminal(name, size) as terminal:
                    terminal.wait("1 ?No")
                    terminal.keys("8")
                    terminal.wait("lag ms")
                    text = terminal.settled("Speed  finished")
                    self.assertLessEqual(max(len(line) for line in text.split("\n")), size[0])
                    self.compare("%s-%s" % (name, title), text)

    def once(self, name, *options):
        done = subprocess.run([TOOL, "tui", "--once", *options, "--view", "speed", name], cwd=self.folder, capture_output=True, text=True,
                              timeout=300, env={**os.environ, "LC_ALL": "C.UTF-8", "COLUMNS": "100"})
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        return done.stdout

    def test_kinds(self):
        self.assertRegex(self.once("link"), r"(?m)^4-5 .* slow link ")
        self.assertRegex(self.once("pause"), r"(?m)^1 .* pauses every 10 ")
        self.assertRegex(self.once("even"), r"(?m)^0-3 +0\.0 +0% +4 ranks +·{16} +0% ")
        self.assertIn("this takes 20 iterations", self.once("short"))

    def test_ascii(self):
        text = self.once("mixed", "--ascii")
        self.assertTrue(text.isascii(), text)
        self.assertRegex(text, r"(?m)^3 .* slow device since 40  #{16} ")

    def test_enter_and_filter(self):
        with self.terminal("mixed") as terminal:
            terminal.wait("1 Now")
            terminal.keys("8", "Enter")
            self.assertIn("rank 6 (host n3) makes the others wait", terminal.wait("note DC601|warning DC601"))
            terminal.keys("Escape", "G", "Enter")
            terminal.wait("Rank  finished")
            terminal.keys("Escape")
            terminal.wait("lag ms")
            terminal.keys("f")
            terminal.keys("-l", "rank:5")
            terminal.keys("Enter")
            text = terminal.settled("filter: rank:5")
            self.assertRegex(text, r"(?m)^4-5,7 ")
            self.assertNotIn("slow", text.split("lag ms")[1])

    def test_a_slow_rank_is_named_while_the_job_runs(self):
        command = "%s run --tui --timing --emulate 2 -o live -- %s --ranks 2 --model cnn --iterations 100000 --fault slow-host" % (TOOL, TRAINER)
        with Terminal(self.folder, "cd %s && %s" % (self.folder, command)) as terminal:
            terminal.wait("1 Now")
            terminal.keys("8")
            text = terminal.wait("(?m)^1 .* slow host ")
            self.assertIn("live", text)
            terminal.keys("q")
            terminal.wait("the job is still running")
            terminal.keys("C-c")
            terminal.wait("the job has finished")


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *[word for word in sys.argv[2:] if word != "--update"]])
