"""What a rank of each style of training does: a generator that yields the operations to wait for in the simulation.

The simulation resumes a program when the operation's end is known. That is not a wait of the host or the device: they wait
where the program calls wait() or end()."""

FORWARD = ("ampere_bf16_gemm_tn", "flash_fwd_kernel", "layer_norm_fwd")
BACKWARD = ("ampere_bf16_gemm_nt", "flash_bwd_kernel", "layer_norm_bwd")
PARTS = (0.6, 0.3, 0.1)         # of a layer's time


def layer(rank, names, seconds):
    """The kernels of a layer. Attention grows with the square of the sequences' length, the others with the length."""
    rank.kernel(names[0], seconds * PARTS[0], rank.work)
    if rank.job.kinds > 1:
        rank.kernel(names[1], seconds * PARTS[1], rank.attention)
    if rank.job.kinds > 2:
        rank.kernel(names[2], seconds * PARTS[2], rank.work)
    if rank.extra[0]:
        rank.extra_kernels(names[0], seconds * PARTS[0])


def tensor_parallel(rank, names, seconds):
    """A layer whose result is summed over the group of tensor parallelism."""
    layer(rank, names, seconds)
    for group in rank.groups.get("tp", ()):
        yield rank.operation(group, "AllReduce", rank.activations(), "tp")
        rank.wait("tp")


def reduce_gradients(rank, pieces):
    for group in rank.groups.get("dp", ()):
        for _ in range(pieces):
            yield rank.operation(group, "AllReduce", rank.job.layer_bytes // rank.job.pieces, "dp")


def forward(rank):
    for _ in range(rank.job.layers):
        yield from tensor_parallel(rank, FORWARD, rank.job.layer_seconds)


def backward(rank, reduce):
    """reduce: gradients are complete, and reduced while the pass goes on."""
    job = rank.job
    for _ in range(job.layers):
        yield from tensor_parallel(rank, BACKWARD, 2 * job.layer_seconds)
        if reduce and not job.unoverlapped:
            yield from reduce_gradients(rank, job.pieces)
    if reduce and job.unoverlapped:
        yield from reduce_gradients(rank, job.layers * job.pieces)


def optimizer(rank):
    rank.wait("dp")
    rank.kernel("multi_tensor_adamw", rank.job.layer_seconds * 0.4)
    rank.end()


def data_parallel(rank):
    """DDP, with layers split over tensor parallelism if the grid has it: buckets are reduced while the backward pass goes on."""
    for iteration in range(rank.job.iterations):
        rank.begin(iteration)
        yield from forward(rank)
        rank.middle()
        yield from backward(rank, True)
        optimizer(rank)


def fully_sharded(rank):
    """FSDP: a layer's parameters are gathered while the layer before runs, gradients are reduced to their owners."""
    job, group = rank.job, rank.groups["dp"][0]
    for iteration in range(job.iterations):
        rank.begin(iteration)
        for names, seconds in ((FORWARD, job.layer_seconds), (BACKWARD, 2 * job.layer_seconds)):
            yield rank.operation(group, "AllGather", job.layer_bytes, "dp")
            for number in range(job.layers):
                rank.wait("dp")
                if number < job.layers - 1:
                    yield rank.operation(group, "AllGather", job.layer_bytes, "dp")
                layer(rank, names, seconds)
                if names is BACKWARD:
                    yield rank.operation(group, "ReduceScatter", job.layer_bytes, "dp")
            if names is FORWARD:
                rank.middle()
        optimizer(rank)


def exchange(rank, *transfers):
    """Sends and receives in one launch: they start together, and kernels wait for all of them."""
    start, meetings = None, []
    for group, name in transfers:
        if group:
            meetings.append(rank.operation(group, name, rank.activations(), "pp", start))
            start = meetings[-1].begun
    for meeting in meetings:
        yield meeting
    rank.wait("pp")


def stage_kernel(rank, forward_pass):
    """The first stage has the embedding, the last the logits: stages are uneven in correct jobs, too."""
    stage, last = rank.place[2], rank.job.grid[2] - 1
    part = rank.job.uneven * rank.job.layer_seconds * rank.job.layers * (1 if forward_pass else 2)
    if part and stage in (0, last):
        rank.kernel("embedding_kernel" if stage == 0 else "logits_gemm", part * (0.3 if stage == 0 else 1), rank.work)


def one_forward(rank):
    stage_kernel(rank, True)
    yield from forward(rank)


def one_backward(rank, last):
    stage_kernel(rank, False)
    yield from backward(rank, last)


def pipeline(rank):
    """One forward, one backward (1F1B), the schedule of Narayanan et al. 2021, figure 4, without interleaving."""
    job = rank.job
    before = next((group for group in rank.groups.get("pp", ()) if group.members[1] == rank.number), None)
    after = next((group for group in rank.groups.get("pp", ()) if group.members[0] == rank.number), None)
    ahead = min(job.grid[2] - rank.place[2] - 1, job.micro)
    steady = job.micro - ahead
    for iteration in range(job.iterations):
        rank.begin(iteration)
        for _ in range(ahead):
            yield from exchange(rank, (before, "Recv"))
            yield from one_forward(rank)
            yield from exchange(rank, (after, "Send"))
        if steady:
            yield from exchange(rank, (before, "Recv"))
        for number in range(steady):
            yield from one_forward(rank)
            yield from exchange(rank, (after, "Send"), (after, "Recv"))
            if number == 0:
                rank.middle()
            yield from one_backward(rank, number == job.micro - 1)
            yield from exchange(rank, (before, "Send"), (before if number < steady - 1 else None, "Recv"))
        for number in range(steady, job.micro):
            yield from exchange(rank, (after, "Recv"))
            yield from one_backward(rank, number == job.micro - 1)
            yield from exchange(rank, (before, "Send"))
        optimizer(rank)


PROGRAMS = {"ddp": data_parallel, "fsdp": fully_sharded, "tp": data_parallel, "3d": pipeline}
