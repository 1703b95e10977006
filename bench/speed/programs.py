"""What a rank of each style of training does: a generator that yields the operations to wait for in the simulation.

The simulation resumes a program when the operation's end is known. That is not a wait of the host or the device: they wait
where the program calls wait() or end()."""

ELEMENT = 2                     # bytes of an activation or a gradient
FORWARD = ("ampere_bf16_gemm_tn", "flash_fwd_kernel", "layer_norm_fwd")
BACKWARD = ("ampere_bf16_gemm_nt", "flash_bwd_kernel", "layer_norm_bwd")
PARTS = (0.6, 0.3, 0.1)         # of a layer's time


def layer(rank, names, seconds):
    """The kernels of a layer. Attention grows with the square of the sequences' length, the others with the length."""
    for name, part in list(zip(names, PARTS))[:rank.job.kinds]:
        factor = rank.attention if "flash" in name else rank.work
        rank.kernel(name, seconds * part, factor)
    for _ in range(rank.extra):
        rank.kernel(names[0], seconds * PARTS[0])


def optimizer(rank):
    rank.kernel("multi_tensor_adamw", rank.job.layer_seconds * 0.4)
    rank.end()


def data_parallel(rank):
    """DDP: gradients of buckets are reduced while the backward pass goes on."""
    job = rank.job
    group = job.by_rank[rank.number]["dp"][0]
    for iteration in range(job.iterations):
        rank.begin(iteration)
        for _ in range(job.layers):
            layer(rank, FORWARD, job.layer_seconds)
        for _ in range(job.layers):
            layer(rank, BACKWARD, 2 * job.layer_seconds)
            if not job.unoverlapped:
                for _ in range(job.pieces):
                    yield rank.operation(group, "AllReduce", job.layer_bytes // job.pieces, "dp")
        if job.unoverlapped:
            for _ in range(job.layers * job.pieces):
                yield rank.operation(group, "AllReduce", job.layer_bytes // job.pieces, "dp")
        rank.wait("dp")
        optimizer(rank)


PROGRAMS = {"ddp": data_parallel}
