"""`ddpcheck tui` beside jobs that change under it, at four sizes: what each view shows, and that every key of the help does what it
says, once and for good: nothing that a key brought disappears with the next picture.

    test_live_keys.py BUILD [--update]     --update writes tests/tui/golden/live-* anew: look at them before you commit"""

import itertools
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
import unittest

from terminal import Terminal

build = os.path.abspath(sys.argv[1])
TOOL = os.path.join(build, "bin", "ddpcheck")
TRAINER = os.path.join(build, "bin", "ddptrain")
GOLDEN = os.path.join(os.path.dirname(os.path.abspath(__file__)), "golden")
update = "--update" in sys.argv
SIZES = (80, 24), (120, 40), (200, 60), (40, 10)
HANGS = ["--model", "gan", "--ranks", "4", "--iterations", "12", "--no-gang", "--fault", "partial-barrier"]
GOES_ON = ["--model", "cnn", "--ranks", "2", "--iterations", "1000000", "--no-gang"]
VIEWS = "Now", "Findings", "Sequence", "Ranks", "Waits", "Timeline", "Memory", "Speed"

# What the hanging job shows in each view and at each size, first row first: the marks, ranks, operations and names.
HANG_SHOWS = {
    "Now": r"comm control .*(?s:.*)! 3 +-1",
    "Findings": r"1 error(?s:.*)DC201 +0-3",
    "Sequence": r"comm \w+, 4 ranks(?s:.*)number +ranks +call(?s:.*)#\d+ +[=·]{4}",
    "Ranks": r"rank +host:pid +gpu +state(?s:.*)^ +0 ",
    "Waits": r"who waits for whom(?s:.*)ranks? [0-3]",
    "Timeline": r"^rank(?s:.*)^ +0 ",
    "Memory": r"^rank +memory +bytes +state(?s:.*)^ +[0-3] +0x",
    "Speed": r"^Collecting: ",
}
RUN_SHOWS = {
    "Now": r"progress|iteration|no (finding|error, \d+ notes?)\b(?s:.*)comm",
    "Findings": r"No finding so far|DC\d+",
    "Sequence": r"number +ranks +call(?s:.*)#\d+ +[=·]{2}",
    "Ranks": r"rank +host:pid +gpu +state(?s:.*)^ +0 .* ?alive",
    "Waits": r"No rank waits|who waits for whom",
    "Timeline": r"^rank(?s:.*)^ +0 ",
    "Memory": r"^rank +memory|No memory|no memory",
    "Speed": r"^iterations \d|^Collecting: ",
}

# Each key of the help: what it brings, which has to stay; None: something moves, and no more than that can be seen.
EFFECTS = {
    "j": None, "k": None, "h": None, "l": None, "Down": None, "Up": None, "Left": None, "Right": None,
    "PPage": None, "NPage": None, "g": None, "G": None,
    "n": "nothing to search for yet", "N": "nothing to search for yet",
    "s": r"^by |this view has its own order|^in the view", "F6": r"^by |this view has its own order|^in the view",
    "S": r"^in the view|this view has its own order",
    "Space": " paused", "y": "written to|can't write", "m": "mouse off",
    "c": None, "C": None, "d": None, "+": None, "-": None, "<": None, ">": None, "0": None,
}
# A name of the help is a key of tmux, or several.
NAMES = {"arrows": ("Down", "Up", "Left", "Right"), "hjkl": tuple("hjkl"), "PgUp": ("PPage",), "PgDn": ("NPage",), "space": ("Space",),
         "1-8": tuple("12345678"), "Esc": ("Escape",)}
OF_THEIR_OWN = {*"12345678?/feq:to", "Tab", "F1", "F3", "F4", "F10", "Enter", "Escape"}     # each has its test below


def read(path):
    with open(path) as file:
        return file.read()


