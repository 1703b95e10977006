/* Chrome's trace event JSON, as Perfetto's UI, chrome://tracing and scripts for torch.profiler's
 * traces read it: a process for each rank, a thread for each communicator and stream and each host
 * thread. What did not end is a "B" without its "E". Kineto's names of arguments. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include <uthash.h>

#include "cmd/export/comms.h"
#include "cmd/export/export.h"
#include "cmd/export/text.h"
#include "cmd/export/timeline.h"
#include "cmd/export/tracks.h"
#include "lib/trace/lacks.h"
#include "lib/trace/names.h"

enum {
    STREAM_TID_FROM = 10000000, /* above all thread ids, which end at 4,194,304 */
    FLOWS_MOST = 65536          /* operations that some ranks have come to and others not */
};

struct chrome_writer {
    const struct export *export;
    struct export_names names;
    struct tracks tracks;
    struct flow *flows;
    uint64_t arrows;
    FILE *out;
    bool failed;
};

/* Microseconds since the trace began; doubles would not hold those since 1970 to the nanosecond. */
static void put_chrome_time(const struct chrome_writer *writer, const char *name, uint64_t time_ns)
{
    uint64_t ns =
        time_ns > writer->export->report->begin_ns ? time_ns - writer->export->report->begin_ns : 0;
    fprintf(writer->out, ",\"%s\":%" PRIu64 ".%03" PRIu64, name, ns / 1000, ns % 1000);
}

/* Begins an event: the caller adds more fields and "}". */
static void put_event(const struct chrome_writer *writer, const char *phase, int process,
                      uint64_t tid)
{
    fprintf(writer->out, ",\n{\"ph\":\"%s\",\"pid\":%d,\"tid\":%" PRIu64, phase,
            writer->names.process[process].pid, tid);
}

static void put_name(const struct chrome_writer *writer, const char *what, int process,
                     uint64_t tid, const char *name, int sort)
{
    put_event(writer, "M", process, tid);
    fprintf(writer->out, ",\"name\":\"%s_name\",\"args\":{\"name\":", what);
    text_json(name, writer->out);
    fputs("}}", writer->out);
    put_event(writer, "M", process, tid);
    fprintf(writer->out, ",\"name\":\"%s_sort_index\",\"args\":{\"sort_index\":%d}}", what, sort);
}

static uint64_t stream_tid(struct chrome_writer *writer, int process, const struct record *call)
{
    bool is_new;
    char name[96];
    struct track *track = tracks_operation(&writer->tracks, process, call, &is_new);
    const struct export_comm *comm = names_comm(&writer->names, call->op.comm);
    if (!track) {
        writer->failed = true;
        return 0;
    }
    uint64_t tid = STREAM_TID_FROM + (uint64_t)track->number;
    if (is_new) {
        snprintf(name, sizeof name, "%s, rank %d, GPU %d, stream 0x%" PRIx64,
                 comm ? comm->name : "no communicator", call->op.rank, call->device, call->stream);
        put_name(writer, "thread", process, tid, name, track->number);
    }
    return tid;
}

static void put_args(const struct chrome_writer *writer, const struct timeline_operation *operation)
{
    const struct record *call = operation->call;
    const struct export_comm *comm = names_comm(&writer->names, call->op.comm);
    const struct process_info *info =
        trace_process(writer->export->report->trace, operation->process);
    FILE *out = writer->out;
    int nranks = comm ? comm->nranks : 0;
    fprintf(out, ",\"args\":{\"Collective name\":\"%s\",\"dtype\":\"%s\"",
            kineto_collective(call->api), kineto_dtype(call->op.datatype));
    if (!(call->op.flags & RECORD_OP_NO_COUNT))
        fprintf(out, ",\"In msg nelems\":%" PRIu64 ",\"Out msg nelems\":%" PRIu64,
                kineto_in(call, nranks), kineto_out(call, nranks));
    fprintf(out,
            ",\"In split size\":\"[]\",\"Out split size\":\"[]\",\"Group size\":%d,\"Process Group "
            "Name\":\"%s\","
            "\"Process Group Description\":\"%s\",\"Process Group "
            "Ranks\":\"%s\",\"Rank\":%d,\"Seq\":%" PRIu64,
            nranks, comm ? comm->hex : "", comm ? comm->name : "", comm ? comm->ranks : "[]",
            names_rank(&writer->names, operation->process, call), call->op.number);
    if (call->api == API_ncclSend)
        fprintf(out, ",\"Dst Rank\":%d", call->op.root);
    else if (call->api == API_ncclRecv)
        fprintf(out, ",\"Src Rank\":%d", call->op.root);
    else if (call->op.root >= 0)
        fprintf(out, ",\"Root\":%d", call->op.root);
    if (call->op.redop != REDOP_NONE && call->op.redop != REDOP_UNKNOWN)
        fprintf(out, ",\"Reduction\":\"%s\"", redop_name(call->op.redop));
    if (!(call->op.flags & RECORD_OP_NO_BUFFERS) && !(info->lacks & LACKS_ADDRESSES))
        fprintf(out,
                ",\"Input Tensors start\":\"[[%" PRIu64 "]]\",\"Output Tensors start\":\"[[%" PRIu64
                "]]\"",
                call->op.sendbuff, call->op.recvbuff);
    fprintf(out, ",\"device\":%d,\"stream\":%" PRIu64, call->device, call->stream);
    put_chrome_time(writer, "Issued (us)", operation->issued_ns);
    if (operation->returned_ns)
        put_chrome_time(writer, "Call returned (us)", operation->returned_ns);
    fprintf(out, ",\"State\":\"%s\"}", timeline_state(operation));
}

