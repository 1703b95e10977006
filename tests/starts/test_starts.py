"""Programs that a preloaded library, or the emulator's audit library, could keep from starting or change: with a sanitizer's shared
runtime, with small thread stacks, with helpers of another C library, with system calls forbidden. Each ends as without ddpcheck.

test_starts.py BUILD CC CUDA-HEADERS... ; a part whose compiler or library is not here is left out."""

import os
import shutil
import subprocess
import sys
import tempfile

BUILD, CC, INCLUDES = os.path.abspath(sys.argv[1]), sys.argv[2], sys.argv[3:]
TOOL, SHIM = os.path.join(BUILD, "bin", "ddpcheck"), os.path.join(BUILD, "lib", "libddpcheck.so")
EMULATED, FAKE = os.path.join(BUILD, "lib", "ddpcheck", "emu"), os.path.join(BUILD, "tests", "interpose", "fake")
SOURCES = os.path.dirname(os.path.abspath(__file__))
CHANGED = ("LD_PRELOAD", "LD_AUDIT", "GLIBC_TUNABLES", "ASAN_OPTIONS", "LSAN_OPTIONS")
CLEAN = {name: value for name, value in os.environ.items() if not name.startswith("DDPCHECK") and name not in CHANGED}
CONFINED = "the program restricts its system calls (seccomp)"


def build(folder, name, source, compiler, *options):
    """The program, or None if this machine can't build it."""
    path = os.path.join(folder, name)
    done = subprocess.run([compiler, "-w", "-o", path, os.path.join(SOURCES, source), *options], capture_output=True, text=True, timeout=300)
    if done.returncode:
        print("%s is left out: %s" % (name, done.stderr.strip().splitlines()[-1]))
        return None
    return path


def build_job(folder, name, compiler, *options):
    headers = [word for include in INCLUDES for word in ("-isystem", include)]
    return build(folder, name, "job.c", compiler, *headers, "-pthread", *options, "-L" + FAKE, "-l:libnccl.so.2", "-l:libcudart.so.13")


def run(*command, **environment):
    return subprocess.run(command, env={**CLEAN, **environment}, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=300)


def compare(folder, name, program, *arguments, said="1 rank, 1 communicator, no finding"):
    """Alone, and under `run`: the same status and output."""
    alone = run(program, *arguments, LD_LIBRARY_PATH=EMULATED)
    assert alone.returncode == 0 and alone.stdout.endswith("fine\n"), (name, alone)
    watched = run(TOOL, "run", "--emulate", "2", "-o", os.path.join(folder, name + ".trace"), "--", program, *arguments)
    assert (watched.returncode, watched.stdout) == (alone.returncode, alone.stdout) and said in watched.stderr, (name, watched)
    print("ok", name)


def sanitizers(folder):
    """ASan's runtime ends a program if a library is before it; TSan's needs 785 KB of thread-local storage."""
    for name in "address", "thread", "leak", "undefined":
        program = build_job(folder, "gcc-" + name, CC, "-fsanitize=" + name)
        if program and run(program, LD_LIBRARY_PATH=EMULATED).returncode == 0:
            compare(folder, "gcc-" + name, program)
    clang = shutil.which("clang")
    if clang:
        runtime = os.path.dirname(run(clang, "-print-file-name=libclang_rt.asan-x86_64.so").stdout.strip())
        program = build_job(folder, "clang-address", clang, "-fsanitize=address", "-shared-libasan", "-Wl,-rpath," + runtime)
        if program and run(program, LD_LIBRARY_PATH=EMULATED).returncode == 0:
            compare(folder, "clang-address", program)


def small_stacks(folder):
    compare(folder, "threads", build_job(folder, "threads", CC), "threads")


def helpers(folder):
    """musl's loader takes LD_PRELOAD as well."""
    compiler = shutil.which("musl-gcc")
    helper = compiler and build(folder, "helper", "helper.c", compiler)
    if not helper:
        return
    alone, preloaded = run(helper), run(helper, LD_PRELOAD=SHIM)
    assert alone.returncode == 0 and alone.stdout == "110\natexit\n", alone
    assert (preloaded.returncode, preloaded.stdout, preloaded.stderr) == (0, alone.stdout, ""), preloaded
    compare(folder, "musl", build_job(folder, "musl", CC), helper)


def seccomp(folder):
    """A filter that kills, then a first call of NCCL in a new thread: said before it is set, and not recorded."""
    program = build_job(folder, "confined", CC)
    for how in "prctl", "seccomp":
        compare(folder, how, program, how, said=CONFINED)


def main():
    with tempfile.TemporaryDirectory(prefix="ddpcheck-starts-") as folder:
        for part in (sanitizers, small_stacks, helpers, seccomp):
            part(folder)


if __name__ == "__main__":
    main()
