"""`ddpcheck tui` and `ddpcheck run --tui` on a job that really hangs: the trainer on the emulator."""

import glob
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
HANGS = [TRAINER, "--ranks", "4", "--iterations", "12", "--no-gang", "--fault", "partial-barrier"]


class Live(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory(prefix="ddpcheck-live-")

    def tearDown(self):
        self.folder.cleanup()

    def path(self, name):
        return os.path.join(self.folder.name, name)

    def end(self, job):
        """`run` ends its job, which has a process group of its own."""
        job.send_signal(signal.SIGTERM)
        job.wait(300)

    def terminal(self, command, *size):
        return Terminal(self.folder.name, "cd %s && %s" % (self.folder.name, command), *size)

    def looks_at_hang(self, terminal):
        """Every view of the hanging job."""
        text = terminal.wait(r"(?s)DC201.*missing")
        self.assertRegex(text, r"live")
        self.assertRegex(text, r"! 3 .*-1 .*train.c:[0-9]+ .*in cudaStreamSynchronize")
        self.assertRegex(text, r". 0-2 +#0 .*train.c:[0-9]+ .*in cudaStreamSynchronize")
        first = re.search(r"DC201, for ([0-9.]+) s", text)
        terminal.keys("2", "Enter")
        terminal.wait("never called it")
        terminal.keys("4")
        self.assertEqual(re.findall(r" (missing|alive) ", terminal.wait(r"(?s)alive.*alive.*alive")), ["missing", *["alive"] * 3])
        terminal.keys("Enter")
        terminal.wait("(?s)Communicators.*Where it is")
        terminal.keys("6")
        terminal.wait(r"(?m)^ *! 3 .*!!!!!!")                      # the rank that never called it
        for key in "?", "F1":
            terminal.keys(key)
            self.stays(terminal, "┌ help|Enter Esc")
            terminal.keys("Escape")
            terminal.wait("(?s)^((?!Enter Esc).)*$")
        for key, shown in ("3", r"===· +AllReduce\(1, int32"), ("6", "running"), ("7", "in flight"), ("5", "wait"):
            terminal.keys(key)
            terminal.wait(shown)
        terminal.keys("1")
        self.goes_on(terminal, first.group(1))
        for button in 0, 3, 2, 3:               # left and right, pressed and released: the last is a report that means nothing
            terminal.keys("-l", "\033[M%c%c%c" % (32 + button, 32 + 10, 32 + 9))
            time.sleep(0.1)
        self.goes_on(terminal, re.search(r"DC201, for ([0-9.]+) s", terminal.settled("DC201, for")).group(1))

    def stays(self, terminal, pattern):
        """What is shown over a view stays while the view is drawn anew, several times a second."""
        terminal.wait(pattern)
        end = time.monotonic() + 2
        while time.monotonic() < end:
            self.assertRegex(terminal.text(), pattern)
            time.sleep(0.1)

    def goes_on(self, terminal, seconds):
        """The time since the hang began becomes longer than it was, with no key pressed."""
        give_up = time.monotonic() + 300
        while float(re.search(r"DC201, for ([0-9.]+) s", terminal.wait("DC201, for")).group(1)) <= float(seconds) + 0.5:
            self.assertLess(time.monotonic(), give_up, "time stands still:\n" + terminal.text())
            time.sleep(0.1)

    def test_beside_a_job(self):
        job = subprocess.Popen([TOOL, "run", "-q", "--emulate", "4", "-o", self.path("trace"), "--", *HANGS],
                               stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)
        try:
            with self.terminal("%s tui --wait 60 trace" % TOOL, 120, 40) as terminal:
                self.looks_at_hang(terminal)
                terminal.keys("F10")
                terminal.wait("status=0")
                self.assertIsNone(job.poll(), "the job ended with the TUI")
            with self.terminal("%s tui trace" % TOOL, 120, 40) as terminal:
                terminal.wait("live")
                job.send_signal(signal.SIGTERM)
                job.wait(300)
                terminal.wait(r" finished ")
                terminal.keys("4")
                self.assertIn("SIGTERM", terminal.wait("SIGTERM"))
        finally:
            self.end(job)

    def test_all_views_at_all_sizes(self):
        """Beside a job that hangs: no view is wider than the screen or lacks a key of the last line, whatever its size."""
        job = subprocess.Popen([TOOL, "run", "-q", "--emulate", "4", "-o", self.path("trace"), "--", *HANGS],
                               stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)
        try:
            for columns, lines in (80, 24), (120, 40), (200, 60), (40, 10):
                with self.terminal("%s tui --wait 60 trace" % TOOL, columns, lines) as terminal:
                    terminal.wait("(?s)error DC201.*1 ?No")
                    for key, title in enumerate(("Now", "Findings", "Sequence", "Ranks", "Waits", "Timeline", "Memory", "Speed"), 1):
                        terminal.keys(str(key))
                        text = terminal.wait(title + "  live")
                        screen = text.rstrip("\n").split("\n")
                        self.assertEqual(len(screen), lines)
                        self.assertLessEqual(max(map(len, screen)), columns)
                        self.assertEqual(re.findall(r"[1-8]", screen[-1]), list("12345678"), screen[-1])
                        self.assertRegex(screen[-1], r"\? .*q")
        finally:
            self.end(job)

    def test_run_with_tui(self):
        with self.terminal("%s run --tui --emulate 4 -o trace -- %s" % (TOOL, " ".join(HANGS)), 120, 40) as terminal:
            self.looks_at_hang(terminal)
            terminal.keys("F10")
            terminal.wait("the job is still running, its output is in")
            terminal.keys("C-c")
            terminal.wait("the job has finished")
        with open(self.path("trace/output.log")) as log:
            self.assertIn("DC201", log.read())

    def test_what_ends_the_tui_ends_the_job(self):
        """A terminal that vanishes and signals: the job gets them, as it does without the TUI, and its finding is stored."""
        for name, end in (("gone", None), ("term", signal.SIGTERM), ("hangup", signal.SIGHUP)):
            with self.subTest(name), self.hanging_beside_tui(name) as terminal:
                if end:
                    os.kill(self.here("run")[0], end)
                else:
                    terminal.close()
                self.all_end()
                with open(self.path(name + "/output.log")) as log:
                    self.assertIn("DC201", log.read())

    def test_a_job_that_ignores_hangups_outlives_its_terminal(self):
        with self.hanging_beside_tui("kept", "trap \"\" HUP; ") as terminal:
            tasks = "/proc/%d/task" % self.here("run")[0]
            before_end = len(os.listdir(tasks))
            terminal.close()
            self.until(lambda: len(os.listdir(tasks)) < before_end)     # the TUI's reader has gone
            ranks = self.here(os.path.basename(TRAINER))
            self.assertGreaterEqual(len(ranks), 2)
            for pid in reversed(ranks):         # the others end with the last of them, or before
                try:
                    os.kill(pid, signal.SIGKILL)
                except ProcessLookupError:
                    continue
            self.all_end()

    def hanging_beside_tui(self, name, before=""):
        terminal = self.terminal("%s%s run --tui --emulate 2 -o %s -- %s --ranks 2 --iterations 12 --no-gang --fault partial-barrier" %
                                 (before, TOOL, name, TRAINER), 80, 24)
        terminal.wait("error DC20")
        return terminal

    def here(self, command=""):
        """This test's processes of ddpcheck and of the trainer, the first ones first; `command`: ddptrain, or one of ddpcheck's."""
        found = []
        for path in glob.glob("/proc/[0-9]*"):
            try:
                with open(path + "/cmdline", errors="replace") as file:     # of any process: it need not be text
                    words = file.read().split("\0")
                name = os.path.basename(words[0])
                if name in ("ddpcheck", "ddptrain") and command in (name, words[1], "") and \
                        os.readlink(path + "/cwd") == os.path.realpath(self.folder.name):
                    found.append(int(os.path.basename(path)))
            except OSError:
                continue
        return sorted(found)

    def until(self, is_so):
        for _ in range(600):
            if is_so():
                return
            time.sleep(0.1)
        self.fail("not after a minute: %s" % self.here())

    def all_end(self):
        self.until(lambda: not self.here())

    def zombies_of(self, name):
        """Processes that ended and that their parent, whose command has the name, did not wait for."""
        found = []
        for status in glob.glob("/proc/[0-9]*/stat"):
            try:
                with open(status, errors="replace") as file:
                    state, parent = file.read().rpartition(")")[2].split()[:2]
                with open("/proc/%s/cmdline" % parent, errors="replace") as file:
                    if state == "Z" and name in file.read():
                        found.append(status)
            except OSError:
                continue
        return found

    def test_a_job_that_ends_beside_the_tui_is_no_zombie(self):
        name = "short-%d" % os.getpid()
        with self.terminal("%s run --tui --emulate 2 -o %s -- %s --ranks 2 --iterations 4 --no-gang" % (TOOL, name, TRAINER), 120, 40) as terminal:
            terminal.wait(" finished ")
            time.sleep(1)
            self.assertEqual(self.zombies_of(name), [])
            terminal.keys("F10")
            terminal.wait("(?s)the job has finished.*status=0")

    def test_run_with_tui_that_has_nothing_to_show(self):
        for program, status in ("true", 0), ("no-such-program-here", 127):
            with self.terminal("%s run --tui -o none -- %s; echo code=$?" % (TOOL, program), 120, 20) as terminal:
                terminal.wait("the job has finished.*\n?")
                terminal.wait("code=%d" % status)

    def test_run_with_tui_of_a_program_that_fails(self):
        with self.terminal("%s run --tui -o none -- false; echo code=$?" % TOOL, 120, 20) as terminal:
            terminal.wait("(?s)possible warning DC205.*false exited with status 1")
            terminal.keys("F10")
            terminal.wait("code=1")


if __name__ == "__main__":
    if not os.path.exists(TRAINER):
        print("ddptrain was not built")
        sys.exit(0)
    unittest.main(argv=[sys.argv[0], *sys.argv[2:]])
