"""Ring files that are cut or overwritten with noise: no crash, a line that names the file, the file set aside, and the
other processes' records untouched."""

import os
import random
import sys

from tool import Trace, stop, wait_until

ROUNDS, FILES = 12, 25


def mutate(source, data):
    """One way of being damaged."""
    kind = source.randrange(6)
    data = bytearray(data)
    if kind == 0:
        return bytes(data[:source.randrange(len(data))])
    if kind == 1:       # noise in the fields of the header
        for _ in range(source.randint(1, 20)):
            data[source.randrange(128)] = source.randrange(256)
    elif kind == 2:     # noise in the head and tail words of a segment
        at = 20480 + source.randrange(256)
        data[at:at + 8] = source.randbytes(8)
    elif kind == 3:     # a stretch of noise anywhere
        at = source.randrange(len(data) - 4096)
        data[at:at + 4096] = source.randbytes(4096)
    elif kind == 4:     # one bit
        data[source.randrange(len(data))] ^= 1 << source.randrange(8)
    else:
        data[:] = source.randbytes(source.randrange(1, 65536))
    return bytes(data)


def one_round(build, number):
    source = random.Random(number)
    with Trace(build, "noise") as trace:
        process = trace.start_producer(5, 2, 90, "lossy")
        process.wait(timeout=120)
        name = os.listdir(trace.rings())[0]
        with open(os.path.join(trace.rings(), name), "rb") as file:
            good = file.read()
        for i in range(FILES):
            # Another start of recording, so that an undamaged copy counts as another process.
            with open(os.path.join(trace.rings(), "%d-%d.ring" % (900000 + i, i)), "wb") as file:
                file.write(mutate(source, good))
        done = trace.collect(timeout=300)
        assert done.returncode == 0, (done.returncode, done.stderr)
        aside = [entry for entry in os.listdir(trace.rings()) if entry.endswith(".bad")]
        for entry in aside:
            assert entry[:-4] in done.stderr, "no word about %s in:\n%s" % (entry, done.stderr)
        rows = trace.query("SELECT count(*) FROM event WHERE api = 116 AND process = (SELECT min(id) FROM process WHERE pid = ?)", process.pid)
        assert rows[0][0] > 0, rows
        assert [e for e in os.listdir(trace.rings()) if e.endswith(".ring")] == [], done.stderr
        return len(aside)


def cut_while_mapped(build):
    """The page under a running collector goes away."""
    with Trace(build, "cut") as trace:
        victim = trace.start_producer(6, 2, 100000, "lossy", "pause=1000")
        other = trace.start_producer(7, 1, 300, "pause=20000")
        collector = trace.start_collector()
        wait_until(lambda: trace.databases() and trace.query("SELECT 1 FROM event LIMIT 1"), 20, "the first record")
        name = trace.ring_of(victim)
        os.truncate(os.path.join(trace.rings(), name), 8192)
        other.wait(timeout=90)
        stop(victim)
        assert collector.wait(timeout=90) == 0
        said = collector.stderr.read()
        assert name in said and "cut off" in said, said
        rows = trace.query("SELECT count(*) FROM event e JOIN process p ON p.id = e.process WHERE api = 116 AND pid = ?", other.pid)
        assert rows == [(300,)], rows


def main():
    # TSan's runtime may hold a lock of its own when the page goes away, which nobody gives back after the jump.
    if os.environ.get("DDPCHECK_SANITIZE") != "thread":
        cut_while_mapped(sys.argv[1])
    aside = sum(one_round(sys.argv[1], number) for number in range(ROUNDS))
    assert aside > ROUNDS * FILES // 4, aside
    print("%d damaged files, %d set aside, no crash" % (ROUNDS * FILES, aside))


if __name__ == "__main__":
    main()
