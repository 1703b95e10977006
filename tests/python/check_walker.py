"""Runs under each Python: what the shim reads of frames and code must be what Python says itself.

Argument: the walker library. Prints how much was compared."""

import ctypes
import dis
import os
import sys
import threading
import types

WALKER = ctypes.CDLL(sys.argv[1])           # without the GIL, as torch calls NCCL
HOLDING = ctypes.PyDLL(sys.argv[1])         # with it
QUALIFIED = sys.version_info >= (3, 11)
this_thread = ctypes.pythonapi.PyGILState_GetThisThreadState
this_thread.restype = ctypes.c_void_p
for library in WALKER, HOLDING:
    library.walker_frames.argtypes = [ctypes.c_uint64, ctypes.c_int, ctypes.c_char_p, ctypes.c_int]
    library.walker_line.argtypes = [ctypes.c_uint64, ctypes.c_int, ctypes.c_int]
    library.walker_key.argtypes = [ctypes.c_uint64, ctypes.c_int]
    library.walker_key.restype = ctypes.c_uint64


def start():
    api = ctypes.pythonapi
    address = lambda name: ctypes.addressof(ctypes.c_char.in_dll(api, name))
    WALKER.walker_start.argtypes = [ctypes.c_uint32, ctypes.c_void_p] + 3 * [ctypes.c_uint64]
    assert WALKER.walker_start(sys.hexversion, address("_PyRuntime"), address("PyCode_Type"), address("PyUnicode_Type"),
                               address("PyBytes_Type")), "the layout of %s is not known" % sys.version
    # Versions and builds that are not known are refused.
    for version in (0x03070000, 0x030F0000, 0x02070000, 0x04000000, 0x030E0000 if sys.version_info < (3, 13) else 0x030D63F0):
        assert not WALKER.walker_start(version, address("_PyRuntime"), 1, 1, 1), hex(version)
    assert WALKER.walker_start(sys.hexversion, address("_PyRuntime"), address("PyCode_Type"), address("PyUnicode_Type"),
                               address("PyBytes_Type"))


def frames(library, state, trusted):
    text = ctypes.create_string_buffer(65536)
    sound = library.walker_frames(state, trusted, text, len(text))
    return sound, [tuple(line.split("\t")) for line in text.value.decode("utf-8").splitlines()]


def name_of(code):
    return code.co_qualname if QUALIFIED else code.co_name


def expected(frame):
    found = []
    while frame and len(found) < 32:
        found.append((frame.f_code.co_filename[-128 if not frame.f_code.co_filename.isascii() else -512:],
                      str(frame.f_lineno or 0), name_of(frame.f_code)))
        frame = frame.f_back
    return found


def compare(what):
    """The caller's stack, read in all ways."""
    state = this_thread()
    for library in WALKER, HOLDING:
        for trusted in 0, 1:
            sound, got = frames(library, state, trusted)
            wanted = expected(sys._getframe(1))
            # The walker's innermost frames are those of frames() and of this function.
            assert sound and got[2:] == wanted[:30], "%s:\n got    %s\n wanted %s" % (what, got[2:], wanted)
    return len(wanted)


class Ünïcode:
    def mèthod_数(self, depth):
        if depth:
            return self.mèthod_数(
                depth
                - 1)
        return compare("recursion")


def generator():
    yield compare("generator")


async def coroutine():
    return compare("coroutine")


def stacks():
    Ünïcode().mèthod_数(3)
    Ünïcode().mèthod_数(60)
    list(generator())
    [compare("comprehension") for _ in range(2)]
    (lambda: compare("lambda"))()
    sorted([2, 1], key=lambda _: compare("callback from C"))
    try:
        coroutine().send(None)
    except StopIteration:
        pass
    exec(compile("\n\ncompare('exec')", "<a cell>", "exec"), {"compare": compare})
    exec(compile("\ncompare('long name')", "/" + "d" * 700 + "/file.py", "exec"), {"compare": compare})
    class Body:
        compare("class body")
    try:
        raise ValueError
    except ValueError:
        compare("handler")
    finally:
        compare("finally")


def lines_of(code):
    """(instruction's offset in bytes, line or 0)"""
    table = {}
    if hasattr(code, "co_lines"):
        for begin, end, line in code.co_lines():
            table.update((offset, line or 0) for offset in range(begin, end, 2))
    else:
        starts, line = dict(dis.findlinestarts(code)), code.co_firstlineno
        for offset in range(0, len(code.co_code), 2):
            line = starts.get(offset, line)
            table[offset] = line
    return table.items()


def codes(code):
    yield code
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from codes(constant)


def line_tables(seconds):
    """Every instruction of the standard library's modules, as far as the time goes."""
    import time
    end, compared = time.monotonic() + seconds, 0
    folder = os.path.dirname(os.__file__)
    for name in sorted(os.listdir(folder)):
        if not name.endswith(".py") or time.monotonic() > end:
            continue
        with open(os.path.join(folder, name), "rb") as file:
            module = compile(file.read(), name, "exec")
        for code in codes(module):
            for offset, line in lines_of(code):
                got = HOLDING.walker_line(id(code), offset, compared % 16 != 0)
                assert got == line, "%s %s +%d: line %d, not %d" % (name, code.co_name, offset, line, got)
                compared += 1
    return compared


