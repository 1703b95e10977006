"""ddpcheck doctor -- PROGRAM, on a small real program for each case.

test_doctor.py BUILD CC [NVCC]"""

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile

BUILD, CC = os.path.abspath(sys.argv[1]), sys.argv[2]
NVCC = sys.argv[3] if len(sys.argv) > 3 else None
TOOL = os.path.join(BUILD, "bin", "ddpcheck")
SHIM = os.path.join(BUILD, "lib", "libddpcheck.so")
FAKE = os.path.join(BUILD, "tests", "interpose", "fake")
EMULATED = os.path.join(BUILD, "lib", "ddpcheck", "emu")
LAUNCHED = os.path.join(BUILD, "tests", "plugin")

CALLS_NCCL = "int ncclAllReduce(void); int main(void) { return ncclAllReduce(); }\n"
DEFINES = "int ncclAllReduce(void); int ncclAllReduce(void) { return 0; }\n"
TEXTS = 'extern const char *texts[]; const char *texts[] = {"NCCL_DEBUG_SUBSYS", "libnccl-profiler"};\n'
OLD_TEXTS = 'extern const char *texts[]; const char *texts[] = {"NCCL_DEBUG_SUBSYS"};\n'
CUDART = "int cudaMalloc(void); int cudaMalloc(void) { return 0; }\n"
CUDART_TEXTS = 'extern const char *texts[]; const char *texts[] = {"/cudart.shm.%x"};\n'
ALLOCATES = "int main() { void *p; return cudaMalloc(&p, 4); }\n"
ASKS_TABLES = """#include <dlfcn.h>
int main(void)
{
    int (*find)(const char *, void **, int, unsigned long, int *) = dlsym(dlopen("libcuda.so.1", RTLD_NOW), "cuGetProcAddress_v2");
    void *table;
    int status;
    return find("cuGetExportTable", &table, 13000, 0, &status) == 0 || find("cuGetExportTable", &table, 13000, 0, &status) == 0;
}
"""
OPENS = "#include <dlfcn.h>\nint main(void) { return !dlsym(dlopen(\"libnccl.so.2\", RTLD_NOW), \"ncclAllReduce\"); }\n"
NOTHING = "int main(void) { return 0; }\n"

failures = 0


def doctor(*program, environment=None, status=0):
    clean = {name: value for name, value in os.environ.items()
             if not name.startswith(("DDPCHECK", "NCCL_PROFILER")) and name not in ("LD_PRELOAD", "NVTX_INJECTION64_PATH")}
    done = subprocess.run([TOOL, "doctor", "--json", "--", *program], env={**clean, **(environment or {})}, capture_output=True,
                          text=True, timeout=300)
    assert done.returncode == status, "%s: exit status %d, %s %s" % (program, done.returncode, done.stdout, done.stderr)
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    assert lines[-1]["schema"] == "ddpcheck.doctor-summary/1" and all(l["schema"] == "ddpcheck.doctor/1" for l in lines[:-1])
    assert lines[-1]["works"] == (status == 0) and lines[-1]["failures"] == sum(l["verdict"] == "fail" for l in lines[:-1]), lines[-1]
    return lines


def check(name, lines, row, verdict, words, front_end=None, todo=""):
    """The row of that name has the verdict and the words; the front end is the one."""
    global failures
    found = [line for line in lines[:-1] if line["check"] == row]
    good = [line for line in found if line["verdict"] == verdict and words in line["text"] and todo in line["todo"]]
    if not good or (front_end and lines[-1]["front_end"] != front_end):
        failures += 1
        print("%s: expected %s %s '%s' -> '%s', front end %s; got %s, %s" % (name, row, verdict, words, todo, front_end, found, lines[-1]))


class Folder:
    def __init__(self, path):
        self.path = path

    def file(self, name, content, mode=0o755):
        path = os.path.join(self.path, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "wb") as file:
            file.write(content if isinstance(content, bytes) else content.encode())
        os.chmod(path, mode)
        return path

    def build(self, name, source, *options):
        program = os.path.join(self.path, name)
        os.makedirs(os.path.dirname(program), exist_ok=True)
        done = subprocess.run([CC, "-x", "c", "-", "-o", program, *options], input=source, capture_output=True, text=True, timeout=300)
        assert done.returncode == 0, done.stderr
        return program

    def patched(self, name, program, offset, value):
        """A copy with one byte of it changed."""
        with open(program, "rb") as file:
            content = bytearray(file.read())
        content[offset] = value
        return self.file(name, bytes(content))


