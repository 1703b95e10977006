"""`cmake --install`: the tree works from wherever it is moved to, by `ddpcheck run` and by a bare LD_PRELOAD; programs of
others are built against the reader library by pkg-config; the packages name what they hold and need."""

import glob
import os
import re
import shutil
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "e2e"))
from stored import wait_stored  # noqa: E402

from installed import Folder, check_demo, collectives_by_pid, environment, installing, output, watch_trainer

BUILD = os.path.abspath(sys.argv[1])
ROOT = os.path.abspath(os.path.join(os.path.dirname(__file__), "..", ".."))
TRAINER = os.path.join(BUILD, "bin", "ddptrain")
READER = {"trace_open", "trace_next", "trace_frames", "record_text", "api_name", "site_frames", "frame_place"}


def install(prefix):
    with installing(BUILD):
        for component in ("tool", "shim", "emulator", "reader", "dev"):
            output("cmake", "--install", BUILD, "--prefix", prefix, "--component", component)
    for path in ("bin/ddpcheck", "lib/libddpcheck.so", "share/man/man1/ddpcheck-run.1", "include/ddpcheck/trace.h",
                 "share/bash-completion/completions/ddpcheck", "share/zsh/site-functions/_ddpcheck",
                 "share/fish/vendor_completions.d/ddpcheck.fish", "lib/ddpcheck/emu/libnccl.so.2"):
        assert os.path.isfile(os.path.join(prefix, path)), path
    pages = glob.glob(os.path.join(prefix, "share/man/man1/*.1"))
    listed = re.findall(r"^  ([a-z]+) +\S", output(os.path.join(prefix, "bin/ddpcheck"), "--help"), re.M)
    assert len(pages) == len(listed) + 1, (pages, listed)


def check_bare(prefix, folder):
    """The shim finds the collector that was installed with it."""
    trace = folder / "bare"
    emu = os.path.join(prefix, "lib/ddpcheck/emu")
    output(TRAINER, "--ranks", "2", "--iterations", "3", "--dataset-size", "64",
           env=environment(LD_PRELOAD=os.path.join(prefix, "lib/libddpcheck.so"), DDPCHECK_DIR=trace, LD_LIBRARY_PATH=emu,
                           DDPCHECK_EMU_DEVICES="2"))
    wait_stored(trace)
    assert sum(collectives_by_pid(trace).values()) > 10, trace


def check_reader(prefix, folder, trace):
    search = {"PKG_CONFIG_PATH": os.path.join(prefix, "lib/pkgconfig")}
    flags = output("pkg-config", "--cflags", "--libs", "ddpcheck", env=environment(**search)).split()
    program = folder / "read_trace"
    output(os.environ.get("CC", "cc"), "-std=c17", "-Wall", "-Wextra", "-Werror",
           os.path.join(ROOT, "docs/examples/read_trace.c"), *flags, "-o", program)
    library = {"LD_LIBRARY_PATH": os.path.join(prefix, "lib")}
    text = output(program, trace, env=environment(**library))
    found = {int(pid): int(count) for pid, count in re.findall(r"^process (\d+) on \S+: (\d+) collectives, the last nccl\w+\(", text, re.M)}
    assert found == collectives_by_pid(trace), "%s\n%s" % (text, collectives_by_pid(trace))
    text = output(program, "/dev/null", statuses=(2,), env=environment(**library))
    assert "read_trace: " in text and "/dev/null" in text, text

    text = output("nm", "-D", "--defined-only", os.path.join(prefix, "lib/libddpcheck-trace.so"))
    names = {line.split()[-1].split("@")[0] for line in text.splitlines()}
    assert READER <= names, READER - names
    wrong = [name for name in names if not re.match(r"trace_|record_|api_|site_|frame_|datatype_|redop_|memory_type_|DDPCHECK_", name)]
    assert not wrong, "libddpcheck-trace.so exports %s as well" % wrong


