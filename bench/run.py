"""Measures what watching costs; each figure stands beside its yardstick, taken in the same run.

    run.py BUILD [PART...]      parts: calls, instructions, python, store, collector, analyzer, long, training, selection, times,
                        exact-times, hashing, tui, tui-keys, tui-live, page, kineto,
                        log, flight-recorder, ranks
                        (default: all)

Prints a table, and writes it to BUILD/bench.txt. Nothing here fails for being slow."""

import fcntl
import json
import os
import platform
import pty
import re
import resource
import shutil
import signal
import sqlite3
import statistics
import struct
import subprocess
import sys
import tempfile
import termios
import threading
import time
import urllib.error
import urllib.request

import ranks

TRAINING_RUNS = 5
INSTRUCTION_TURNS = 1024      # as many are made before, so that what a first call costs is left out
TIMES_RUNS = 5
TUI_OPERATIONS = 10000000
TUI_SECONDS = 20
TUI_RANKS = 16384
TUI_KEYS = ("j", "G", "k", "\033[6~", "\033[5~", "\r", "\033")
TUI_STILL_S = 0.5
PAGE_READERS = 10
RECORD_BYTES = 128
FLIGHT_RANKS, FLIGHT_ENTRIES = 1024, 2000
LOG_MEGABYTES = (40, 400)
KINETO_MEGABYTES, KINETO_TREE_MEGABYTES = 1000, 100
TRAINING = ["--model", "gan", "--ranks", "2", "--iterations", "150", "--seed", "1"]


class Bench:
    def __init__(self, build):
        self.build = os.path.abspath(build)
        self.tool = self.path("bin/ddpcheck")
        self.shim = self.path("lib/libddpcheck.so")
        self.emulated = self.path("lib/ddpcheck/emu")
        self.file = open(self.path("bench.txt"), "w")

    def path(self, name):
        return os.path.join(self.build, name)

    def show(self, text=""):
        print(text, flush=True)
        self.file.write(text + "\n")

    def missing(self, *names):
        """Prints which of these was not built, and returns True if one was not."""
        absent = [name for name in names if not os.path.exists(self.path(name))]
        if absent:
            self.show("not measured: %s not built" % ", ".join(absent))
        return bool(absent)

    def environment(self, devices, **more):
        libraries = [self.emulated] + ([os.environ["LD_LIBRARY_PATH"]] if os.environ.get("LD_LIBRARY_PATH") else [])
        return {**os.environ, "LD_LIBRARY_PATH": ":".join(libraries), "DDPCHECK_EMU_DEVICES": str(devices), **more}

    def run(self, command, statuses=(0,), **options):
        done = subprocess.run(command, capture_output=True, text=True, timeout=600, stdin=subprocess.DEVNULL, **options)
        if done.returncode not in statuses:
            raise SystemExit("bench: %s failed with %d:\n%s%s" % (command, done.returncode, done.stdout, done.stderr))
        return done.stdout + done.stderr


def calls(bench):
    bench.show("Intercepted calls, ns per call (emulated CUDA and NCCL; the difference is the cost of the shim)")
    if bench.missing("bench/bench_calls", "lib/libddpcheck.so", "lib/ddpcheck/emu"):
        return

    def figures(program, **options):
        lines = bench.run([bench.path("bench/" + program)], **options).splitlines()
        return {name: float(ns) for ns, name in (line.split(" ", 1) for line in lines)}

    ways = {"alone": {}, "no stacks": {"DDPCHECK_STACKS": "0"}, "stacks": {"DDPCHECK_STACKS": "all"}}
    rounds = {way: [] for way in ways}
    for _ in range(3):      # alternating, so that a busy moment does not fall on one way alone
        for way, settings in ways.items():
            with tempfile.TemporaryDirectory(prefix="ddpcheck-bench-") as trace:
                watched = {"LD_PRELOAD": bench.shim, "DDPCHECK_DIR": trace, **settings} if settings else {}
                rounds[way].append(figures("bench_calls", env=bench.environment(1, **watched)))
                wait_collector(trace)
    bench.show("%-42s %8s %10s %10s" % ("", "alone", "+ shim", "+ stacks"))
    for name, ns in figures("bench_ring_append").items():
        bench.show("%-42s %8s %10.1f" % (name, "", ns))
    for name in rounds["alone"][0]:
        alone, off, all_ = (statistics.median(turn[name] for turn in rounds[way]) for way in ways)
        bench.show("%-42s %8.1f %10.1f %10.1f" % (name, alone, off - alone, all_ - alone))
    bench.show("aim: at most 100 ns a call without stacks")


