"""Builds nccl_job.c with the nccl.h of releases of NCCL, and runs it on the emulated one: clean, and with the faults that each
release's calls allow.

nccl.py BUILD: with the nccl.h of the build. nccl.py BUILD VERSION...: with those of these releases, of pip's packages, which
are kept in ~/.cache/ddpcheck; "all": those of table.txt. Prints a line for each; status 1 if one is not as it should be."""

import glob
import json
import os
import re
import subprocess
import sys
import tempfile
import zipfile

import versions

HERE = os.path.dirname(os.path.abspath(__file__))
CACHE = os.path.join(os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"), "ddpcheck")
EXPECTED = [("clean", (2, 18), None), ("count", (2, 18), "DC102"), ("skip", (2, 18), "DC101"), ("split", (2, 18), "DC109"),
            ("signal", (2, 29), "DC113"), ("config", (2, 31), "DC114")]


def of_build(build):
    """The include directories that the build uses, by name."""
    with open(os.path.join(build, "CMakeCache.txt"), encoding="utf-8") as file:
        return dict(re.findall(r"^DDPCHECK_(\w+)_INCLUDE:PATH=(.*)$", file.read(), re.M))


def headers_of(version):
    """The directory of that release's nccl.h, from pip."""
    kept = os.path.join(CACHE, "nccl-" + version)
    if not os.path.exists(os.path.join(kept, "nccl.h")):
        with tempfile.TemporaryDirectory() as room:
            package = "nvidia-nccl-cu%d==%s" % (12 if versions.numbers(version) < (2, 27) else 13, version)
            subprocess.run([sys.executable, "-m", "pip", "download", "-q", "--no-deps", "-d", room, package], check=True)
            with zipfile.ZipFile(glob.glob(os.path.join(room, "*.whl"))[0]) as wheel:
                os.makedirs(kept, exist_ok=True)
                with open(os.path.join(kept, "nccl.h"), "wb") as file:
                    file.write(wheel.read("nvidia/nccl/include/nccl.h"))
    return kept


def build_job(build, nccl, program):
    includes = of_build(build)
    paths = [nccl] + [includes[part] for part in ("CUDART", "CCCL") if includes.get(part)]
    subprocess.run(["cc", "-g", "-Wall", "-Werror", *("-I" + path for path in paths), os.path.join(HERE, "nccl_job.c"), "-o", program,
                    "-L" + os.path.join(build, "lib/ddpcheck/emu"), "-l:libnccl.so.2", "-l:libcudart.so.13", "-lpthread",
                    "-Wl,--allow-shlib-undefined"], check=True)


def codes_of(build, program, fault, trace):
    """The errors and warnings of one run."""
    ddpcheck = os.path.join(build, "bin/ddpcheck")
    run = subprocess.run([ddpcheck, "run", "--emulate", "4", "--on-finding", "abort", "-o", trace, "--", program, fault],
                         capture_output=True, text=True)
    assert os.path.isdir(trace), run.stdout + run.stderr
    report = subprocess.run([ddpcheck, "report", "--json", trace], stdout=subprocess.PIPE, text=True).stdout
    findings = [line for line in map(json.loads, report.splitlines()) if line["schema"].startswith("ddpcheck.finding/")]
    return [finding["code"] for finding in findings if finding["severity"] != "note"], run


def check(build, nccl):
    with open(os.path.join(nccl, "nccl.h"), encoding="utf-8") as file:
        version = tuple(int(part) for part in re.findall(r"define NCCL_(?:MAJOR|MINOR|PATCH) +(\d+)", file.read()))
    right = True
    with tempfile.TemporaryDirectory() as room:
        program = os.path.join(room, "nccl_job")
        build_job(build, nccl, program)
        for fault, since, code in EXPECTED:
            if version < since:
                continue
            codes, run = codes_of(build, program, fault, os.path.join(room, fault))
            good = codes == ([code] if code else []) and (code or not run.returncode)
            print("NCCL %s, %s: %s" % (".".join(map(str, version)), fault, ", ".join(codes) or "no finding"), flush=True)
            if not good:
                print("expected %s\n%s%s" % (code, run.stdout, run.stderr))
            right = right and good
    return right


def main():
    build, asked = sys.argv[1], sys.argv[2:]
    if asked == ["all"]:
        asked = [row[1] for row in versions.rows() if row[0].startswith("nvidia-nccl")]
    directories = [headers_of(version) for version in asked] or [of_build(build)["NCCL"]]
    sys.exit(not all([check(build, directory) for directory in directories]))


main()
