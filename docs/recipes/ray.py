"""Ray Train, watched: the driver starts the job's hub, whose page and findings are the job's, and prints what was found when it ends.

    python ray.py

Ray starts the workers by its daemon, so what they need goes into their runtime environment. On each node the first of them starts
the collector, which joins the hub. ddpcheck lies at the same path on all nodes; the trace directory is each node's own."""

import subprocess

DDPCHECK = "/opt/ddpcheck"


def report(address):
    """What the hub knows now; also while the job runs."""
    return subprocess.run([DDPCHECK + "/bin/ddpcheck", "report", address], stdout=subprocess.PIPE, text=True).stdout


class Watch:
    """Starts the job's hub and ends it: `with Watch() as watch: ... watch.environment ...`"""

    def __init__(self, *options):
        self.options = options or ("--dir", "/tmp/ddpcheck-hub", "--http", "127.0.0.1:4280")

    def __enter__(self):
        self.hub = subprocess.Popen([DDPCHECK + "/bin/ddpcheck", "hub", *self.options], stdout=subprocess.PIPE, text=True)
        self.address, self.page = self.hub.stdout.readline().strip(), self.hub.stdout.readline().strip()
        if not self.page:
            raise RuntimeError("the hub has not started")
        print("ddpcheck shows the job at", self.page)
        self.environment = {"LD_PRELOAD": DDPCHECK + "/lib/libddpcheck.so", "DDPCHECK_DIR": "/tmp/ddpcheck-trace",
                            "DDPCHECK_HUB": self.address}
        return self

    def __exit__(self, *_):
        print(report(self.address))
        self.hub.terminate()
        self.hub.wait()


def callback(address):
    """For RunConfig(callbacks=[...]), which Ray sends to its controller: the reason is printed as soon as a worker fails."""
    from ray.train import UserCallback

    class Report(UserCallback):
        def after_exception(self, run_context, worker_exceptions):
            print(report(address))

    return Report()


def train():
    """The job's loop, with torch.distributed as Ray Train has set it up."""


def main():
    from ray.train import RunConfig, ScalingConfig
    from ray.train.torch import TorchTrainer

    with Watch() as watch:
        TorchTrainer(train, scaling_config=ScalingConfig(num_workers=8, use_gpu=True),
                     run_config=RunConfig(worker_runtime_env={"env_vars": watch.environment}, callbacks=[callback(watch.address)])).fit()


if __name__ == "__main__":
    main()
