"""When operations started and were done is in the trace, to a millisecond, with no option: of AllReduces that take 20 ms
each on an emulated link, and a last one of 64 times as much. Bounds are those that hold on a busy machine as well, where a reading
may be late."""

import json
import os
import sys

from line import Line

OPERATIONS = 31
MEBIBYTES = 30 + 64         # of all
SECONDS = 0.02
MEBIBYTE = 1 << 20


def stored_times(line):
    """Of each process the operations' (issued, started, done) in ns, in order; the same as (seq, ...)."""
    progress, = line.query("SELECT number FROM api WHERE name = 'notice_progress'")[0]
    times = {}
    for process, seq, issued, slot, launch in line.query(
            "SELECT c.process, c.seq, e.time_ns, c.slot, c.launch FROM v_collective c JOIN event e ON e.seq = c.seq "
            "WHERE c.name = 'ncclAllReduce' ORDER BY c.seq"):
        reached = []
        for word in ("w1", "w2"):
            reached.append(line.query(
                "SELECT time_ns, seq FROM event WHERE api = ? AND process = ? AND w0 & 4294967295 = ? AND %s >= ? "
                "ORDER BY seq LIMIT 1" % word, progress, process, slot, launch)[0])
        times.setdefault(process, []).append(((issued, seq), *reached))
    return times


def check_process(operations):
    assert len(operations) == OPERATIONS, len(operations)
    for issued, started, done in operations:
        assert issued[0] <= started[0] <= done[0], (issued, started, done)
        assert issued[1] < started[1] <= done[1], "progress is stored before its operation"
        assert done[0] - issued[0] >= SECONDS * 1e9, "an operation took %.3f s from its issue" % ((done[0] - issued[0]) / 1e9)
    # Either reading may be late, but not by as long as the last one takes.
    longest = max(done[0] - started[0] for _, started, done in operations) / 1e9
    print("from started to done: %s ms" % " ".join("%.1f" % ((done[0] - started[0]) / 1e6) for _, started, done in operations))
    assert longest >= SECONDS, "the longest of %d operations took %.3f s" % (OPERATIONS, longest)


def main():
    with Line(sys.argv[1], devices=2, name="times") as line:
        totals = os.path.join(line.folder, "totals")
        rate = "0-1=%d" % (MEBIBYTE / SECONDS)
        status, out, err = line.run([os.path.join(line.build, "tests", "timed")],
                                    environment={"DDPCHECK_EMU_LINK_RATE": rate, "DDPCHECK_EMU_MODELLED": totals})
        assert status == 0, out + err
        with open(totals, encoding="utf-8") as file:
            modelled = [json.loads(text) for text in file]
        assert sorted(each["rank"] for each in modelled) == ["0", "1"], modelled
        for each in modelled:
            assert each["transfers"] == OPERATIONS and abs(each["transfer_s"] - MEBIBYTES * SECONDS) < 1e-3, each
        times = stored_times(line)
        assert len(times) == 2, times.keys()
        for operations in times.values():
            check_process(operations)
        slots = line.query("SELECT process, w0 & 4294967295, time_ns / 1000000 FROM event WHERE api = "
                           "(SELECT number FROM api WHERE name = 'notice_progress')")
        most = max(slots.count(each) for each in set(slots))
        assert most <= 2, "%d records of one slot in one millisecond" % most      # its first and its last moment


if __name__ == "__main__":
    main()
