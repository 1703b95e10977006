"""The complete programs of the findings' pages, as a reader uses them: copied from the page, built and run outside of the source
tree by the commands that they print. The faulty one gives the page's code, and the correct one no error and no warning.

test_examples.py BUILD SHARD/SHARDS NVCC LIBCUDART INCLUDE_FOLDER...; NVCC: "" where there is none, and kernels can't be built."""

import glob
import json
import os
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

from installed import Folder, environment, installing, output

BUILD = os.path.abspath(sys.argv[1])
SHARD, SHARDS = map(int, sys.argv[2].split("/"))
NVCC, LIBCUDART = sys.argv[3:5]
INCLUDES = ["-I" + folder for folder in sys.argv[5:] if folder]
AT_A_TIME = 8           # most of them wait


def programs(page, examples):
    """(file name, text) of the page's program, and of the correct one that it shows the difference to."""
    with open(page) as file:
        text = file.read()
    for program in re.findall(r"^## Complete program\n\n```c\n(.*?)^```$", text, re.M | re.S):
        yield re.match(r"/\* (\S+\.c)", program).group(1), program
    for difference in re.findall(r"^## Fix of the complete program\n\n```diff\n(.*?)^```$", text, re.M | re.S):
        name = re.search(r"^\+\+\+ (\S+\.c)$", difference, re.M).group(1)
        with open(os.path.join(examples, name)) as file:
            correct = file.read()
        lines = correct.splitlines()
        for line in difference.splitlines()[2:]:
            assert line[0] in "-@" or line[1:] in lines, "%s has not %r" % (name, line)
        yield name, correct


def commands(text):
    """The words of the two commands in the program's first comment."""
    build, run = re.findall(r"^ \*     (\S.*)$", text[:text.index("*/\n")], re.M)
    return build.split(), run.split()


def build(words, folder, emu):
    """nvcc's command, by the C compiler where no kernel is built: it takes a tenth of the time."""
    assert words[:3] == ["nvcc", "-cudart", "shared"] and words[-1] == "-lnccl", words
    libraries = ["-L" + emu, "-l:libnccl.so.2"]
    if any(word.endswith(".cu") for word in words):
        if not NVCC:
            return False
        # Not "-cudart shared": NVIDIA's pip packages have no libcudart.so, which it looks for.
        output(NVCC, "-cudart", "none", *INCLUDES, *words[3:-1], LIBCUDART, *libraries, cwd=folder, timeout=500)
    else:
        output(os.environ.get("CC", "cc"), *INCLUDES, *words[3:-1], *libraries, "-l:libcudart.so.12", "-lpthread", "-lm",
               cwd=folder)
    return True


def findings(words, folder, prefix):
    """({code: severity} of what the printed command finds, how it ended)."""
    assert words[:2] == ["ddpcheck", "run"], words
    tool, trace = os.path.join(prefix, "bin", "ddpcheck"), os.path.join(folder, os.path.basename(words[-1]) + ".trace")
    job = subprocess.run([tool, "run", "-o", trace, *words[2:]], cwd=folder, stdin=subprocess.DEVNULL, capture_output=True,
                         text=True, env=environment(), timeout=300)
    report = subprocess.run([tool, "report", "--json", trace], cwd=folder, stdin=subprocess.DEVNULL, capture_output=True, text=True,
                            env=environment(), timeout=300)
    assert report.returncode in (0, 1), report.stderr + job.stdout + job.stderr
    lines = [json.loads(line) for line in report.stdout.splitlines()]
    return {line["code"]: line["severity"] for line in lines if line["schema"].startswith("ddpcheck.finding/")}, job


def check(prefix, page, name, text):
    folder = os.path.join(prefix, "share/ddpcheck/examples")
    with open(os.path.join(folder, name)) as file:
        assert file.read() == text, "%s is not what its page shows" % name
    to_build, to_run = commands(text)
    if not build(to_build, folder, os.path.join(prefix, "lib/ddpcheck/emu")):
        return 0
    found, job = findings(to_run, folder, prefix)
    said = "%s: found %s\n%s%s" % (name, found, job.stdout, job.stderr)
    if name.endswith("_correct.c"):
        assert set(found.values()) <= {"note"} and page not in found and job.returncode == 0, said
    else:
        assert page in found, said
    return 1


def main():
    with Folder("examples") as folder:
        prefix = folder / "prefix"
        with installing(BUILD):
            for component in ("tool", "shim", "emulator"):
                output("cmake", "--install", BUILD, "--prefix", prefix, "--component", component)
        pages = sorted(glob.glob(os.path.join(prefix, "share/doc/ddpcheck/docs/findings/DC*.md")))
        examples = os.path.join(prefix, "share/ddpcheck/examples")
        shown = [(os.path.basename(page)[:-3], *program) for page in pages for program in programs(page, examples)]
        assert len(shown) > 80, shown
        with ThreadPoolExecutor(AT_A_TIME) as pool:
            runs = [pool.submit(check, prefix, *program) for program in shown[SHARD - 1::SHARDS]]
        failed = [str(run.exception()) for run in runs if run.exception()]
        assert not failed, "\n\n".join(failed)
        print("built and ran %d of %d programs" % (sum(run.result() for run in runs), len(runs)))


if __name__ == "__main__":
    main()