/* The last rank's slice of an operation that not all ranks have come to. */
struct flow {
    struct {
        uint64_t comm, number, pair; /* pair: of a send and its receive, else 0 */
    } key;
    int process, met;
    uint64_t tid, begin_ns, end_ns;
    UT_hash_handle hh;
};

static uint64_t pair_of(const struct record *call)
{
    bool is_send = call->api == API_ncclSend;
    if (!is_send && call->api != API_ncclRecv)
        return 0;
    int32_t sender = is_send ? call->op.rank : call->op.root;
    int32_t receiver = is_send ? call->op.root : call->op.rank;
    return (uint64_t)sender << 32 | (uint32_t)(receiver + 1);
}

static struct flow *find_flow(struct chrome_writer *writer, const struct record *call)
{
    struct flow *flow, like = {.key = {call->op.comm, call->op.number, pair_of(call)}};
    HASH_FIND(hh, writer->flows, &like.key, sizeof like.key, flow);
    if (flow)
        return flow;
    if (HASH_COUNT(writer->flows) >= FLOWS_MOST) { /* the oldest: its other ranks left no trace */
        flow = writer->flows;
        HASH_DEL(writer->flows, flow);
        free(flow);
    }
    if (!(flow = calloc(1, sizeof *flow))) {
        writer->failed = true;
        return NULL;
    }
    flow->key = like.key;
    HASH_ADD(hh, writer->flows, key, sizeof flow->key, flow);
    return flow;
}

/* An end of an arrow binds to the slice that is open at its time. */
static void put_end_of_arrow(const struct chrome_writer *writer, const char *phase,
                             const struct flow *slice, uint64_t time_ns)
{
    put_event(writer, phase, slice->process, slice->tid);
    put_chrome_time(writer, "ts", time_ns);
    fprintf(writer->out,
            ",\"cat\":\"nccl\",\"name\":\"ranks of one operation\",\"id\":%" PRIu64 "%s}",
            writer->arrows, *phase == 'f' ? ",\"bp\":\"e\"" : "");
}

/* An arrow from the rank that came before to this one, or back: from the one that began earlier,
 * forward in time. */
static void put_arrow(struct chrome_writer *writer, const struct timeline_operation *operation,
                      uint64_t tid)
{
    const struct record *call = operation->call;
    const struct export_comm *comm = names_comm(&writer->names, call->op.comm);
    uint64_t end_ns = operation->end_ns ? operation->end_ns : writer->export->report->end_ns;
    struct flow *flow = end_ns > operation->begin_ns ? find_flow(writer, call) : NULL;
    if (!flow)
        return;
    struct flow here = *flow;
    here.process = operation->process;
    here.tid = tid;
    here.begin_ns = operation->begin_ns;
    here.end_ns = end_ns;
    if (flow->met) {
        const struct flow *from = flow->begin_ns <= here.begin_ns ? flow : &here;
        const struct flow *to = from == flow ? &here : flow;
        writer->arrows++;
        put_end_of_arrow(writer, "s", from, from->begin_ns);
        put_end_of_arrow(writer, "f", to, to->end_ns - 1);
    }
    flow->process = here.process;
    flow->tid = tid;
    flow->begin_ns = here.begin_ns;
    flow->end_ns = end_ns;
    int members = comm ? comm->nranks : 1;
    if (flow->key.pair)
        members = 2;
    if (++flow->met >= members) {
        HASH_DEL(writer->flows, flow);
        free(flow);
    }
}

static void free_flows(struct chrome_writer *writer)
{
    struct flow *flow, *next;
    HASH_ITER(hh, writer->flows, flow, next) {
        HASH_DEL(writer->flows, flow);
        free(flow);
    }
}

static void put_chrome_operation(void *context, const struct timeline_operation *operation)
{
    struct chrome_writer *writer = context;
    const struct record *call = operation->call;
    uint64_t tid = stream_tid(writer, operation->process, call);
    const char *name = api_name(call->api);
    put_event(writer, operation->end_ns ? "X" : "B", operation->process, tid);
    put_chrome_time(writer, "ts", operation->begin_ns);
    if (operation->end_ns)
        fprintf(writer->out, ",\"dur\":%" PRIu64 ".%03" PRIu64,
                (operation->end_ns - operation->begin_ns) / 1000,
                (operation->end_ns - operation->begin_ns) % 1000);
    fprintf(writer->out, ",\"cat\":\"nccl\",\"name\":\"%s #%" PRIu64 "\"",
            !strncmp(name, "nccl", 4) ? name + 4 : name, call->op.number);
    put_args(writer, operation);
    putc('}', writer->out);
    put_arrow(writer, operation, tid);
}

