"""More processes than the collector may have descriptors: all are recorded, and none is taken for ended or damaged."""

import resource
import subprocess
import sys

from tool import NOTICE_END, Trace

PROCESSES, LIMIT = 28, 32


def main():
    with Trace(sys.argv[1], "descriptors") as trace:
        producers = [trace.start_producer(seed, 1, 400, "pause=20000") for seed in range(1, PROCESSES + 1)]
        collector = subprocess.Popen([trace.tool, "collect", trace.path], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
                                     preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (LIMIT, LIMIT)))
        trace.collectors.append(collector)
        for process in producers:
            process.wait(timeout=300)
        assert collector.wait(timeout=300) == 0, collector.stderr.read()
        said = collector.stderr.read()
        assert "set aside" not in said, said
        assert trace.check_complete() == PROCESSES * 400
        assert len(trace.query("SELECT 1 FROM event WHERE api = ?", NOTICE_END)) == PROCESSES
        assert trace.query("SELECT 1 FROM meta WHERE key = 'unrecorded'") == []
        print("ok %d processes, %d descriptors" % (PROCESSES, LIMIT))


if __name__ == "__main__":
    main()
