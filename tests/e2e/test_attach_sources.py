"""ddpcheck attach: what RAS, Flight Recorder dumps and logs add to stacks, what there is without the right to ptrace, several hosts."""

import json
import os
import pathlib
import select
import shutil
import socket
import subprocess
import sys
import threading
import time

from line import Line, end_group

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "import"))

import flight_dump  # noqa: E402
from ras_server import RasServer, job as ras_job  # noqa: E402

SKIPPED = 77
RANKS = 4
RAS_TEXT = """\
Communicators... (0.00s)
=============

Group     Comms     Nodes     Ranks     Ranks     Ranks    Status  Errors
    #  in group  per comm  per node  per comm  in group
    0         1         1         4         4         4   RUNNING  MISMATCH

Warnings
========

#0-0 (fa93daea854b060b) MISMATCH
  Communicator ranks have different AllReduce operation counts
  3 ranks have launched up to operation 6
  Rank 0 has launched up to operation 5 -- GPU 0 managed by process 323032 on node node1

"""


class Job:
    """tests/suite/hang/rank_asleep without ddpcheck, hung: rank 0 sleeps, the others wait. No variable says their ranks."""

    def __init__(self, line, output=subprocess.DEVNULL, **environment):
        environment = line.bare_environment(**environment)
        for name in ("LD_PRELOAD", "DDPCHECK_DIR"):
            environment.pop(name, None)
        self.line = line
        self.process = subprocess.Popen([os.path.join(line.build, "tests", "suite", "hang", "rank_asleep")], env=environment,
                                        cwd=line.folder, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT,
                                        start_new_session=True)

    def __enter__(self):
        end = time.monotonic() + 120
        while "write_checkpoint" not in self.stacks() and time.monotonic() < end:
            pass
        return self

    def __exit__(self, *_):
        end_group(self.process)

    def children(self):
        with open("/proc/%d/task/%d/children" % (self.process.pid, self.process.pid)) as file:
            return file.read().split()

    def stacks(self):
        children = self.children()
        out = self.line.call([self.line.tool, "stacks", "--pid", ",".join(children)])[1] if len(children) == RANKS else ""
        return out if out.count("cudaStreamSynchronize") else ""


def attach(line, *arguments, before=(), **environment):
    status, out, err = line.call([*before, line.tool, "attach", *arguments], environment=environment)
    if "does not let us look" in err and os.getuid():
        print("skipped: " + err)
        sys.exit(SKIPPED)
    return status, out, err


def findings(out):
    lines = [json.loads(text) for text in out.splitlines()]
    return [each for each in lines if each.get("schema", "").startswith("ddpcheck.finding/")]


def attached(line, job, *arguments):
    """The findings, as soon as all of the job stands still."""
    end = time.monotonic() + 120
    while True:
        status, out, err = attach(line, "--json", "--looks", "3", *arguments, str(job.process.pid))
        found = findings(out)
        if found or time.monotonic() > end:
            return status, found, err


def expect_certain(found, number, err):
    assert [(each["code"], each["certainty"], each["number"]) for each in found] == [("DC201", "certain", number)], (found, err)
    missing = [side for side in found[0]["sides"] if side["ranks"] == "0"]
    assert missing and "write_checkpoint" in json.dumps(missing), found


def test_ras(line):
    """Its counts say which operation it is, in JSON and in text."""
    for state, knows_json in ((ras_job([5, 6, 6, 6]), True), (RAS_TEXT, False)):
        ras = RasServer(state, knows_json)
        with Job(line, NCCL_RAS_ADDR=ras.address) as job:
            _, found, err = attached(line, job)
            assert "NCCL's RAS at " + ras.address in err, err
            expect_certain(found, 6 if knows_json else 5, err)
        ras.close()