def nccl(at):
    shared = at.build("shared", CALLS_NCCL, "-L" + FAKE, "-l:libnccl.so.2", "-Wl,--unresolved-symbols=ignore-all")
    check("shared", doctor(shared), "its NCCL", "ok", "linked dynamically", "preload")
    check("dlopen", doctor(at.build("opens", OPENS, "-ldl")), "its NCCL", "ok", "dlopen and dlsym of libnccl.so", "preload")
    check("neither", doctor(at.build("nothing", NOTHING)), "its NCCL", "warn", "not linked with NCCL", "preload", "launcher")
    inside = at.build("inside", CALLS_NCCL + DEFINES + TEXTS)
    check("static NCCL", doctor(inside), "its NCCL", "warn", "linked into the program", "plugin", "run --plugin")
    check("plugin taken", doctor(inside, environment={"NCCL_PROFILER_PLUGIN": "/x/libother.so"}, status=1), "its NCCL", "fail",
          "taken by /x/libother.so", "none", "unset NCCL_PROFILER_PLUGIN")
    check("plugin is ours", doctor(inside, environment={"NCCL_PROFILER_PLUGIN": SHIM}), "its NCCL", "warn", "linked into", "plugin")
    old = at.build("old", CALLS_NCCL + DEFINES + OLD_TEXTS)
    check("old static NCCL", doctor(old, status=1), "its NCCL", "fail", "too old for profiler plugins", "none", "2.23")
    stripped = at.build("stripped", CALLS_NCCL + DEFINES + TEXTS, "-s")
    check("stripped", doctor(stripped), "its NCCL", "warn", "stripped, but NCCL's texts", "plugin")
    check("stripped, old", doctor(at.build("stripped_old", CALLS_NCCL + DEFINES + OLD_TEXTS, "-s")), "its NCCL", "warn", "may be linked in")
    check("stubs", doctor(at.build("stubs", CALLS_NCCL + DEFINES)), "its NCCL", "ok", "functions of NCCL's names, but not NCCL", "preload")
    here = "-Wl,-rpath," + at.path
    at.build("libmodel.so", DEFINES + TEXTS, "-shared", "-fPIC")
    uses = at.build("uses", CALLS_NCCL, "-L" + at.path, "-lmodel", here)
    check("in a library", doctor(uses), "its NCCL", "warn", "linked into %s/libmodel.so" % at.path, "plugin", "run --plugin")
    at.build("libouter.so", "int outer(void); int outer(void) { return 0; }", "-shared", "-fPIC", "-Wl,--no-as-needed", "-L" + at.path, "-lmodel", here)
    outer = at.build("outer", "int outer(void); int main(void) { return outer(); }", "-L" + at.path, "-louter", here)
    check("in a library's library", doctor(outer), "its NCCL", "warn", "linked into %s/libmodel.so" % at.path, "plugin")
    os.remove(os.path.join(at.path, "libouter.so"))
    check("no library", doctor(outer), "its NCCL", "warn", "ld.so finds no libouter.so", "preload", "LD_LIBRARY_PATH")
    if os.path.exists(os.path.join(LAUNCHED, "plugin_job_static")):         # sanitizer builds have no plugin
        check("emulated, static", doctor(os.path.join(LAUNCHED, "plugin_job_static")), "its NCCL", "warn", "linked into", "plugin")
        check("emulated, shared", doctor(os.path.join(LAUNCHED, "plugin_job_shared")), "its NCCL", "ok", "dynamically", "preload")


