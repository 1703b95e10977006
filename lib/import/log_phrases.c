/* log_phrases.c: the table of texts that say what went wrong: of PyTorch, NCCL, CUDA, frameworks,
 * launchers and schedulers. Where two are in one line the first of the table counts. */
#include "lib/import/log_phrases.h"

#include "lib/import/log_messages.h"

static const char todo_remote[] =
    "As a rule another rank ended or its node lost the network first: look for that rank's own "
    "message, and for its process's end.";
static const char todo_heartbeat[] =
    "A CUDA or NCCL call of that rank hangs, or a thread holds the GIL inside one: look at its "
    "stacks (py-spy dump, gdb) when it happens again. TORCH_NCCL_HEARTBEAT_TIMEOUT_SEC only delays "
    "it.";
static const char todo_memory[] =
    "That rank ended or left its loop; the others then wait for it. Give it less to do (batch, "
    "sequence length), and let all ranks skip a batch together or none.";
static const char todo_host_memory[] =
    "The kernel ran out of host memory and killed a process: fewer data loader workers, less "
    "pinned "
    "memory, or a larger limit. The other ranks then wait for it.";
static const char todo_gpu[] =
    "The GPU or its driver failed: NVIDIA's list of Xid errors says whether to restart the job, "
    "reset the GPU or replace it. Take the node out and run diagnostics (dcgmi diag).";
static const char todo_gpu_memory[] =
    "The GPU's memory is broken (Xid 48, 94 or 95 in dmesg): take the node out, reset the GPU, and "
    "replace it if the error comes back (nvidia-smi -q -d ECC,ROW_REMAPPER). No change of the "
    "program helps.";
static const char todo_nvlink[] =
    "A link between GPUs failed (Xid 74 or 144 to 150, SXid in dmesg): take the node out and run "
    "diagnostics (dcgmi diag, nvidia-smi nvlink -e). No change of the program helps.";
static const char todo_fabric[] =
    "NVSwitch is not ready: see that nvidia-fabricmanager runs (systemctl status), in the version "
    "of the driver, and what it logged (/var/log/fabricmanager.log).";
static const char todo_no_gpu[] =
    "The process has no usable GPU: see nvidia-smi on that node, CUDA_VISIBLE_DEVICES, the "
    "container's devices, and whether another process has the GPU for itself (compute mode).";
static const char todo_cuda[] =
    "The first CUDA error counts; run again with CUDA_LAUNCH_BLOCKING=1 or compute-sanitizer to "
    "see which kernel it is. The other ranks then wait for this one.";
static const char todo_assert[] =
    "A kernel found a value that it can't take, as a rule an index out of range: a label or token "
    "beyond the table's size. The line with \"Assertion\" before it names the kernel. The other "
    "ranks then wait for this one.";
static const char todo_nccl[] =
    "Run again with NCCL_DEBUG=WARN: the line that NCCL prints before this says why.";
static const char todo_libnccl[] =
    "It crashed inside of NCCL: try another version of NCCL, without plugins "
    "(NCCL_NET_PLUGIN=none), and look at the core dump.";
static const char todo_model[] =
    "Build the same model on every rank: the same configuration, no rank-dependent modules, the "
    "same frozen parameters, and wait for downloads before it.";
static const char todo_clients[] =
    "Some ranks never came to the rendezvous: see whether all nodes started, with the same master "
    "address, port and world size.";
const char log_todo_port[] =
    "Another process has the port: an earlier run that still lives, or a second job on the node "
    "(ss -ltnp). End it, or give this job another MASTER_PORT. If two nodes believe to be the "
    "first, correct their node rank.";
const char log_todo_connect[] =
    "The node does not reach the master: see MASTER_ADDR and MASTER_PORT, whether rank 0 has "
    "started, name resolution, firewalls and the network interface.";
static const char todo_gloo[] =
    "gloo's processes do not reach each other: see that names of hosts resolve to an address of "
    "the network between the nodes, set GLOO_SOCKET_IFNAME to its interface, and see firewalls and "
    "the limit of open files.";
static const char todo_scheduler[] =
    "A batch did not end: a rank waits in a collective, or its GPU hangs. SGLang prints stacks "
    "behind this line (py-spy); else take them, and see dmesg of the node.";
static const char todo_duplicate[] =
    "Two ranks use one GPU: set the device from LOCAL_RANK before the first CUDA call, and see "
    "CUDA_VISIBLE_DEVICES.";
static const char todo_launcher[] = "Look at what that rank printed last, and at its core dump.";
static const char todo_limit[] =
    "The scheduler terminated the job; what follows it is a consequence.";
static const char todo_shm[] = "/dev/shm is too small for the data loaders: docker run "
                               "--shm-size=16g or --ipc=host.";
static const char todo_link[] =
    "The network card lost its link: see cable, switch port and ibstat. Ranks of this node then "
    "wait, or get ncclRemoteError and ncclSystemError.";
