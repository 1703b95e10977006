"""Every file that a comment names is there: `order.h`, `analyzer/model/order.h`, `words.c`. Tests' comments count as well.

    test_comments.py [BUILD]"""

import os
import re
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
COMMENT = re.compile(r"/\*.*?\*/|//[^\n]*", re.S)
# A name with an ending of our sources, perhaps with folders before it; not a part of another name, an address or <header.h>.
NAMED = re.compile(r"(?<![\w./<\"$*-])((?:[\w-]+/)*[\w-]+\.(?:c|h|cu|cuh|def|py|sql))(?![\w.*/-]|\()")
# Files of NCCL, CUDA, PyTorch, libc and Linux, and of programs that comments give as examples.
OTHERS = set("""
    nccl.h nccl_device.h ras_internal.h cuda.h driver_types.h library_types.h cupti_version.h cupti_activity.h cupti_activity_deprecated.h
    fatbinary_section.h dispatch_reduce.cuh agent_select_if.cuh CUDALoops.cuh IndexKernelUtils.cu TensorInfo.cuh TensorAccessor.h
    MultiTensorApply.cuh Shape.cu WrapDimUtilsMulti.h distributed_c10d.py run.py version.py graph.py __init__.py threading.py
    Reduce.cuh nvml.h tupleobject.c methodobject.h pycore_debug_offsets.h pycore_runtime.h assert.h pidfd.h magic.h nats.h conn.c
    clip.c load.c minimal.c s.c s_correct.c NAME.c LIBRARY.def
    """.split())


def sources():
    """Paths of all files, from the root; what builds and tools write is left out."""
    for folder, folders, names in os.walk(ROOT):
        folders[:] = [name for name in folders if not name.startswith(".") and name not in ("build", "shared", "__pycache__")]
        for name in names:
            yield os.path.relpath(os.path.join(folder, name), ROOT)


def main():
    paths = sorted(sources())
    known = {path.split("/", depth)[-1] for path in paths for depth in range(path.count("/") + 1)}
    wrong = []
    for path in paths:
        if not path.endswith((".c", ".h", ".cu", ".cuh", ".def")):
            continue
        with open(os.path.join(ROOT, path), encoding="utf-8", errors="replace") as file:
            text = file.read()
        for comment in COMMENT.finditer(text):
            for found in NAMED.finditer(comment.group()):
                name = found.group(1)
                if name not in known and os.path.basename(name) not in OTHERS:
                    line = text.count("\n", 0, comment.start() + found.start()) + 1
                    wrong.append("%s:%d: there is no %s" % (path, line, name))
    print("\n".join(wrong) or "ok, %d files" % len(paths))
    sys.exit(bool(wrong))


if __name__ == "__main__":
    main()
