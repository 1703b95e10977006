"""The emulated NCCL exports what emu/nccl/functions.def lists, no more and no less; the table has every function of the nccl.h
that this build found; and a function that is not emulated says so once and returns ncclInvalidUsage.

test_names.py LIBNCCL TABLE NCCL-HEADERS"""

import os
import re
import subprocess
import sys

LIBRARY, TABLE, HEADERS = sys.argv[1:4]
INVALID_USAGE = 5
CALLS = """import ctypes, sys
nccl = ctypes.CDLL(sys.argv[1])
print([getattr(nccl, name)() for name in sys.argv[2:]], ctypes.CFUNCTYPE(ctypes.c_char_p, ctypes.c_void_p)(("ncclGetLastError", nccl))(None))
"""


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


rows = re.findall(r"^(EMULATED|UNSUPPORTED)\((nccl\w+)\)$", read(TABLE), re.M)
names = [name for _, name in rows]
assert len(names) == len(set(names)) > 90, "a name is there twice, or the table is short"
assert names == sorted(names), "the table is sorted"
listed = set(names) | {"p" + name for name in names}

exported = {line.split()[2] for line in subprocess.run(["nm", "-D", "--defined-only", LIBRARY], capture_output=True, text=True,
                                                       check=True, timeout=60).stdout.splitlines()}
assert exported == listed, "only exported: %s; only in the table: %s" % (sorted(exported - listed), sorted(listed - exported))

declared = set()
for header in "nccl.h", "nccl_device.h", "nccl_device/core.h":
    path = os.path.join(HEADERS, header)
    if os.path.exists(path):
        declared |= set(re.findall(r"^(?:NCCL_EXTERN_C )?(?:const )?\w+\*? +\*?(p?nccl\w+)\(", read(path), re.M))
assert len(declared) > 80 and declared <= listed, "declared in %s, and not in the table: %s" % (HEADERS, sorted(declared - listed))

lacks = [name for kind, name in rows if kind == "UNSUPPORTED"]
done = subprocess.run([sys.executable, "-c", CALLS, LIBRARY, *lacks, lacks[0], "p" + lacks[0]], capture_output=True, text=True,
                      timeout=100, check=True)
said = re.findall(r"^ddpcheck emu: (nccl\w+) is not supported", done.stderr, re.M)
assert said == lacks, "said: %s" % said
assert done.stdout.startswith(str([INVALID_USAGE] * (len(lacks) + 2))) and "does not have it" in done.stdout, done.stdout
print("%d functions, %d of them not emulated" % (len(names), len(lacks)))
