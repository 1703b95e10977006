"""What is recorded is its user's own: nobody else reads it or holds the collector's lock, whatever the umask."""

import os
import stat
import sys

from tool import Trace


def modes(trace):
    """Path below the trace directory -> mode."""
    found = {".": stat.S_IMODE(os.stat(trace.path).st_mode)}
    for folder, folders, files in os.walk(trace.path):
        for name in folders + files:
            path = os.path.join(folder, name)
            found[os.path.relpath(path, trace.path)] = stat.S_IMODE(os.stat(path).st_mode)
    return found


def record(build, group):
    os.environ["DDPCHECK_GROUP"] = group
    with Trace(build, "private") as trace:
        for seed in (1, 2):     # the second job moves the first's database to old/
            trace.start_producer(seed, 1, 100).wait(timeout=300)
            done = trace.collect()
            assert done.returncode == 0, done.stderr
        assert len(trace.databases()) == 2 and os.path.isdir(os.path.join(trace.path, "old"))
        return modes(trace)


def main():
    build = sys.argv[1]
    for mask in (0o000, 0o022, 0o077, 0o277):
        before = os.umask(mask)
        private = record(build, "0") if mask != 0o277 or os.geteuid() == 0 else {}
        shared = record(build, "1")
        os.umask(before)
        wrong = {path: oct(mode) for path, mode in private.items() if mode & 0o077}
        assert not wrong, (oct(mask), wrong)
        wrong = {path: oct(mode) for path, mode in shared.items() if mode & 0o027}
        assert not wrong, (oct(mask), wrong)
        databases = [mode for path, mode in shared.items() if path.endswith(".db")]
        assert all(mode & 0o040 for mode in databases) and shared["."] == 0o750, shared
    print("ok modes")


if __name__ == "__main__":
    main()