def count_instructions(build):
    """({name: [of one call without stacks, with them]}, None) that the shim adds, on libraries that do nothing; or (None, why not)."""
    def path(name):
        return os.path.join(os.path.abspath(build), name)

    absent = [name for name in ("bench/bench_calls", "lib/libddpcheck.so", "bench/stub/libnccl.so.2") if not os.path.exists(path(name))]
    if absent:
        return None, "%s not built" % ", ".join(absent)
    if not shutil.which("valgrind"):
        return None, "valgrind not found; apt-get install valgrind"

    def counted(**watched):
        with tempfile.TemporaryDirectory(prefix="ddpcheck-bench-") as folder:
            settings = {"LD_PRELOAD": path("lib/libddpcheck.so"), "DDPCHECK_DIR": folder, **watched} if watched else {}
            out = os.path.join(folder, "counted")
            done = subprocess.run(["valgrind", "--quiet", "--tool=callgrind", "--separate-threads=yes", "--dump-before=bench_mark",
                                   "--callgrind-out-file=" + out, path("bench/bench_calls"), str(INSTRUCTION_TURNS)],
                                  env={**os.environ, "LD_LIBRARY_PATH": path("bench/stub"), **settings}, stdin=subprocess.DEVNULL,
                                  capture_output=True, text=True, timeout=600, check=True)
            wait_collector(folder)
            figures = {}
            for loop, (calls, name) in enumerate(re.findall(r"^(\d+) (.+)$", done.stdout, re.M)):
                with open("%s.%d-01" % (out, 2 * loop + 2)) as file:      # what ended at the loop's second mark, of the first thread
                    figures[name] = int(re.search(r"^(?:summary|totals): (\d+)", file.read(), re.M).group(1)) / INSTRUCTION_TURNS / int(calls)
            return figures

    alone, bare, stacked = counted(), counted(DDPCHECK_STACKS="0"), counted(DDPCHECK_STACKS="all")
    return {name: [round(bare[name] - alone[name]), round(stacked[name] - alone[name])] for name in alone}, None


def instructions(bench):
    bench.show("Instructions that the shim adds to a call, in the calling thread (callgrind; CUDA and NCCL are libraries that do nothing)")
    counted, why = count_instructions(bench.build)
    if why:
        bench.show("not measured: " + why)
        return
    bench.show("%-50s %10s %10s" % ("", "no stacks", "stacks"))
    for name, figures in counted.items():
        bench.show("%-50s %10d %10d" % (name, *figures))


def python_calls(bench):
    version = ".".join(map(str, sys.version_info[:3]))
    bench.show("Calls from Python %s, ns per cudaStreamSynchronize of an idle stream (emulated; what the shim adds)" % version)
    if bench.missing("bench/bench_python.so", "lib/libddpcheck.so", "lib/ddpcheck/emu"):
        return
    script = os.path.join(os.path.dirname(os.path.abspath(__file__)), "python_calls.py")
    ways = {"alone": None, "no stacks": {"DDPCHECK_STACKS": "0"}, "native": {"DDPCHECK_PYSTACK": "off"}, "python": {}}
    rounds = {way: [] for way in ways}
    for _ in range(3):
        for way, settings in ways.items():
            with tempfile.TemporaryDirectory(prefix="ddpcheck-bench-") as trace:
                watched = {} if settings is None else {"LD_PRELOAD": bench.shim, "DDPCHECK_DIR": trace, **settings}
                lines = bench.run([sys.executable, script, bench.path("bench/bench_python.so")],
                                  env=bench.environment(1, **watched)).splitlines()
                rounds[way].append({name: float(ns) for ns, name in (line.split(" ", 1) for line in lines)})
                wait_collector(trace)
    bench.show("%-36s %8s %10s %12s %12s" % ("", "alone", "+ shim", "+ native", "+ Python"))
    for name in rounds["alone"][0]:
        alone, off, native, whole = (statistics.median(turn[name] for turn in rounds[way]) for way in ways)
        bench.show("%-36s %8.1f %10.1f %12.1f %12.1f" % (name, alone, off - alone, native - alone, whole - alone))


def store(bench):
    bench.show("Storing events, rows a second into the same table")
    bench.show(bench.run([bench.path("bench/bench_store_insert")]).rstrip())


def collector(bench):
    bench.show("Draining full rings of 8 processes: read, stored and analysed by the collector")
    bench.show(bench.run([bench.path("bench/bench_collect")]).rstrip())


def analyzer(bench):
    bench.show("Reading and analysing a trace, rows a second")
    bench.show(bench.run([bench.path("bench/bench_analyze")]).rstrip())


def long_job(bench):
    bench.show("A job of days: 50,000,000 events through the analyzer with all checks on; events a second of processor time")
    bench.show(bench.run([bench.path("bench/bench_long")]).rstrip())


def holder_of(trace):
    try:
        with open(os.path.join(trace, "collector.lock")) as lock:
            return int(lock.read().split()[0])
    except (OSError, ValueError, IndexError):
        return None


