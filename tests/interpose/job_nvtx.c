/* job_nvtx.c: NVTX ranges of every kind around an NCCL call. Started with NVTX_INJECTION64_PATH. */
#include <stdio.h>
#include <string.h>

#include <nccl.h>
#include <nvtx3/nvToolsExt.h>

int main(void)
{
    nvtxRangePushA("before the shim wakes");
    nvtxRangePop();
    ncclUniqueId id;
    if (ncclGetUniqueId(&id))
        return 9;
    int outer = nvtxRangePushA("iteration"), inner = nvtxRangePushW(L"forward");
    nvtxRangePop();
    nvtxMarkA("here");
    nvtxDomainHandle_t domain = nvtxDomainCreateA("model");
    nvtxEventAttributes_t attributes = { .version = NVTX_VERSION, .size = NVTX_EVENT_ATTRIB_STRUCT_SIZE,
                                         .messageType = NVTX_MESSAGE_TYPE_REGISTERED };
    char text[] = "registered";
    attributes.message.registered = nvtxDomainRegisterStringA(domain, text);
    memset(text, 'x', sizeof text - 1);
    nvtxDomainRangePushEx(domain, &attributes);
    nvtxDomainRangePop(domain);
    nvtxRangePop();
    if (outer != 0 || inner != 1)
        return 8;
    puts("ok");
    return 0;
}
