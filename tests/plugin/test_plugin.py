"""libddpcheck.so as NCCL's profiler plugin, without LD_PRELOAD, on an emulated NCCL of each version of the interface.

test_plugin.py BUILD"""

import concurrent.futures
import contextlib
import json
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "e2e"))
from stored import wait_stored  # noqa: E402

BUILD = os.path.abspath(sys.argv[1])
SHIM = os.path.join(BUILD, "lib", "libddpcheck.so")
TOOL = os.path.join(BUILD, "bin", "ddpcheck")
STATIC, SHARED = (os.path.join(BUILD, "tests", "plugin", "plugin_job_" + kind) for kind in ("static", "shared"))
PATIENCE = 300
VERSIONS = (1, 2, 3, 4, 5, 7)


class Job:
    """A job under the plugin; its report when `done` says so of it, then it is killed."""

    def __init__(self, what, version=5, program=STATIC, **environment):
        self.folder = tempfile.mkdtemp(prefix="ddpcheck-plugin-")
        self.trace = os.path.join(self.folder, "trace")
        self.log = os.path.join(self.folder, "log")
        clean = {name: value for name, value in os.environ.items()
                 if not name.startswith("DDPCHECK") and name not in ("LD_PRELOAD", "RANK", "WORLD_SIZE", "NCCL_PROFILER_PLUGIN")}
        clean.update(DDPCHECK_EMU_DEVICES="4", DDPCHECK_EMU_NCCL_PROFILER=str(version), NCCL_PROFILER_PLUGIN=SHIM,
                     DDPCHECK_DIR=self.trace, DDPCHECK_HANG_AFTER="2")
        clean.update(environment)
        with open(self.log, "wb") as log:
            self.process = subprocess.Popen([program, what], env=clean, stdout=log, stderr=log, start_new_session=True)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        try:
            os.killpg(self.process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        self.process.wait()
        self.settled()
        shutil.rmtree(self.folder, ignore_errors=True)

    def output(self):
        with open(self.log, encoding="utf-8") as file:
            return file.read()

    def finish(self):
        status = self.process.wait(timeout=PATIENCE)
        assert (status, self.output()) == (0, "ok\n"), "status %d: %s" % (status, self.output())
        self.settled()
        return self

    def settled(self):
        """The collector lets go of the directory when the job's processes are gone and all is stored."""
        wait_stored(self.trace, PATIENCE)

    def findings(self):
        done = subprocess.run([TOOL, "report", "--json", self.trace], capture_output=True, text=True, timeout=PATIENCE)
        lines = [json.loads(line) for line in done.stdout.splitlines()]
        return [line for line in lines if line["schema"].startswith("ddpcheck.finding/")]

    def until(self, code):
        """The finding, once there is one."""
        for _ in range(PATIENCE * 2):
            found = [f for f in self.findings() if f["code"] == code] if os.path.isdir(self.trace) else []
            if found:
                return found[0]
            time.sleep(0.5)
        raise AssertionError("no %s: %s\n%s" % (code, [f["what"] for f in self.findings()], self.output()))

    def rows(self, sql):
        found = []
        for name in sorted(os.listdir(self.trace)):
            if name.endswith(".db"):
                database = sqlite3.connect("file:%s?mode=ro" % os.path.join(self.trace, name), uri=True)
                found += database.execute(sql).fetchall()
                database.close()
        return found


def equal(got, expected, what):
    assert got == expected, "%s: expected %s, got %s" % (what, expected, got)


def operations(job, rank):
    """(call, number, count, datatype, root, in a group) of the rank's operations, as they were issued."""
    return job.rows("""SELECT a.name, e.w1, e.w4, e.w5 & 255, e.w5 >> 32, e.w7 != 0
                       FROM event e JOIN api a ON a.number = e.api JOIN process p ON p.id = e.process
                       WHERE p.rank = %d AND e.phase = 1 AND a.class IN ('COLLECTIVE', 'P2P', 'collective', 'p2p')
                       ORDER BY e.serial""" % rank)


def test_clean(version):
    with Job("clean", version) as job:
        job.finish()
        codes = {f["code"] for f in job.findings()}
        equal(codes, set(), "v%d: findings of a clean job" % version)
        native = version >= 5       # what NCCL counts in bytes is told as the program gave it
        expected = [("ncclAllReduce", i, 1024, 7, -1, 0) for i in range(20)]
        expected.append(("ncclBroadcast", 20, 1024, 6, 2, 0) if native else ("ncclBroadcast", 20, 2048, 0, 2, 0))
        expected.append(("ncclAllGather", 21, 256, 7, -1, 0) if native else ("ncclAllGather", 21, 1024, 0, -1, 0))
        expected += [("ncclReduceScatter", 22, 256, 1, -1, 0), ("ncclReduce", 23, 1024, 9, 3, 0)]
        expected += [("ncclAllReduce", 24 + i, 1024 // (i + 1), 7, -1, int(native)) for i in range(3)]
        for i in range(2):
            expected += [("ncclSend", i, 1024, 7, 2, 1), ("ncclRecv", i, 1024, 7, 0, 1)]
        for peer in range(4):
            expected += [("ncclSend", 2 if peer == 2 else 0, 256, 2, peer, 1), ("ncclRecv", 2 if peer == 0 else 0, 256, 2, peer, 1)]
        expected.append(("ncclAllReduce", 0, 7, 7, -1, 0))
        equal(operations(job, 1), expected, "v%d: rank 1's operations" % version)
        members = job.rows("SELECT COUNT(DISTINCT w0), COUNT(*) FROM event e JOIN api a ON a.number = e.api WHERE a.name = 'notice_member'")
        equal(members, [(3, 8)], "v%d: communicators, and members" % version)
        lacks = {name for (name,) in job.rows("SELECT DISTINCT l.name FROM imported i JOIN lack l ON i.lacks & l.bit")}
        assert {"REDOP", "CUDA", "SETUP"} <= lacks and ("STATE" in lacks) == (version < 3), lacks


def test_faults(version):
    with Job("mismatch", version) as job:
        finding = job.until("DC102")
        what = finding["what"]
        assert "count=1024" in what and "count=512" in what and "#1" in what, what
        stacks = [[frame["function"] for frame in side["frames"]] for side in finding["sides"]]
        assert all(stack[:1] == ["reduce"] and stack[-1] == "main" for stack in stacks), "NCCL's frames are no part of it: %s" % stacks
    with Job("receive", version) as job:
        what = job.until("DC108")["what"]
        assert "rank 3 receives 1024 float32 from rank 0" in what, what


def test_size_not_known():
    """Before version 4 NCCL does not say how many ranks a communicator has."""
    with Job("graph", 3) as job:
        job.finish()
        done = subprocess.run([TOOL, "report", "-v", job.trace], capture_output=True, text=True, timeout=PATIENCE)
        assert "its size is not known" in done.stdout and "-1 rank" not in done.stdout, done.stdout
        assert "DC104: NCCL's profiler interface does not say reduction operators" in done.stdout, done.stdout


def test_copy_engines():
    """From version 6 on NCCL reports a collective of copy engines: else it would seem never to end."""
    for version, done in ((5, 0), (6, 1), (7, 1)):
        with Job("copies", version) as job:
            job.finish()
            equal({f["code"] for f in job.findings()}, set(), "v%d: findings of copies" % version)
            equal([operation[0] for operation in operations(job, 1)], ["ncclAllGather"], "v%d: operations" % version)
            reached = job.rows("""SELECT coalesce(MAX(e.w2), 0) FROM event e JOIN api a ON a.number = e.api
                                  JOIN process p ON p.id = e.process WHERE p.rank = 1 AND a.name = 'notice_progress'""")
            equal(reached, [(done,)], "v%d: launches that are done" % version)


def streams(job, rank):
    """The streams of the rank's operations, by communicator."""
    return job.rows("""SELECT e.w0, e.stream FROM event e JOIN api a ON a.number = e.api JOIN process p ON p.id = e.process
                       WHERE p.rank = %d AND e.phase = 1 AND a.class IN ('COLLECTIVE', 'P2P', 'collective', 'p2p') GROUP BY 1, 2""" % rank)


def test_streams():
    """Where streams are not told each communicator has one, so that nothing on two communicators is put in an order."""
    for version, preloaded, expected in ((3, {}, set()), (4, {}, set()), (5, {}, set()), (5, {"LD_PRELOAD": SHIM}, {"DC204"})):
        with Job("crossed", version, **preloaded) as job:
            job.finish()
            equal({f["code"] for f in job.findings()}, expected, "v%d: findings of streams that cross" % version)
            found = streams(job, 2)
            equal((len(found), len({stream for _, stream in found})), (2, 2), "v%d: streams" % version)
            assert all((stream >> 62 & 1) == (version < 5) for _, stream in found), "v%d: %s" % (version, found)
    with Job("clean", 5) as job:
        job.finish()
        assert all(stream and not stream >> 62 & 1 for _, stream in streams(job, 1)), "messages have the stream of their call"


def test_buffers():
    """Up to version 4 the buffers come with the operation, so that those of one call can be compared (DC304)."""
    for version in VERSIONS:
        with Job("overlap", version) as job:
            job.finish()
            found = [(f["code"], f["ranks"]) for f in job.findings()]
            equal(found, [("DC304", "1")] if version < 5 else [], "v%d: findings of buffers that overlap" % version)


def test_graph():
    with Job("graph") as job:
        job.finish()
        equal({f["code"] for f in job.findings()}, {"DC903"}, "findings with a graph")
        equal([(name, number) for name, number, *_ in operations(job, 0)], [("ncclAllReduce", 0), ("ncclAllReduce", 0)],
              "what is captured has no number of its own")


def test_steps_aside():
    """Preloaded where NCCL is shared, the wrappers see all, and the plugin adds nothing."""
    counts = []
    for plugin in (SHIM, "none"):
        with Job("clean", 5, SHARED, LD_PRELOAD=SHIM, NCCL_PROFILER_PLUGIN=plugin) as job:
            job.finish()
            counts.append(job.rows("SELECT a.name, COUNT(*) FROM event e JOIN api a ON a.number = e.api "
                                   "WHERE e.api < 100 GROUP BY a.name ORDER BY a.name"))
            equal({f["code"] for f in job.findings()}, set(), "findings, preloaded")
    equal(counts[0], counts[1], "NCCL's records with the plugin, and without")


def test_missing():
    """A rank that does not come, while it goes on with something else, is told after a while: the jobs run side by side.
    Before version 3 nobody says how far the GPU got. Preloaded as well, the wrappers tell of CUDA and the plugin of NCCL."""
    with contextlib.ExitStack() as stack:
        jobs = [stack.enter_context(Job("missing", version)) for version in VERSIONS if version >= 3]
        preloaded = stack.enter_context(Job("missing", 5, LD_PRELOAD=SHIM))
        for job in jobs + [preloaded]:
            what = job.until("DC201")["what"]
            assert "rank 2 never called it" in what and "#2" in what, what
        waits = preloaded.rows("SELECT COUNT(*) FROM event e JOIN api a ON a.number = e.api WHERE a.name = 'cudaStreamSynchronize'")
        assert waits[0][0] > 0, "no wait was recorded"


def test_release_that_takes_no_path():
    """NCCL 2.27.3 (PyTorch 2.8's) refuses a path as the plugin's name: `run --plugin` gives it the bare one."""
    with tempfile.TemporaryDirectory(prefix="ddpcheck-plugin-") as folder:
        clean = {name: value for name, value in os.environ.items() if not name.startswith("DDPCHECK")}
        clean.update(DDPCHECK_EMU_DEVICES="4", DDPCHECK_EMU_NCCL_PROFILER="4", DDPCHECK_EMU_NCCL_VERSION="22703")
        for options, expected in ((["--plugin"], "4 ranks"), ([], "made no NCCL call that ddpcheck saw; ")):
            done = subprocess.run([TOOL, "run", "-o", os.path.join(folder, "trace" + "".join(options)), *options, "--", STATIC, "clean"],
                                  env=clean, capture_output=True, text=True, timeout=PATIENCE)
            assert done.returncode == 0 and expected in done.stderr, done.stderr
    with Job("clean", 4, DDPCHECK_EMU_NCCL_VERSION="22703") as job:
        equal(job.process.wait(timeout=PATIENCE), 0, "status")
        assert not os.path.exists(job.trace), "a plugin by its path"


def test_no_plugin_is_said():
    """Where NCCL takes no plugin, here by a name that another front end has set in the program's own start."""
    with tempfile.TemporaryDirectory(prefix="ddpcheck-plugin-") as folder:
        clean = {name: value for name, value in os.environ.items() if not name.startswith("DDPCHECK")}
        clean.update(DDPCHECK_EMU_DEVICES="4")
        done = subprocess.run([TOOL, "run", "-o", os.path.join(folder, "trace"), "--plugin", "--", "env",
                               "NCCL_PROFILER_PLUGIN=none", STATIC, "clean"], env=clean, capture_output=True, text=True, timeout=PATIENCE)
        assert done.returncode == 0 and "NCCL loaded no profiler plugin" in done.stderr, done.stderr


def test_switched_off():
    with Job("clean", 5, STATIC, DDPCHECK_DISABLE="1") as job:
        equal(job.process.wait(timeout=PATIENCE), 0, "status")
        assert not os.path.exists(job.trace), "a trace although it is disabled"


# They wait for collectors and silence more than they compute.
with concurrent.futures.ThreadPoolExecutor(3) as pool:
    running = [pool.submit(test, version) for version in VERSIONS for test in (test_clean, test_faults)]
    running += [pool.submit(test) for test in (test_size_not_known, test_copy_engines, test_streams, test_buffers, test_graph, test_steps_aside,
                                              test_missing, test_switched_off,
                                              test_release_that_takes_no_path, test_no_plugin_is_said)]
    for test in running:
        test.result()
print("ok")