def without_times(screen):
    """The screen without times, process ids, addresses, folders, and what their width moves: the text above the view is one line,
    columns are a blank apart, bars a mark long, a cell that goes on below is one line, one that is cut ends at its last comma. The memory
    of finished operations, which comes in the order of addresses, is left out."""
    if not re.match(r".*(Waits|Timeline)  live", screen):
        screen = re.sub(r"\n {15,}(?=\S)", " ", screen)
    screen = re.sub(r"\S*/(?=\w+\.c:\d)", "", screen)
    screen = re.sub(r"\d\d:\d\d:\d\d\.\d+", "CLOCK", screen)
    screen = re.sub(r"\b(\d+ (h|min) )?\d+(\.\d+)?\s(ms|us|s|min)\b", "TIME", screen)
    screen = re.sub(r"0x[0-9a-f]+", "ADDRESS", screen)
    screen = re.sub(r"[░▒▓▂▄▆█]{2,}", "██", screen)
    screen = re.sub(r"!{5,}", "!!!!!", screen)
    screen = re.sub(r"\S+:\d{2,}(?=( +\d+)? +(alive|missing))", "HOST:PID", screen)
    screen = re.sub(r"(?m),[^,\n]*>$", ",>", screen)
    title, rest = screen.split("\n", 1)
    above, _, view = rest.partition("\n\n")     # none: it is half drawn
    lines = [re.sub(r"^.*?(?=(%s)  )" % "|".join(VIEWS), "", title), above.replace("\n", " "), *view.split("\n")]
    lines = [re.sub(r" +", " ", line).rstrip() for line in lines if line.strip()]
    if lines and lines[0].startswith("Waits") and len(lines) > 3:        # which of the waits of a cycle began first is chance
        waits = {re.sub(r" ?\([^)]*(\)|$)", "", line).strip() for line in lines[3:-1]}     # which has its arguments is, too
        waits = {" ".join(re.match("[^:]*", line)[0].split()) for line in waits}
        lines[3:-1] = sorted(waits) if len(lines[1]) > 100 else []
    return "\n".join(line for line in lines if line and not re.search(r" done\b.* #|^ ?\d \w*ADDRESS-?$", line)) + "\n"


def agree(one, other, is_small):
    """A small screen may have a cell cut, or cut earlier, where it has more room another time: times and folders have many widths."""
    def same_row(pair):
        cut, whole = sorted(pair, key=lambda row: (not row.endswith(",>"), len(row)))
        return cut == whole or is_small and cut.endswith(",>") and whole.startswith(cut[:-1])
    return all(map(same_row, itertools.zip_longest(one.split("\n"), other.split("\n"), fillvalue="")))