def wait_collector(trace, seconds=60):
    """The collector exits a moment after its last producer."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        pid = holder_of(trace)
        if pid is None or not os.path.exists("/proc/%d" % pid):
            return
        time.sleep(0.02)


def thread_seconds(pid, thread):
    """Of processor time."""
    with open("/proc/%d/task/%s/schedstat" % (pid, thread)) as file:
        return int(file.read().split()[0]) / 1e9


class Collector(threading.Thread):
    """Watches the collector of a trace directory while it runs."""

    def __init__(self, trace):
        super().__init__()
        self.trace, self.peak_kb, self.cpu_s, self.stop = trace, 0, 0.0, threading.Event()
        self.reading_s = 0.0           # of the thread that reads progress words
        self.start()

    def run(self):
        while not self.stop.is_set():
            pid = holder_of(self.trace)
            try:
                with open("/proc/%s/status" % pid) as status:
                    self.peak_kb = max(self.peak_kb, int(re.search(r"VmHWM:\s+(\d+) kB", status.read()).group(1)))
                with open("/proc/%s/stat" % pid) as stat:
                    ticks = stat.read().rsplit(")", 1)[1].split()[11:13]
                    self.cpu_s = max(self.cpu_s, sum(map(int, ticks)) / os.sysconf("SC_CLK_TCK"))
                threads = [name for name in os.listdir("/proc/%d/task" % pid) if name != str(pid)]
                self.reading_s = max(self.reading_s, sum(thread_seconds(pid, thread) for thread in threads))
            except (OSError, AttributeError, TypeError, IndexError):
                pass
            time.sleep(0.02)

    def end(self):
        wait_collector(self.trace)
        self.stop.set()
        self.join()


def train(bench, trace=None, **settings):
    """(images a second, processor seconds of the trainer)"""
    more = {"LD_PRELOAD": bench.shim, "DDPCHECK_DIR": trace, **settings} if trace else {}
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    out = bench.run([bench.path("bin/ddptrain"), *TRAINING], env=bench.environment(2, **more))
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    rates = re.findall(r"([0-9.]+) images/s", out)
    if not rates:
        raise SystemExit("bench: ddptrain printed no rate:\n" + out)
    return float(rates[-1]), after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def train_watched(bench, **settings):
    """The same, and the collector's peak memory (kB), its processor seconds, and the events stored."""
    with tempfile.TemporaryDirectory(prefix="ddpcheck-bench-") as trace:
        collector = Collector(trace)
        rate, cpu = train(bench, trace, **settings)
        collector.end()
        lines = bench.run([bench.tool, "report", "--json", trace], statuses=(0, 1)).splitlines()
        summary = json.loads(lines[-1])
    return rate, cpu, collector.peak_kb, collector.cpu_s, summary["events"], summary["lost"]


def training(bench):
    bench.show("ddptrain %s, with and without the shim, %d runs each in turn" % (" ".join(TRAINING), TRAINING_RUNS))
    if bench.missing("bin/ddptrain", "lib/libddpcheck.so"):
        return
    train(bench)
    alone, watched = [], []
    for _ in range(TRAINING_RUNS):
        alone.append(train(bench))
        watched.append(train_watched(bench))

    def middle(runs, column):
        return statistics.median(run[column] for run in runs)

    rates = [run[0] for run in alone]
    spread = (max(rates) / min(rates) - 1) * 100
    rate, cpu = middle(watched, 0) / middle(alone, 0) - 1, middle(watched, 1) / middle(alone, 1) - 1
    bench.show("%-24s %10.1f images/s %8.2f s of processor" % ("alone", middle(alone, 0), middle(alone, 1)))
    bench.show("%-24s %10.1f images/s %8.2f s of processor" % ("under the shim", middle(watched, 0), middle(watched, 1)))
    bench.show("%-24s %+10.1f %% images/s %+7.1f %% of processor (aim: at most 2 %% slower)" % ("difference", rate * 100, cpu * 100))
    bench.show("%-24s %10.1f %%: from the slowest to the fastest run alone; differences below that are noise" % ("spread", spread))
    bench.show("%-24s %10.2f s of processor, peak memory %.1f MB, %d events, %d records lost"
              % ("the collector", middle(watched, 3), middle(watched, 2) / 1024, middle(watched, 4), middle(watched, 5)))


def hashing(bench):
    bench.show("Payload hashes (--hash): the kernel's C twin beside a copy, and ddptrain %s, %d runs each in turn" % (" ".join(TRAINING), TRAINING_RUNS))
    if bench.missing("bench/bench_payload", "bin/ddptrain", "lib/libddpcheck.so"):
        return
    bench.show(bench.run([bench.path("bench/bench_payload")], env=bench.environment(1)).rstrip())
    ways = {"under the shim": {}, "with --hash": {"DDPCHECK_HASH": "1"}}
    runs = {way: [] for way in ways}
    for _ in range(TRAINING_RUNS):
        for way, settings in ways.items():
            runs[way].append(train_watched(bench, **settings))
    for way, of in runs.items():
        bench.show("%-24s %10.1f images/s %8.2f s of processor, %d events, %d records lost"
                  % (way, *(statistics.median(run[column] for run in of) for column in (0, 1, 4, 5))))
    plain, hashed = (statistics.median(run[1] for run in runs[way]) for way in ways)
    bench.show("%-24s %+10.1f %% of processor, which does the GPU's work here" % ("difference", (hashed / plain - 1) * 100))


