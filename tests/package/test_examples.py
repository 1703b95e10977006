"""The complete programs of the findings' pages: copied from the page they build in the installed folder of examples, outside
of the source tree, and the correct ones run to their end.

test_examples.py BUILD INCLUDE_FOLDER..."""

import glob
import os
import re
import sys

from installed import Folder, environment, output

BUILD = os.path.abspath(sys.argv[1])
INCLUDES = ["-I" + folder for folder in sys.argv[2:] if folder]
LIBRARIES = ["-l:libnccl.so.2", "-l:libcudart.so.12", "-lpthread", "-lm"]


def programs(page):
    """(file name, text) of the page's programs; those that launch ddpcheck's own kernels are not built here."""
    with open(page) as file:
        text = file.read()
    for program in re.findall(r"^## Complete program(?:, correct)?\n\n```c\n(.*?)^```$", text, re.M | re.S):
        if '#include "kernels/' not in program:
            yield re.match(r"/\* (\S+\.c)", program).group(1), program


def check(prefix, emu, name, text):
    examples = os.path.join(prefix, "share/ddpcheck/examples")
    with open(os.path.join(examples, name)) as file:
        assert file.read() == text, "%s is not what its page shows" % name
    program = os.path.join(examples, name[:-2])
    output(os.environ.get("CC", "cc"), "-I.", *INCLUDES, name, "tests/suite/suite.c", "-L" + emu, *LIBRARIES, "-o", program,
           cwd=examples)
    if name.endswith("_correct.c"):
        output(program, env=environment(LD_LIBRARY_PATH=emu, DDPCHECK_EMU_DEVICES="8"), timeout=60)
    return name


def main():
    with Folder("examples") as folder:
        prefix = folder / "prefix"
        for component in ("tool", "emulator"):
            output("cmake", "--install", BUILD, "--prefix", prefix, "--component", component)
        emu = os.path.join(prefix, "lib/ddpcheck/emu")
        built = [check(prefix, emu, name, text)
                 for page in sorted(glob.glob(os.path.join(prefix, "share/doc/ddpcheck/docs/findings/DC*.md")))
                 for name, text in programs(page)]
        assert len(built) > 80, built
        print("built %d programs" % len(built))


if __name__ == "__main__":
    main()
