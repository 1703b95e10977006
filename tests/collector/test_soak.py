"""An hour's worth of a job's records, as fast as the collector takes them: with --keep the database stays within its limit, what
was recorded is there, or dropped and counted, and a report takes seconds.

    test_soak.py BUILD [--records N] [--keep SIZE]

`make test` replays a slow hour, `make soak` one of 10,000 records a second."""

import argparse
import json
import os
import subprocess
import sys
import time

from tool import Trace

UNITS = {"M": 1 << 20, "G": 1 << 30}
REPORT_SECONDS = 60         # of which a busy machine takes its part; for a size of 16M it is less than one


def size_of(text):
    return int(text[:-1]) * UNITS[text[-1]]


def bytes_used(path):
    return sum(os.path.getsize(path + suffix) for suffix in ("", "-wal") if os.path.exists(path + suffix))


def replay(trace, records, keep):
    """Runs the job and its collector. Returns what the job counted, the most that the database took, and how long it was."""
    begin, most = time.monotonic(), 0
    os.makedirs(trace.rings(), mode=0o700, exist_ok=True)
    soak = subprocess.Popen([os.path.join(os.path.abspath(trace.build), "bench", "bench_soak"), trace.rings(), str(records)],
                            stdout=subprocess.PIPE, text=True)
    while len(os.listdir(trace.rings())) < 8:
        assert soak.poll() is None
        time.sleep(0.01)
    collector = trace.start_collector("--keep", keep)
    while collector.poll() is None:
        most = max([most, *map(bytes_used, trace.databases())])
        time.sleep(0.02)
    counted, _ = soak.communicate(timeout=300)
    assert soak.returncode == 0 and collector.returncode == 0, collector.stderr.read()
    return list(map(int, counted.split())), most, time.monotonic() - begin


def check_counts(trace, written, collectives):
    (stored,), = trace.query("SELECT count(*) FROM event e JOIN api a ON a.number = e.api WHERE serial > 0")
    (notices,), = trace.query("SELECT count(*) FROM v_event WHERE call = 'notice_reached'")
    dropped = dict(trace.query("SELECT what, sum(records) FROM dropped GROUP BY what"))
    (digests,), = trace.query("SELECT sum(calls) FROM v_digest")
    (rows,), = trace.query("SELECT count(*) FROM v_collective")
    assert rows + digests == collectives, (rows, digests, collectives)
    # Of what the collector drops a few are its own: ticks.
    own = stored + notices + sum(dropped.values()) - written
    assert 0 <= own <= 16 + 8 * 4 * 3600, (stored, notices, dropped, written)
    starts = trace.query("SELECT m.number, min(c.number) FROM member_start m JOIN v_collective c ON c.rank = m.rank GROUP BY m.rank")
    assert len(starts) == 8 and all(number <= first for number, first in starts), starts
    (hashes,), = trace.query("SELECT max(hashes) FROM (SELECT count(DISTINCT hash) AS hashes FROM v_digest GROUP BY first_number)")
    assert hashes == 1, hashes      # all ranks called the same
    return dropped


def check_report(trace):
    begin = time.monotonic()
    done = subprocess.run([trace.tool, "report", "--json", trace.path], capture_output=True, text=True, timeout=REPORT_SECONDS)
    spent = time.monotonic() - begin
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    findings = [line["code"] for line in lines if line["schema"].startswith("ddpcheck.finding/") and line["severity"] != "note"]
    assert findings == [], (findings, done.stdout)
    dropped = next(line for line in lines if line["schema"] == "ddpcheck.dropped/1")
    assert dropped["calls"] > 0 and dropped["until"], dropped
    for command, words in ((["report"], "finished calls were dropped (--keep)"), (["tui", "--once"], "Not complete before "),
                           (["export", "--format", "html"], "not checked again before")):
        done = subprocess.run([trace.tool, *command, trace.path], capture_output=True, text=True, timeout=REPORT_SECONDS)
        assert words in " ".join(done.stdout.split()), (command, done.stdout[:4000], done.stderr)
    return spent


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("build")
    parser.add_argument("--records", type=int, default=1500000)
    parser.add_argument("--keep", default="16M")
    options = parser.parse_args()
    with Trace(options.build, "soak") as trace:
        trace.build = options.build
        (written, collectives), most, seconds = replay(trace, options.records, options.keep)
        dropped = check_counts(trace, written, collectives)
        limit = size_of(options.keep)
        # The log, and what a transaction adds before the next piece goes.
        assert most < limit + max(limit // 4, 64 << 20), (most, limit)
        path, = trace.databases()
        assert bytes_used(path) < 1.25 * limit, (bytes_used(path), limit)
        spent = check_report(trace)
        print("%d records (%d collectives) in %.0f s; --keep %s: at most %.0f MB, %.0f MB at the end; dropped %s; the report took %.1f s"
              % (written, collectives, seconds, options.keep, most / 1e6, bytes_used(path) / 1e6, dropped, spent))


if __name__ == "__main__":
    main()
