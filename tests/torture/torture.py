"""Faults, again and again: kills, few file descriptors, refused system calls, full disks, ordinary and odd programs under the
shim, damaged files. What a job did is counted by itself (counted.c), and compared with the rows of its trace.

torture.py BUILD EMULATOR-LIBRARIES [--seconds N] [--seed N] [--page FILE]

Without --seconds each fault is tried a few times; with it they take turns for so long. --page writes the table into FILE."""

import argparse
import collections
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time

from job import BUILD, COUNTED, SHIM, TOOL, Job, wait_until
from page import write_page

SHORT_ROUNDS = 2
LOOPS = 400
# Each writes the same each time.
ORDINARY = (
    ["ls", "/usr"], ["cat", "/etc/passwd"], ["grep", "-c", "root", "/etc/passwd"], ["sed", "s/root/x/", "/etc/passwd"],
    ["awk", "-F:", "{print $1}", "/etc/passwd"], ["sort", "-r", "/etc/passwd"], ["sha256sum", "/etc/passwd"],
    ["find", "/etc/ssl", "-maxdepth", "1"], ["tar", "-cf", "-", "/etc/passwd"], ["wc", "/etc/passwd"],
    ["bash", "-c", "for i in 1 2 3; do echo $i | cat; done; exit 3"], ["sh", "-c", "ls /nonexistent; kill -9 $$"],
    [sys.executable, "-c", "import threading; t = threading.Thread(target=print, args=(1,)); t.start(); t.join()"],
    [sys.executable, "-c", "import subprocess; print(subprocess.run(['echo', '2'], capture_output=True).stdout)"],
    ["git", "--version"], ["perl", "-e", "print 1 + 1"], ["cc", "--version"], ["xargs", "--version"], ["gzip", "-c", "/etc/passwd"],
    ["env", "-i", "/bin/echo", "3"], ["date", "-u", "-d", "@0"], ["readelf", "-h", "/bin/sh"], ["sqlite3", "-version"])


FILTERED = os.path.join(os.path.dirname(COUNTED), "torture_filtered")
FILTERED_CALLS = 16     # of filtered.c
APART = ["unshare", "--pid", "--fork", "--kill-child", "--mount-proc"]
FAKE = os.path.join(BUILD, "tests", "interpose", "fake")     # libraries that use no system calls themselves
ODD = os.path.join(BUILD, "tests", "interpose", "interpose_odd")
# Each prints ok (tests/interpose/job_odd.c).
ODD_PROGRAMS = ("clears_environment", "replaces_environment", "own_environment", "no_arguments", "closes_all", "small_stack",
                "counts_children", "blocks_signals", "undumpable", "no_files", "few_files", "small_files", "cancels_thread")
# What ddpcheck says where it could not record, or not all.
NOT_RECORDED = ("could not be recorded", "were lost", "was full", "no space left")