def tui(bench):
    """`--once` of each view: start, opening the trace and making the picture; what a screen shows at first."""
    bench.show("ddpcheck tui on a trace of %d operations, 8 ranks (aim: under 2 s and 200 MB)" % TUI_OPERATIONS)
    if bench.missing("bench/bench_tui_trace"):
        return
    with tempfile.TemporaryDirectory(prefix="ddpcheck-bench-") as folder:
        path = os.path.join(folder, "large.db")
        bench.run([bench.path("bench/bench_tui_trace"), path, str(TUI_OPERATIONS)])
        bench.show("%-24s %10.2f GB" % ("the database", os.path.getsize(path) / 1e9))
        for view in "now", "findings", "sequence", "ranks", "waits", "timeline", "memory":
            begin = time.monotonic()
            process = subprocess.Popen([bench.tool, "tui", "--once", "--view", view, path], stdout=subprocess.DEVNULL)
            _, status, usage = os.wait4(process.pid, 0)
            bench.show("%-24s %10.2f s, peak memory %.1f MB%s" % (view, time.monotonic() - begin, usage.ru_maxrss / 1024,
                                                               "" if status == 0 else ", failed"))


def tui_keys(bench):
    """Keys that move, open and close, each time that a screen is still: what they cost with very many ranks."""
    bench.show("ddpcheck tui on a job of %d ranks: processor time of a key, of %d keys in each view (aim: under 0.2 s)"
               % (TUI_RANKS, len(TUI_KEYS)))
    if bench.missing("bench/bench_rank_traces"):
        return
    with tempfile.TemporaryDirectory(prefix="ddpcheck-bench-") as folder:
        trace = os.path.join(folder, "job")
        os.mkdir(trace)
        bench.run([bench.path("bench/bench_rank_traces"), trace, "skipped", str(TUI_RANKS)])
        screen = Screen([bench.tool, "tui", trace])
        try:
            screen.still()
            for key, view in zip("123456", ("now", "findings", "sequence", "ranks", "waits", "timeline")):
                before = screen.cpu_s()
                screen.keys(key)
                screen.still()
                opened = screen.cpu_s()
                for move in TUI_KEYS:
                    screen.keys(move)
                    screen.still()
                bench.show("%-24s %10.3f s to open it, %.3f s a key" % (view, opened - before, (screen.cpu_s() - opened) / len(TUI_KEYS)))
        finally:
            screen.close()


