/* different_versions.c: DC802: versions, files of libraries or hardware differ between ranks. */
#include "analyzer/environment/environment.h"

/* DC801's comparison reports it. */
const struct check check_different_versions = {
    .code = DC802,
    .name = "different-versions",
    .severity = SEVERITY_NOTE,
    .scope = SCOPE_JOB,
    .title = "ranks run different versions of a library, or on different hardware",
    .text = "Ranks of one communicator have different versions of NCCL, CUDA, the driver or "
            "PyTorch, different builds of a library with one version number (two wheels), or GPUs "
            "and processors of different kinds. NCCL wants one version on all ranks; processors "
            "of two vendors choose different algorithms.\n\n"
            "Builds are compared by the build id of the file that is mapped, not by the package's "
            "metadata. By itself it is a note; a hang that it may be the cause of names it "
            "(DC211).",
    .causes = CAUSES({"Containers or virtual environments that are not the same on all hosts.",
                      "'ddpcheck report --env': which hosts have which version."},
                     {"An LD_LIBRARY_PATH that finds another libnccl on one host.",
                      "The path of libnccl in 'ddpcheck report --env'."}),
    .source = "github.com/NVIDIA/nccl issues 1136, 1267; github.com/vllm-project/vllm issue 42354; "
              "github.com/marin-community/marin issue 7344",
    .example = "ncclGetVersion(&version);          /* 22809 on rank 0, 22703 on rank 1 */\n"
               "ncclCommInitRank(&comm, nranks, id, rank);\n",
    .fix_c = "/* install one build of libnccl.so.2 on all hosts */\n",
    .fix_torch = "# one image or one lock file for all hosts; pip freeze on each shows the rest\n",
};
