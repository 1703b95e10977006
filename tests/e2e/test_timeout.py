"""run --timeout: a rank that computes or loads before its first NCCL call gets on, one that sleeps does not. Ranks that do not
listen to SIGTERM are killed, that is printed, and the report still shows where they stood."""

import os
import sys
import tempfile

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


def main():
    check_start(sys.argv[1])
    check_trap(sys.argv[1])


if __name__ == "__main__":
    main()
