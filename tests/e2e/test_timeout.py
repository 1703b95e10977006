"""run --timeout: a rank that computes or loads before its first NCCL call gets on, one that sleeps does not. Ranks that do not
listen to SIGTERM are killed, that is printed, and the report still shows where they stood. A collector that is stopped, or that
does not begin, costs no job its life or its start, nor does a scheduler that suspends all of them."""

import os
import signal
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor

from line import Line

HERE = os.path.dirname(os.path.abspath(__file__))
NO_PROGRESS = "no progress for 3 s: ending the job"


def run(line, how):
    return line.run([sys.executable, os.path.join(HERE, "starts_late.py"), how], ["--hang-after", "1", "--timeout", "3"])


def fetched_bytes():
    with open("/proc/self/io") as file:
        return int(file.read().split("\nread_bytes: ")[1].split()[0])


def has_storage(folder):
    """Else what is written there is only in memory, and nothing is ever read from a disk."""
    before = fetched_bytes()
    with tempfile.TemporaryFile(dir=folder) as file:
        file.write(bytes(1 << 20))
        os.fsync(file.fileno())
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
        os.pread(file.fileno(), 4096, 0)
    if fetched_bytes() == before:
        print("loads: not checked, the kernel counts no read from the storage of " + folder)
    return fetched_bytes() > before


def check_start(build):
    for how in ("computes", "loads"):
        with Line(build, devices=2, name="timeout") as line:
            if how == "loads" and not has_storage(line.folder):
                continue
            status, _, err = run(line, how)
            assert status == 0 and NO_PROGRESS not in err and "no finding" in err.splitlines()[-1], (how, status, err)
    with Line(build, devices=2, name="timeout") as line:
        status, _, err = run(line, "idles")
        assert status != 0 and NO_PROGRESS in err, (status, err)


def check_trap(build):
    with Line(build, devices=2, name="timeout") as line:
        status, _, err = run(line, "traps")
        assert status != 0 and NO_PROGRESS in err, (status, err)
        assert " not exited 5 s after SIGTERM: killed by ddpcheck (SIGKILL)" in err, err
        _, report, _ = line.call([line.tool, "report", line.trace])
        assert "was killed" not in report and "in cudaStreamSynchronize" in report, report


def wait_for(is_there, what):
    end = time.monotonic() + 300
    while not is_there():
        assert time.monotonic() < end, "no " + what
        time.sleep(0.05)


def start(line, how, *options):
    with open(os.path.join(line.folder, "err"), "w") as err:
        return subprocess.Popen([line.tool, "run", "--emulate", "2", "-o", line.trace, *options, "--", sys.executable,
                                 os.path.join(HERE, "starts_late.py"), how], cwd=line.folder, stdin=subprocess.DEVNULL, stderr=err)


def said(line):
    with open(os.path.join(line.folder, "err")) as err:
        return err.read()


def family(pid):
    with open("/proc/%d/task/%d/children" % (pid, pid)) as file:
        return [pid] + [each for child in file.read().split() for each in family(int(child))]


def send(processes, number):
    for pid in processes:
        os.kill(pid, number)


def collector_of(process):
    for pid in family(process.pid):
        with open("/proc/%d/cmdline" % pid, "rb") as file:
            if b"\0collect\0" in file.read():
                return pid
    raise AssertionError("no collector")


def check_stopped(build):
    """First the collector alone, then all as a scheduler does, longer than --timeout; the ranks get on."""
    with Line(build, devices=2, name="timeout") as line:
        process = start(line, "goes_on", "--timeout", "5")
        wait_for(line.live_database, "calls")
        collector = collector_of(process)
        send([collector], signal.SIGSTOP)
        wait_for(lambda: "the collector, process %d, is stopped: whether" % collector in said(line), "line about the collector")
        send([collector], signal.SIGCONT)
        everyone = family(process.pid)
        send(everyone, signal.SIGSTOP)
        time.sleep(6)
        send(everyone, signal.SIGCONT)
        with open(os.path.join(line.folder, "enough"), "w"):
            pass
        status = process.wait(timeout=300)
        assert status == 0 and "ending the job" not in said(line), (status, said(line))


def check_stopped_at_end(build):
    """With --timeout, too, a collector that is stopped is not waited for without end."""
    with Line(build, devices=2, name="timeout") as line:
        process = start(line, "goes_on", "--timeout", "600")
        wait_for(line.live_database, "calls")
        collector = collector_of(process)
        send([collector], signal.SIGSTOP)
        with open(os.path.join(line.folder, "enough"), "w"):
            pass
        status = process.wait(timeout=300)
        send([collector], signal.SIGCONT)
        line.wait_collector()
        assert status == 0 and "the collector did not come to its end" in said(line), (status, said(line))


def check_never_begins(build):
    """Both `run` and its collector read a pipe, into which something is written once."""
    with Line(build, devices=2, name="timeout") as line:
        pipe = os.path.join(line.folder, "pipe")
        os.mkfifo(pipe)
        process = start(line, "comes", "--timeout", "600", "--suppressions", pipe)
        with open(pipe, "w"):
            pass
        status = process.wait(timeout=300)
        assert status == 0 and "nothing of it is recorded (--timeout does nothing)" in said(line), (status, said(line))


def check_shared(build):
    """Another run's collector has the directory, so nobody says to this one that its ranks get on."""
    with Line(build, devices=2, name="timeout") as line:
        first = start(line, "goes_on")
        wait_for(line.live_database, "calls")
        status, _, err = line.run([sys.executable, os.path.join(HERE, "starts_late.py"), "computes"], ["--timeout", "3"])
        with open(os.path.join(line.folder, "enough"), "w"):
            pass
        assert status == 0 and "and --timeout does nothing" in err and NO_PROGRESS not in err, (status, err)
        assert first.wait(timeout=300) == 0, said(line)


def main():
    build = sys.argv[1]
    with ThreadPoolExecutor() as pool:      # they wait
        checks = [pool.submit(check, build) for check in (check_stopped, check_stopped_at_end, check_never_begins, check_shared)]
        check_start(build)
        check_trap(build)
        for check in checks:
            check.result()


if __name__ == "__main__":
    main()