class Screen(threading.Thread):
    """A program on a terminal of 80 columns and 24 lines; counts the bytes that it sends there."""

    def __init__(self, command, **more):
        super().__init__(daemon=True)
        self.bytes = 0
        self.terminal, inside = pty.openpty()
        fcntl.ioctl(inside, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
        self.process = subprocess.Popen(command, stdin=inside, stdout=inside, stderr=inside, start_new_session=True,
                                        env={**os.environ, "TERM": "xterm-256color", "LC_ALL": "C.UTF-8", **more})
        os.close(inside)
        self.start()

    def run(self):
        try:
            while piece := os.read(self.terminal, 65536):
                self.bytes += len(piece)
        except OSError:         # the program has left
            pass

    def keys(self, keys):
        os.write(self.terminal, keys.encode())

    def still(self):
        """Returns once nothing has come for TUI_STILL_S."""
        seen = -1
        while seen != self.bytes:
            seen = self.bytes
            time.sleep(TUI_STILL_S)

    def cpu_s(self):
        with open("/proc/%d/stat" % self.process.pid) as stat:
            field = stat.read().rpartition(")")[2].split()
        return (int(field[11]) + int(field[12])) / os.sysconf("SC_CLK_TCK")

    def close(self):
        self.keys("q")
        try:
            self.process.wait(20)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        os.close(self.terminal)


def live(bench, name, program):
    """The TUI beside a job on 4 emulated GPUs."""
    with tempfile.TemporaryDirectory(prefix="ddpcheck-bench-") as folder:
        trace = os.path.join(folder, "trace")
        job = subprocess.Popen([bench.tool, "run", "-q", "--emulate", "4", "-o", trace, "--", *program], stdin=subprocess.DEVNULL,
                               stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)
        screen = Screen([bench.tool, "tui", "--wait", "30", trace])
        try:
            time.sleep(12)
            for key, view in zip("1234567", ("now", "findings", "sequence", "ranks", "waits", "timeline", "memory")):
                screen.keys(key)
                time.sleep(1)
                cpu_s, sent, begin = screen.cpu_s(), screen.bytes, time.monotonic()
                time.sleep(TUI_SECONDS)
                seconds = time.monotonic() - begin
                bench.show("%-10s %-12s %9.2f %% of a core %10.0f bytes/s to the terminal%s"
                          % (name, view, (screen.cpu_s() - cpu_s) / seconds * 100, (screen.bytes - sent) / seconds,
                             "" if job.poll() is None else "; the job has ended"))
        finally:
            screen.close()
            if job.poll() is None:
                os.killpg(job.pid, signal.SIGTERM)
                try:
                    job.wait(30)
                except subprocess.TimeoutExpired:
                    os.killpg(job.pid, signal.SIGKILL)
                    job.wait()


def tui_live(bench):
    bench.show("ddpcheck tui beside a job of 4 ranks, %d s in each view (aim: under 3 %% of a core)" % TUI_SECONDS)
    if bench.missing("bin/ddptrain", "lib/libddpcheck.so", "lib/ddpcheck/emu"):
        return
    trainer = bench.path("bin/ddptrain")
    live(bench, "hung", [trainer, "--ranks", "4", "--iterations", "12", "--no-gang", "--fault", "partial-barrier"])
    live(bench, "running", [trainer, "--ranks", "4", "--iterations", "1000000"])


class Page:
    """`ddpcheck serve`, and readers who ask once a second as the page does."""

    def __init__(self, bench, trace, readers):
        self.process = subprocess.Popen([bench.tool, "serve", "--listen", "127.0.0.1:0", trace], stdout=subprocess.PIPE,
                                        stderr=subprocess.DEVNULL, text=True)
        self.url, self.stop, self.asked = self.process.stdout.readline().strip(), threading.Event(), 0
        self.readers = [threading.Thread(target=self.read) for _ in range(readers)]
        for reader in self.readers:
            reader.start()

    def read(self):
        tag = ""
        while not self.stop.wait(1):
            self.asked += 1
            try:
                with urllib.request.urlopen(urllib.request.Request(self.url, headers={"If-None-Match": tag}), timeout=60) as answer:
                    tag = answer.headers["ETag"]
                    answer.read()
            except urllib.error.HTTPError:      # not there yet, or as before
                pass

    def cpu_s(self):
        """(of the server, of its readings)"""
        with open("/proc/%d/stat" % self.process.pid) as stat:
            ticks = [int(each) / os.sysconf("SC_CLK_TCK") for each in stat.read().rsplit(")", 1)[1].split()[11:15]]
        return ticks[0] + ticks[1], ticks[2] + ticks[3]

    def end(self):
        self.stop.set()
        for reader in self.readers:
            reader.join()
        self.process.terminate()
        self.process.wait()


def page(bench):
    bench.show("ddptrain %s under the shim: no page, a page that nobody reads, and %d readers, %d runs each in turn"
               % (" ".join(TRAINING), PAGE_READERS, TRAINING_RUNS))
    if bench.missing("bin/ddptrain", "lib/libddpcheck.so"):
        return
    ways = {"no page": None, "page, no reader": 0, "page, %d readers" % PAGE_READERS: PAGE_READERS}
    runs = {way: [] for way in ways}
    for _ in range(TRAINING_RUNS):
        for way, readers in ways.items():
            with tempfile.TemporaryDirectory(prefix="ddpcheck-bench-") as trace:
                server = None if readers is None else Page(bench, trace, readers)
                rate, cpu = train(bench, trace)
                runs[way].append((rate, cpu, *(server.cpu_s() if server else (0, 0)), server.asked if server else 0))
                if server:
                    server.end()
                wait_collector(trace)
    alone = [statistics.median(run[column] for run in runs["no page"]) for column in (0, 1)]
    for way, of in runs.items():
        rate, cpu, server_s, readings_s, asked = (statistics.median(run[column] for run in of) for column in range(5))
        bench.show("%-20s %8.1f images/s (%.3f of no page), %6.2f s of processor (%.3f); server %5.2f s, its readings %5.2f s, %d requests"
                   % (way, rate, rate / alone[0], cpu, cpu / alone[1], server_s, readings_s, asked))
    rates = [run[0] for run in runs["no page"]]
    bench.show("spread of no page: %.2f from the slowest to the fastest; differences below that are noise" % (max(rates) / min(rates)))


def trace_bytes(trace):
    return sum(entry.stat().st_size for entry in os.scandir(trace) if entry.name.endswith(".db"))


def selection(bench):
    runs_of, iterations = 5, int(TRAINING[TRAINING.index("--iterations") + 1])
    bench.show("Which kernels and copies are recorded (--cuda): ddptrain %s, %d runs each in turn" % (" ".join(TRAINING), runs_of))
    if bench.missing("bin/ddptrain", "lib/libddpcheck.so"):
        return
    train(bench)
    ways = ("none", "used", "all")
    runs = {way: [] for way in ways}
    for _ in range(runs_of):
        for way in ways:
            with tempfile.TemporaryDirectory(prefix="ddpcheck-bench-") as trace:
                collector = Collector(trace)
                rate, cpu = train(bench, trace, DDPCHECK_CUDA=way)
                collector.end()
                summary = json.loads(bench.run([bench.tool, "report", "--json", trace], statuses=(0, 1)).splitlines()[-1])
                runs[way].append((rate, cpu, collector.cpu_s, summary["events"] / iterations, trace_bytes(trace) / iterations,
                                  summary["lost"]))
    for way, of in runs.items():
        bench.show("--cuda=%-5s %10.1f images/s %6.2f s of processor, collector %5.2f s; each iteration of both ranks %6.0f records,"
                  " %6.1f KB in rings, %6.1f KB in the database; %d lost"
                  % (way, *(statistics.median(run[column] for run in of) for column in (0, 1, 2, 3)),
                     *(statistics.median(run[column] for run in of) * size / 1024 for column, size in ((3, RECORD_BYTES), (4, 1))),
                     statistics.median(run[5] for run in of)))


def progress_of(trace):
    """Of the database: all records, those of progress, bytes, and the seconds between its first and last record."""
    path = next(entry.path for entry in os.scandir(trace) if entry.name.endswith(".db"))
    connection = sqlite3.connect("file:%s?mode=ro" % path, uri=True)
    try:
        return connection.execute(
            "SELECT count(*), sum(api = (SELECT number FROM api WHERE name = 'notice_progress')), "
            "(SELECT page_count * page_size FROM pragma_page_count, pragma_page_size), (max(time_ns) - min(time_ns)) / 1e9 "
            "FROM event WHERE time_ns > 0").fetchone()
    finally:
        connection.close()


def times(bench):
    bench.show("Times of operations, always on: the collector, and the part of its thread that reads progress words; %d runs each"
              % TIMES_RUNS)
    if bench.missing("bin/ddptrain", "bench/bench_loop", "lib/libddpcheck.so"):
        return
    gan = [bench.path("bin/ddptrain"), "--model", "gan", "--ranks", "2", "--seed", "1", "--iterations"]
    ways = (("DCGAN, 150 iterations", [*gan, "150"], {}),
            ("DCGAN, kernels of 1 ms", [*gan, "40"], {"DDPCHECK_EMU_KERNEL_TIME": "all=0.001"}),
            ("20,000 AllReduces", [bench.path("bench/bench_loop")], {}))
    for name, command, settings in ways:
        runs = []
        for _ in range(TIMES_RUNS):
            with tempfile.TemporaryDirectory(prefix="ddpcheck-bench-") as trace:
                collector = Collector(trace)
                bench.run(command, env=bench.environment(2, LD_PRELOAD=bench.shim, DDPCHECK_DIR=trace, **settings))
                collector.end()
                runs.append((collector.cpu_s, collector.reading_s, *progress_of(trace)))
        cpu, reading, records, progress, size, seconds = (statistics.median(column) for column in zip(*runs))
        bench.show("%-24s %5.1f s, collector %5.2f s of processor, of which reading %6.3f s (%4.2f %% of the time); a minute has %7.0f "
                  "records, %5.0f of progress, %6.1f MB" % (name, seconds, cpu, reading, 100 * reading / seconds, 60 * records / seconds,
                                                          60 * progress / seconds, 60 * size / seconds / 1e6))


def exact_times(bench):
    bench.show("Exact times (--timing): the job and its trace without and with, %d runs of each in turn" % TIMES_RUNS)
    if bench.missing("bin/ddptrain", "bench/bench_loop", "lib/libddpcheck.so", "lib/ddpcheck/emu/libcupti.so.13"):
        return
    gan = [bench.path("bin/ddptrain"), "--model", "gan", "--ranks", "2", "--seed", "1", "--iterations"]
    ways = (("DCGAN, 150 iterations", [*gan, "150"], {}),
            ("DCGAN, kernels of 1 ms", [*gan, "40"], {"DDPCHECK_EMU_KERNEL_TIME": "all=0.001"}),
            ("20,000 AllReduces", [bench.path("bench/bench_loop")], {}))
    for name, command, settings in ways:
        runs = {"0": [], "1": []}
        for _ in range(TIMES_RUNS):
            for timing, of in runs.items():
                with tempfile.TemporaryDirectory(prefix="ddpcheck-bench-") as trace:
                    collector = Collector(trace)
                    before = resource.getrusage(resource.RUSAGE_CHILDREN)
                    begin = time.monotonic()
                    bench.run(command, env=bench.environment(2, LD_PRELOAD=bench.shim, DDPCHECK_DIR=trace, DDPCHECK_TIMING=timing,
                                                             **settings))
                    seconds, after = time.monotonic() - begin, resource.getrusage(resource.RUSAGE_CHILDREN)
                    collector.end()
                    records, _, size, lasted = progress_of(trace)
                    of.append((seconds, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, collector.cpu_s,
                               60 * records / lasted, 60 * size / lasted / 1e6))
        middle = {timing: [statistics.median(column) for column in zip(*of)] for timing, of in runs.items()}
        for timing, words in (("0", "without"), ("1", "with")):
            bench.show("%-24s %-8s %6.2f s, %6.2f s of processor, collector %5.2f s; a minute has %8.0f records, %6.1f MB"
                      % (name, words, *middle[timing]))
        bench.show("%-24s the job takes %.3f times as long, and %.3f times the processor time"
                  % (name, middle["1"][0] / middle["0"][0], middle["1"][1] / middle["0"][1]))


def measured(command, statuses=(0,), output=subprocess.DEVNULL, cwd=None):
    """(seconds, processor seconds, peak memory in MB) of a command that must end with one of these statuses."""
    begin = time.monotonic()
    process = subprocess.Popen(command, stdout=output, stdin=subprocess.DEVNULL, cwd=cwd,
                               stderr=subprocess.STDOUT if output != subprocess.DEVNULL else None)
    _, status, usage = os.wait4(process.pid, 0)
    if os.waitstatus_to_exitcode(status) not in statuses:
        raise SystemExit("bench: %s failed with %d" % (command, status))
    return time.monotonic() - begin, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024


def kineto(bench):
    bench.show("Importing a torch.profiler trace of %d MB, and a tree of one of %d MB (Python's json.load, jansson's json_load_file)"
              % (KINETO_MEGABYTES, KINETO_TREE_MEGABYTES))
    if bench.missing("bench/bench_json_tree"):
        return
    make = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "tests", "import", "kineto_traces.py")
    with tempfile.TemporaryDirectory(prefix="ddpcheck-bench-") as folder:
        large, small = os.path.join(folder, "rank0.json"), os.path.join(folder, "small.json")
        bench.show(bench.run([sys.executable, make, large, str(KINETO_MEGABYTES)]).strip() + " among the events of the large one")
        bench.run([sys.executable, make, small, str(KINETO_TREE_MEGABYTES)])
        bench.run(["gzip", "-1", "-k", large])
        ways = (("ddpcheck import, plain", large, [bench.tool, "import", "-o", os.path.join(folder, "plain.db"), large]),
                ("ddpcheck import, gzipped", large, [bench.tool, "import", "-o", os.path.join(folder, "packed.db"), large + ".gz"]),
                ("gzip -dc | wc -c", large, ["sh", "-c", "gzip -dc %s.gz | wc -c" % large]),
                ("ddpcheck import, small", small, [bench.tool, "import", "-o", os.path.join(folder, "small.db"), small]),
                ("jansson, small", small, [bench.path("bench/bench_json_tree"), small]),
                ("Python, small", small, [sys.executable, "-c", "import json, sys; json.load(open(sys.argv[1]))", small]))
        for name, path, command in ways:
            seconds, cpu, peak = measured(command)
            bench.show("%-28s %8.2f s, %7.2f s of processor, %7.0f MB/s of it, peak memory %8.1f MB"
                      % (name, seconds, cpu, os.path.getsize(path) / 1e6 / cpu, peak))


