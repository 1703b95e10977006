/* call.c: takes from a record the arguments of a call that people read, and prints them. */
#include "lib/trace/call.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

#include "lib/trace/names.h"
#include "lib/trace/signature.h"

/* What an importer's source does not record is left out. */
static void take_operation(struct called *call, const struct record *record)
{
    call->count = record->op.count;
    call->datatype = record->op.datatype;
    call->redop = record->op.redop;
    call->peer = record->op.root;
    if (!(record->op.flags & RECORD_OP_NO_COUNT) && record->api != API_ncclSignal)
        call->arguments |= ARGUMENT_COUNT;
    if (record->op.datatype != TYPE_NONE)
        call->arguments |= ARGUMENT_DATATYPE;
    if (kind_has(record->api, KIND_REDUCES) &&
        !(record->op.redop == REDOP_UNKNOWN && !record->op.scalar))
        call->arguments |= ARGUMENT_REDOP;
    if (api_class_of(record->api) == CLASS_P2P)
        call->arguments |= ARGUMENT_PEER;
    else if (kind_has(record->api, KIND_ROOTED) && !(record->op.flags & RECORD_OP_NO_ROOT))
        call->arguments |= ARGUMENT_ROOT;
}

static void take_comm(struct called *call, const struct record *record)
{
    if (record->api == API_ncclCommSplit) {
        call->size = record->comm.color;
        call->peer = record->comm.key;
        call->arguments |= ARGUMENT_COLOR | ARGUMENT_KEY;
        return;
    }
    call->size = record->comm.nranks;
    call->peer = record->comm.rank;
    if (record->comm.nranks > 0)
        call->arguments |= ARGUMENT_NRANKS;
    if (record->comm.nranks > 0 && record->comm.rank >= 0)
        call->arguments |= ARGUMENT_RANK;
}

static void take_bytes(struct called *call, uint64_t bytes)
{
    call->bytes = bytes;
    if (bytes)
        call->arguments |= ARGUMENT_BYTES;
}

/* Clears what is not printed, so that calls that read alike are alike. */
static void clear_hidden(struct called *call)
{
    if (!(call->arguments & ARGUMENT_COUNT))
        call->count = 0;
    if (!(call->arguments & ARGUMENT_DATATYPE))
        call->datatype = 0;
    if (!(call->arguments & ARGUMENT_REDOP))
        call->redop = 0;
    if (!(call->arguments & (ARGUMENT_ROOT | ARGUMENT_PEER | ARGUMENT_RANK | ARGUMENT_KEY)))
        call->peer = 0;
    if (!(call->arguments & (ARGUMENT_NRANKS | ARGUMENT_COLOR)))
        call->size = 0;
}

struct called call_of_record(const struct record *record)
{
    struct called call = {.api = record->api};
    if (record->flags & RECORD_FLAG_DRIVER)
        call.arguments |= ARGUMENT_DRIVER;
    if (record->phase == RECORD_LEAVE) /* the arguments are with the ENTER */
        return call;
    switch (api_class_of(record->api)) {
    case CLASS_COLLECTIVE:
    case CLASS_P2P:
        take_operation(&call, record);
        break;
    case CLASS_COMM:
        take_comm(&call, record);
        break;
    case CLASS_WAIT:
        take_bytes(&call, record->wait.bytes);
        break;
    case CLASS_MEMORY:
        take_bytes(&call, record->memory.bytes);
        break;
    case CLASS_COPY:
        take_bytes(&call, record->copy.bytes * (record->copy.height ? record->copy.height : 1));
        break;
    default:
        break;
    }
    clear_hidden(&call);
    return call;
}

struct called call_of_api(unsigned api)
{
    return (struct called){.api = (uint16_t)api};
}

const char *call_name(const struct called *call)
{
    const struct record record = {
        .api = call->api, .flags = call->arguments & ARGUMENT_DRIVER ? RECORD_FLAG_DRIVER : 0};
    return record_call(&record);
}

struct printer {
    char *text;
    size_t bytes, used;
    int arguments;
};

static void print(struct printer *printer, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

static void print(struct printer *printer, const char *format, ...)
{
    va_list values;
    if (printer->used >= printer->bytes)
        return;
    va_start(values, format);
    int length =
        vsnprintf(printer->text + printer->used, printer->bytes - printer->used, format, values);
    va_end(values);
    printer->used += length > 0 ? (size_t)length : 0;
}

static void print_separator(struct printer *printer)
{
    print(printer, "%s", printer->arguments++ ? ", " : "(");
}

static void print_number(struct printer *printer, const char *name, int64_t value)
{
    print_separator(printer);
    print(printer, "%s=%" PRId64, name, value);
}

static void print_count(struct printer *printer, const char *name, uint64_t value)
{
    print_separator(printer);
    print(printer, "%s=%" PRIu64, name, value);
}

static void print_word(struct printer *printer, const char *word)
{
    print_separator(printer);
    print(printer, "%s", word);
}

char *call_text(const struct called *call, char *text, size_t bytes)
{
    struct printer printer = {.text = text, .bytes = bytes};
    print(&printer, "%s", call_name(call));
    if (call->arguments & ARGUMENT_COUNT)
        print_count(&printer, "count", call->count);
    if (call->arguments & ARGUMENT_DATATYPE)
        print_word(&printer, datatype_name(call->datatype));
    if (call->arguments & ARGUMENT_REDOP)
        print_word(&printer, redop_name(call->redop));
    if (call->arguments & ARGUMENT_ROOT)
        print_number(&printer, "root", call->peer);
    if (call->arguments & ARGUMENT_PEER)
        print_number(&printer, "peer", call->peer);
    if (call->arguments & ARGUMENT_NRANKS)
        print_number(&printer, "nranks", call->size);
    if (call->arguments & ARGUMENT_RANK)
        print_number(&printer, "rank", call->peer);
    if (call->arguments & ARGUMENT_COLOR)
        print_number(&printer, "color", call->size);
    if (call->arguments & ARGUMENT_KEY)
        print_number(&printer, "key", call->peer);
    if (call->arguments & ARGUMENT_BYTES)
        print_count(&printer, "bytes", call->bytes);
    if (printer.arguments)
        print(&printer, ")");
    return text;
}

char *record_text(const struct record *record, char *text, size_t bytes)
{
    const struct called call = call_of_record(record);
    return call_text(&call, text, bytes);
}

struct called signature_call(const struct signature *signature)
{
    struct record record = {.api = signature->api, .phase = RECORD_ENTER};
    record.op.count = signature->count;
    record.op.datatype = signature->datatype;
    record.op.redop = signature->redop;
    record.op.root = signature->root;
    record.op.scalar = signature->scalar;
    if (signature->unknown & FIELD_COUNT)
        record.op.flags |= RECORD_OP_NO_COUNT;
    if (signature->unknown & FIELD_ROOT)
        record.op.flags |= RECORD_OP_NO_ROOT;
    return call_of_record(&record);
}

char *signature_text(const struct signature *signature, char *text, size_t bytes)
{
    const struct called call = signature_call(signature);
    return call_text(&call, text, bytes);
}
