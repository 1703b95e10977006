"""The CPythons of this machine whose frames ddpcheck reads. Standard library only."""

import glob
import os
import subprocess
import sys

KNOWN = range(8, 15)        # 3.8 to 3.14
ASK = ("import sys, sysconfig; print(sys.implementation.name, sys.version_info[0], sys.version_info[1], "
       "int(bool(sysconfig.get_config_var('Py_DEBUG') or sysconfig.get_config_var('Py_GIL_DISABLED'))))")


def candidates():
    yield sys.executable
    yield from sorted(glob.glob("/usr/bin/python3.*[0-9]"))
    yield from sorted(glob.glob("/usr/local/bin/python3.*[0-9]"))
    yield from sorted(glob.glob(os.path.expanduser("~/.pyenv/versions/3.*/bin/python3")))


def pythons():
    """One path for each (minor version, file)."""
    found = {}
    for path in candidates():
        path = os.path.realpath(path)
        if path in found or not os.access(path, os.X_OK):
            continue
        done = subprocess.run([path, "-c", ASK], capture_output=True, text=True, check=False, timeout=300)
        words = done.stdout.split()
        if done.returncode == 0 and words[:2] == ["cpython", "3"] and int(words[2]) in KNOWN and words[3] == "0":
            found[path] = int(words[2])
    return sorted(found, key=lambda path: (found[path], path))