def test_diagnostics(line):
    """NCCL's own, of 2.31 and later: they are asked for and reported beside the hang; before, that is said."""
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "import", "real", "diag-rccl.log"), encoding="utf-8") as file:
        diagnostics = "".join(text for text in file if not text.startswith("# "))
    for said in diagnostics, None:
        ras = RasServer(ras_job([5, 6, 6, 6]), diagnostics=said)
        with Job(line, NCCL_RAS_ADDR=ras.address) as job:
            _, found, err = attached(line, job)
            out = json.dumps(found)
            assert ("read NCCL's diagnostics" in err) == bool(said) and ("has no diagnostics" in err) != bool(said), err
            assert ("uncorrected volatile errors" in out) == bool(said), out
        ras.close()


def test_other_ras(line):
    """Counts of other ranks do not confirm what stacks show."""
    ras = RasServer(ras_job([6, 6, 5, 6]))
    with Job(line, NCCL_RAS_ADDR=ras.address) as job:
        _, found, err = attached(line, job)
        assert [each["certainty"] for each in found if each["code"] == "DC201"] == ["possible"], (found, err)
    ras.close()


def write_dumps(folder, pipes):
    """As PyTorch does when something is written to its pipes: rank 0 has not called what the others wait in."""
    for pipe in pipes:
        select.select([pipe], [], [], 120)
    now = time.time_ns()
    calls = [flight_dump.entry(i, "all_reduce", created=now - 70 * 10 ** 9 + i) for i in range(3)]
    waits = flight_dump.entry(3, "all_reduce", created=now - 60 * 10 ** 9, state="started", line=51)
    flight_dump.write(folder, {rank: flight_dump.dump(calls + [waits] * (rank > 0), RANKS) for rank in range(RANKS)}, "dump_")


def test_dumps(line):
    folder = pathlib.Path(line.folder)
    pipes = []
    for rank in range(RANKS):
        path = folder / ("pipe_%d.pipe" % rank)
        os.mkfifo(path)
        pipes.append(os.open(path, os.O_RDONLY | os.O_NONBLOCK))
    recorder = threading.Thread(target=write_dumps, args=(folder, pipes), daemon=True)
    recorder.start()
    with Job(line, TORCH_NCCL_DEBUG_INFO_PIPE_FILE=str(folder / "pipe_"), TORCH_FR_DUMP_TEMP_FILE=str(folder / "dump_")) as job:
        _, found, err = attached(line, job)
        recorder.join(120)
        assert "Flight Recorder dumps of ranks 0-3" in err, err
        expect_certain(found, 4, err)


DEBUGGED = """
import ctypes, http.server, os, sys, time
ctypes.CDLL("libnccl.so.2")
class Server(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200 if self.path == "/fr_trace" else 404)
        self.end_headers()
        self.wfile.write(open(sys.argv[1], "rb").read() if self.path == "/fr_trace" else b"")
if sys.argv[2] == os.environ["RANK"] and not os.fork():
    http.server.ThreadingHTTPServer(("127.0.0.1", 25999), Server).serve_forever()
time.sleep(3600)
"""


def test_debug_server(line):
    """A page of torch.distributed.debug, of a server that rank 0 has started; another job's is left alone."""
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "import", "real", "debug-page-fr-trace.log"), "rb") as file:
        page = b"".join(text for text in file if not text.startswith(b"# "))
    with open(os.path.join(line.folder, "page.html"), "wb") as file:
        file.write(page)

    def start(rank, who_serves):
        environment = line.bare_environment(RANK=str(rank), WORLD_SIZE="2")
        for name in ("LD_PRELOAD", "DDPCHECK_DIR"):
            environment.pop(name, None)
        return subprocess.Popen([sys.executable, "-c", DEBUGGED, "page.html", who_serves], env=environment, cwd=line.folder,
                                stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)

    with socket.socket() as other:
        if not other.connect_ex(("127.0.0.1", 25999)):
            return "skipped: somebody has the port"
    ranks, stranger = [start(0, "0"), start(1, "0")], [start(0, "none"), start(1, "none")]
    try:
        end, err = time.monotonic() + 120, ""
        while "debug server" not in err and time.monotonic() < end:
            _, out, err = attach(line, "--json", "--looks", "2", *(str(rank.pid) for rank in ranks))
        assert any("default_pg" in each["what"] and each["number"] == 2 for each in findings(out)), (out, err)
        _, out, err = attach(line, "--json", "--looks", "2", *(str(rank.pid) for rank in stranger))
        assert "debug server" not in err and not findings(out), (out, err)
    finally:
        for each in ranks + stranger:
            end_group(each)