def write_log(path, megabytes, has_calls):
    """A job's log: NCCL's lines of calls, or a trainer's words with progress bars and a watchdog's report at its end."""
    with open(path, "w") as file:
        for rank in range(8):
            file.write("n1:%d:%d [%d] NCCL INFO comm 0x55f0%d00 rank %d nranks 8 cudaDev %d busId %d000 commId 0x5ae77eb5ea4ec1ee - "
                       "Init COMPLETE\n" % (100 + rank, 100 + rank, rank, rank, rank, rank, rank))
        step, size = 0, 0
        while size < megabytes * 10**6:
            call = ("n1:%(p)d:%(p)d [%(r)d] NCCL INFO AllReduce: opCount %(s)x sendbuff 0x7f%(r)d000000 recvbuff 0x7f%(r)d000000 count 4096 "
                    "datatype 7 op 0 root 0 comm 0x55f0%(r)d00 [nranks=8] stream 0x55%(r)d0\n")
            words = "[rank%(r)d]:  %(s)d/100000 [00:03<10:00]\r{'loss': 0.25, 'step': %(s)d} words of a trainer that say nothing of calls\n"
            size += file.write("".join((call if has_calls else words) % {"p": 100 + rank, "r": rank, "s": step} for rank in range(8)))
            step += 1


