"""JAX on several processes: sums over all of them. `skip`: the last rank leaves the last sum out."""

import os
import sys
import time

os.environ["XLA_PYTHON_CLIENT_PREALLOCATE"] = "false"
import jax  # noqa: E402
import jax.numpy as jnp  # noqa: E402
import numpy  # noqa: E402
from jax.sharding import Mesh, NamedSharding, PartitionSpec  # noqa: E402

rank, size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
jax.distributed.initialize("%s:%s" % (os.environ["MASTER_ADDR"], os.environ["MASTER_PORT"]), size, rank, local_device_ids=[0])
mesh = Mesh(numpy.array(jax.devices()), ("data",))
total = jax.jit(jax.shard_map(lambda part: jax.lax.psum(part, "data"), mesh=mesh, in_specs=PartitionSpec("data"),
                              out_specs=PartitionSpec()))
for step in range(4):
    if "skip" in sys.argv and rank == size - 1 and step == 3:
        time.sleep(600)         # its data ran out
    mine = jax.device_put(jnp.full((1, 1024), float(rank)), jax.local_devices()[0])
    whole = jax.make_array_from_single_device_arrays((size, 1024), NamedSharding(mesh, PartitionSpec("data")), [mine])
    summed = total(whole)
    summed.block_until_ready()
    assert float(summed.addressable_data(0)[0, 7]) == size * (size - 1) / 2
jax.distributed.shutdown()
print("rank %d done" % rank, flush=True)