def test_output(line):
    """An exception that a rank has printed is passed on."""
    with open(os.path.join(line.folder, "out"), "w") as out:
        out.write('[rank0]: Traceback (most recent call last):\n[rank0]:   File "/job/train.py", line 12, in save\n'
                  "[rank0]: OSError: [Errno 5] Input/output error: 'model.pt'\n")
        out.flush()
        with Job(line, output=out) as job:
            _, found, err = attached(line, job)
    assert "what the ranks print (1 file)" in err, err
    assert any("Input/output error" in each["what"] for each in found), found
    assert any(each["code"] == "DC201" for each in found), found


def test_no_ptrace(line):
    """Without the right to ptrace: what it says, and that RAS is read all the same."""
    if os.getuid() or not shutil.which("setpriv"):
        return "skipped: not root"
    before = ("setpriv", "--bounding-set=-sys_ptrace", "--inh-caps=-sys_ptrace")
    with Job(line) as job:
        status, out, err = attach(line, str(job.process.pid), before=before)
        assert status == 2 and "CAP_SYS_PTRACE" in err and not out, (status, out, err)
        ras = RasServer(ras_job([5, 6, 6, 6]))
        status, out, err = attach(line, "--json", str(job.process.pid), before=before, NCCL_RAS_ADDR=ras.address)
        assert "could not be read" in err and "CAP_SYS_PTRACE" in err, err
        assert [each["code"] for each in findings(out)] == ["DC905"], (status, out, err)
        ras.close()
    return None


def test_gpus(line):
    with Job(line) as job:
        end = time.monotonic() + 120
        err = ""
        while "NVML" not in err and time.monotonic() < end:
            _, out, err = attach(line, "--json", "--looks", "2", str(job.process.pid),
                                 LD_LIBRARY_PATH=os.path.join(line.build, "tests", "e2e_libraries", "nvml"))
    for text in (err, " ".join(each["what"] for each in findings(out))):    # also in the trace
        assert "GPU 0 at 100 %" in text and "GPU 1 at 0 %" in text, (out, err)


def test_hosts(line):
    """What was seen on two hosts is one job: of each half of the ranks a file."""
    with Job(line) as job:
        attached(line, job)
        status, out, err = attach(line, "-o", "-", str(job.process.pid))
    ranks = [json.loads(text) for text in out.splitlines()]
    assert len(ranks) == RANKS, (out, err)
    os.mkdir(os.path.join(line.folder, "now"))
    for host, half in (("node1", ranks[:2]), ("node2", ranks[2:])):
        with open(os.path.join(line.folder, host + ".jsonl"), "w") as file:
            file.writelines(json.dumps({**rank, "host": host, "world_size": RANKS}) + "\n" for rank in half)
        status, out, err = line.call([line.tool, "import", "-q", "-o", "now/%s.db" % host, host + ".jsonl"])
        assert status == 0, err
    status, out, err = line.call([line.tool, "report", "--json", "now"])
    found = findings(out)
    assert [each["code"] for each in found] == ["DC201"] and [side["ranks"] for side in found[0]["sides"]] == ["1-3", "0"], (found, err)


def main():
    build = os.path.abspath(sys.argv[1])
    for test in (test_ras, test_diagnostics, test_other_ras, test_dumps, test_debug_server, test_output, test_no_ptrace, test_gpus, test_hosts):
        with Line(build, name="attach") as line:
            print(test.__name__, test(line) or "", flush=True)


main()
