/* CSV (RFC 4180) of collectives, sends and receives: the columns of the view v_collective, and when
 * the stream began and ended each. Rows come in the order in which operations ended. */
#include <inttypes.h>

#include "cmd/export/comms.h"
#include "cmd/export/export.h"
#include "cmd/export/text.h"
#include "cmd/export/timeline.h"
#include "lib/trace/lacks.h"
#include "lib/trace/names.h"

static const char header[] =
    "communicator,rank,comm_rank,nranks,number,name,count,datatype,bytes,redop,root,sendbuff,"
    "recvbuff,stream,device,"
    "issued_ns,returned_ns,begin_ns,end_ns,state,result,host,pid,thread,process,serial\r\n";

struct csv_writer {
    const struct export *export;
    struct export_names names;
};

/* A field that may be unknown: then it is empty. */
static void put_csv_time(uint64_t time_ns, FILE *out)
{
    if (time_ns)
        fprintf(out, "%" PRIu64, time_ns);
    putc(',', out);
}

/* count, datatype, bytes, redop, root: what the source of an imported trace does not say is empty.
 */
static void put_what(const struct record *call, FILE *out)
{
    bool has_count = !(call->op.flags & RECORD_OP_NO_COUNT),
         has_type = call->op.datatype != TYPE_NONE;
    if (has_count)
        fprintf(out, "%" PRIu64, call->op.count);
    fprintf(out, ",%s,", has_type ? datatype_name(call->op.datatype) : "");
    if (has_count && has_type)
        fprintf(out, "%" PRIu64, call->op.count * datatype_bytes(call->op.datatype));
    fprintf(out, ",%s,",
            call->op.redop == REDOP_NONE || call->op.redop == REDOP_UNKNOWN
                ? ""
                : redop_name(call->op.redop));
    if (call->op.root >= 0 && !(call->op.flags & RECORD_OP_NO_ROOT))
        fprintf(out, "%d", call->op.root);
    putc(',', out);
}

static void put_csv_row(void *context, const struct timeline_operation *operation)
{
    const struct csv_writer *writer = context;
    const struct record *call = operation->call;
    const struct export_comm *comm = names_comm(&writer->names, call->op.comm);
    const struct process_info *info =
        trace_process(writer->export->report->trace, operation->process);
    FILE *out = writer->export->out;
    int global_rank = names_rank(&writer->names, operation->process, call);
    fprintf(out, "%016" PRIx64 ",%d,%d,%d,%" PRIu64 ",%s,", call->op.comm, global_rank,
            call->op.rank, comm ? comm->nranks : 0, call->op.number, api_name(call->api));
    put_what(call, out);
    if (call->op.flags & RECORD_OP_NO_BUFFERS || info->lacks & LACKS_ADDRESSES)
        fputs(",,", out);
    else
        fprintf(out, "0x%" PRIx64 ",0x%" PRIx64 ",", call->op.sendbuff, call->op.recvbuff);
    fprintf(out, info->lacks & LACKS_STREAM ? "," : "0x%" PRIx64 ",", call->stream);
    if (call->device >= 0 && !(info->lacks & LACKS_DEVICE))
        fprintf(out, "%d", call->device);
    fprintf(out, ",%" PRIu64 ",", operation->issued_ns);
    put_csv_time(operation->returned_ns, out);
    put_csv_time(operation->started || operation->end_ns ? operation->begin_ns : 0, out);
    put_csv_time(operation->end_ns, out);
    fprintf(out, "%s,", timeline_state(operation));
    if (operation->returned_ns)
        fprintf(out, "%d", operation->result);
    putc(',', out);
    text_csv(info->host, out);
    fprintf(out, ",%d,%" PRIu32 ",%d,%" PRIu64 "\r\n", info->pid, call->thread, operation->process,
            call->serial);
}

int export_csv(const struct export *export, struct error *err)
{
    struct csv_writer writer = {.export = export};
    const struct timeline_visitor visitor = {
        .context = &writer,
        .processes = trace_process_count(export->report->trace),
        .operation = put_csv_row};
    if (names_load(&writer.names, export->report, err))
        return -1;
    fputs(header, export->out);
    int result = timeline_read(export->paths, export->path_count, &visitor, err);
    names_free(&writer.names);
    return result;
}
