/* states.c: where the state of each check is, and the end of it. */
#include "analyzer/states.h"

#include <stdalign.h>
#include <stdlib.h>

#include "lib/base/invariant.h"

void states_plan(struct analyzer *analyzer, const struct check *const list[CHECK_COUNT])
{
    enum { ALIGN = alignof(max_align_t) };
    for (int owner = 0; owner < OWNERS; owner++) {
        size_t bytes = 0;
        for (int i = 0; i < CHECK_COUNT; i++) {
            analyzer->state_offset[owner][list[i]->code] = (uint32_t)bytes;
            bytes += (list[i]->state_bytes[owner] + ALIGN - 1) / ALIGN * ALIGN;
        }
        analyzer->state_bytes[owner] = bytes;
    }
    analyzer->checks = list;
}

void *state_find(const struct analyzer *analyzer, const struct check *check, enum owner owner,
                 void *block)
{
    invariant(check->state_bytes[owner] &&
                  analyzer->state_offset[owner][check->code] + check->state_bytes[owner] <=
                      analyzer->state_bytes[owner],
              "a check's state is in the block of its owner");
    return block ? (char *)block + analyzer->state_offset[owner][check->code] : NULL;
}

void *state_get(struct analyzer *analyzer, const struct check *check, enum owner owner,
                void **block)
{
    if (!*block && !(*block = calloc(1, analyzer->state_bytes[owner])))
        analyzer->failed = true;
    return state_find(analyzer, check, owner, *block);
}

void states_free(const struct analyzer *analyzer, enum owner owner, void **block)
{
    for (int i = 0; *block && i < CHECK_COUNT; i++)
        if (analyzer->checks[i]->state_end[owner])
            analyzer->checks[i]->state_end[owner](
                state_find(analyzer, analyzer->checks[i], owner, *block));
    free(*block);
    *block = NULL;
}

#define JOB_SLOT(name, end)     void end(struct name *name);
#define PROCESS_SLOT(name, end) void end(struct name *name);
#define COMM_SLOT(name, end)    void end(struct name *name);
#define MEMBER_SLOT(name, end)  void end(struct name *name);
#include "analyzer/slots.def"

#define FREE_SLOT(name, end) \
    end(slot->name);         \
    slot->name = NULL;

void job_slots_free(struct job_slots *slot)
{
#define JOB_SLOT FREE_SLOT
#include "analyzer/slots.def"
}

void process_slots_free(struct process_slots *slot)
{
#define PROCESS_SLOT FREE_SLOT
#include "analyzer/slots.def"
}

void comm_slots_free(struct comm_slots *slot)
{
#define COMM_SLOT FREE_SLOT
#include "analyzer/slots.def"
}

void member_slots_free(struct member_slots *slot)
{
#define MEMBER_SLOT FREE_SLOT
#include "analyzer/slots.def"
}
