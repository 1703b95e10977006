"""Correct PyTorch programs on emulated GPUs: they run to their end, and nothing is reported.

test_train.py BUILD [PROGRAM...]. The ways of PyTorch to use several GPUs, and programs like its examples, on 2 and on 4 ranks.
The ways on 2 ranks are started as a user starts them; the other jobs are forked, after what takes longest: the imports."""

import os
import sys

from jobs import HERE, Line, Server, end_group, output, statuses, torch_folder, torch_version, wait_for

QUIET = {"OMP_NUM_THREADS": "1", "TORCH_CPP_LOG_LEVEL": "ERROR", "GLOG_minloglevel": "2", "TORCHINDUCTOR_COMPILE_THREADS": "1"}
# Not all in one job: of more communicators than half of them have, not all streams are watched (DC903).
EXPANDABLE = {"PYTORCH_CUDA_ALLOC_CONF": "expandable_segments:True"}
FORKED = [(4, "ways", {}), (2, "examples", EXPANDABLE), (4, "examples", {}), (2, "compiled", {})]


def check(line, ranks, programs, out, err):
    # Not DC6xx: on a busy machine one rank does come later than the others.
    findings = [(one["code"], one["severity"]) for one in line.report()[1] if not one["code"].startswith("DC6")]
    assert findings == [], (findings, out, err)
    count = out.count("done:")
    assert count >= (10 if programs in ("ways", "examples") else len(programs.split())), out
    print("%d ranks: %d programs, no finding" % (ranks, count), flush=True)


def check_started(build, ranks, programs):
    torchrun = os.path.join(torch_folder(), "bin", "torchrun")
    with Line(build, devices=ranks, name="train") as line:
        status, out, err = line.run(
            [torchrun, "--standalone", "--nproc_per_node", str(ranks), os.path.join(HERE, "train.py"), *programs.split()],
            (), 600, {**QUIET, "TMPDIR": line.folder})
        assert status == 0, (status, out, err)
        ours = [text for text in err.splitlines() if text.startswith("ddpcheck") and "note DC6" not in text]
        assert len(ours) <= 3, "%d lines of ours on stderr:\n%s" % (len(ours), "\n".join(ours))
        assert "computes no numbers for this program" in ours[0], ours
        assert "no finding" in ours[-1] or "no error" in ours[-1], ours     # no error: check() says what there may be
        check(line, ranks, programs, out, err)
        _, versions, _ = line.call([line.tool, "sql", line.trace, "SELECT DISTINCT name, version FROM library"])
        assert "PyTorch" in versions and "".join("%02d" % part for part in torch_version()).lstrip("0") in versions, versions


def check_compiled(line):
    """What torch.compile made did run."""
    _, kernels, _ = line.call([line.tool, "sql", line.trace, "SELECT text FROM string WHERE text LIKE 'triton_%'"])
    assert "triton_" in kernels, kernels


def check_forked(build):
    with Line(build, devices=4, name="train") as line, Server(line, 4, "train") as server:
        for ranks, programs, settings in FORKED:
            folder = os.path.join(line.folder, "%s-%d" % (programs, ranks))
            line.trace = os.path.join(folder, "trace")
            leader = server.start(programs, folder, ranks=ranks, DDPCHECK_DIR=line.trace, TMPDIR=line.folder, **QUIET, **settings)
            ended = wait_for(lambda at=folder: statuses(at), 600)
            end_group(leader)
            line.wait_collector()
            said = output(folder)
            assert ended == [0] * ranks, (ended, said)
            ours = [text for text in said.splitlines() if text.startswith("ddpcheck")]
            assert len(ours) <= ranks, ours     # a line for each process: nobody gathers them here
            check(line, ranks, programs, said, "")
        check_compiled(line)


def main():
    if sys.argv[2:]:
        for ranks in (2, 4):
            check_started(sys.argv[1], ranks, " ".join(sys.argv[2:]))
        return
    check_started(sys.argv[1], 2, "ways")
    check_forked(sys.argv[1])


if __name__ == "__main__":
    main()
