"""libddpcheck.so as a file: what it exports, what it needs, how it is linked."""

import os
import re
import subprocess
import sys


def output(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def versions_of(name):
    """The CUDA runtime's functions have one wrapper for each runtime that a process may load."""
    if not name.startswith(("cuda", "__cuda")):
        return [""]
    return ["@@DDPCHECK_CUDART", "@libcudart.so.11.0", "@libcudart.so.12", "@libcudart.so.13"]


def other_versions(golden, runtimes):
    """Functions of CUDA's runtimes that the shim leaves alone although it has another version of them (cudaGraphAddNode_v2)."""
    def plain(name):
        return re.sub(r"_v\d+(_|$)", r"\1", name)

    with open(golden, encoding="ascii") as file:
        wrapped = set(file.read().split())
    exported = set()
    for runtime in runtimes:
        with open(runtime, encoding="ascii") as file:
            exported.update(file.read().split())
    assert len(exported) > 400, "the lists of what CUDA's runtimes export"
    return sorted(name for name in exported - wrapped if plain(name) in {plain(known) for known in wrapped})


def main():
    library, golden, lists = sys.argv[1:]
    symbols = [line.split() for line in output("nm", "-D", "--defined-only", library).splitlines()]
    exported = sorted(symbol[-1] for symbol in symbols if symbol[1] != "A")
    with open(golden, encoding="ascii") as file:
        expected = sorted(name + version for name in file.read().split() for version in versions_of(name))
    assert exported == expected, "exported but not in %s: %s; missing: %s" % (
        golden, sorted(set(exported) - set(expected)), sorted(set(expected) - set(exported)))

    missing = other_versions(golden, [os.path.join(lists, "libcudart.so.12"), os.path.join(lists, "libcudart.so.13")])
    assert not missing, "programs built with some version of CUDA call these, which are not wrapped: %s" % missing

    needed = [line for line in output("objdump", "-p", library).splitlines() if "NEEDED" in line]
    libc = {"libc.so.6", "libdl.so.2", "libpthread.so.0", "librt.so.1"}     # one library since glibc 2.34
    assert "libc.so.6" in str(needed) and {line.split()[1] for line in needed} <= libc, needed
    versions = {tuple(map(int, version.split("."))) for version in re.findall(r"\(GLIBC_([0-9.]+)\)", output("objdump", "-T", library))}
    assert max(versions) <= (2, 28), "it would not load on glibc 2.28: %s" % sorted(versions)

    dynamic = output("readelf", "-dW", library)
    assert "BIND_NOW" in dynamic and "STATIC_TLS" in dynamic and "PATH" not in dynamic, dynamic
    assert "INIT_ARRAY" not in dynamic or constructors(library) <= 2, "before main the shim does no more than name itself to NVTX"
    assert "GNU_RELRO" in output("readelf", "-lW", library)
    print("%d names exported, libc needed" % len(exported))


def constructors(library):
    """Entries of .init_array: the compiler's own frame_dummy is one."""
    for line in output("readelf", "-SW", library).splitlines():
        fields = line.replace("[ ", "[").split()
        if len(fields) > 5 and fields[1] == ".init_array":
            return int(fields[5], 16) // 8
    return 0


if __name__ == "__main__":
    main()
