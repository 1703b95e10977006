"""The name of a directory for the rings of a trace directory (lib/trace/rings_directory.h), for tests that choose where it is."""

import os


def fnv(data):
    value = 14695981039346656037
    for byte in data:
        value = ((value ^ byte) * 1099511628211) & 0xFFFFFFFFFFFFFFFF
    return value


def name_rings(parent, trace):
    """The trace directory is there already, and says from now on that its rings are in this folder."""
    real = os.path.realpath(trace)
    marks = (fnv(os.fsencode(real)), fnv(os.stat(real).st_ino.to_bytes(8, "little")))
    name = "ddpcheck-%d-%s-%s" % (os.geteuid(), os.urandom(16).hex(), "".join("%08x" % (mark & 0xFFFFFFFF) for mark in marks))
    rings = os.path.join(parent, name)
    with open(os.path.join(trace, "rings"), "w", encoding="utf-8") as file:
        file.write(rings + "\n")
    return rings
