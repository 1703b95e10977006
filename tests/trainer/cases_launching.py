"""Who starts the ranks, and starts them again."""

import os
import shutil
import signal
import tempfile

import running
from running import start, run, read_until, losses, must_contain, free_port, need

LAUNCHED = "--iterations 4 --log-every 1 --verbose"


def must_be_launched(out, launcher, device_of):
    """All four ranks know who and where they are, and train to the losses of --ranks 4."""
    for rank in range(4):
        must_contain(out, "rank %d: one of 4 ranks, on device %d, started by %s\n" % (rank, device_of(rank), launcher))
    own = run(LAUNCHED + " --ranks 4")
    must_contain(own, "rank 3: one of 4 ranks, on device 3, started by ddptrain\n")
    if losses(out) != losses(own):
        raise AssertionError("%s: %s\n--ranks 4: %s" % (launcher, out, own))


# launcher: what it sets for a rank, as its documentation says; ranks here are numbered against their devices.
STAND_INS = {
    "torchrun": lambda rank, port: {
        "RANK": rank, "WORLD_SIZE": 4, "LOCAL_RANK": 3 - rank, "LOCAL_WORLD_SIZE": 4, "GROUP_RANK": 0, "GROUP_WORLD_SIZE": 1,
        "ROLE_RANK": rank, "ROLE_WORLD_SIZE": 4, "ROLE_NAME": "default", "MASTER_ADDR": "localhost", "MASTER_PORT": port,
        "TORCHELASTIC_RESTART_COUNT": 0, "TORCHELASTIC_MAX_RESTARTS": 0, "TORCHELASTIC_RUN_ID": "none",
        "TORCHELASTIC_USE_AGENT_STORE": "False"},
    "Slurm": lambda rank, port: {
        "SLURM_PROCID": rank, "SLURM_NTASKS": 4, "SLURM_LOCALID": 3 - rank, "SLURM_NODEID": 0, "SLURM_JOB_ID": 4711,
        "SLURM_STEP_ID": 0, "MASTER_PORT": port},
    "MPICH": lambda rank, port: {
        "PMI_RANK": rank, "PMI_SIZE": 4, "MPI_LOCALRANKID": 3 - rank, "MPI_LOCALNRANKS": 4, "MASTER_PORT": port},
}


def case_launchers():
    for launcher, variables in STAND_INS.items():
        port = free_port()
        ranks = [start(LAUNCHED.split(), {k: str(v) for k, v in variables(rank, port).items()}) for rank in (3, 1, 0, 2)]
        out = "".join(rank.communicate(timeout=300)[0] for rank in ranks)
        if any(rank.returncode for rank in ranks):
            raise AssertionError("%s: %s" % (launcher, out))
        must_be_launched(out, launcher, lambda rank: 3 - rank)
    must_contain(run("--ranks 3", expected=2, environment={"RANK": "0", "WORLD_SIZE": "2"}), "differ")
    must_contain(run("", expected=2, environment={"RANK": "2", "WORLD_SIZE": "2"}), "RANK=2 does not fit to WORLD_SIZE=2")
    must_contain(run("", expected=2, environment={"SLURM_PROCID": "x", "SLURM_NTASKS": "2"}), "SLURM_PROCID=x")


def case_mpirun():
    """Open MPI's own."""
    mpirun = [shutil.which("mpirun.openmpi") or need("mpirun"), "--allow-run-as-root", "--oversubscribe", "-n", "4", "-x", "LD_LIBRARY_PATH",
              "-x", "DDPCHECK_EMU_DEVICES", running.PROGRAM]
    must_be_launched(run(LAUNCHED, command=mpirun), "Open MPI", lambda rank: rank)


def case_torchrun():
    """PyTorch's own, from DDPTRAIN_TEST_TORCHRUN, PATH or tools/setup-torch: also its restarts."""
    torchrun = [need("torchrun"), "--no_python", "--standalone", "--nproc_per_node", "4", "--max_restarts", "2", running.PROGRAM]
    must_be_launched(run(LAUNCHED, command=torchrun), "torchrun", lambda rank: rank)
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "checkpoint")
        out = run("--iterations 8 --log-every 1 --verbose --fault crash --elastic --checkpoint %s --checkpoint-every 3" % path,
                  command=torchrun)
        must_contain(out, "rank 2: one of 4 ranks, on device 2, started by torchrun again\n",
                     "rank 0: resumed from %s at iteration 3" % path)
        if losses(out) != losses(run("--ranks 4 --iterations 8 --log-every 1")):
            raise AssertionError("after torchrun's restart: " + out)


def case_gang():
    out = run("--ranks 3 --iterations 100000 --fault wrong-device --fault-rank 1", expected=1)
    # Which call meets the device's fault first is a matter of time.
    must_contain(out, "rank 1 exited with status 1; terminating the others", "discriminator.down0.weight is now on device 2")
    process = start("--ranks 2 --iterations 100000 --log-every 1".split())
    out = read_until(process, "iteration 1:")
    process.terminate()
    out += process.communicate(timeout=300)[0]
    if process.returncode != 128 + signal.SIGTERM:
        raise AssertionError("exit status %d after SIGTERM, expected 143:\n%s" % (process.returncode, out))


def case_elastic():
    """A rank dies; all are started again and train to the losses of an undisturbed run, which needs all of the
    parameters, moments, sampler and statistics that the checkpoint holds."""
    with tempfile.TemporaryDirectory() as folder:
        for name, model in (("gan", "gan"), ("cnn", "cnn"), ("scaled", "gan --amp fp16")):
            path = os.path.join(folder, name)
            options = "--model %s --ranks 4 --iterations 10 --log-every 1 --dataset-size 96 " % model
            crash = options + "--fault crash --checkpoint %s --checkpoint-every 3 " % path
            out = run(crash + "--elastic")
            must_contain(out, "rank 3 was killed by signal 9; terminating the others",
                         "starting all 4 ranks again (restart 1 of at most 3)",
                         "rank 0: resumed from %s at iteration 3" % path, "7 iterations on 4 ranks")
            if losses(out) != losses(run(options)):
                raise AssertionError("after a restart %s: %s" % (model, out))
            must_contain(run(options + "--elastic --checkpoint " + path), "resumed from %s at iteration 10" % path)
    must_contain(run("--ranks 4 --fault crash", expected=128 + signal.SIGKILL), "rank 3 was killed by signal 9")
    out = run("--ranks 2 --fault wrong-device --elastic --max-restarts 2", expected=1)
    must_contain(out, "starting all 2 ranks again (restart 2 of at most 2)", "gave up after 2 restarts (--max-restarts)")
    if out.count("exited with status 1") != 3:
        raise AssertionError("expected three attempts:\n" + out)
    must_contain(run("--ranks 2 --elastic --no-gang", expected=2), "exclude each other")


def case_elastic_refuses():
    """What another attempt can't mend is not tried again."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "checkpoint")
        run("--ranks 2 --iterations 2 --checkpoint " + path)
        out = run("--ranks 2 --iterations 2 --width 4 --elastic --checkpoint " + path, expected=2)
        must_contain(out, "written with other options")
        if "again" in out:
            raise AssertionError("started again:\n" + out)
