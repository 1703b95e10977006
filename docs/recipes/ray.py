"""Ray Train with a hub. On the head node, before this script:

    ddpcheck hub --dir /tmp/ddpcheck-hub &       # prints nats://TOKEN@HOST:4222; DDPCHECK_HUB_TOKEN sets the token
    DDPCHECK_HUB=nats://TOKEN@HEAD:4222 python ray.py

Ray starts the workers by its daemon, so what they need goes into their runtime environment. On each node the first of them starts
the collector, which joins the hub. ddpcheck lies at the same path on all nodes; the trace directory is each node's own."""

import os

LIBRARY = "/opt/ddpcheck/lib/libddpcheck.so"


def environment(hub):
    return {"LD_PRELOAD": LIBRARY, "DDPCHECK_DIR": "/tmp/ddpcheck-trace", "DDPCHECK_HUB": hub}


def train():
    """The job's loop, with torch.distributed as Ray Train has set it up."""


def main():
    import ray
    from ray.train import ScalingConfig
    from ray.train.torch import TorchTrainer

    ray.init(runtime_env={"env_vars": environment(os.environ["DDPCHECK_HUB"])})
    TorchTrainer(train, scaling_config=ScalingConfig(num_workers=8, use_gpu=True)).fit()


if __name__ == "__main__":
    main()
