"""The rooms of the shim form one direction, and the link cycles of shim and analyzer stay small: read by nm from the
objects of a build. A room is a folder; it may use the rooms before it in its list, never one behind it.

test_rooms.py BUILD"""

import os
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
CYCLE_MAX = 12      # objects that need each other

# Target, its folder, and its rooms from the bottom up; None: in no order.
TARGETS = {
    "ddpcheck_shim": ("interpose", ["__/lib/base", "__/lib/python", "__/lib/trace", "shim", "real", "ring", "stacks", "record", "memory", "progress", "timing", "graphs",
                                    "hash", "process", "calls", "plugin"]),
    "ddpcheck_analyzer": ("analyzer", None),        # its rooms may know each other, but in small cycles
    "ddpcheck_import": ("lib", None),
}
# Functions of libc that the shim replaces: who calls them, calls libc.
REPLACED = {"syscall", "prctl", "exit", "_exit", "abort"}
# A part of the shim keeps its state in one struct, so that the child of a fork forgets it as one. What there is beside it:
OTHER_VARIABLES = {
    "shim/shim": {"thread_self", "problems_printed"},       # a thread's; not printed again in a forked child
    "shim/environment": {"first_environment"},              # the process's
    "stacks/stacks": {"unwinder"}, "stacks/frames": {"find_entry", "description"},      # the library's; of one call
    "plugin/nvtx": {"depth"}, "plugin/profiler_versions": {"ncclProfiler_v%d" % version for version in range(1, 8)},
}


def objects(folder):
    """Objects whose source is still there, by their path without the ending, from the target's folder."""
    for place, _, names in os.walk(folder):
        for name in names:
            path = os.path.join(place, name)
            if name.endswith(".c.o"):
                yield os.path.relpath(path, folder)[:-len(".c.o")], path


def symbols(path):
    defined, wanted, variables = set(), set(), set()
    for line in subprocess.run(["nm", "-f", "sysv", path], capture_output=True, text=True, check=True).stdout.splitlines():
        parts = [part.strip() for part in line.split("|")]
        if len(parts) < 7:
            continue
        if parts[2] in "Uw":
            wanted.add(parts[0])
        elif parts[2] in "TDBRVW":
            defined.add(parts[0])
        if parts[2] in "bBdD" and not parts[6].startswith(".data.rel.ro"):
            variables.add(parts[0].split(".")[0])
    return defined, wanted, variables


def cycles(uses):
    """The sets of objects that reach each other (Tarjan, without recursion)."""
    index, low, stack, open_, found = {}, {}, [], set(), []
    for start in uses:
        work = [(start, iter(uses[start]))] if start not in index else []
        while work:
            node, rest = work[-1]
            if node not in index:
                index[node] = low[node] = len(index)
                stack.append(node)
                open_.add(node)
            for other in rest:
                if other not in index:
                    work.append((other, iter(uses[other])))
                    break
                if other in open_:
                    low[node] = min(low[node], index[other])
            else:
                work.pop()
                if work:
                    low[work[-1][0]] = min(low[work[-1][0]], low[node])
                if low[node] == index[node]:
                    part = []
                    while not part or part[-1] != node:
                        part.append(stack.pop())
                        open_.discard(part[-1])
                    if len(part) > 1:
                        found.append(sorted(part))
    return found


def check(target, folder, rooms, source):
    found = {name: path for name, path in objects(folder)
             if os.path.exists(os.path.join(ROOT, source, name.replace("__", "..") + ".c"))}
    known = {name: symbols(path) for name, path in found.items()}
    owner = {symbol: name for name, (defined, _, _) in known.items() for symbol in defined}
    uses = {name: {owner[s]: s for s in sorted(wanted) if owner.get(s, name) != name} for name, (_, wanted, _) in known.items()}
    wrong = []
    for cycle in cycles(uses):
        if len(cycle) > CYCLE_MAX:
            wrong.append("%s: %d objects need each other, at most %d may: %s" % (target, len(cycle), CYCLE_MAX, ", ".join(cycle)))
    for name in sorted(uses):
        room = os.path.dirname(name)
        if rooms is None:
            continue
        if room not in rooms:
            wrong.append("%s: the room of %s has no place in the order" % (target, name))
            continue
        for other, symbol in uses[name].items():
            if symbol in REPLACED:
                continue
            if os.path.dirname(other) in rooms and rooms.index(os.path.dirname(other)) > rooms.index(room):
                wrong.append("%s: %s uses %s of %s, whose room is above" % (target, name, symbol, other))
    for name, (_, _, variables) in sorted(known.items()):
        if target == "ddpcheck_shim" and len(variables - OTHER_VARIABLES.get(name, set())) > 1 and not name.startswith("__"):
            wrong.append("%s: %s keeps its state in several variables: %s" % (target, name, ", ".join(sorted(variables))))
    print("%-20s %3d objects, largest link cycle %d" % (target, len(found), max([len(c) for c in cycles(uses)] or [1])))
    return len(found), wrong


def test():
    build, wrong, seen = os.path.abspath(sys.argv[1]), [], 0
    for target, (source, rooms) in TARGETS.items():
        folder = os.path.join(build, source, "CMakeFiles", target + ".dir")
        count, found = check(target, folder, rooms, source) if os.path.isdir(folder) else (0, [])
        seen += count
        wrong += found
    if not seen:
        print("skipped: no objects in %s; make builds them" % build)
        sys.exit(77)
    assert not wrong, "\n".join(wrong)


if __name__ == "__main__":
    test()
