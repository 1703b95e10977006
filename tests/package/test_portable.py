"""Preset release-portable: what it builds loads on glibc 2.28 and needs no library beside it, as an unpacked archive and
as a wheel in a fresh virtual environment."""

import base64
import csv
import glob
import hashlib
import io
import os
import re
import sys
import zipfile

from installed import Folder, check_demo, environment, output, watch_trainer

BUILD = os.path.abspath(sys.argv[1])
ROOT = os.path.abspath(os.path.join(os.path.dirname(__file__), "..", ".."))
PORTABLE = os.path.join(BUILD, "portable")
TRAINER = os.path.join(BUILD, "bin", "ddptrain")
GLIBC = (2, 28)
LIBC = {"libc.so.6", "libm.so.6", "libdl.so.2", "libpthread.so.0", "librt.so.1", "ld-linux-x86-64.so.2"}


def check_file(path, own=()):
    """No symbol above the baseline, no library but the C library's and `own`, no path of the build machine."""
    symbols = output("objdump", "-T", path)
    versions = {tuple(int(part) for part in version.split(".")) for version in re.findall(r"\(GLIBC_([0-9.]+)\)", symbols)}
    assert versions or own, path        # lists of functions over the emulator need nothing of the C library
    newer = [line for line in symbols.splitlines() for found in re.findall(r"\(GLIBC_([0-9.]+)\)", line)
             if tuple(int(part) for part in found.split(".")) > GLIBC]
    assert not newer, "%s: above glibc 2.28:\n%s" % (path, "\n".join(newer))
    dynamic = output("readelf", "-dW", path)
    needed = set(re.findall(r"NEEDED.*\[(.*)\]", dynamic))
    assert needed <= LIBC | set(own), "%s needs %s" % (path, needed - LIBC)
    paths = set(re.findall(r"R(?:UN)?PATH.*\[(.*)\]", dynamic))
    assert paths <= {"$ORIGIN"}, "%s: %s" % (path, paths)


def check_tree(prefix):
    check_file(os.path.join(prefix, "bin/ddpcheck"))
    check_file(os.path.join(prefix, "lib/libddpcheck.so"))
    symbols = output("objdump", "-T", os.path.join(prefix, "lib/ddpcheck/ddpcheck_demo"))
    assert not re.search(r"GLIBC_2\.(29|[3-9]\d)", symbols), symbols
    emulator = glob.glob(os.path.join(prefix, "lib/ddpcheck/emu/*"))
    assert len(emulator) >= 7, emulator
    assert {"libddpcheck_emu.so", "libcuda.so.1"} <= {os.path.basename(library) for library in emulator}, emulator
    for library in emulator:
        check_file(library, own=["libddpcheck_emu.so", "libcuda.so.1"])     # both lie beside it


def check_archive(folder):
    output("cpack", "-G", "TGZ", "-B", folder / "packages", cwd=PORTABLE)
    archive, = glob.glob(folder / "packages/*.tar.gz")
    output("tar", "-xf", archive, "-C", folder.path)
    prefix, = glob.glob(folder / "ddpcheck-*-linux-x86_64")
    check_tree(prefix)
    tool = os.path.join(prefix, "bin/ddpcheck")
    watch_trainer(tool, TRAINER, folder / "trace")
    check_demo(tool, folder.path)
    # The terminal UI's and the reader's libraries are inside, too.
    assert "ranks" in output(tool, "tui", "--once", folder / "trace", env=environment())


def check_record(wheel):
    """What pip believes of the wheel: each file is listed with its hash."""
    with zipfile.ZipFile(wheel) as archive:
        record, = [name for name in archive.namelist() if name.endswith(".dist-info/RECORD")]
        rows = {name: digest for name, digest, _ in csv.reader(io.StringIO(archive.read(record).decode()))}
        assert set(rows) == set(archive.namelist()), set(rows) ^ set(archive.namelist())
        for name, digest in rows.items():
            if name != record:
                real = base64.urlsafe_b64encode(hashlib.sha256(archive.read(name)).digest()).rstrip(b"=").decode()
                assert digest == "sha256=" + real, name


def check_wheel(folder):
    wheel = output(os.path.join(ROOT, "tools/wheel"), PORTABLE, folder.path).strip()
    check_record(wheel)
    venv = folder / "venv"
    output(sys.executable, "-m", "venv", venv)
    pip = [os.path.join(venv, "bin/python"), "-m", "pip", "--disable-pip-version-check"]
    output(*pip, "install", "--no-index", wheel)
    tool = os.path.join(venv, "bin/ddpcheck")
    version = output(tool, "--version")
    assert version == output(os.path.join(venv, "bin/python"), "-m", "ddpcheck", "--version"), version
    text = output(tool, "doctor", "--verbose", statuses=(0, 1), env=environment())
    assert os.path.realpath(os.path.join(venv, "lib/libddpcheck.so")) in text, text
    watch_trainer(tool, TRAINER, folder / "wheel-trace")
    os.makedirs(folder / "wheel")
    check_demo(tool, folder / "wheel")
    output(*pip, "uninstall", "--yes", "ddpcheck")
    left = [path for path in glob.glob(venv + "/**/*ddpcheck*", recursive=True) if os.path.isfile(path)]
    assert not left, left
    refused = output(os.path.join(ROOT, "tools/wheel"), BUILD, folder.path, statuses=(1,))
    assert "no portable build" in refused, refused


def main():
    # What is tested is how it is linked: without optimisation the same comes out in a third of the time.
    output("cmake", "--preset", "release-portable", "-B", PORTABLE, "-DCMAKE_C_FLAGS_RELEASE=-O0", cwd=ROOT)
    output("cmake", "--build", PORTABLE, "-j2", timeout=800)
    with Folder("portable") as folder:
        check_archive(folder)
        check_wheel(folder)


if __name__ == "__main__":
    main()
