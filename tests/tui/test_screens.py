"""The screens of `ddpcheck tui` on traces made by hand, in a real terminal, against tests/tui/golden.

    test_screens.py BUILD [--update]     --update writes the golden files anew: look at them before you commit
"""

import glob
import os
import re
import shutil
import sqlite3
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

# screen: situation, size, keys, what must be there before it is compared
SCREENS = {
    "missing-now": ("missing", (80, 24), [], "comm 5ae7"),
    "missing-now-wide": ("missing", (200, 60), [], "comm 5ae7"),
    "missing-findings": ("missing", (80, 24), ["2"], "DC201\\?"),
    "missing-finding": ("missing", (80, 24), ["2", "Enter"], "never called it"),
    "missing-finding-wide": ("missing", (200, 60), ["2", "Enter"], "never called it"),
    "missing-explain": ("missing", (80, 24), ["2", "e"], "DC201: "),
    "missing-sequence": ("missing", (80, 24), ["3"], "#3"),
    "missing-ranks": ("missing", (80, 24), ["4"], "late by"),
    "missing-rank": ("missing", (80, 24), ["4", "Enter"], "Communicators"),
    "missing-waits": ("missing", (80, 24), ["5"], "wait"),
    "missing-timeline": ("missing", (80, 24), ["6"], "called"),
    "missing-memory": ("missing", (80, 24), ["7"], "used by"),
    "missing-help": ("missing", (80, 24), ["?"], "this help"),
    "mismatch-sequence": ("mismatch", (80, 24), ["3", "d"], "≠"),
    "mismatch-sequence-wide": ("mismatch", (200, 60), ["3", "d"], "≠"),
    "dead-now": ("dead", (80, 24), [], "DC205"),
    "dead-ranks": ("dead", (80, 24), ["4"], "late by"),
    "clean-now": ("clean", (80, 24), [], "no finding"),
    "clean-findings": ("clean", (80, 24), ["2"], "No finding."),
    "hosts-now": ("hosts", (80, 24), [], "comm 5ae7"),
}


VIEW_TITLES = ("Now", "Findings", "Sequence", "Ranks", "Waits", "Timeline", "Memory", "Speed")


