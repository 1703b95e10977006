"""Jobs that are slow, and one that is not: ddptrain on two emulated devices whose kernels and links take modelled times, so that
other programs on the machine can only add to them. For the pages of scenarios 31 to 33 and the tests of slow GPUs and links."""

# name (the fault): iterations, finding, severity (the loss is above 10 %), its ranks, words
SLOW = {
    "slow-host": (60, "DC601", "warning", "1", ("the host issues late",)),
    "slow-loader": (60, "DC601", "warning", "1", ("the host issues late",)),
    "slow-device": (50, "DC604", "warning", "1", ("the same work takes the GPU longer", "ddpcheck_")),
    "throttle-after": (110, "DC604", "warning", "1", ("since iteration ", "the same work takes the GPU longer")),
    "gc-pause": (80, "DC608", "warning", "1", ("every 10 iterations", "most of it between cudaStreamSynchronize()")),
    "slow-link": (110, "DC606", "warning", "0-1", ("transfers of comm classifier", "times as long as before", "since iteration ")),
    "tiny-buckets": (30, "DC602", "note", "0-1", ("ncclAllReduce is called 16 times or more in a row",)),
}
RIGHT, RIGHT_ITERATIONS = "not-slow", 40
RIGHT_ENVIRONMENT = {"DDPCHECK_EMU_KERNEL_TIME": "all=0.002"}
DEVICES = 2
NO_BUSY_HOST = ("DC602", "DC604", "DC605", "DC606", "DC608")      # what a busy host causes in no job


def arguments(name, iterations=0):
    """ddptrain's; 0: as many as the pages say."""
    usual, fault = (RIGHT_ITERATIONS, []) if name == RIGHT else (SLOW[name][0], ["--fault", name])
    iterations = iterations or usual
    return ["--ranks", str(DEVICES), "--model", "cnn", "--iterations", str(iterations), *fault]


def environment(name):
    return RIGHT_ENVIRONMENT if name == RIGHT else {}


def findings_of(line, name, options=("--timing",), iterations=0, **more):
    """Those that no busy host causes, and the fault's own; more of the environment."""
    status, out, err = line.run([line.trainer, *arguments(name, iterations)], options, timeout=500, environment={**environment(name), **more})
    assert status == 0, out + err
    codes = NO_BUSY_HOST + ((SLOW[name][1],) if name in SLOW else ())
    return [each for each in line.report()[1] if each["code"] in codes and each.get("state") != "resolved"]


def check_found(name, findings, is_exact=True):
    """That the fault has its finding and no other."""
    _, code, severity, ranks, words = SLOW[name]
    if not is_exact:
        words = ()
    found = [(each["code"], each["severity"], each["sides"][0]["ranks"]) for each in findings]
    assert found == [(code, severity, ranks)], (name, found, [each["what"] for each in findings])
    for word in words:
        assert word in findings[0]["what"], (name, findings[0]["what"])