def check_rpm_demo(packages, unpacked):
    """rpmbuild strips what it packs: the demo's lines have to stay."""
    if not shutil.which("rpm2archive"):
        return
    os.makedirs(unpacked)
    for name in ("ddpcheck", "libddpcheck-preload", "ddpcheck-emulator"):
        rpm, = glob.glob("%s/%s-[0-9]*.rpm" % (packages, name))
        output("rpm2archive", rpm)
        output("tar", "-xf", rpm + ".tgz", "-C", unpacked)
        os.remove(rpm + ".tgz")
    check_demo(os.path.join(unpacked, "usr/bin/ddpcheck"), unpacked)


def check_packages(folder):
    """Of those generators whose tools are on this machine."""
    packages = folder / "packages"
    kinds = [kind for kind, program in (("DEB", "dpkg-shlibdeps"), ("RPM", "rpmbuild"), ("TGZ", "tar")) if shutil.which(program)]
    with installing(BUILD):
        output("cpack", "-G", ";".join(kinds), "-B", packages, cwd=BUILD, timeout=900)
    if "DEB" in kinds:
        deb = {re.sub(r"_.*", "", os.path.basename(path)): path for path in glob.glob(packages + "/*.deb")}
        assert set(deb) == {"ddpcheck", "libddpcheck-preload", "ddpcheck-emulator", "libddpcheck-trace0", "libddpcheck-trace-dev"}, deb
        needs = {name: output("dpkg-deb", "-f", path, "Depends") for name, path in deb.items()}
        assert "libddpcheck-preload (=" in needs["ddpcheck"] and "libsqlite3-0" in needs["ddpcheck"], needs
        assert re.fullmatch(r"libc6 \(>= [0-9.]+\)\s*", needs["libddpcheck-preload"]), needs
        assert "libsqlite3-dev" in needs["libddpcheck-trace-dev"], needs
        assert "ddpcheck-emulator" in output("dpkg-deb", "-f", deb["ddpcheck"], "Recommends"), deb
        unpacked = folder / "deb"
        for name in ("ddpcheck", "libddpcheck-preload"):
            output("dpkg-deb", "-x", deb[name], unpacked)
        text = output(os.path.join(unpacked, "usr/bin/ddpcheck"), "doctor", statuses=(0, 1), env=environment())
        assert "no CUDA driver" not in text or "needs none, but the package ddpcheck-emulator" in text, text
        output("dpkg-deb", "-x", deb["ddpcheck-emulator"], unpacked)
        check_demo(os.path.join(unpacked, "usr/bin/ddpcheck"), unpacked)
        text = output(os.path.join(unpacked, "usr/bin/ddpcheck"), "doctor", "--verbose", statuses=(0, 1), env=environment())
        assert re.search(r"ok\s+shim\s+\S+/usr/lib/libddpcheck.so", text), text
    if "RPM" in kinds:
        rpm, = glob.glob(packages + "/libddpcheck-preload-*.rpm")
        assert "/usr/lib/libddpcheck.so" in output("rpm", "-qpl", rpm).split()
        needs = [line for line in output("rpm", "-qp", "--requires", rpm).splitlines() if re.match(r"lib.*\.so", line)]
        assert needs and all(re.match(r"lib(c|dl|pthread|rt)\.so", line) for line in needs), needs
        check_rpm_demo(packages, folder / "rpm")
    archive, = glob.glob(packages + "/*.tar.gz")
    sums = subprocess.run(["sha256sum", "--check", "--quiet", archive + ".sha256"], cwd=packages)
    assert sums.returncode == 0, archive
    output("tar", "-xf", archive, "-C", folder.path)
    tool, = glob.glob(folder / "ddpcheck-*/bin/ddpcheck")
    assert output(tool, "--version").startswith("ddpcheck ")
    print("packages: " + ", ".join(kinds))


def main():
    with Folder("install") as folder:
        install(folder / "first")
        os.rename(folder / "first", folder / "moved")
        prefix = folder / "moved"
        tool = os.path.join(prefix, "bin/ddpcheck")
        text = output(tool, "doctor", "--verbose", statuses=(0, 1), env=environment())
        assert os.path.realpath(os.path.join(prefix, "lib/libddpcheck.so")) in text, text
        watch_trainer(tool, TRAINER, folder / "trace")
        check_demo(tool, folder.path)
        check_bare(prefix, folder)
        check_reader(prefix, folder, folder / "trace")
        check_packages(folder)


if __name__ == "__main__":
    main()
