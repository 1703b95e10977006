/* ring_dump.c: prints the records of ring files as JSON lines, for the tests of this directory.
 *
 * ring_dump FILE.. : per file a line of the process, then its records in order, then its slots. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "lib/trace/ring_reader.h"

enum { NOT_READY = 3 }; /* exit status: the process had not finished the file's header */

static const char *const names[API_COUNT] = {
#define API(number, name, class) [number] = #name,
#include "lib/trace/apis.def"
#undef API
};

static const char *const classes[API_COUNT] = {
#define API(number, name, class) [number] = #class,
#include "lib/trace/apis.def"
#undef API
};

#define N(field) printf(", \"" #field "\": %" PRId64, (int64_t)r->field)

static void print_text(const char *name, const char *text, int bytes)
{
    printf(", \"%s\": \"", name);
    for (int i = 0; i < bytes && text[i]; i++)
        printf((unsigned char)text[i] < 0x20 || strchr("\"\\", text[i]) ? "\\u%04x" : "%c",
               (unsigned char)text[i]);
    printf("\"");
}

static void print_notice(const struct record *r)
{
    switch (r->api) {
    case API_notice_string:
        N(string.id), N(string.bytes), N(string.offset);
        print_text("text", r->string.text, sizeof r->string.text);
        break;
    case API_notice_stack:
        N(frames.id), N(frames.count), N(frames.offset), N(frames.address[0]);
        break;
    case API_notice_module:
        N(module.base), N(module.start), N(module.end), N(module.path), N(module.build_id_bytes);
        break;
    case API_notice_buffer:
        N(buffer.base), N(buffer.bytes), N(buffer.pointer), N(buffer.device), N(buffer.type);
        break;
    case API_notice_exit:
        N(end.how), N(end.value);
        break;
    case API_notice_hashing:
        N(hashing.entries), N(hashing.text);
        break;
    case API_ddpcheck_hash:
        N(named.comm), N(named.number), N(named.name), N(named.bytes), N(named.rank);
        break;
    case API_notice_host_function:
    case API_notice_host_function_end:
        N(leave.enter);
        break;
    case API_notice_unrecorded:
        N(memory.pointer), N(memory.bytes);
        break;
    case API_notice_stream:
        N(event.flags);
        break;
    case API_notice_blind:
        N(range.text), N(range.id);
        break;
    default: /* member */
        N(comm.comm), N(comm.parent), N(comm.nranks), N(comm.rank), N(comm.device), N(comm.gpu),
            N(comm.handle);
        N(comm.ordinal), N(comm.color), N(comm.flags);
    }
}

static void print_payload(const struct record *r)
{
    const char *class = classes[r->api];
    if (!strcmp(class, "NOTICE"))
        print_notice(r);
    else if (r->phase == RECORD_LEAVE || r->api == API_ncclCommGetAsyncError)
        N(leave.enter), N(leave.comm), N(leave.handle), N(leave.kernels), N(leave.threads);
    else if (!strcmp(class, "COLLECTIVE") || !strcmp(class, "P2P"))
        N(op.comm), N(op.number), N(op.sendbuff), N(op.recvbuff), N(op.count), N(op.datatype),
            N(op.redop), N(op.root), N(op.scalar), N(op.group), N(op.slot), N(op.rank),
            N(op.launch);
    else if (!strcmp(class, "GROUP"))
        N(group.group), N(group.depth), N(group.calls);
    else if (!strcmp(class, "COMM"))
        N(comm.comm), N(comm.parent), N(comm.nranks), N(comm.rank), N(comm.device), N(comm.color),
            N(comm.key), N(comm.ordinal), N(comm.gpu), N(comm.flags), N(comm.pointer),
            N(comm.bytes), N(comm.handle);
    else if (!strcmp(class, "WAIT"))
        N(wait.event), N(wait.dst), N(wait.src), N(wait.bytes), N(wait.kind), N(wait.height),
            N(wait.dst_pitch);
    else if (!strcmp(class, "MEMORY"))
        N(memory.pointer), N(memory.bytes), N(memory.type), N(memory.handle);
    else if (!strcmp(class, "GRAPH"))
        N(graph.graph), N(graph.exec);
    else if (!strcmp(class, "COPY"))
        N(copy.dst), N(copy.src), N(copy.bytes), N(copy.kind), N(copy.height), N(copy.dst_pitch),
            N(copy.src_pitch);
    else if (!strcmp(class, "LAUNCH"))
        N(launch.function), N(launch.grid), N(launch.block), N(launch.count), N(launch.inferred),
            N(launch.written), N(launch.known), N(launch.pointer[0]), N(launch.pointer[1]),
            N(launch.pointer[2]), N(launch.pointer[3]);
    else if (r->api == API_ddpcheck_save || r->api == API_ddpcheck_modify ||
             r->api == API_ddpcheck_use)
        N(tensor.name), N(tensor.tensor), N(tensor.version), N(tensor.saved);
    else if (!strcmp(class, "RANGE"))
        N(range.text), N(range.domain), N(range.id);
    else if (!strcmp(class, "EVENT") || !strcmp(class, "STREAM"))
        N(event.event), N(event.flags);
}