static const char todo_pcie[] =
    "The PCIe link to the device failed: take the node out; see the slot, the riser and dmesg.";
static const char todo_wait[] =
    "It only waited: find out which rank it waited for, and what that one did. A worker that hangs "
    "or died is the cause.";

static const char broken_memory[] = "uncorrectable ECC error: the GPU's memory is broken";
static const char broken_link[] = "uncorrectable NVLink error: a link between GPUs is broken";

const char log_who_kernel[] = "the kernel";

static const struct log_phrase phrases[] = {
    {"watchdog got stuck for ", SAID_ERROR, "PyTorch",
     "its watchdog got no sign of life from CUDA or NCCL (heartbeat) and terminated the process",
     todo_heartbeat},
    {"Heartbeat monitor timed out", SAID_ERROR, "PyTorch",
     "its watchdog got no sign of life from CUDA or NCCL (heartbeat) and terminated the process",
     todo_heartbeat},
    {"Duplicate GPU detected", SAID_ERROR, "NCCL", NULL, todo_duplicate},
    {"ncclRemoteError: ", LOG_SAID_WAITED, "NCCL", NULL, todo_remote},
    {"ncclSystemError: ", SAID_ERROR, "NCCL", NULL, todo_nccl},
    {"ncclInternalError: ", SAID_ERROR, "NCCL", NULL, todo_nccl},
    {"ncclUnhandledCudaError: ", SAID_ERROR, "NCCL", NULL, todo_nccl},
    {"ncclInvalidUsage: ", SAID_ERROR, "NCCL", NULL, todo_nccl},
    {"ncclInvalidArgument: ", SAID_ERROR, "NCCL", NULL, todo_nccl},
    {"CUDA out of memory", SAID_ERROR, "PyTorch", NULL, todo_memory},
    {"HIP out of memory", SAID_ERROR, "PyTorch", NULL, todo_memory},
    /* GPUs and what connects them */
    {"cudaErrorECCUncorrectable", SAID_ERROR, "CUDA", broken_memory, todo_gpu_memory},
    {"CUDA_ERROR_ECC_UNCORRECTABLE", SAID_ERROR, "CUDA", broken_memory, todo_gpu_memory},
    {"ncorrectable ECC error encountered", SAID_ERROR, "CUDA", broken_memory, todo_gpu_memory},
    {"ncorrectable NVLink error", SAID_ERROR, "CUDA", broken_link, todo_nvlink},
    {"cudaErrorNvlinkUncorrectable", SAID_ERROR, "CUDA", broken_link, todo_nvlink},
    {"CUDA_ERROR_NVLINK_UNCORRECTABLE", SAID_ERROR, "CUDA", broken_link, todo_nvlink},
    {"system not yet initialized", SAID_ERROR, "CUDA", NULL, todo_fabric},
    {"cudaErrorSystemNotReady", SAID_ERROR, "CUDA", NULL, todo_fabric},
    {"CUDA_ERROR_SYSTEM_NOT_READY", SAID_ERROR, "CUDA", NULL, todo_fabric},
    {"CUDA error: CUDA-capable device(s) is/are busy or unavailable", SAID_ERROR, "CUDA", NULL,
     todo_no_gpu},
    {"CUDA error: all CUDA-capable devices are busy or unavailable", SAID_ERROR, "CUDA", NULL,
     todo_no_gpu},
    {"no CUDA-capable device is detected", SAID_ERROR, "CUDA", NULL, todo_no_gpu},
    {"Unable to determine the device handle for G", SAID_ERROR, "the driver", NULL, todo_gpu},
    {"GPU has fallen off the bus", SAID_ERROR, "the driver", NULL, todo_gpu},
    {"GPU is lost", SAID_ERROR, "the driver", NULL, todo_gpu},
    {"HW Exception by GPU node", SAID_ERROR, "ROCm", NULL, todo_gpu},
    {"Memory access fault by GPU node", SAID_ERROR, "ROCm", NULL, todo_cuda},
    {"amdgpu {w:bus}: amdgpu: GPU reset begin!", SAID_ERROR, log_who_kernel, NULL, todo_gpu},
    {"amdgpu {w:bus}: GPU reset begin!", SAID_ERROR, log_who_kernel, NULL, todo_gpu},
    {"CUDA error: device-side assert triggered", SAID_ERROR, "CUDA", NULL, todo_assert},
    {"CUDA error: ", SAID_ERROR, "CUDA", NULL, todo_cuda},
    {"HIP error: ", SAID_ERROR, "HIP", NULL, todo_cuda},
    /* the kernel's and the fabric's own words */
    {"PCIe Bus Error: severity=Uncorrect", SAID_ERROR, log_who_kernel, NULL, todo_pcie},
    {"PCIe Bus Error: severity=Fatal", SAID_ERROR, log_who_kernel, NULL, todo_pcie},
    {"mlx5_core {w:bus} {w:port}: Link down", SAID_WARNING, log_who_kernel, NULL, todo_link},
    {"mlx5_core {w:bus}: {w:port} Port: {i:port_number} Link DOWN", SAID_WARNING, log_who_kernel,
     NULL, todo_link},
    {"mlx5_core {w:bus} {w:port}: Port: {i:port_number} Link DOWN", SAID_WARNING, log_who_kernel,
     NULL, todo_link},
    {"detected NVSwitch fatal error", SAID_ERROR, "the fabric manager", NULL, todo_nvlink},
    {"detected NVSwitch non-fatal error", SAID_WARNING, "the fabric manager", NULL, todo_nvlink},
    {"Out of memory: Killed process", SAID_ERROR, log_who_kernel, NULL, todo_host_memory},
    {"Memory cgroup out of memory", SAID_ERROR, log_who_kernel, NULL, todo_host_memory},
    {"segfault at {w:address} ip {w:ip} sp {w:sp} error {i:error} in libnccl", SAID_ERROR,
     log_who_kernel, NULL, todo_libnccl},
    {"segfault at {w:address} ip {w:ip} sp {w:sp} error {i:error}", SAID_ERROR, log_who_kernel,
     NULL, todo_launcher},
    {"oom_kill event", SAID_ERROR, "Slurm", "oom_kill: a process was killed for memory",
     todo_host_memory},
    {"oom-kill event", SAID_ERROR, "Slurm", "oom-kill: a process was killed for memory",
     todo_host_memory},
    {"OOMKilled", SAID_ERROR, "Kubernetes", "OOMKilled: a container was killed for memory",
     todo_host_memory},
    {"DUE TO PREEMPTION", SAID_ERROR, "Slurm",
     "the job was preempted: the scheduler took its nodes", todo_limit},
    {"DUE TO TIME LIMIT", SAID_ERROR, "Slurm", "the job reached its time limit", todo_limit},
    /* start-ups */
    {"DDP expects same model across all ranks", SAID_ERROR, "PyTorch", NULL, todo_model},
    {"appears not to match sizes of the same param in process", SAID_ERROR, "PyTorch",
     "a parameter has other sizes than in process 0: the models differ between ranks", todo_model},
    {"{r:} clients joined", SAID_ERROR, "PyTorch", NULL, todo_clients},
    {"Errno 98] Address already in use", SAID_ERROR, "the system", NULL, log_todo_port},
    {"client socket has failed to connect to any network address of {r:}", SAID_ERROR, "PyTorch",
     NULL, log_todo_connect},
    {"Gloo connectFullMesh failed with", SAID_ERROR, "gloo", NULL, todo_gloo},
    {"RendezvousTimeoutError", SAID_ERROR, "torchelastic", NULL, todo_clients},
    {"The connection to the C10d store has failed", SAID_ERROR, "torchelastic", NULL,
     log_todo_connect},
    /* processes that ended */
    {"srun: error: ", SAID_WARNING, "srun", NULL, todo_launcher},
    {"It is possible that dataloader's workers are out of shared memory", SAID_ERROR, "PyTorch",
     NULL, todo_shm},
    {"Segmentation fault", SAID_ERROR, "the system", NULL, todo_launcher},
    {"Fatal Python error: Aborted", LOG_SAID_ENDED, "Python", NULL, todo_launcher},
    {"Fatal Python error: ", SAID_ERROR, "Python", NULL, todo_launcher},
    {"NCCL WARN ", SAID_WARNING, "NCCL", NULL, ""},
    {"unhandled system error", SAID_ERROR, "NCCL", NULL, todo_nccl},
    {"unhandled cuda error", SAID_ERROR, "NCCL", NULL, todo_nccl},
    {"remote process exited or there was a network error", LOG_SAID_WAITED, "NCCL", NULL,
     todo_remote},
    {"Timed out waiting {i:}ms for {w:} operation to complete", LOG_SAID_WAITED, "gloo", NULL,
     todo_wait},
    {"Connection closed by peer [", LOG_SAID_WAITED, "gloo", NULL, todo_remote},
    {"atchdog timeout (self.watchdog_timeout={i:}", LOG_SAID_WAITED, "SGLang",
     "its scheduler made no step until its watchdog's time-out", todo_scheduler},
    {"NVML: GPU{r:} at {i:} %", SAID_NOTE, "ddpcheck attach", NULL, ""},
    {"No available shared memory broadcast block found", SAID_NOTE, "vLLM", NULL, todo_wait},
};

const struct log_phrase *log_phrase_find(const char *text, struct scanned *found)
{
    for (size_t i = 0; i < sizeof phrases / sizeof *phrases; i++)
        if (scan(text, phrases[i].template, found))
            return &phrases[i];
    return NULL;
}
