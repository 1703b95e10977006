/* harmful_setting.c: DC805: a setting causes or hides what is seen. */
#include "analyzer/environment/environment.h"

/* environment_explain reports it, with the finding that it fits. */
const struct check check_harmful_setting = {
    .code = DC805,
    .name = "harmful-setting",
    .severity = SEVERITY_NOTE,
    .scope = SCOPE_JOB,
    .title = "a setting causes or hides what is seen",
    .text = "A variable or a setting of the host is known to cause such a hang, or to hide why it "
            "comes. Such are CUDA_LAUNCH_BLOCKING with several GPUs in one process, "
            "NCCL_IGNORE_NET_MISMATCH, NCCL_IB_GID_INDEX on several hosts, and an IOMMU at the "
            "first operation between GPUs. It is reported beside the hang, never alone.\n\n"
            "It is possible, not certain. The table is analyzer/environment/advisories.def.",
    .causes = CAUSES({"A variable that was set to debug something else and was left there.",
                      "'ddpcheck report --env': who set it."},
                     {"A host that is set up differently from the others, or for virtual machines.",
                      "'ddpcheck report --env' of the hosts: IOMMU, RDMA devices, network."}),
    .source = "github.com/NVIDIA/nccl issues 750, 1721, 2079, 2353, 2379, 2428; "
              "github.com/pytorch/pytorch issues 119215, 149153, 153960",
    .example = "setenv(\"CUDA_LAUNCH_BLOCKING\", \"1\", 1);\n"
               "ncclGroupStart();              /* one thread, two GPUs */\n"
               "ncclAllReduce(x, x, n, ncclFloat, ncclSum, comm[0], stream[0]);\n"
               "ncclAllReduce(y, y, n, ncclFloat, ncclSum, comm[1], stream[1]);\n"
               "ncclGroupEnd();\n",
    .fix_c = "unsetenv(\"CUDA_LAUNCH_BLOCKING\");      /* before the first CUDA call */\n",
    .fix_torch = "os.environ.pop(\"CUDA_LAUNCH_BLOCKING\", None)    # before torch is imported\n",
};