def other_threads():
    """Frames of a thread that waits, read without its help."""
    ready, leave, state = threading.Event(), threading.Event(), []

    def waits_for_ever():
        state.append(this_thread())
        ready.set()
        leave.wait()

    thread = threading.Thread(target=waits_for_ever)
    thread.start()
    ready.wait()
    while True:
        sound, got = frames(WALKER, state[0], 0)
        if sound and got and got[0][2].endswith("wait"):
            break
    wanted = expected(sys._current_frames()[thread.ident])
    assert got == wanted, "got %s\nwanted %s" % (got, wanted)
    leave.set()
    thread.join()


def handled():
    """The exception of the thread, or None: its type and message, and the frames of its traceback, innermost first."""
    text = ctypes.create_string_buffer(65536)
    WALKER.walker_handled.argtypes = [ctypes.c_uint64, ctypes.c_char_p, ctypes.c_int]
    if WALKER.walker_handled(this_thread(), text, len(text)) < 0:
        return None
    lines = text.value.decode("utf-8").splitlines()
    return tuple(lines[0].split("\t")), [tuple(line.split("\t")) for line in lines[1:]]


class Broken(ValueError):
    pass


def fail(depth):
    if depth:
        fail(depth - 1)
    raise Broken("a sample")


def said(error):
    """What Python says of it."""
    entry, frames = error.__traceback__, []
    while entry:
        frames.insert(0, (entry.tb_frame.f_code.co_filename, str(entry.tb_lineno), name_of(entry.tb_frame.f_code)))
        entry = entry.tb_next
    return (type(error).__name__, message(error)), frames[:4]


def message(error):
    """The first of its arguments that is a text, as far as a line of at most 120 bytes goes; the last line of a loader's."""
    texts = [text for text in error.args[:2] if isinstance(text, str)]
    if texts and texts[0].startswith("Caught ") and "\n" in texts[0][:120]:
        return texts[0][-120:].rstrip("\n").split("\n")[-1]
    return texts[0].split("\n")[0][:120 if texts[0].isascii() else 30] if texts else ""


def in_generator():
    yield handled()


def exceptions():
    assert handled() is None, handled()
    for depth in 0, 1, 5:
        try:
            fail(depth)
        except Broken as error:
            assert handled() == said(error), (handled(), said(error))
            assert next(in_generator()) == said(error)
        assert handled() is None, handled()
        try:
            try:
                fail(depth)
            finally:
                of_finally = handled()
        except Broken as error:
            kind, frames = said(error)
            assert of_finally[0] == kind and of_finally[1][0] == frames[0], (of_finally, frames)
    for error in (ValueError(), ValueError(7), ValueError("two\nlines"), ValueError("long " * 100), ValueError("Größe " * 100),
                  FileNotFoundError(2, "No such file or directory"), KeyError("label"),
                  OSError("Caught OSError in worker 0.\n%s\nOSError: broken\n" % ("trace\n" * 50)), OSError("Caught in time"), Broken(("a", "tuple"), 3)):
        try:
            raise error
        except Exception:
            assert handled() == said(error), (handled(), said(error))
    text = ctypes.create_string_buffer(4096)
    for address in 0, 1, 4096, 1 << 40, (1 << 63) - 8, id(text), id(str):
        WALKER.walker_handled(address, text, len(text))


def nonsense():
    """Addresses of anything but frames and code give nothing, and no crash."""
    text = ctypes.create_string_buffer(65536)
    for address in [0, 1, 8, 4096, 1 << 40, (1 << 63) - 8, (1 << 64) - 8, id(text), id(str), id(nonsense), ctypes.addressof(text)]:
        assert not (WALKER.walker_frames(address, 0, text, len(text)) and text.value), hex(address)
        assert WALKER.walker_line(address, 0, 0) == -1, hex(address)


def keys():
    """Code that lies where other code lay is told apart, as cells of a notebook are."""
    seen, told_apart = {}, 0
    for number in range(300):
        code = compile("\n" * (number % 3) + "f(%s)" % ("1, " * (number % 5)), "<cell %d>" % number, "exec")
        key, text = WALKER.walker_key(id(code), 2), (code.co_filename, code.co_firstlineno, lines_of(code).__repr__())
        if id(code) in seen:
            told_apart += 1
            assert seen[id(code)][0] != key or seen[id(code)][1] == text, "one key for %s and %s" % (text, seen[id(code)][1])
        seen[id(code)] = key, text
        del code
    return told_apart


start()
stacks()
other_threads()
exceptions()
nonsense()
apart = keys()
print("%s: stacks, %d instructions' lines, %d code objects at used addresses" %
      (sys.version.split()[0], line_tables(float(sys.argv[2])), apart))
