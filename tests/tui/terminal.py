"""A terminal of a known size: a tmux server of its own, in which a program runs. Standard library and tmux only."""

import os
import re
import subprocess
import time


class Terminal:
    def __init__(self, folder, command, columns=80, lines=24, **environment):
        self.socket = os.path.join(folder, "tmux-%d" % time.monotonic_ns())
        plain = {key: value for key, value in os.environ.items() if key not in ("NO_COLOR", "TMUX", "COLUMNS", "LINES")}
        self.environment = {**plain, "TERM": "xterm-256color", "LANG": "C.UTF-8", "LC_ALL": "C.UTF-8", "TZ": "UTC"}
        # `remain`: so that what the program leaves on the screen can still be read.
        inside = " ".join("%s='%s'" % item for item in environment.items())
        self.tmux("-f", "/dev/null", "new-session", "-d", "-s", "t", "-x", str(columns), "-y", str(lines),
                  "exec env %s sh -c 'trap : INT; %s; status=$?; echo; echo status=$status; exec sleep 600'" % (inside, command))

    def tmux(self, *arguments):
        done = subprocess.run(["tmux", "-S", self.socket, *arguments], capture_output=True, text=True, timeout=120,
                              env=self.environment)
        if done.returncode:
            raise AssertionError("tmux %s: %s" % (arguments, done.stderr))
        return done.stdout

    def close(self):
        subprocess.run(["tmux", "-S", self.socket, "kill-server"], capture_output=True, timeout=120)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def keys(self, *keys):
        self.tmux("send-keys", "-t", "t", *keys)

    def text(self, *options):
        """The screen, lines without the blanks at their ends."""
        lines = self.tmux("capture-pane", "-p", "-t", "t", *options).split("\n")
        return "\n".join(line.rstrip() for line in lines).rstrip("\n") + "\n"

    def wait(self, pattern, seconds=200):
        """The screen as soon as it holds the pattern."""
        give_up = time.monotonic() + seconds
        while True:
            text = self.text()
            if re.search(pattern, text):
                return text
            if time.monotonic() > give_up:
                raise AssertionError("no %r on the screen:\n%s" % (pattern, text))
            time.sleep(0.05)

    def settled(self, pattern):
        """The screen with the pattern, once three looks in a row agree: a busy machine draws in pieces."""
        looks = [self.wait(pattern)]
        while looks[-3:] != 3 * looks[-1:]:
            time.sleep(0.15)
            looks.append(self.text())
        return looks[-1]

    def resize(self, columns, lines):
        self.tmux("resize-window", "-t", "t", "-x", str(columns), "-y", str(lines))
