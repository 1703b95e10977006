"""Makes libraries to link with in place of glibc's, which know no symbol version above a given one: what is linked with
them runs on every glibc from that version on.

    glibc_stubs.py --cc gcc --baseline 2.28 FOLDER

glibc's own libraries hold each symbol in all versions that it ever had; a link takes the newest. The stubs are empty
libraries with the same names, in which each symbol has the newest version up to the baseline. Before 2.34, dlopen,
pthread_create, shm_open and their like lay in libdl, libpthread and librt, so the stubs have them there, and what is linked
names those libraries, which newer glibcs keep for that purpose. FOLDER/libc.so is a linker script that joins them:
-L FOLDER before all others is all that it takes."""

import argparse
import collections
import os
import re
import subprocess
import sys

Symbol = collections.namedtuple("Symbol", "name version is_object is_weak size address")

# Of the symbols that got a new version when 2.34 (2.32, 2.33) moved them into libc: where they were before.
MOVED = (("libdl.so.2", r"dl[a-z]"), ("libpthread.so.0", r"_?_?pthread_|sem_|thrd_|mtx_|cnd_|tss_|call_once$|__pthread"),
         ("librt.so.1", r"aio_|lio_|mq_|shm_|timer_"))
LINE = re.compile(r"^\s*\d+: ([0-9a-f]+)\s+(\S+) (FUNC|IFUNC|OBJECT|NOTYPE)\s+(GLOBAL|WEAK|UNIQUE)\s+DEFAULT\s+(?!UND)\S+ "
                  r"([^@\s]+)(@@?)GLIBC_([0-9.]+)$")


def number(version):
    return tuple(int(part) for part in version.split("."))


def versions_of(path, baseline):
    """{name: Symbol of the newest version up to the baseline}, {names whose newest version is above it}."""
    listing = subprocess.run(["readelf", "-W", "--dyn-syms", path], check=True, capture_output=True, text=True).stdout
    best, renewed = {}, set()
    for line in listing.splitlines():
        found = LINE.match(line)
        if not found:
            continue
        address, size, kind, binding, name, default, version = found.groups()
        if number(version) > baseline:
            renewed.add(name)
        elif name not in best or number(version) > number(best[name].version):
            best[name] = Symbol(name, version, kind == "OBJECT", binding == "WEAK", int(size, 0), address)
    if not best:
        sys.exit("glibc_stubs: %s: no symbols with GLIBC versions; is it glibc's?" % path)
    return best, renewed


def sort_out(path, baseline):
    """Deals the symbols of libc.so.6 out to the libraries where they were in the baseline."""
    best, renewed = versions_of(path, baseline)
    libraries = collections.defaultdict(list)
    for symbol in best.values():
        home = "libc.so.6"
        if symbol.name in renewed:
            home = next((library for library, names in MOVED if re.match(names, symbol.name)), home)
        libraries[home].append(symbol)
    return libraries


def assembler(symbols):
    """Data keeps size and aliases: a program that copies `environ` has to get `__environ` with it."""
    lines = [".text"]
    for symbol in symbols:
        if not symbol.is_object:
            lines += [".%s %s" % ("weak" if symbol.is_weak else "globl", symbol.name), ".type %s,@function" % symbol.name,
                      "%s: .byte 0" % symbol.name]
    places = collections.defaultdict(list)
    for symbol in symbols:
        if symbol.is_object:
            places[symbol.address].append(symbol)
    lines.append(".data")
    for same in places.values():
        lines.append(".balign 32")
        for symbol in same:
            lines += [".%s %s" % ("weak" if symbol.is_weak else "globl", symbol.name), ".type %s,@object" % symbol.name,
                      ".size %s,%d" % (symbol.name, symbol.size), "%s:" % symbol.name]
        lines.append(".zero %d" % max(1, max(symbol.size for symbol in same)))
    lines.append('.section .note.GNU-stack,"",@progbits')
    return "\n".join(lines) + "\n"


def version_script(symbols):
    nodes = collections.defaultdict(list)
    for symbol in symbols:
        nodes[symbol.version].append(symbol.name)
    return "".join("GLIBC_%s { global: %s };\n" % (version, " ".join(name + ";" for name in sorted(nodes[version])))
                   for version in sorted(nodes, key=number))


def make_library(cc, folder, soname, symbols):
    base = os.path.join(folder, soname)
    symbols = sorted(symbols)
    for suffix, text in ((".s", assembler(symbols)), (".map", version_script(symbols))):
        with open(base + suffix, "w") as file:
            file.write(text)
    subprocess.run([cc, "-shared", "-nostdlib", "-o", base, base + ".s", "-Wl,-soname," + soname,
                    "-Wl,--version-script=" + base + ".map"], check=True)


def main():
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--cc", default="cc")
    arguments.add_argument("--baseline", default="2.28")
    arguments.add_argument("folder")
    arguments = arguments.parse_args()
    baseline, folder = number(arguments.baseline), os.path.abspath(arguments.folder)
    os.makedirs(folder, exist_ok=True)

    def find(name):
        path = subprocess.run([arguments.cc, "-print-file-name=" + name], check=True, capture_output=True, text=True).stdout.strip()
        return os.path.realpath(path) if os.path.isabs(path) else sys.exit("glibc_stubs: %s has no %s" % (arguments.cc, name))

    libraries = sort_out(find("libc.so.6"), baseline)
    for name in ("libm.so.6", "ld-linux-x86-64.so.2"):
        libraries[name] = list(versions_of(find(name), baseline)[0].values())
    for soname, symbols in libraries.items():
        make_library(arguments.cc, folder, soname, symbols)

    compatible = os.path.join(folder, "compatible")
    subprocess.run([arguments.cc, "-O2", "-fPIC", "-fvisibility=hidden", "-c", "-o", compatible + ".o",
                    os.path.join(os.path.dirname(os.path.abspath(__file__)), "compatible.c")], check=True)
    subprocess.run(["ar", "rcs", compatible + ".a", compatible + ".o"], check=True)
    others = " ".join(os.path.join(folder, soname) for soname in libraries if soname != "libc.so.6")
    with open(os.path.join(folder, "libc.so"), "w") as script:
        script.write("/* Made by glibc_stubs.py for glibc %s. */\nGROUP ( %s %s %s AS_NEEDED ( %s ) )\n" % (
            arguments.baseline, compatible + ".a", os.path.join(folder, "libc.so.6"), find("libc_nonshared.a"), others))
    for name, soname in (("libm.so", "libm.so.6"), ("libdl.so", "libdl.so.2"), ("libpthread.so", "libpthread.so.0"),
                         ("librt.so", "librt.so.1")):
        path = os.path.join(folder, name)
        if os.path.lexists(path):
            os.remove(path)
        os.symlink(soname, path)
        with open(path[:-len("so")] + "a", "w") as script:      # for who looks for static libraries: glibc's own stays shared
            script.write("INPUT ( %s )\n" % os.path.join(folder, soname))


if __name__ == "__main__":
    main()