def reached(at):
    program = at.build("plain", NOTHING)
    check("static program", doctor(at.build("all", NOTHING, "-static"), status=1), "LD_PRELOAD", "fail", "linked statically", "none")
    check("musl", doctor(at.build("musl", NOTHING, "-Wl,--dynamic-linker=/lib/ld-musl-x86_64.so.1"), status=1), "LD_PRELOAD", "fail",
          "musl", "none", "glibc")
    check("32 bits", doctor(at.patched("narrow", program, 4, 1), status=1), "LD_PRELOAD", "fail", "another kind of machine", "none")
    check("other machine", doctor(at.patched("arm", program, 18, 183), status=1), "LD_PRELOAD", "fail", "another kind of machine", "none")
    setgid = shutil.copy(program, os.path.join(at.path, "setgid"))
    os.chmod(setgid, 0o2755)
    if os.stat(setgid).st_mode & 0o2000:
        check("set-group-ID", doctor(setgid, status=1), "LD_PRELOAD", "fail", "set-user-ID or set-group-ID", "none")
    check("missing", doctor(os.path.join(at.path, "no-such"), status=1), "program", "fail", "there is no program", "none")
    for name, content in (("noise", b"\x7fELF" + b"\xa5" * 400), ("text", b"hello\n"), ("empty", b"")):
        check(name, doctor(at.file(name, content), status=1), "program", "fail", "", "none")


def has_driver():
    return subprocess.run([TOOL, "doctor", "-v"], capture_output=True, text=True, timeout=300).stdout.count("ok    CUDA driver") > 0


def emulated(*program):
    """What such a run prints."""
    with tempfile.TemporaryDirectory(prefix="ddpcheck-doctor-") as trace:
        return subprocess.run([TOOL, "run", "--emulate", "2", "-o", trace, "--", *program], capture_output=True, text=True,
                              timeout=300).stderr


def cuda(at):
    """A CUDA runtime that is linked in does not run on emulated GPUs: said by doctor and by the run."""
    verdict, words, todo = ("ok", "linked in (nvcc's default)", "") if has_driver() else ("fail", "fail with error 36", "nvcc -cudart shared")
    programs = [at.build("cudart", NOTHING + CUDART), at.build("cudart_texts", NOTHING + CUDART_TEXTS, "-s")]
    if NVCC:
        programs += [os.path.join(at.path, "static"), os.path.join(at.path, "static_stripped")]
        subprocess.run([NVCC, "-o", programs[2], at.file("static.cu", ALLOCATES)], check=True, timeout=300)
        subprocess.run(["strip", "-o", programs[3], programs[2]], check=True, timeout=300)
    for program in programs:
        check("static cudart", doctor(program, status=int(verdict == "fail")), "its CUDA runtime", verdict, words, todo=todo)
    at.build("libinside.so", CUDART_TEXTS, "-shared", "-fPIC")
    uses = at.build("uses_cudart", NOTHING, "-Wl,--no-as-needed", "-L" + at.path, "-linside", "-Wl,-rpath," + at.path)
    if verdict == "fail":
        check("in a library", doctor(uses), "its CUDA runtime", "warn", "libinside.so has a CUDA runtime of its own", todo="nvcc -cudart shared")
    has_plugin = os.path.exists(os.path.join(LAUNCHED, "plugin_job_static"))      # else the emulator has a sanitizer, these programs have none
    if has_plugin and os.path.exists(os.path.join(EMULATED, "libcuda.so.1")):
        for program in [at.build("asks", ASKS_TABLES, "-ldl"), *programs[2:]]:
            told_of = emulated(program)
            assert told_of.count("nvcc -cudart shared") == 1, told_of