static void print_record(const struct record *r)
{
    static const char *const phases[] = {"POINT", "ENTER", "LEAVE"};
    printf("{\"api\": \"%s\", \"phase\": \"%s\"", names[r->api] ? names[r->api] : "?",
           r->phase < 3 ? phases[r->phase] : "?");
    N(serial), N(flags), N(thread), N(result), N(device), N(stack), N(stream);
    print_payload(r);
    if (r->flags & RECORD_FLAG_LATE)
        printf(", \"issued\": %" PRIu64, r->word[RECORD_ISSUED]);
    printf("}\n");
}

static int dump(const char *path)
{
    struct ring_reader *reader;
    struct error err = {""};
    int opened = ring_reader_open(&reader, path, &err);
    if (opened != RING_READER_OPEN) {
        fprintf(stderr, "%s: %s\n", path, opened == RING_READER_NOT_READY ? "not ready" : err.text);
        return opened == RING_READER_NOT_READY ? NOT_READY : 1;
    }
    const struct process_info *info = ring_reader_process(reader);
    printf("{\"api\": \"process\", \"pid\": %d, \"rank\": %d, \"local_rank\": %d, \"world_size\": "
           "%d, \"restart\": %d, \"nccl\": %d",
           info->pid, info->rank, info->local_rank, info->world_size, info->restart,
           info->nccl_version);
    print_text("launcher", info->launcher, sizeof info->launcher);
    print_text("job", info->job, sizeof info->job);
    print_text("program", info->program, sizeof info->program);
    print_text("command", info->command, sizeof info->command);
    print_text("boot_id", info->boot_id, sizeof info->boot_id);
    printf("}\n");
    struct record records[256];
    int count = 0;
    if (ring_reader_look(reader, 0, false, &err) == 0)
        while ((count = ring_reader_take(reader, records, 256, &err)) > 0)
            for (int i = 0; i < count; i++)
                print_record(&records[i]);
    struct ring_progress progress[RING_SLOTS_MAX];
    int slots = ring_reader_progress(reader, progress);
    for (int slot = 0; slot < slots; slot++)
        printf("{\"api\": \"slot\", \"started\": %" PRIu64 ", \"done\": %" PRIu64 "}\n",
               progress[slot].started, progress[slot].done);
    for (unsigned i = 0; i < ring_reader_hashes(reader); i++) {
        const struct ring_hash *r = ring_reader_hash(reader, i);
        printf("{\"api\": \"hash\", \"operation\": \"%s\"", names[r->api] ? names[r->api] : "?");
        N(comm), N(number), N(bytes), N(serial), N(name), N(hash), N(nans), N(infs), N(flags),
            N(rank), N(what), N(expects);
        printf("}\n");
    }
    printf("{\"api\": \"lost\", \"hashes\": %" PRIu64 ", \"control\": %" PRIu64
           ", \"bulk\": %" PRIu64 ", \"rings\": %u}\n",
           ring_reader_hashes_lost(reader), ring_reader_lost(reader, RING_CONTROL),
           ring_reader_lost(reader, RING_BULK), ring_reader_segments(reader) * RING_KINDS);
    if (count < 0)
        fprintf(stderr, "%s: %s\n", path, err.text);
    ring_reader_close(reader);
    return count < 0 ? 1 : 0;
}

int main(int argc, char **argv)
{
    int failed = 0;
    for (int i = 1; i < argc; i++)
        failed |= dump(argv[i]);
    return failed;
}
