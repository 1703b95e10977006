"""Links that somebody planted in the trace directory or in /dev/shm: what they lead to is never written, cut or moved, and
the collector says which file it refuses, or goes on beside it."""

import os
import shutil
import socket
import sys

from tool import Trace

PRECIOUS = b"precious\n"


class Planted:
    """A trace directory with a victim beside it."""

    def __init__(self, build, name):
        self.trace = Trace(build, "links-" + name)
        self.victim = os.path.join(self.trace.folder, "victim")
        with open(self.victim, "wb") as file:
            file.write(PRECIOUS)

    def __enter__(self):
        self.trace.__enter__()
        return self

    def __exit__(self, *what):
        self.trace.__exit__(*what)

    def plant(self, name, link, target=None):
        path = os.path.join(self.trace.path, name)
        if os.path.lexists(path):
            os.unlink(path)
        link(target or self.victim, path)

    def record(self):
        self.trace.start_producer(1, 1, 100).wait(timeout=300)
        return self.trace.collect()

    def check_victim(self):
        with open(self.victim, "rb") as file:
            assert file.read() == PRECIOUS, "the victim was written"


def check_refused(build, name, link, content=PRECIOUS):
    with Planted(build, "file") as planted:
        with open(planted.victim, "wb") as file:
            file.write(content)
        planted.plant(name, link)
        done = planted.record()
        with open(planted.victim, "rb") as file:
            assert file.read() == content, (name, "the victim was written")
        assert done.returncode == 2 and name in done.stderr, (name, done.returncode, done.stderr)
        os.unlink(os.path.join(planted.trace.path, name))       # nothing was lost: it is still in the rings
        done = planted.trace.collect()
        assert done.returncode == 0, done.stderr
        assert planted.trace.check_complete() == 100


def check_log(build, link):
    with Planted(build, "log") as planted:
        planted.plant("collector.log", link)
        done = planted.trace.collect("--daemon")
        planted.check_victim()
        assert done.returncode == 2 and "collector.log" in done.stderr, (done.returncode, done.stderr)


def check_old(build):
    """The database of the job before would be moved into somebody's directory."""
    with Planted(build, "old") as planted:
        trap = os.path.join(planted.trace.folder, "trap")
        os.mkdir(trap)
        assert planted.record().returncode == 0
        os.symlink(trap, os.path.join(planted.trace.path, "old"))
        planted.trace.start_producer(2, 1, 100).wait(timeout=300)
        done = planted.trace.collect()
        assert done.returncode == 2 and "/old is a link" in done.stderr, (done.returncode, done.stderr)
        assert os.listdir(trap) == []


def check_rings(build):
    """Somebody made a link of the name that the rings of this directory have in /dev/shm."""
    with Planted(build, "rings") as planted:
        rings, trap = planted.trace.rings(), os.path.join(planted.trace.folder, "trap")
        os.mkdir(trap, 0o700)
        shutil.rmtree(rings, ignore_errors=True)
        os.symlink(trap, rings)
        try:
            done = planted.trace.collect()
            assert done.returncode == 0, done.stderr
            assert planted.trace.rings() != rings and not os.path.islink(planted.trace.rings())
            assert os.listdir(trap) == []
        finally:
            os.unlink(rings)


def main():
    build = sys.argv[1]
    database = socket.gethostname().replace("/", "-") + ".db"
    for link in (os.symlink, os.link):
        check_refused(build, "collector.lock", link)
        check_refused(build, database, link)
        check_refused(build, database, link, b"")       # SQLite takes an empty file for a new database
        for suffix in ("-wal", "-journal"):
            check_refused(build, database + suffix, link)
        check_log(build, link)
    check_old(build)
    check_rings(build)
    print("ok links")


if __name__ == "__main__":
    main()