def unemulated(at):
    """What a program and its libraries call, and the emulated libraries lack."""
    if not os.path.exists(os.path.join(EMULATED, "libnccl.so.2")) or has_driver():
        return
    calls = "int %s(void); int %s_user(void); int %s_user(void) { return %s(); }"
    new = ("ncclNotYetMade", "ncclMaybe", "ncclAllReduce", "ncclNewA", "ncclNewB", "cudaNewC", "cuNewD", "cublasNewE", "ncclNewF")
    at.build("newer/libnccl.so.2", "".join("int %s(void) { return 0; }" % name for name in new), "-shared", "-fPIC", "-w",
             "-Wl,-soname,libnccl.so.2")
    newer = os.path.join(at.path, "newer")
    options = ("-L" + newer, "-Wl,--no-as-needed", "-l:libnccl.so.2")
    row, linked = "its calls, emulated", {"LD_LIBRARY_PATH": newer}
    fine = at.build("fine", CALLS_NCCL, *options)
    check("all there", doctor(fine, environment=linked), row, "ok", "every function", "preload")
    lacks = at.build("lacks", NOTHING + calls % (("ncclNotYetMade",) * 4), *options)
    check("a new function", doctor(lacks, environment=linked, status=1), row, "fail", "lack: ncclNotYetMade", "none", "docs/emulator.md")
    weak = at.build("weak", NOTHING + "__attribute__((weak)) int ncclMaybe(void); int it(void) { return ncclMaybe(); }" +
                    calls % (("ncclAllReduce",) * 4), *options)
    check("a function that may be there", doctor(weak, environment=linked), row, "ok", "every function", "preload")
    for number, name in enumerate(new[3:]):
        at.build("libnew%d.so" % number, calls % ((name,) * 4), "-shared", "-fPIC", *options)
    libraries = ["-lnew%d" % number for number in range(6)]
    outer = at.build("new", NOTHING, "-Wl,--no-as-needed", "-L" + at.path, "-Wl,--allow-shlib-undefined", *libraries,
                     "-Wl,-rpath," + at.path)
    check("of libraries", doctor(outer, environment=linked, status=1), row, "fail", "lack: cuNewD, cublasNewE, cudaNewC, ncclNewA and 2 more", "none")
    interpreter, packages = at.build("new_env/bin/python3", NOTHING), "new_env/lib/python3.11/site-packages/torch/lib/"
    at.build(packages + "libtorch_cuda.so", calls % (("ncclNotYetMade",) * 4), "-shared", "-fPIC", *options)
    check("of PyTorch", doctor(at.file("new_env/bin/torchrun", "#!%s\n" % interpreter), environment=linked, status=1), "PyTorch, emulated",
          "fail", "lack: ncclNotYetMade", "none")


def sanitized(at):
    """AddressSanitizer's runtime in a library of its own."""
    program = os.path.join(at.path, "sanitized")
    done = subprocess.run([CC, "-x", "c", "-", "-fsanitize=address", "-o", program], input=NOTHING, capture_output=True, text=True,
                          timeout=300)
    if done.returncode == 0 and "libasan.so" in subprocess.run(["ldd", program], capture_output=True, text=True, timeout=100).stdout:
        check("ASan", doctor(program), "its sanitizer", "warn", "before every other library", "preload", "libasan.so")


def started(at):
    inside = at.build("bin/inside", CALLS_NCCL + DEFINES + TEXTS)
    script = at.file("wrapper", "#!%s\nwhatever\n" % inside)
    check("script", doctor(script), "its NCCL", "warn", "linked into the program", "plugin")
    check("script of a script", doctor(at.file("again", "#!%s\n" % script)), "its NCCL", "warn", "linked into the program", "plugin")
    check("loop", doctor(at.file("loop", "#!%s/loop\n" % at.path), status=1), "program", "fail", "scripts that run scripts", "none")
    check("found by PATH", doctor("inside", environment={"PATH": os.path.join(at.path, "bin") + ":" + os.environ["PATH"]}), "its NCCL", "warn",
          "linked into", "plugin")
    for name, verdict, words, todo in (("sudo", "fail", "clears LD_PRELOAD", "sudo ddpcheck run"), ("docker", "fail", "container", "inside it"),
                                       ("mpirun", "ok", "-x LD_PRELOAD", "doctor -- PROGRAM"), ("srun", "ok", "all ranks inherit", "doctor -- PROGRAM"),
                                       ("ssh", "fail", "another host", "inside it"), ("bash", "ok", "a shell", "doctor -- PROGRAM")):
        launcher = at.build(name, NOTHING)
        check(name, doctor(launcher, "x", status=int(verdict == "fail")), "what it starts", verdict, words, "none" if verdict == "fail" else "preload", todo)


