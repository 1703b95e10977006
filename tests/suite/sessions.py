"""Ends what a program has started."""

import os
import signal


def end_session(process):
    """Kills what is left of the session that `process` led: nothing else has its session id."""
    for entry in os.listdir("/proc"):
        if not entry.isdigit():
            continue
        try:
            with open("/proc/%s/stat" % entry, encoding="utf-8", errors="replace") as file:
                session = int(file.read().rpartition(")")[2].split()[3])
            if session == process.pid:
                os.kill(int(entry), signal.SIGKILL)
        except (OSError, ValueError, IndexError):
            continue