def log(bench):
    bench.show("Importing logs of %d and %d MB: the memory does not grow as they do, the processor's time as they do (aim: three times that "
               "of gzip -dc)" % LOG_MEGABYTES)
    with tempfile.TemporaryDirectory(prefix="ddpcheck-bench-") as folder:
        path, database = os.path.join(folder, "job.log"), os.path.join(folder, "job.db")
        for name, has_calls in (("calls of NCCL", True), ("other words", False)):
            peaks = []
            for megabytes in LOG_MEGABYTES:
                write_log(path, megabytes, has_calls)
                seconds, cpu, peak = measured([bench.tool, "import", "-q", "-o", database, path])
                os.unlink(database)
                peaks.append(peak)
                subprocess.run(["gzip", "-f", path], check=True)
                unpacking = measured(["gzip", "-dc", path + ".gz"])[1]
                bench.show("%-14s %4d MB %8.2f s, %7.2f s of processor (%.1f times gzip -dc's), peak memory %8.1f MB"
                           % (name, megabytes, seconds, cpu, cpu / unpacking, peak))
            bench.show("%-14s of %.0f times the size: %.1f times the memory" % (name, LOG_MEGABYTES[1] / LOG_MEGABYTES[0], peaks[1] / peaks[0]))


def found_text(path, pattern):
    with open(path) as file:
        found = re.search(pattern, " ".join(file.read().split()))
    return found.group(0) if found else "not in the report: " + pattern