static uint64_t thread_tid(struct chrome_writer *writer, int process, uint32_t thread)
{
    bool is_new;
    char name[48];
    struct track *track = tracks_thread(&writer->tracks, process, thread, &is_new);
    writer->failed |= !track;
    if (track && is_new) {
        snprintf(name, sizeof name, "host thread %" PRIu32, thread);
        put_name(writer, "thread", process, thread, name, track->number);
    }
    return thread;
}

static void put_chrome_begin(void *context, int process, uint32_t thread, uint64_t time_ns,
                             const struct record *record)
{
    struct chrome_writer *writer = context;
    char text[256];
    bool is_range = api_class_of(record->api) == CLASS_RANGE;
    const char *name =
        is_range ? trace_string(writer->export->report->trace, process, record->range.text)
                 : record_text(record, text, sizeof text);
    uint64_t tid = thread_tid(writer, process, thread);
    put_event(writer, "B", process, tid);
    put_chrome_time(writer, "ts", time_ns);
    fprintf(writer->out,
            ",\"cat\":\"%s\",\"name\":", is_range ? "user_annotation" : "cuda_runtime");
    text_json(name ? name : "range", writer->out);
    putc('}', writer->out);
}

static void put_chrome_end(void *context, int process, uint32_t thread, uint64_t time_ns)
{
    struct chrome_writer *writer = context;
    put_event(writer, "E", process, thread);
    put_chrome_time(writer, "ts", time_ns);
    putc('}', writer->out);
}

/* A finding is a mark at each of its sides. */
static void put_chrome_finding(void *context, const struct finding *finding)
{
    struct chrome_writer *writer = context;
    for (int i = 0; i < finding->sides; i++) {
        const struct finding_side *side = &finding->side[i];
        if (side->process < 0)
            continue;
        put_event(writer, "i", side->process, 0);
        put_chrome_time(writer, "ts", side->since_ns ? side->since_ns : finding->first_ns);
        fprintf(writer->out, ",\"s\":\"p\",\"cat\":\"finding\",\"name\":\"%s\",\"args\":{\"what\":",
                code_name(finding->code));
        text_json(finding->what, writer->out);
        fputs(",\"call\":", writer->out);
        text_json(side->call, writer->out);
        fputs(",\"where\":", writer->out);
        text_json(side->where, writer->out);
        fprintf(writer->out, ",\"fingerprint\":\"%016" PRIx64 "\"}}", finding->fingerprint);
    }
}

static void put_chrome_head(const struct chrome_writer *writer)
{
    FILE *out = writer->out;
    const struct report *report = writer->export->report;
    fprintf(out,
            "{\"schemaVersion\":1,\"displayTimeUnit\":\"ns\",\"baseTimeNanoseconds\":%" PRIu64
            ",\"traceName\":\"ddpcheck %s\",\n"
            "\"distributedInfo\":{\"backend\":\"nccl\",\"world_size\":%d,\"pg_count\":%u,\"pg_"
            "config\":[",
            report->begin_ns, DDPCHECK_VERSION, trace_process_count(report->trace),
            HASH_COUNT(writer->names.comms));
    for (const struct export_comm *comm = writer->names.comms; comm; comm = comm->hh.next)
        fprintf(out,
                "%s{\"pg_name\":\"%s\",\"pg_desc\":\"%s\",\"backend_config\":\"cuda:nccl\",\"pg_"
                "size\":%d,\"ranks\":\"%s\"}",
                comm == writer->names.comms ? "" : ",", comm->hex, comm->name, comm->nranks,
                comm->ranks);
    fputs("]},\n\"traceEvents\":[\n{\"ph\":\"M\",\"pid\":0,\"tid\":0,\"name\":\"trace_source\","
          "\"args\":{\"name\":\"ddpcheck\"}}",
          out);
    for (int i = 0; i < writer->names.processes; i++)
        put_name(writer, "process", i, 0, writer->names.process[i].name,
                 writer->names.process[i].pid);
}

int export_chrome(const struct export *export, struct error *err)
{
    struct chrome_writer writer = {.export = export, .out = export->out};
    const struct timeline_visitor visitor = {
        .context = &writer,
        .processes = trace_process_count(export->report->trace),
        .operation = put_chrome_operation,
        .begin = put_chrome_begin,
        .end = put_chrome_end};
    if (names_load(&writer.names, export->report, err))
        return -1;
    put_chrome_head(&writer);
    report_visit_findings(export->report, FINDING_OPEN, put_chrome_finding, &writer);
    int result = timeline_read(export->paths, export->path_count, &visitor, err);
    fputs("\n]}\n", export->out);
    if (result == 0 && writer.failed)
        result = error_memory(err, "can't write the timeline");
    free_flows(&writer);
    tracks_free(&writer.tracks);
    names_free(&writer.names);
    return result;
}