class LiveKeys(unittest.TestCase):
    maxDiff = None

    @classmethod
    def setUpClass(cls):
        cls.temporary = tempfile.TemporaryDirectory(prefix="ddpcheck-live-keys-")
        cls.folder = cls.temporary.name
        cls.jobs = [cls.start("hangs", HANGS), cls.start("goes-on", GOES_ON)]

    @classmethod
    def tearDownClass(cls):
        for job in cls.jobs:
            cls.end(job)
        cls.temporary.cleanup()

    @classmethod
    def start(cls, trace, arguments):
        return subprocess.Popen([TOOL, "run", "-q", "--emulate", "4", "-o", os.path.join(cls.folder, trace), "--", TRAINER, *arguments],
                                env={**os.environ, "DDPCHECK_EMU_KERNEL_TIME": "all=0.002"},       # the processor is the other tests'
                                stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)

    @staticmethod
    def end(job):
        if job.poll() is None:
            job.send_signal(signal.SIGTERM)
            try:
                job.wait(60)
            except subprocess.TimeoutExpired:
                os.killpg(job.pid, signal.SIGKILL)
                job.wait()

    def terminal(self, trace, size):
        return Terminal(self.folder, "cd %s && %s tui --wait 100 %s" % (self.folder, TOOL, trace), *size)

    def every(self, sizes=None):
        """Each job at each size; or the hanging one at the first of two sizes, the other at the second."""
        screens = [(trace, size) for trace in ("hangs", "goes-on") for size in SIZES]
        for trace, size in zip(("hangs", "goes-on"), sizes) if sizes else screens:
            with self.subTest(trace=trace, size=size), self.terminal(trace, size) as terminal:
                terminal.wait(r"Now  live" if trace == "goes-on" else r"(?s)Now  live.*DC201")
                yield trace, HANG_SHOWS if trace == "hangs" else RUN_SHOWS, size, terminal

    def stays(self, terminal, pattern, pictures=3):
        """It is on the screen, and still is in so many pictures: the clock of the title says so. Where the title has
        no clock, or is covered, ten looks."""
        text = terminal.wait("(?m)" + pattern)
        clocks, looks = set(), 0
        while len(clocks) < pictures and looks < 60:
            text = terminal.text()
            self.assertRegex(text, "(?m)" + pattern)
            clock = re.search(r"\d\d:\d\d:\d\d\.\d+", text.split("\n")[0])
            clocks.add(clock.group() if clock else str(looks // 5))
            looks += 1
        return text

    def test_views_at_all_sizes(self):
        for trace, shows, size, terminal in self.every():
            for key, view in enumerate(VIEWS, 1):
                terminal.keys(str(key))
                text = terminal.wait(r"(?m)\A.*%s  live(?s:.*)(%s)" % (view, shows[view])) if size != (40, 10) else terminal.wait(
                    view + "  live")
                screen = text.rstrip("\n").split("\n")
                self.assertEqual(len(screen), size[1], text)
                self.assertLessEqual(max(map(len, screen)), size[0])
                self.assertEqual(re.findall(r"[1-8]", screen[-1]), list("12345678"), screen[-1])

    def test_golden(self):
        """All views of the hanging job at all sizes, without what differs from run to run."""
        for size in SIZES:
            path = os.path.join(GOLDEN, "live-%dx%d.txt" % size)
            expected = ["== " + part for part in read(path).split("== ")[1:]] if not update else [""] * len(VIEWS)
            self.assertEqual(len(expected), len(VIEWS))
            with self.subTest(size=size), self.terminal("hangs", size) as terminal:
                terminal.wait(r"Now  live(?s:.*)DC201(?s:.*)Fix")
                for key, view in enumerate(VIEWS):
                    terminal.keys(str(key + 1))
                    terminal.wait(r"%s  live(?s:.*)DC201" % view)
                    expected[key] = self.compare("== %s\n" % view, expected[key], terminal, size)
            if update:
                with open(path, "w") as file:
                    file.write("".join(expected))

    def compare(self, title, expected, terminal, size):
        """The screen as soon as it is as expected: the picture may be half drawn, and the trace behind. When golden files are
        written anew, a screen that stays the same."""
        give_up = time.monotonic() + 60
        before = ""
        while True:
            text = title + without_times(terminal.text())
            if agree(before if update else expected, text, is_small=not update and size[1] < 40):
                return text
            if time.monotonic() > give_up:
                self.assertEqual(expected, text)
            before = text
            time.sleep(0.5 if update else 0.1)

    def test_a_narrow_tree_can_be_read_to_its_end(self):
        with self.terminal("hangs", (40, 10)) as terminal:
            terminal.wait(r"(?s)Now  live.*DC201")
            terminal.keys("5")
            terminal.wait(r"(?sm)who waits for whom.*>$")
            terminal.keys("l", "l")
            self.stays(terminal, "(of|ator|ol|eam)\\w*$")

    def keys_of_help(self, terminal):
        """Opens the help, and reads it to its end."""
        terminal.keys("?")
        text = self.stays(terminal, "┌ |│ ")
        for _ in range(30 if "arrows: more" in text else 0):
            terminal.keys("Down")
            text += terminal.text()
        terminal.keys("Escape")
        terminal.wait(r"\A((?!│)(?s:.))*\Z")
        keys = set()
        for line in re.findall(r"│ (.*?) *│", text):
            words = line[:14].split() if line[13:15] in ("  ", " ") or len(line) <= 14 else []
            for word in words if line[:1] != " " else ():
                keys.update(NAMES.get(word, (word,)))
        return {key for key in keys if key in EFFECTS or key in OF_THEIR_OWN}

    def press(self, terminal, key):
        """The view knows the key, and what it brings stays."""
        terminal.keys(key)
        if EFFECTS[key] is None:
            self.assertNotIn("means nothing", terminal.text())
        else:
            self.stays(terminal, EFFECTS[key], 2)
        if key in ("Space", "m"):           # a switch
            terminal.keys(key)
            terminal.wait("  live" if key == "Space" else "mouse on")

    def test_every_key_of_the_help(self):
        """In every second view of each job, so that all have their turn: each key waits for pictures."""
        views = list(enumerate(VIEWS, 1))
        for turn, (trace, shows, size, terminal) in enumerate(self.every([(80, 24), (120, 40)])):
            for number, view in views[turn::2]:
                terminal.keys(str(number))
                terminal.wait(view + "  live")
                keys = self.keys_of_help(terminal)
                self.assertGreaterEqual(len(keys), 30, keys)
                for key in sorted(keys - OF_THEIR_OWN):
                    self.press(terminal, key)
                terminal.keys(str(number))
                terminal.wait(view + "  live")

    def test_a_rank_its_stacks_and_its_lines(self):
        """q goes back from each page, and leaves from a view."""
        opened = os.path.join(self.folder, "opened")
        editor = os.path.join(self.folder, "editor")
        with open(editor, "w", opener=lambda path, flags: os.open(path, flags, 0o755)) as file:
            file.write("#!/bin/sh\necho \"$@\" >%s\n" % opened)
        with Terminal(self.folder, "cd %s && %s tui --wait 100 hangs" % (self.folder, TOOL), 120, 40, EDITOR=editor,
                      VISUAL="") as terminal:
            terminal.wait(r"(?s)Now  live.*DC201")
            terminal.keys("t")
            terminal.wait("select one first")
            terminal.keys("o")
            self.await_opened(opened, "+209")
            terminal.keys(":", "3", "Enter")
            terminal.wait(r"(?s)Rank  live.*rank 3, process")
            terminal.keys("t")
            self.stays(terminal, r"as it stood when t was pressed(?s:.)*thread \d+ ddptrain \(main\), in "
                                 r"(cudaStreamSynchronize|pthread_cond_wait)")       # TSan has functions of its own below the first
            terminal.keys("/", *"wait_for_losses", "Enter", "o")
            self.await_opened(opened, "+40")
            terminal.keys("q")
            terminal.wait("Rank  live")
            terminal.keys("q")
            terminal.wait("Now  live")
            terminal.keys("q")
            terminal.wait("status=0")

    def await_opened(self, path, line):
        opened, give_up = [], time.monotonic() + 60
        while len(opened) != 2 or opened[0] != line or not opened[1].endswith("/trainer/train.c"):
            self.assertLess(time.monotonic(), give_up, opened)
            time.sleep(0.05)
            opened = read(path).split() if os.path.exists(path) else []

    def test_prompts_and_windows(self):
        for trace, shows, size, terminal in self.every([(40, 10), (80, 24)]):
            for key, prompt in ("/", "search"), ("F3", "search"), ("f", "filter"), ("F4", "filter"):
                terminal.keys(key)
                typed = ""
                for letter in "comm":                   # a key at a time, while pictures come
                    terminal.keys(letter)
                    typed += letter
                    terminal.wait("(?m)^%s: %s_" % (prompt, typed))
                self.stays(terminal, "^%s: comm_" % prompt)
                terminal.keys("Enter")
                terminal.wait(r"\A((?!comm_)(?s:.))*\Z")
                terminal.keys("Escape")
            for key in "?", "F1":
                terminal.keys(key)
                self.stays(terminal, "│")
                terminal.keys("2")                      # closes the window, and is not lost
                terminal.wait("Findings  live")
                terminal.keys("1")
                terminal.wait("Now  live")
            for view in VIEWS[1:]:
                terminal.keys("Tab")
                terminal.wait(view + "  live")
            terminal.keys("1")
            terminal.wait("Now  live")
            terminal.keys("e")
            terminal.wait("e explains a finding|Explain  live")
            terminal.keys("4")
            terminal.wait("Ranks  live")
            terminal.keys("Enter")
            self.stays(terminal, "Rank  live")
            terminal.keys("Escape")
            terminal.wait("Ranks  live")
            terminal.keys("2")
            terminal.wait("Findings  live")
            if trace == "hangs":
                terminal.keys("Enter")
                self.stays(terminal, "Finding  live")
                terminal.keys("e")
                self.stays(terminal, "Explain  live")
                terminal.keys("Escape", "Escape")
                terminal.wait("Findings  live")
            terminal.keys("F10" if size[0] == 80 else "q")
            terminal.wait("status=0")
        for job in self.jobs:
            self.assertIsNone(job.poll(), "a job ended with the TUI")


class Finished(unittest.TestCase):
    """What a view shows of the hang does not change when the job is ended."""

    def test_the_finished_trace_agrees(self):
        with tempfile.TemporaryDirectory(prefix="ddpcheck-live-keys-") as folder:
            LiveKeys.folder = folder
            job = LiveKeys.start("hangs", HANGS)
            seen = []
            try:
                with Terminal(folder, "cd %s && %s tui --wait 100 hangs" % (folder, TOOL), 160, 50) as terminal:
                    terminal.wait("(?s)Now  live.*DC201.*! 3")
                    for state in "live", "finished":
                        if state == "finished":
                            LiveKeys.end(job)
                        views = []
                        for key, pattern in ("2", "DC201"), ("Enter", "never called it"), ("3", "number"):
                            terminal.keys(key)
                            text = terminal.settled(r"(?s)  %s.*%s" % (state, pattern))
                            views.append(self.stable(text))
                        seen.append(views)
            finally:
                LiveKeys.end(job)
            for live, finished in zip(*seen):
                self.assertEqual(live, finished)
                self.assertGreaterEqual(len(live), 2)

    @staticmethod
    def stable(text):
        """Without the title, times, and how long a wait has lasted, by now or until the end."""
        text = re.sub(r", (since|for) [0-9.]+ m?s( until the end)?|\d\d:\d\d:\d\d\.\d+|since [0-9.]+ m?s.*", "", text)
        lines = [line for line in text.split("\n")[1:] if "SIGTERM" not in line and "cudaStreamSynchronize" not in line]
        return sorted({" ".join(re.findall(r"#\d+|nccl\w+\([^)]*\)|[=≠·]{4}|DC\d+|\w+\(\)", line)) for line in lines})


if __name__ == "__main__":
    if not os.path.exists(TRAINER):
        print("ddptrain was not built")
        sys.exit(0)
    unittest.main(argv=[sys.argv[0], *[word for word in sys.argv[2:] if word != "--update"]])
