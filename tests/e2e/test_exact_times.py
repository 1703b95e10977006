"""run --timing: operations and kernels have exact times, and the kernels that a slow device takes longer for have names; and
a job that can't have such times runs as it would, with one line that says why. Durations are modelled by the emulator, so
that other programs on the machine can only add to them."""

import json
import os
import subprocess
import sys

from line import Line

OPERATIONS = 30
SECONDS = 0.02
MEBIBYTE = 1 << 20
LIBRARIES = os.path.join("tests", "e2e_libraries")
LINE = "ddpcheck: no exact times: "


def timed_program(line):
    return [os.path.join(line.build, "tests", "timed")]


def check_durations(build, name="exact", **more):
    """AllReduces of which the emulator says what their transfer takes."""
    with Line(build, devices=2, name=name) as line:
        rate = "0-1=%d" % (MEBIBYTE / SECONDS)
        status, out, err = line.run(timed_program(line), options=["--timing"], environment={"DDPCHECK_EMU_LINK_RATE": rate, **more})
        assert status == 0 and LINE not in err, out + err
        rows = line.query("SELECT process, w0, w1, w2, time_ns FROM event WHERE w0 > 0 AND api = "
                          "(SELECT number FROM api WHERE name = 'notice_timed') ORDER BY process, w0")
        issued = {(process, launch): at for process, launch, at in line.query(
            "SELECT c.process, c.launch, e.time_ns FROM v_collective c JOIN event e ON e.seq = c.seq "
            "WHERE c.name = 'ncclAllReduce'")}
        exact = [(process, launch, begin, end, at) for process, launch, begin, end, at in rows if (process, launch) in issued]
        # The first operations may run before CUPTI does.
        assert len(exact) >= 2 * OPERATIONS - 2, "%d of %d operations have exact times" % (len(exact), 2 * OPERATIONS)
        print("AllReduces: %s ms" % " ".join("%.3f" % ((end - begin) / 1e6) for _, _, begin, end, _ in exact))
        for process, launch, begin, end, at in exact:
            assert end - begin >= SECONDS * 1e9, "launch %d took %d ns" % (launch, end - begin)
            assert issued[process, launch] <= begin and end <= at, "launch %d ran before it was issued or after it was recorded" % launch


def train(build, name, speed):
    """The findings of section 6 of a classifier on two devices whose kernels take 4 ms, and report --speed."""
    with Line(build, devices=2, name=name) as line:
        status, out, err = line.run([line.trainer, "--ranks", "2", "--model", "cnn", "--iterations", "40"], options=["--timing"],
                                    timeout=500, environment={"DDPCHECK_EMU_KERNEL_TIME": "all=0.004", **speed})
        assert status == 0 and LINE not in err, out + err
        _, findings, _ = line.report()
        _, text, _ = line.call([line.tool, "report", "--speed", "--color", "never", line.trace])
        return [each for each in findings if each["code"].startswith("DC6")], text


def check_slow_device(build):
    findings, text = train(build, "slow", {"DDPCHECK_EMU_DEVICE_SPEED": "1=0.4"})
    print(text[:3000])
    named = [each for each in findings if each["code"] == "DC604"]
    assert len(named) == 1 and named[0]["severity"] == "warning", findings
    words = json.dumps(named[0])
    assert "rank 1" in words and "ddpcheck_" in words and " times" in words, words
    assert "Kernels and copies that take most time" in text and "ddpcheck_adam_step" in text, text
    findings, text = train(build, "even", {})
    assert "DC604" not in [each["code"] for each in findings], findings
    assert "Kernels and copies that take most time" in text, text


def run_bare(line, folder, **more):
    environment = line.bare_environment(LD_LIBRARY_PATH=folder, DDPCHECK_TIMING="1", **more)
    del environment["LD_AUDIT"]         # it finds the emulated CUPTI wherever it is
    done = subprocess.run(timed_program(line), cwd=line.folder, env=environment, stdin=subprocess.DEVNULL, capture_output=True,
                          text=True, timeout=300)
    line.wait_collector()
    return done.returncode, done.stderr


def check_refusal(build, name, why, cupti=None, **more):
    """The job runs; each process says once why (one of `why`); operations have the times of the progress words."""
    with Line(build, devices=2, name="refused-" + name) as line:
        folder = os.path.join(line.folder, "libraries")
        os.mkdir(folder)
        for file in os.listdir(line.emu):
            if not file.startswith("libcupti"):
                os.symlink(os.path.join(line.emu, file), os.path.join(folder, file))
        for number in (12, 13):
            library = os.path.join(folder, "libcupti.so.%d" % number)
            if cupti:
                os.symlink(os.path.join(line.build, cupti % number if "%" in cupti else cupti), library)
            else:       # in front of those of the system
                with open(library, "w", encoding="utf-8") as file:
                    file.write("no library\n")
        status, err = run_bare(line, folder, **{key: value.replace("BUILD", line.build) for key, value in more.items()})
        said = [text for text in err.splitlines() if LINE in text]
        assert status == 0, err
        assert len(said) == 2 and all(any(each in text for each in why) for text in said), err      # of each of two processes
        api = {name: number for name, number in line.query("SELECT name, number FROM api")}
        assert not line.query("SELECT 1 FROM event WHERE api IN (?, ?)", api["notice_timed"], api["notice_kernels"])
        assert line.query("SELECT 1 FROM event WHERE api = ?", api["notice_progress"])
        print("%s: %s" % (name, said[0]))


def main():
    build = sys.argv[1]
    check_durations(build)
    for version in "130101", "130500", "990000":        # newer ones have more fields at the end of a record
        check_durations(build, "exact-" + version, DDPCHECK_EMU_CUPTI_VERSION=version)
    emulated = os.path.join("lib", "ddpcheck", "emu", "libcupti.so.%d")
    # A toolkit's own CUPTI, in its usual folder, would find no driver that it is for.
    check_refusal(build, "missing", ["there is no libcupti.so.13", "cuptiSubscribe failed"])
    check_refusal(build, "wrong", ["has no cupti"], cupti=os.path.join("lib", "ddpcheck", "emu", "libnccl.so.2"))
    check_refusal(build, "old", ["version 9 is older"], cupti=os.path.join(LIBRARIES, "libold_cupti.so"))
    check_refusal(build, "nsys", ["CUDA_INJECTION64_PATH"], cupti=emulated, CUDA_INJECTION64_PATH="/opt/nsight/injection.so")
    shim = os.path.join("BUILD", "lib", "libddpcheck.so")
    check_refusal(build, "subscriber", ["a profiler in this process has CUPTI"], cupti=emulated,
                  LD_PRELOAD=shim + ":" + os.path.join("BUILD", LIBRARIES, "libprofiler.so"))
    check_slow_device(build)


if __name__ == "__main__":
    main()
