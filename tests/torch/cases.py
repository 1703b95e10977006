"""The jobs of job.py that test_ddp.py runs on the emulator and tests/gpu/run on a GPU, and what each must give."""

# case: (code or None, ranks that its sides must name or None, how the job ends: "hang", "fails" or "ends").
CASES = {
    "twins": (None, None, "ends"),
    "partial-barrier": ("DC201", "2", "hang"),
    "skip": ("DC101", "2", "hang"),
    "shape": ("DC102", "2", "hang"),
    "uneven-inputs": ("DC201", "2", "hang"),
    "no-sync-differs": ("DC206", "0-1", "hang"),
    "scalar-skipped": ("DC201", "2", "hang"),
    "mean-by-helper": ("DC101", "2", "hang"),
    "shared-comm": ("DC102", "2", "hang"),
    "comm-order": ("DC202", "2", "hang"),
    "skipped-model": ("DC102", "2", "hang"),
    "no-receive": ("DC201", "2", "hang"),
    "object-lists": ("DC102", "2", "hang"),
    "sharded-layers": ("DC101", "2", "hang"),
    "group-by-members": ("DC109", "2", "hang"),
    "unused-params": ("DC205", "2", "hang"),
    "oom-skip": ("DC201", "2", "hang"),
    "divided-too-early": ("DC301", "0-2", "ends"),
    "read-too-early": ("DC302", "0-2", "ends"),
    "stepped-too-early": ("DC302", "0-2", "ends"),
    "cleared-too-early": ("DC301", "0-2", "ends"),
    "ring": ("DC203", "0", "hang"),
    "inplace-activation": ("DC205", None, "fails"),     # any rank may be the first
}

# Before PyTorch 2.15, where the first message of two ranks created a communicator of theirs.
CASES_BEFORE_2_15 = {**CASES, "ring": ("DC209", "0", "hang")}

# case: lines of job.py that its sides must name, each the innermost of its side. Calls that autograd's threads make stand at
# the line of backward(), kernels and copies at that of the operation.
LINES = {
    "divided-too-early": ["total.div_(", "dist.all_reduce(total, async_op=True)"],
    "read-too-early": ["scaled = total * 2"],
    "stepped-too-early": ["optimizer.step()"],
    "cleared-too-early": ["buffer.zero_()"],
    "shared-comm": ["loss.backward()"],
    "comm-order": ["loss.backward()"],
    "sharded-layers": ["loss.backward()"],
}

# case: the beginning of the line of job.py that heads its finding.
HEADS = {
    "mean-by-helper": "all_reduce_mean(",
}

# case: words of the cause that its finding names as likely.
CAUSES = {
    "group-by-members": "new_group called by its members only",
}

# case: words of the earlier call that its finding names.
ORIGINS = {
    "scalar-skipped": "left out one call",
}

# case: words of the fix.
FIXES = {
    "no-sync-differs": "no_sync() on all ranks or on none",
    "skipped-model": "a backward pass that only some ranks make",
    "no-receive": "as many receives as sends between the two ranks",
    "object-lists": "as many objects on every rank",
}

# case: what of PyTorch made the calls of its sides.
OPERATIONS = {
    "partial-barrier": ["barrier()"],
    "uneven-inputs": ["gradient bucket of DDP"],
    "sharded-layers": ["FSDP's all-gather of parameters"],
    "object-lists": ["broadcast_object_list()"],
}