def flight_recorder(bench):
    bench.show("Flight Recorder dumps of %d ranks, %d entries each, analysed by ddpcheck and by PyTorch's torchfrtrace"
              % (FLIGHT_RANKS, FLIGHT_ENTRIES))
    here = os.path.dirname(os.path.abspath(__file__))
    torch = subprocess.run([os.path.join(here, "..", "tools", "setup-torch"), "--find"], capture_output=True, text=True).stdout.strip()
    with tempfile.TemporaryDirectory(prefix="ddpcheck-bench-") as folder:
        dumps, database, text = (os.path.join(folder, name) for name in ("dumps", "dumps.db", "text"))
        odd = bench.run([sys.executable, os.path.join(here, "flight_recorder.py"), dumps, str(FLIGHT_RANKS), str(FLIGHT_ENTRIES)]).strip()
        size = sum(entry.stat().st_size for entry in os.scandir(dumps)) / 1e6
        bench.show("%.0f MB; rank %s never makes the last collective" % (size, odd))

        def line(name, seconds, cpu, peak, verdict):
            bench.show("%-28s %8.2f s, %7.2f s of processor, peak memory %8.1f MB%s" % (name, seconds, cpu, peak, "; " + verdict if verdict else ""))
        first = measured([bench.tool, "import", "-q", "-o", database, dumps])
        line("ddpcheck import", *first, "")
        with open(text, "w") as file:
            second = measured([bench.tool, "report", database], (1,), file)
        line("ddpcheck report", *second, found_text(text, r"rank %s never called it" % odd))
        if not torch:
            bench.show("torchfrtrace: not measured, no PyTorch here (tools/setup-torch)")
            return
        with open(text, "w") as file:
            theirs = measured([os.path.join(torch, "bin", "torchfrtrace"), dumps], (0,), file, dumps)
        line("torchfrtrace", *theirs, found_text(text, r"missing ranks: \{%s\}" % odd))
        bench.show("torchfrtrace takes %.1f times the processor time of import and report (aim: at least 20), and %.1f times the memory"
                  % (theirs[1] / (first[1] + second[1]), theirs[2] / max(first[2], second[2])))


def rank_growth(bench):
    bench.show("Reports of jobs of ever more ranks, 8 to a host (ranks.py)")
    if not bench.missing("bench/bench_rank_traces"):
        ranks.growth(bench.build, bench.show)


PARTS = {"calls": calls, "instructions": instructions, "python": python_calls, "store": store, "collector": collector, "analyzer": analyzer, "long": long_job, "training": training,
         "selection": selection, "times": times, "exact-times": exact_times, "hashing": hashing, "tui": tui, "tui-keys": tui_keys,
         "tui-live": tui_live, "page": page, "kineto": kineto, "log": log, "flight-recorder": flight_recorder, "ranks": rank_growth}


def main():
    bench = Bench(sys.argv[1])
    wanted = sys.argv[2:] or list(PARTS)
    unknown = [part for part in wanted if part not in PARTS]
    if unknown:
        raise SystemExit("bench: no part %s; there are %s" % (unknown[0], ", ".join(PARTS)))
    bench.show("ddpcheck bench, %s, %d processors, load %.1f" % (platform.machine(), os.cpu_count(), os.getloadavg()[0]))
    for part in wanted:
        bench.show()
        PARTS[part](bench)
    bench.file.close()


if __name__ == "__main__":
    main()
