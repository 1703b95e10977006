"""What is shipped is built so that a memory error is harder to use: at any address, with tables of functions that are
read-only from the start, without memory that can be written and executed, with canaries on the stack and libc's checked
functions, and marked for shadow stacks where that depends on us alone.

test_hardening.py BUILD"""

import glob
import os
import re
import shutil
import subprocess
import sys


def check(path):
    def read(*options):
        return subprocess.run(["readelf", "-W", *options, path], check=True, capture_output=True, text=True).stdout

    segments, dynamic = read("-l"), read("-d")
    wrong = []
    if "Type:                              DYN" not in read("-h"):
        wrong.append("it is linked for one address (-pie)")
    if "GNU_RELRO" not in segments:
        wrong.append("no GNU_RELRO (-z relro)")
    if "BIND_NOW" not in dynamic and "Flags: NOW" not in dynamic:
        wrong.append("functions are bound late (-z now)")
    if "TEXTREL" in dynamic:
        wrong.append("its code is written when it is loaded")
    for line in segments.splitlines():
        if line.strip().startswith(("GNU_STACK", "LOAD")) and "RWE" in line:
            wrong.append("memory that can be written and executed: " + line.strip())
    return ["%s: %s" % (path, what) for what in wrong]


def checked_calls(path, is_optimized):
    """Sanitizers do the same themselves, so their builds are left out. The shim is loaded into programs of musl as well,
    which has no checked functions."""
    is_optimized = is_optimized and not path.endswith("/libddpcheck.so")
    names = subprocess.run(["nm", "-D", "--undefined-only", path], check=True, capture_output=True, text=True).stdout
    wrong = []
    if "__stack_chk_fail" not in names:
        wrong.append("no canaries (-fstack-protector-strong)")
    if is_optimized and not re.search(r"__(mem|str|v?sn)\w+_chk\b", names):
        wrong.append("no checked functions of libc (-D_FORTIFY_SOURCE)")
    return ["%s: %s" % (path, what) for what in wrong]


def shadow_stack(shim):
    """One library that is not marked for it takes the shadow stack from the whole process."""
    notes = subprocess.run(["readelf", "-W", "-n", shim], check=True, capture_output=True, text=True).stdout
    return [] if "SHSTK" in notes else ["%s: not marked for shadow stacks (-fcf-protection=return, -z shstk)" % shim]


def setting(build, name):
    with open(os.path.join(build, "CMakeCache.txt"), encoding="utf-8") as cache:
        return next((line.split("=", 1)[1].strip() for line in cache if line.startswith(name + ":")), "")


def main():
    build = os.path.abspath(sys.argv[1])
    files = [os.path.join(build, "bin", "ddpcheck"), os.path.join(build, "lib", "libddpcheck.so")]
    files += glob.glob(os.path.join(build, "**", "libddpcheck-trace.so"), recursive=True)
    files += [os.path.join(build, "lib", "ddpcheck", "emu", name) for name in ("libddpcheck_emu.so", "libnccl.so.2")]
    files = [path for path in files if os.path.exists(path)]
    if not shutil.which("readelf") or not files:
        print("skipped: no readelf, or nothing was built")
        sys.exit(77)
    wrong = [line for path in files for line in check(path)]
    if not setting(build, "DDPCHECK_SANITIZE"):
        is_optimized = setting(build, "CMAKE_BUILD_TYPE") in ("RelWithDebInfo", "Release", "MinSizeRel")
        wrong += [line for path in files for line in checked_calls(path, is_optimized)]
    if setting(build, "DDPCHECK_HAVE_CF_PROTECTION") and setting(build, "DDPCHECK_HAVE_SHSTK"):
        wrong += [line for path in files if path.endswith("/libddpcheck.so") for line in shadow_stack(path)]
    assert not wrong, "\n".join(wrong)
    print("ok, %d files" % len(files))


if __name__ == "__main__":
    main()