def python(at):
    """A Python of our own making, with packages beside it; torchrun is a script of it."""
    interpreter = at.build("env/bin/python3", NOTHING)
    torchrun = at.file("env/bin/torchrun", "#!%s\n" % interpreter)
    check("no packages", doctor(torchrun, "train.py"), "Python's NCCL", "warn", "no nvidia-nccl package", "preload")
    packages = "env/lib/python3.11/site-packages/"
    at.build(packages + "nvidia/nccl/lib/libnccl.so.2", DEFINES, "-shared", "-fPIC")
    at.build(packages + "torch/lib/libtorch_cpu.so", NOTHING, "-shared", "-fPIC")
    check("CPU build", doctor(torchrun), "Python's PyTorch", "warn", "without CUDA: its jobs use gloo", "preload", "pip install torch")
    torch = packages + "torch/lib/libtorch_cuda.so"
    at.build(torch, "int ncclAllReduce(void); int all(void); int all(void) { return ncclAllReduce(); }", "-shared", "-fPIC")
    lines = doctor(torchrun, "train.py")
    check("wheels", lines, "Python's NCCL", "ok", "libnccl.so.2, loaded dynamically", "preload")
    check("wheels", lines, "Python's PyTorch", "ok", "calls the libnccl.so", "preload")
    at.build(torch, DEFINES + TEXTS, "-shared", "-fPIC")
    check("old wheel", doctor(torchrun), "Python's PyTorch", "warn", "linked into PyTorch's libtorch_cuda.so", "plugin", "run --plugin")


def environment(at):
    program = at.build("plain", NOTHING)
    check("switched off", doctor(program, environment={"DDPCHECK_DISABLE": "1"}, status=1), "switch", "fail", "DDPCHECK_DISABLE=1", "none")
    check("another plugin", doctor(program, environment={"NCCL_PROFILER_PLUGIN": "inspector"}), "profiler plugin", "warn", "taken by inspector", "preload")
    check("no plugin", doctor(program, environment={"NCCL_PROFILER_PLUGIN": "none"}), "profiler plugin", "ok", "none")
    check("NVTX taken", doctor(program, environment={"NVTX_INJECTION64_PATH": "/x/libnvtx.so"}), "NVTX", "warn", "/x/libnvtx.so")
    check("profiler", doctor(program, environment={"NSYS_PROFILING_SESSION_ID": "7"}), "CUPTI", "ok", "both work")
    emulated = {"LD_LIBRARY_PATH": os.path.join(BUILD, "lib", "ddpcheck", "emu")}
    check("CUPTI", doctor(program, environment=emulated), "CUPTI", "ok", "libcupti.so.13 is there")


def versions(at):
    program, emulated = at.build("versions", NOTHING), {"LD_LIBRARY_PATH": os.path.join(BUILD, "lib", "ddpcheck", "emu")}
    if not os.path.exists(os.path.join(emulated["LD_LIBRARY_PATH"], "libcuda.so.1")):
        return
    check("driver as new", doctor(program, environment=emulated), "CUDA runtime", "ok", "13.0")
    check("old driver", doctor(program, environment={**emulated, "DDPCHECK_EMU_DRIVER_VERSION": "12080"}), "CUDA runtime", "warn",
          "newer than the driver (12.8): its calls fail with error 35", todo="newer driver")


def told(*arguments, **environment):
    return subprocess.run([TOOL, "doctor", *arguments], capture_output=True, text=True, timeout=300, env={**os.environ, **environment})


def shown(at):
    program = at.build("inside2", CALLS_NCCL + DEFINES + TEXTS)
    done, short = told("--verbose", "--", program), told("--", program)
    gpu = "ok    CUDA driver" in done.stdout
    command = "It will work: ddpcheck run --plugin -- " if gpu else "on 4 emulated ones: ddpcheck run --emulate 4 --plugin -- "
    for each in done, short:
        assert each.returncode == 0 and command in each.stdout and "\033" not in each.stdout, each
    with_arguments = told("--", program, "--lr", "0.1", "a b", "it's").stdout
    assert command + program + " --lr 0.1 'a b' 'it'\\''s'\n" in with_arguments, with_arguments
    # What needs a look, what prevents it before what may; of the rest there is only the number.
    fine = done.stdout.count("\n  ok ")
    assert fine > 3 and " %d other checks are fine; --verbose shows them.\n" % fine in short.stdout and "\n  ok " not in short.stdout, short
    failing = told("--", program, DDPCHECK_DISABLE="1")
    verdicts = re.findall(r"^  (FAIL|warn) ", failing.stdout, re.M)
    assert failing.returncode == 1 and verdicts == sorted(verdicts) and verdicts[0] == "FAIL" and verdicts[-1] == "warn", failing


with tempfile.TemporaryDirectory(prefix="ddpcheck-doctor-") as top:
    for case in (nccl, reached, cuda, unemulated, sanitized, started, python, environment, versions, shown):
        case(Folder(top))
if failures:
    sys.exit("%d failed" % failures)
print("ok")
