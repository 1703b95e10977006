/* job_nvtx.c: NVTX ranges of every kind around an NCCL call. Started with NVTX_INJECTION64_PATH. */
#include <stdio.h>
#include <string.h>

#include <nccl.h>
#include <nvtx3/nvToolsExt.h>

/* A mark and a range with a start and an end, in each form in which a text comes. Whether the
 * ranges' ids differ. */
static int marks_and_starts(nvtxDomainHandle_t domain)
{
    nvtxEventAttributes_t attributes = {.version = NVTX_VERSION,
                                        .size = NVTX_EVENT_ATTRIB_STRUCT_SIZE,
                                        .messageType = NVTX_MESSAGE_TYPE_ASCII};
    nvtxRangeId_t id[4];
    nvtxMarkW(L"wide");
    attributes.message.ascii = "attributes";
    nvtxMarkEx(&attributes);
    id[0] = nvtxRangeStartA("plain start");
    id[1] = nvtxRangeStartW(L"wide start");
    id[2] = nvtxRangeStartEx(&attributes);
    attributes.message.ascii = "domain";
    nvtxDomainMarkEx(domain, &attributes);
    id[3] = nvtxDomainRangeStartEx(domain, &attributes);
    nvtxRangeEnd(id[0]);
    nvtxDomainRangeEnd(domain, id[3]);
    int inner = nvtxRangePushEx(&attributes);
    nvtxRangePop();
    return inner == 0 && id[0] < id[1] && id[1] < id[2] && id[2] < id[3];
}

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
    nvtxEventAttributes_t attributes = {.version = NVTX_VERSION,
                                        .size = NVTX_EVENT_ATTRIB_STRUCT_SIZE,
                                        .messageType = NVTX_MESSAGE_TYPE_REGISTERED};
    char text[] = "registered";
    attributes.message.registered = nvtxDomainRegisterStringA(domain, text);
    memset(text, 'x', sizeof text - 1);
    nvtxDomainRangePushEx(domain, &attributes);
    nvtxDomainRangePop(domain);
    nvtxRangePop();
    nvtxMarkA("ddpcheck:save tensor=0x1000 version=2 name=layer 1");
    nvtxMarkA("ddpcheck:modify version=3 tensor=4096 name=relu_");
    nvtxMarkA("ddpcheck:use tensor=4096 version=3 saved=2");
    if (outer != 0 || inner != 1 || !marks_and_starts(domain))
        return 8;
    puts("ok");
    return 0;
}