class Screens(unittest.TestCase):
    maxDiff = None

    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.mkdtemp(prefix="ddpcheck-tui-")
        for situation in sorted({screen[0] for screen in SCREENS.values()}):
            cls.make(situation, os.path.join(cls.folder, situation))

    @classmethod
    def tearDownClass(cls):
        shutil.rmtree(cls.folder)

    @classmethod
    def make(cls, situation, path):
        subprocess.run([os.path.join(build, "tests", "make_trace"), path, situation], check=True)
        for database in glob.glob(os.path.join(path, "*.db")):
            subprocess.run([os.path.join(build, "tests", "make_state"), database], check=True)

    def terminal(self, what, size=(80, 24), **environment):
        return Terminal(self.folder, "cd %s && %s tui %s" % (self.folder, TOOL, what), *size, **environment)

    def compare(self, name, text):
        path = os.path.join(GOLDEN, name + ".txt")
        if update:
            with open(path, "w") as file:
                file.write(text)
        with open(path) as file:
            self.assertEqual(file.read(), text)

    def expected(self, name):
        path = os.path.join(GOLDEN, name + ".txt")
        if not os.path.exists(path):
            return ""
        with open(path) as file:
            return file.read()

    def shown(self, terminal, pattern, expected):
        """The screen as soon as it is what is expected; what it is at last if it never is. A view that is not answered yet can
        stay the same for longer than `settled` looks, on a busy machine."""
        give_up = time.monotonic() + 60
        while True:
            text = terminal.settled(pattern)
            if update or text == expected or time.monotonic() > give_up:
                return text

    def test_golden(self):
        for name, (situation, size, keys, pattern) in SCREENS.items():
            with self.subTest(name), self.terminal(situation, size) as terminal:
                terminal.wait("1 Now")
                if keys:
                    terminal.keys(*keys)
                text = self.shown(terminal, pattern, self.expected(name))
                self.compare(name, text)
                self.assertLessEqual(max(len(line) for line in text.split("\n")), size[0])

    def test_all_views_at_all_sizes(self):
        for size in (80, 24), (120, 40), (200, 60), (40, 10):
            texts = []
            with self.subTest(size), self.terminal("missing", size) as terminal:
                for key, title in enumerate(VIEW_TITLES, 1):
                    terminal.wait("1 ?No")
                    terminal.keys(str(key))
                    terminal.wait(title + "  finished")
                    lines = self.expected("all-%dx%d" % size).splitlines(True)[(key - 1) * size[1]:key * size[1]]
                    texts.append(self.shown(terminal, "1 ?No", "".join(lines)))
                text = "".join(texts)
                self.assertLessEqual(max(len(line) for line in text.split("\n")), size[0])
                self.compare("all-%dx%d" % size, text)

    def test_keys_typed_ahead_wait_for_their_rows(self):
        """All keys at once: none is lost, and none acts on the view before."""
        for keys, pattern in (
            (["2", "Enter", "e"], r"Explain(?s:.*)DC201: "),
            (["4", "j", "j", "Enter"], "rank 1, process 4001"),         # below rank 3, which is missing, and rank 0
            (["4", "G", "Enter", "BSpace", "k", "Enter"], "rank 1, process 4001"),
            (["4", "/", "4", "0", "0", "3", "Enter", "Enter"], "rank 3, process 4003"),
            (["4", "s", "s", "g", "Enter"], "rank 3, process 4003"),
            (["4", "Enter", "6"], "called"),
            (["4", "Enter", "q"], "late by"),
            (["4", "Enter", "q", "q"], "status=0"),
            ([":", "2", "Enter"], "rank 2, process 4002"),
            ([":", "9", "Enter"], "No process of this trace is rank 9; there are ranks 0-3"),
            ([":", "9", "C-u", "2", "Enter"], "rank 2, process 4002"),
            ([":", "x", "Enter"], ": takes a rank, as :613; not 'x'"),
            (["4", "Enter", "?"], "this help"),
        ):
            with self.subTest(keys), self.terminal("missing") as terminal:
                terminal.wait("1 Now")
                terminal.keys(*keys)
                terminal.wait(pattern)

    def test_the_page_names_the_keys_of_the_help(self):
        with open(os.path.join(os.path.dirname(GOLDEN), "..", "..", "docs", "tui.md")) as page:
            named = set(re.findall(r"`([^`]+)`", page.read().split("## Keys")[1].split("## Marks")[0]))
        with self.terminal("missing") as terminal:
            terminal.wait("1 Now")
            for view in "12345678":
                terminal.keys(view)
                terminal.settled("q quit")
                terminal.keys("?")
                for line in re.findall(r"│ (.*?) *│", terminal.settled("this help")):
                    for key in line[:14].split() if line[13:15] == "  " else ():
                        if key not in ("1-8", "arrows"):
                            self.assertIn(key, named, line)
                terminal.keys("Escape")

    def test_leaves(self):
        for key, status in ("q", 0), ("F10", 0), ("C-c", 130):
            with self.subTest(key), self.terminal("clean") as terminal:
                terminal.wait("1 Now")
                terminal.keys(key)
                terminal.wait("status=%d" % status)

    def test_terminal_without_places(self):
        with self.terminal("clean", TERM="dumb") as terminal:
            self.assertIn("'ddpcheck tui --once'", terminal.wait("status=2").replace("\n", ""))

    def test_footer_is_complete(self):
        for columns in 40, 47, 60, 79, 80, 200:
            with self.subTest(columns), self.terminal("missing", (columns, 24)) as terminal:
                last = terminal.wait(r"8 ?Sp.*\? .*q").rstrip().split("\n")[-1]
                for view, name in enumerate(("No", "Fi", "Se", "Ra", "Wa", "Ti", "Me", "Sp"), 1):
                    self.assertRegex(last, "%d ?%s" % (view, name))
                self.assertRegex(last, r"\? .*q")
                self.assertLessEqual(len(last), columns)

    def test_a_key_without_meaning_is_answered(self):
        with self.terminal("missing") as terminal:
            terminal.wait("1 Now")
            terminal.keys("Z")
            terminal.wait("no key 'Z' in this view; . lists keys")
            terminal.keys("F9")
            terminal.wait("no such key in this view")

    def test_filter_fields(self):
        """Words and fields of a filter must all be in a row; in the tree what is above a row stays."""
        for typed, marks in (("state:missing", ["! 3"]), ("state:waiting", ["▶ 0-2"]), ("rank:1", ["▶ 0-2"]), ("rank:3", ["! 3"]),
                             ("rank:1-3", ["! 3", "▶ 0-2"]), ("rank:0,7", ["▶ 0-2"]), ("comm:5ae7", ["! 3", "▶ 0-2"]), ("rank:3 state:waiting", []), ("RANK:3 state:miss", ["! 3"]),
                             ("rank:9", []), ("rank:x", []), ("comm:0000", [])):
            with self.subTest(typed), self.terminal("missing") as terminal:
                terminal.wait("1 Now")
                terminal.keys("F4")
                terminal.keys("-l", typed)
                terminal.keys("Enter")
                text = terminal.settled("filter: " + typed)
                self.assertEqual(re.findall(r"^  ([!▶] [-0-9]+) ", text, re.M), marks, text)

    def test_filter_mistakes(self):
        """A field that does not exist is named, with those that do; text with a colon is text."""
        with self.terminal("missing") as terminal:
            terminal.wait("1 Now")
            terminal.keys("f")
            terminal.keys("-l", "foo:1")
            terminal.wait(r"No match for 'foo:1', and there is no field 'foo'\. Fields: rank:3, comm:5ae7,\s+state:missing")
            for typed, answer in (("rank:x", "'rank:x' names no rank: write rank:3 or rank:0-7,9"),
                                  ("none.c:1", "No match (f: change"), ("std::none", "No match (f: change")):
                terminal.keys("Escape")
                terminal.wait("! 3")
                terminal.keys("f")
                terminal.keys("-l", typed)
                terminal.wait(re.escape(answer))

    def test_search_while_typing(self):
        with self.terminal("missing") as terminal:
            terminal.wait("1 Now")
            terminal.keys("4")
            terminal.wait("late by")
            terminal.keys("F3")
            terminal.keys("-l", "400")              # typed, not entered: the first of them is selected, then the fourth
            terminal.wait("search: 400_")
            terminal.keys("-l", "3")
            terminal.wait("search: 4003_")
            terminal.keys("Enter", "Enter")
            terminal.wait("rank 3, process 4003")

    def test_marks_stay_when_scrolling(self):
        with self.terminal("missing") as terminal:
            terminal.wait("1 Now")
            terminal.settled("▶▶▶!")
            for key, back in ("l", "h"), (">", "<"):
                terminal.keys(key)
                self.assertIn("▶▶▶!  1 missing", terminal.wait(r"#3 +loss\.c:35, was"))
                terminal.keys(back)
                terminal.wait("trainer/loss.c:35, was")

    def test_colour_and_none(self):
        hues = re.compile(r"\x1b\[[0-9;]*\b3[1-7]m")
        with self.terminal("missing") as terminal:
            terminal.settled("DC201")
            self.assertRegex(terminal.text("-e"), hues)
        with self.terminal("missing", NO_COLOR="1") as terminal:
            plain = terminal.settled("DC201")
            self.assertNotRegex(terminal.text("-e"), hues)
            self.compare("missing-now", plain)

    def test_ascii(self):
        for what, environment in (("--ascii missing", {}), ("missing", {"TERM": "linux"}), ("missing", {"LC_ALL": "C"})):
            for keys in [], ["3"], ["6"], ["?"]:
                with self.subTest((what, environment, keys)), self.terminal(what, **environment) as terminal:
                    terminal.wait("1 Now")
                    terminal.keys(*keys) if keys else None
                    text = terminal.settled("ranks|rank")
                    self.assertTrue(text.isascii(), text)

    def test_resize(self):
        with self.terminal("missing") as terminal:
            terminal.settled("comm 5ae7")
            for size in (200, 60), (40, 10), (15, 4), (80, 24):
                terminal.resize(*size)
                time.sleep(0.5)
                self.assertLessEqual(max(len(line) for line in terminal.text().split("\n")), size[0])
            self.compare("missing-now", terminal.settled("comm 5ae7"))

    def test_search_filter_sort(self):
        with self.terminal("missing") as terminal:
            terminal.wait("1 Now")
            terminal.keys("4")
            terminal.wait("late by")
            terminal.keys("f")
            terminal.keys("-l", "node-01:40")
            text = terminal.settled("filter: node-01:40")
            self.assertNotIn("No row", text)
            terminal.keys("-l", "x")
            terminal.wait("No match")
            terminal.keys("Escape")
            terminal.keys("/")
            terminal.keys("-l", "nothing like this")
            terminal.keys("Enter")
            terminal.wait("no row holds 'nothing like this'")
            terminal.keys("s", "s")
            text = terminal.wait("by rank, largest first")
            ranks = re.findall(r"^ +(\d+)  node", text, re.M)
            self.assertEqual(ranks, sorted(ranks, reverse=True))

    def test_every_key_in_every_view(self):
        """Nothing ends or garbles the screen but q."""
        names = [*"hjklgGnNsemdcC+-<>0", " ", " ", "Up", "Down", "Left", "Right", "PPage", "NPage", "Home", "End", "Enter", "Escape", "Tab",
                 "BTab", "F1", "F5", "C-l", "BSpace", "é", "?", "?"]
        with self.terminal("mismatch") as terminal:
            terminal.wait("1 Now")
            for view in "12345678":
                terminal.keys(view)
                for name in names:
                    terminal.keys(name)
                terminal.keys("Escape")
                self.assertNotIn("reading a trace", terminal.settled("q quit"))

    def test_mouse(self):
        def mouse(button, column, line):
            for what in (button, 3) if button < 64 else (button,):      # pressed; released, as late as people do
                terminal.keys("-l", "\033[M%c%c%c" % (32 + what, 32 + column, 32 + line))
                time.sleep(0.15)
            time.sleep(0.3)

        with self.terminal("missing") as terminal:
            terminal.wait("1 Now")
            terminal.keys("4")
            terminal.wait("late by")
            mouse(0, 10, 12)                # the third of the rows; below, its second line
            mouse(2, 10, 7)                 # the right button means nothing
            mouse(0, 10, 13)
            self.assertIn("rank 1, process 4001", terminal.wait("Communicators"))
            terminal.keys("Escape")
            terminal.wait("late by")
            mouse(65, 10, 8)                # the wheel, to the last
            terminal.keys("Enter")
            terminal.wait("rank 2, process 4002")
            mouse(0, 10, 24)                # "2 Findings"
            terminal.wait("DC201\\?")
            terminal.keys("m")
            terminal.wait("mouse off")
            mouse(0, 10, 24)
            terminal.keys("m")
            terminal.wait("mouse on")
            self.assertIn("DC201?", terminal.text())

    def test_resize_with_help_and_typing(self):
        with self.terminal("missing") as terminal:
            terminal.wait("1 Now")
            terminal.keys("?")
            terminal.wait("this help")
            terminal.resize(40, 12)
            terminal.wait("arrows: more")           # it stays, without room for all of it
            terminal.keys("G")                      # no key of it: it closes
            terminal.wait(r"(?s)\A(?!.*arrows: more).*1 ?No")
            terminal.keys("/")
            terminal.keys("-l", "comm")
            terminal.wait("search: comm_")
            terminal.resize(100, 30)
            terminal.wait("search: comm_")
            terminal.keys("Enter")
            terminal.settled("comm 5ae7")

    def test_a_narrow_help_is_complete(self):
        """Where it has no room its arrows show the rest, and every key of it is there."""
        with self.terminal("missing", (40, 10)) as terminal:
            terminal.wait("1 ?No")
            terminal.keys("?")
            shown = text = terminal.wait("arrows: more")
            while "F10   " not in text:         # the last key
                terminal.keys("Down")
                text = terminal.wait(r"\A(?!%s\Z)" % re.escape(text))
                shown += text
            for key in "Tab", "/ F3 n N", "f F4", "s F6 S", "space", "? F1":
                self.assertIn(key, shown)
            terminal.keys("Escape")
            terminal.wait(r"(?s)\A(?!.*arrows: more).*1 ?No")

    def test_a_small_screen_is_a_page(self):
        """40x10: the answers fill it; the table is below them, Enter opens the finding, and what is cut can be scrolled to."""
        with self.terminal("missing", (40, 10)) as terminal:
            text = terminal.settled(r"\A.* j: more  Now(?s:.*)Fix: ")
            self.assertNotIn("where th", text)
            terminal.keys("j")
            self.assertNotEqual(text.split("\n")[1], terminal.settled("Now").split("\n")[1], "a line further")
            terminal.keys("G")
            terminal.wait(r"(?s)\A(?!.*j: more).*where th")
            terminal.keys("g")
            terminal.wait(r"\A.* j: more  Now(?s:.*)Fix: ")
            terminal.keys("Enter")
            first = terminal.settled("(?s)Finding .*a rank is missing").split("\n")
            terminal.keys("j")
            self.assertEqual(first[2:8], terminal.settled("Finding").split("\n")[1:7], "it scrolls by a line")
            terminal.keys("g", "NPage")
            self.assertEqual(first[8:9], terminal.settled("Finding").split("\n")[1:2], "and by a page")
            terminal.keys("4")
            self.assertRegex(terminal.settled("rank +host:pid +state +where"), r"(?m)^ +! 3 .*trainer")

    def test_the_diagnosis_is_explained_in_every_view(self):
        with self.terminal("missing") as terminal:
            for key in "1345":
                terminal.keys(key, "e")
                self.assertRegex(terminal.settled("Explain"), r"(?s)DC201: .*Some ranks issued an operation")

    def test_a_key_closes_the_help_and_is_not_lost(self):
        with self.terminal("missing") as terminal:
            terminal.wait("1 Now")
            terminal.keys("?")
            terminal.wait("this help")
            terminal.keys("4")
            self.assertNotIn("this help", terminal.wait("late by"))
            terminal.keys("?")
            terminal.wait("this help")
            terminal.keys("q")                      # closes the help alone
            terminal.wait(r"(?s)\A(?!.*this help).*late by")

    def test_a_thousand_ranks_are_groups(self):
        """View 4: ranks in one state are one row, the outlier first; Enter opens a group, and from there a rank."""
        dumps, database = os.path.join(self.folder, "dumps"), os.path.join(self.folder, "many.db")
        subprocess.run([sys.executable, os.path.join(os.path.dirname(GOLDEN), "../../bench/flight_recorder.py"), dumps, "1024", "12"],
                       check=True, stdout=subprocess.DEVNULL, timeout=300)
        subprocess.run([TOOL, "import", "-q", "-o", database, dumps], check=True, timeout=300)
        with self.terminal("many.db") as terminal:
            terminal.wait("1 Now")
            terminal.keys("4")
            text = terminal.wait("1023 processes")
            rows = re.findall(r"(?m)^ {0,15}(?:! )?\d.*", text.split("rank  host:pid")[1])
            self.assertRegex(rows[0], r"^ +! 517 ")
            self.assertRegex(rows[1], r"^0-516,518-1023  1023 processes")
            terminal.keys("j", "Enter")
            terminal.wait(r"1 of 1023  Ranks")
            terminal.keys("G", "Enter")
            terminal.wait("rank 1023")
            terminal.keys("Escape")
            terminal.wait(r"1023 of 1023  Ranks")
            terminal.keys("Escape")
            terminal.wait("1023 processes")
        def once(view):
            return subprocess.run([TOOL, "tui", "--once", "--view", view, database], capture_output=True, text=True, timeout=300,
                                  env={**os.environ, "COLUMNS": "120"}).stdout
        self.assertRegex(once("timeline"), r"(?m)^ranks\n! 517 +!!!!.*\n0-516,518-1023  [░▒▓]{4}.*\n\Z",
                         "of a thousand equal bars there is one, below that of the missing rank")
        now = once("now")
        self.assertRegex(now, r"! 517 .*, last seen in ncclAllGather\(count=4096, flo", "a call is not cut at its first comma")
        self.assertNotRegex(once("ranks"), r"\bgpu\b", "no trace of these has a device")

    def test_a_slow_view_says_how_long_it_takes(self):
        path = os.path.join(self.folder, "slow")
        self.make("missing", path)
        connection = sqlite3.connect(glob.glob(os.path.join(path, "*.db"))[0])
        connection.executescript("INSERT INTO wait_state SELECT * FROM (WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c "
                                 "WHERE n < 1000000) SELECT n + 1000, 0, 'a wait', 0, 0, 0, 0, 0, 0, 0, 0 FROM c)")
        connection.close()
        with self.terminal("slow") as terminal:
            terminal.wait("comm 5ae7")
            terminal.keys("5")
            terminal.wait(r"reading a trace of \d+\.\d MB, for \d+\.\d s")
            terminal.keys("1")                      # it can be left
            terminal.wait("comm 5ae7")

    def test_writes_the_view(self):
        with self.terminal("missing") as terminal:
            terminal.tmux("set-option", "-s", "set-clipboard", "on")
            terminal.wait("1 Now")
            terminal.keys("2")
            terminal.wait("DC201\\?")
            terminal.keys("y")
            name = re.search(r"written to (\S+)", terminal.wait("copied, and written to")).group(1)
            copied = terminal.tmux("show-buffer")
        with open(os.path.join(self.folder, name)) as file:
            text = file.read()
        self.assertIn("DC201", text)
        self.assertEqual(copied.rstrip("\n"), text.rstrip("\n"))

    def test_once_is_the_screen_as_text(self):
        for view in "now", "findings", "sequence", "ranks", "waits", "timeline", "memory", "speed":
            done = subprocess.run([TOOL, "tui", "--once", "--view", view, "missing"], cwd=self.folder, capture_output=True,
                                  text=True, timeout=300, env={**os.environ, "TZ": "UTC", "LC_ALL": "C.UTF-8", "COLUMNS": "80"})
            self.assertEqual((done.returncode, done.stderr), (0, ""))
            self.assertNotIn("\033", done.stdout)
            self.compare("once-" + view, done.stdout)

    def test_a_locked_database_is_waited_for(self):
        path = os.path.join(self.folder, "locked")
        self.make("missing", path)
        database = glob.glob(os.path.join(path, "*.db"))[0]
        other = sqlite3.connect(database, isolation_level=None)
        other.execute("PRAGMA journal_mode = DELETE")
        with self.terminal("locked") as terminal:
            terminal.settled("comm 5ae7")
            other.execute("BEGIN EXCLUSIVE")
            terminal.keys("2")
            terminal.wait("is locked by another program; trying again")
            other.execute("COMMIT")
            terminal.keys("4")
            terminal.wait("late by")
        other.close()

    def test_help_fits_the_terminal(self):
        """Options are wrapped at blanks, not by the terminal; in a file the width is that of a page."""
        with Terminal(self.folder, "%s run --help; sleep 100" % TOOL, 72, 100) as terminal:
            text = terminal.wait("show this help")
        options = text.split("Options:")[1].split("Exit status")[0]
        page = subprocess.run([TOOL, "run", "--help"], capture_output=True, text=True, timeout=300).stdout
        self.assertGreater(max(map(len, page.split("Options:")[1].split("Exit status")[0].split("\n"))), 90)
        words = " ".join(page.split("Options:")[1].split("Exit status")[0].split())
        self.assertEqual(" ".join(options.split()), words)
        self.assertIn(" ".join(page.split("Exit status")[1].split()), " ".join(text.split("Exit status")[1].split()))

    def test_bad_input(self):
        with open(os.path.join(self.folder, "letter.db"), "w") as file:
            file.write("this is no database, it is a letter to a friend\n" * 50)
        foreign = os.path.join(self.folder, "foreign.db")
        sqlite3.connect(foreign).executescript("CREATE TABLE recipes(name)")
        old = os.path.join(self.folder, "old")
        subprocess.run([os.path.join(build, "tests", "make_trace"), old, "missing"], check=True)
        connection = sqlite3.connect(glob.glob(os.path.join(old, "*.db"))[0])
        connection.executescript("PRAGMA user_version = 1009")
        connection.close()
        for what, message in (("none", "there is no trace none"), ("letter.db", "no SQLite database"), ("foreign.db", "another program"),
                              ("old", "recorded by a pre-release; record again"), ("--view nothing clean", "--view is one of now|findings")):
            with self.subTest(what):
                done = subprocess.run([TOOL, "tui", "--once", *what.split()], cwd=self.folder, capture_output=True, text=True, timeout=300)
                self.assertEqual((done.returncode, done.stdout), (2, ""))
                self.assertIn(message, done.stderr)
        done = subprocess.run([TOOL, "tui", "clean"], cwd=self.folder, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=300)
        self.assertEqual(done.returncode, 2)
        self.assertIn("needs a terminal", done.stderr)

    def test_a_cut_database_is_no_reason_to_leave(self):
        path = os.path.join(self.folder, "short")
        self.make("missing", path)
        database = glob.glob(os.path.join(path, "*.db"))[0]
        with self.terminal("short") as terminal:
            terminal.settled("comm 5ae7")
            os.truncate(database, os.path.getsize(database) // 2)
            for view in "2345678":
                terminal.keys(view)
                self.assertNotIn("reading a trace", terminal.settled("q quit"))
            terminal.keys("q")
            terminal.wait("status=0")


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *[word for word in sys.argv[2:] if word != "--update"]])
