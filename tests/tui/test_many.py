"""`ddpcheck tui` on a job of 16,384 ranks on 2,048 hosts, in a real terminal: what the views show at 80x24, against tests/tui/golden,
and that it is still there after keys that move, open and close. What a key costs, `make bench tui` measures.

    test_many.py BUILD [--update]     --update writes the golden files anew: look at them before you commit
"""

import os
import shutil
import subprocess
import sys
import tempfile
import time
import unittest

from terminal import Terminal

GOLDEN = os.path.join(os.path.dirname(os.path.abspath(__file__)), "golden")
update = "--update" in sys.argv
build = os.path.abspath(sys.argv[1])
TOOL = os.path.join(build, "bin", "ddpcheck")
RANKS = 16384
VIEWS = {"now": ("1", "Now  finished"), "findings": ("2", "Findings  finished"), "sequence": ("3", "Sequence  finished"),
         "ranks": ("4", "Ranks  finished"), "waits": ("5", "Waits  finished"), "timeline": ("6", "Timeline  finished")}


class Many(unittest.TestCase):
    maxDiff = None

    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.mkdtemp(prefix="ddpcheck-tui-")
        trace = os.path.join(cls.folder, "job")
        os.mkdir(trace)
        subprocess.run([os.path.join(build, "bench", "bench_rank_traces"), trace, "skipped", str(RANKS)], check=True)

    @classmethod
    def tearDownClass(cls):
        shutil.rmtree(cls.folder)

    def terminal(self):
        return Terminal(self.folder, "cd %s && %s tui job" % (self.folder, TOOL))

    def test_views(self):
        with self.terminal() as terminal:
            terminal.wait("1 ?No")
            for name, (key, pattern) in VIEWS.items():
                terminal.keys(key)
                self.compare("many-" + name, self.shown(terminal, pattern, "many-" + name))

    def test_keys(self):
        """That move, open and close leave the view that was open."""
        with self.terminal() as terminal:
            terminal.wait("1 ?No")
            for key, pattern in VIEWS.values():
                terminal.keys(key)
                terminal.settled(pattern)
                terminal.keys("j", "G", "k", "NPage", "PPage", "Enter", "Escape")
                terminal.settled(pattern)

    def shown(self, terminal, pattern, name):
        """The screen as soon as it is what is expected; what it is at last if it never is."""
        give_up = time.monotonic() + 60
        while True:
            text = terminal.settled(pattern)
            if update or text == self.expected(name) or time.monotonic() > give_up:
                return text

    def expected(self, name):
        path = os.path.join(GOLDEN, name + ".txt")
        if not os.path.exists(path):
            return ""
        with open(path) as file:
            return file.read()

    def compare(self, name, text):
        if update:
            with open(os.path.join(GOLDEN, name + ".txt"), "w") as file:
                file.write(text)
        self.assertLessEqual(max(len(line) for line in text.split("\n")), 80)
        self.assertEqual(self.expected(name), text)


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *[word for word in sys.argv[2:] if word != "--update"]])