class Torture:
    def __init__(self, seed):
        self.random = random.Random(seed)
        self.times = collections.Counter()

    def compare(self, job):
        """What a rank says that it did, and what is stored and counted as lost."""
        for (_, entered, returned), (enters, _, lost) in zip(job.counts(), job.rows()):
            assert enters <= entered and returned <= enters + lost, (job.counts(), job.rows())
            self.times["calls"] += entered
            self.times["stored"] += enters
            self.times["lost"] += lost

    def kills(self):
        """The collector is killed and replaced, then the job, in some rounds one of its ranks first."""
        with Job(2) as job:
            job.make_counts()
            program = job.start_program(LOOPS, "hang", "pause=1000")     # so that it does not end before
            collector = job.start_collector()
            for moment in sorted(self.random.sample(range(10, LOOPS - 20), 3)):
                wait_until(lambda: job.counts()[0][1] >= moment, "call %d" % moment)    # pylint: disable=cell-var-from-loop
                if self.random.random() < 0.7:
                    collector.kill()
                    collector.wait()
                    collector = job.start_collector()
                    self.times["kills of the collector"] += 1
            if self.random.random() < 0.5:
                os.kill(self.random.choice(job.counts())[0], signal.SIGKILL)
                self.times["kills of a rank"] += 1
            os.killpg(program.pid, signal.SIGKILL)
            program.wait()
            collector.wait(timeout=300)
            done = subprocess.run([TOOL, "collect", job.trace], env=job.environment, capture_output=True, text=True, timeout=300)
            assert done.returncode == 0, done
            self.compare(job)
        self.times["rounds of kills"] += 1

    def descriptors(self):
        limit, ranks = self.random.randint(4, 40), self.random.choice((1, 2, 4))
        with Job(ranks) as job:
            job.make_counts()
            command = job.run_command(COUNTED, job.counts_path, str(ranks), "20")
            done = subprocess.run(["sh", "-c", "ulimit -n %d; exec \"$@\"" % limit, "sh", *command], cwd=job.folder,
                                  env=job.run_environment(), capture_output=True, text=True, timeout=300)
            if done.returncode:
                assert done.returncode == 2 and "too few file descriptors" in done.stderr, (limit, done)
                self.times["jobs refused for few descriptors"] += 1
            else:
                said = "%d rank%s, 1 communicator" % (ranks, "s" if ranks > 1 else "")
                assert said in done.stderr, (limit, done)
                assert [row[0] for row in job.rows()] == [20] * ranks, (limit, job.rows())
                self.times["jobs recorded with few descriptors"] += 1

    def ordinary(self):
        command = self.random.choice([command for command in ORDINARY if shutil.which(command[0])])
        with tempfile.TemporaryDirectory(prefix="ddpcheck-torture-") as folder:
            clean = {name: value for name, value in os.environ.items() if not name.startswith("DDPCHECK")}
            watched = {**clean, "LD_PRELOAD": SHIM, "DDPCHECK_DIR": os.path.join(folder, "trace")}
            results = [subprocess.run(command, env=environment, cwd=folder, capture_output=True, timeout=300)
                       for environment in (clean, watched)]
            same = [(done.returncode, done.stdout, done.stderr) for done in results]
            assert same[0] == same[1], (command, same)
            assert os.listdir(folder) == [], command
        self.times["ordinary programs"] += 1

    def unharmed(self, job, done, loops):
        """The job did all that it does, and what of it is not stored was said."""
        assert done.returncode == 0, done
        assert [counts[1:] for counts in job.counts()] == [(loops, loops)] * job.ranks, (job.counts(), done)
        stored = [row[:2] for row in job.rows()]
        whole = stored == [(loops, loops)] * job.ranks
        assert whole or any(words in done.stderr for words in NOT_RECORDED), (stored, done)
        return whole

    def start(self, command, job, **environment):
        return subprocess.run(command, cwd=job.folder, env={**job.environment, **environment}, capture_output=True, text=True,
                              errors="replace", timeout=300)

    def start_wrapped(self, job, *wrapper, loops=50):
        job.make_counts()
        command = job.run_command(*wrapper, COUNTED, job.counts_path, str(job.ranks), str(loops))
        return self.start(command, job, **job.run_environment())

    def start_with_fakes(self, job, *program):
        """Alone, and under ddpcheck."""
        alone = self.start(program, job, LD_LIBRARY_PATH=FAKE)
        if os.path.exists(job.counts_path):
            job.make_counts()
        watched = self.start([TOOL, "run", "-o", job.trace, "--", *program], job, LD_LIBRARY_PATH=FAKE, DDPCHECK_COLLECT="")
        assert (watched.returncode, watched.stdout) == (alone.returncode, alone.stdout), (alone, watched)
        return watched

    def filters(self):
        """System calls that fail, for the job's processes."""
        calls = "%x" % (self.random.getrandbits(FILTERED_CALLS) & self.random.getrandbits(FILTERED_CALLS))
        with Job(2) as job:
            job.make_counts()
            done = self.start_with_fakes(job, FILTERED, calls, COUNTED, job.counts_path, "2", "50")
            whole = self.unharmed(job, done, 50)
            self.times["filters, recorded" if whole else "filters, not recorded"] += 1

    def namespaces(self):
        if subprocess.run([*APART, "true"], capture_output=True, check=False).returncode:
            return
        with Job(2) as job:
            assert self.unharmed(job, self.start_wrapped(job, *APART), 50), job.rows()
            self.times["namespaces"] += 1

    def full_disk(self):
        """The trace directory is a file system that is too small for the trace, or nearly."""
        kilobytes = self.random.choice((16, 64, 128, 256, 400, 600, 1000, 4000))
        with Job(2) as job:
            os.mkdir(job.trace, 0o700)
            mount = ["mount", "-t", "tmpfs", "-o", "size=%dk,mode=700" % kilobytes, "none", job.trace]
            if os.geteuid() or subprocess.run(mount, capture_output=True, check=False).returncode:
                return
            try:
                whole = self.unharmed(job, self.start_wrapped(job, loops=LOOPS), LOOPS)
                self.times["disks with room" if whole else "full disks"] += 1
            finally:
                rings = job.rings()
                if rings:
                    shutil.rmtree(rings, ignore_errors=True)
                subprocess.run(["umount", "-l", job.trace], check=True)

    def odd(self):
        name = self.random.choice(ODD_PROGRAMS)
        with Job(1) as job:
            done = self.start_with_fakes(job, ODD, name)
            assert (done.returncode, done.stdout) == (0, "ok\n"), (name, done)
        self.times["odd programs"] += 1

    def damage(self, data):
        """Cut off, or with some bits turned over."""
        data = bytearray(data)
        if self.random.random() < 0.3:
            return data[:self.random.randrange(len(data))]
        for _ in range(self.random.choice((1, 8, 64))):
            at = self.random.randrange(min(len(data), self.random.choice((4096, 65536, len(data)))))
            data[at] ^= 1 << self.random.randrange(8)
        return data

    def files(self):
        """Rings that nobody has collected, and the database that came of them, damaged in several ways each."""
        with Job(2) as job:
            job.make_counts()
            assert job.start_program(20).wait(timeout=300) == 0
            rings = job.rings()
            whole = {}
            for name in os.listdir(rings):
                with open(os.path.join(rings, name), "rb") as file:
                    whole[name] = file.read()
            self.collect(job)
            self.compare(job)
            database = os.path.join(job.trace, next(name for name in os.listdir(job.trace) if name.endswith(".db")))
            with open(database, "rb") as file:
                recorded = file.read()
            for _ in range(10):
                with open(database, "wb") as file:
                    file.write(self.damage(recorded))
                self.survives([TOOL, "report", database], job)
                self.times["damaged databases"] += 1
            for _ in range(3):
                os.unlink(database)
                os.makedirs(rings, 0o700, exist_ok=True)
                for name, data in whole.items():
                    with open(os.path.join(rings, name), "wb") as file:
                        file.write(self.damage(data))
                    os.chmod(os.path.join(rings, name), 0o600)
                    self.times["damaged rings"] += 1
                self.survives([TOOL, "collect", job.trace], job)
                shutil.rmtree(rings, ignore_errors=True)
                with open(database, "ab"):
                    pass

    def collect(self, job):
        done = subprocess.run([TOOL, "collect", job.trace], env=job.environment, capture_output=True, text=True, timeout=300)
        assert done.returncode == 0, done

    def survives(self, command, job):
        done = subprocess.run(command, env=job.environment, capture_output=True, text=True, errors="replace", timeout=300)
        assert done.returncode in range(4), done   # findings, errors of use, an incomplete trace

    def rows(self):
        times = self.times
        return (
            ("The collector was killed (SIGKILL) at random moments and replaced, and then the job, in some rounds one rank first",
             "%d rounds, %d collectors, %d ranks" % (times["rounds of kills"], times["kills of the collector"],
                                                     times["kills of a rank"]),
             "Every call that had returned is stored or counted as lost, here and in the row of damaged files: %d calls begun, "
             "%d stored, %d records counted as lost" % (times["calls"], times["stored"], times["lost"])),
            ("`ulimit -n` of 4 to 40 for a job of 1, 2 or 4 ranks under `ddpcheck run`",
             "%d jobs" % (times["jobs refused for few descriptors"] + times["jobs recorded with few descriptors"]),
             "%d were refused with the reason, %d recorded whole with the right number of ranks" % (
                 times["jobs refused for few descriptors"], times["jobs recorded with few descriptors"])),
            ("A seccomp filter that refuses up to 16 system calls that ddpcheck uses (flock, fallocate, fcntl, prctl and others)",
             "%d jobs" % (times["filters, recorded"] + times["filters, not recorded"]),
             "The job made all its calls: %d were recorded whole, %d not, which was said" % (
                 times["filters, recorded"], times["filters, not recorded"])),
            ("A job in a PID namespace of its own", "%d jobs" % times["namespaces"], "Recorded whole"),
            ("A trace directory of 16 KB to 4 MB", "%d jobs" % (times["disks with room"] + times["full disks"]),
             "The job made all its calls: %d were recorded whole, %d not, which was said" % (
                 times["disks with room"], times["full disks"])),
            ("Programs that treat their process in odd ways (closed descriptors, cleared environment, small stacks and others)",
             "%d runs" % times["odd programs"], "The same output and status as without it"),
            ("Ordinary programs (ls, bash, python, git and others) under the shim", "%d runs" % times["ordinary programs"],
             "The same output and status as without it, and no file"),
            ("`report` of a database that was cut off or had bits turned over", "%d times" % times["damaged databases"],
             "No crash: a report, or a message"),
            ("`collect` of rings that were cut off or had bits turned over", "%d files" % times["damaged rings"],
             "No crash: stored, or refused with a message"))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("build")
    parser.add_argument("emulator")
    parser.add_argument("--seconds", type=int)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--page")
    options = parser.parse_args()
    print("seed %d" % options.seed, flush=True)
    torture = Torture(options.seed)
    faults = (torture.kills, torture.descriptors, torture.descriptors, torture.ordinary, torture.ordinary, torture.ordinary,
              torture.ordinary, torture.files, torture.filters, torture.namespaces, torture.full_disk, torture.odd, torture.odd)
    end = time.monotonic() + (options.seconds or 0)
    rounds = 0
    while rounds < SHORT_ROUNDS or (options.seconds and time.monotonic() < end):
        for fault in faults:
            fault()
        rounds += 1
    lines = "".join("| %s | %s | %s |\n" % row for row in torture.rows())
    print(lines + "ok, %d rounds of all faults" % rounds)
    if options.page:
        write_page(options.page, options.seconds or 0, options.seed, lines)


if __name__ == "__main__":
    main()
