"""The shim's sources compile with the headers of CUDA 12 as well, for those whose toolkit is that one; what it does with the
structs of another runtime than that of its headers, test_shim.py tests.

test_headers.py BUILD NCCL-HEADERS; those of CUDA 12 came with PyTorch 2.10 (tools/setup-torch 2.10.0). Exit 77 without them."""

import glob
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BUILD, NCCL = os.path.abspath(sys.argv[1]), sys.argv[2]
HEADERS = ("cuda_runtime_api.h", "cuda.h", "cupti.h", "nvtx3/nvToolsExt.h")


def folders():
    """Include folders of CUDA 12, or none."""
    torch = subprocess.run([os.path.join(ROOT, "tools", "setup-torch"), "--find", "2.10.0"], capture_output=True, text=True, timeout=300,
                           check=False).stdout.strip()
    packages, found = glob.glob(os.path.join(torch, "lib", "python3*", "site-packages", "nvidia", "*", "include")), []
    for header in HEADERS:
        places = [place for place in sorted(packages) if torch and os.path.exists(os.path.join(place, header))]
        if not places:
            return []
        found.append(places[0])
    return found


def compiled(source, options):
    """What the compiler says of the source; nothing is written."""
    done = subprocess.run([os.environ.get("CC", "cc"), "-fsyntax-only", *options, source], cwd=ROOT, stdin=subprocess.DEVNULL,
                          capture_output=True, text=True, timeout=300, check=False)
    return "" if done.returncode == 0 else "%s: %s" % (source, done.stderr[-2000:])


def main():
    places = folders()
    if not places:
        print("skipped: no headers of CUDA 12 here; tools/setup-torch 2.10.0 installs them")
        return 77
    options = ["-std=gnu17", "-D_GNU_SOURCE", '-DDDPCHECK_VERSION="0"', "-DDDPCHECK_RUNTIME=0", '-DDDPCHECK_BINDIR_FROM_LIBDIR=""',
               "-I.", "-I" + os.path.join(BUILD, "generated")]
    for place in dict.fromkeys([*places, NCCL]):
        options += ["-isystem", place]
    is_old = os.path.join(BUILD, "tests", "interpose", "is_cuda_12.c")
    with open(is_old, "w", encoding="ascii") as file:
        file.write('#include <nccl.h>\n_Static_assert(CUDART_VERSION < 13000, "the headers of CUDA 12");\n')
    sources = sorted(glob.glob("interpose/*/*.c", root_dir=ROOT) + glob.glob("lib/python/*.c", root_dir=ROOT))
    assert len(sources) > 60, sources
    with ThreadPoolExecutor(2) as pool:
        said = [text for text in pool.map(lambda source: compiled(source, options), [is_old, *sources]) if text]
    assert not said, "\n".join(said)
    print("%d sources compile with the headers in %s" % (len(sources), places[0]))
    return 0


if __name__ == "__main__":
    sys.exit(main())
