/* empties.c: keeps collectives of no elements apart, as NCCL drops them. */
#include "analyzer/match/empties.h"

#include <stdlib.h>

#include "analyzer/model/watched.h"
#include "lib/base/invariant.h"

struct empties {
    uint64_t count;
    struct empty_call call[EMPTIES_KEPT];
};

void empties_free(struct empties *empties)
{
    free(empties);
}

int empties_add(struct member *member, uint64_t number, const struct signature *signature,
                const struct site *site)
{
    if (!member->slot.empties && !(member->slot.empties = calloc(1, sizeof *member->slot.empties)))
        return -1;
    invariant(signature->api, "an empty call has its kind");
    member->comm->has_empties = true;
    comm_watch(member->comm);
    member->slot.empties->call[member->slot.empties->count++ % EMPTIES_KEPT] =
        (struct empty_call){number, *signature, *site};
    return 0;
}

const struct empty_call *empties_find(const struct member *member, uint64_t number,
                                      const struct signature *signature)
{
    const struct empties *empties = member->slot.empties;
    for (uint64_t i = 0; empties && i < empties->count && i < EMPTIES_KEPT; i++)
        if (empties->call[i].number == number && empties->call[i].signature.api == signature->api &&
            empties->call[i].signature.datatype == signature->datatype)
            return &empties->call[i];
    return NULL;
}
