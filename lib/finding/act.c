/* act.c: makes the words of what ranks did from its fields, and hashes the fields. */
#include "lib/finding/act.h"

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/trace/names.h"

enum { CALL_TEXT_BYTES = 512, SIGNAL_TEXT_BYTES = 24 };

bool did_end(enum did did)
{
    return did == DID_EXITED || did == DID_KILLED || did == DID_KILLED_FOR_MEMORY ||
           did == DID_GONE;
}

bool did_step(enum did did)
{
    return did == DID_STEP_UNCALLED || did == DID_STEP_SAME_STREAM || did == DID_STEP_EARLIER ||
           did == DID_STEP_OTHER_STREAM;
}

static const char *const awaited_keys[] = {"nothing",  "operation", "setup",  "split",
                                           "teardown", "shrink",    "window", "communicator"};

const char *awaited_key(enum awaited_kind kind)
{
    return awaited_keys[kind];
}

enum awaited_kind awaited_of_key(const char *key)
{
    for (size_t kind = 0; kind < sizeof awaited_keys / sizeof *awaited_keys; kind++)
        if (!strcmp(awaited_keys[kind], key))
            return (enum awaited_kind)kind;
    return AWAITED_NOTHING;
}

void awaited_add(struct text *text, const struct awaited *awaited)
{
    char name[16], call[CALL_TEXT_BYTES];
    const char *comm = *awaited->title ? awaited->title : comm_name(awaited->comm, name);
    switch (awaited->kind) {
    case AWAITED_NOTHING:
        break;
    case AWAITED_OPERATION:
        text_add(text, "%s #%" PRIu64 " of %s", call_text(&awaited->call, call, sizeof call),
                 awaited->number, comm);
        break;
    case AWAITED_SETUP:
        text_add(text, "the set-up of %s", comm);
        break;
    case AWAITED_SPLIT:
        text_add(text, "ncclCommSplit #%" PRIu64 " of %s", awaited->number, comm);
        break;
    case AWAITED_SHRINK:
        text_add(text, "ncclCommShrink #%" PRIu64 " of %s", awaited->number, comm);
        break;
    case AWAITED_WINDOW:
        text_add(text, "ncclCommWindowRegister #%" PRIu64 " of %s", awaited->number, comm);
        break;
    case AWAITED_COMM:
        text_add(text, "%s", comm);
        break;
    case AWAITED_TEARDOWN:
        text_add(text, "the tear-down of %s", comm);
        break;
    }
}

static void add_call(struct text *text, const struct act *act)
{
    char call[CALL_TEXT_BYTES];
    if (act->call.api)
        text_add(text, "%s", call_text(&act->call, call, sizeof call));
}

static void add_function(struct text *text, const struct act *act)
{
    text_add(text, "%s", call_name(&act->call));
}

static void add_datatype(struct text *text, const struct act *act)
{
    text_add(text, "%s", datatype_name(act->call.datatype));
}

static void add_value(struct text *text, const struct act *act)
{
    text_add(text, "%d", act->value);
}

static void add_rank(struct text *text, const struct act *act)
{
    text_add(text, "%d", act->rank);
}

static void add_number(struct text *text, const struct act *act)
{
    text_add(text, "%" PRIu64, act->number);
}

static void add_more(struct text *text, const struct act *act)
{
    if (act->number)
        add_number(text, act);
}

static void add_name(struct text *text, const struct act *act)
{
    text_add(text, "%s", act->name ? act->name : "");
}

static void add_phase(struct text *text, const struct act *act)
{
    text_add(text, "%s", act->phase ? act->phase : "");
}

static void add_signal(struct text *text, const struct act *act)
{
    char name[SIGNAL_TEXT_BYTES];
    text_add(text, "%s", signal_text(act->value, name, sizeof name));
}

static void add_description(struct text *text, const struct act *act)
{
    text_add(text, "%s", act->value > 0 && act->value < NSIG ? strsignal(act->value) : "?");
}

/* "rank 3 has", "ranks 0-2 have": `name` is the set, `number` how many. */
static void add_ranks(struct text *text, const struct act *act)
{
    const char *ranks = act->name ? act->name : "";
    text_add(text, act->number == 1 ? "rank %s has" : "ranks %s have", ranks);
}

static void add_wait(struct text *text, const struct act *act)
{
    awaited_add(text, &act->wait);
}

static void add_behind_what(struct text *text, const struct act *act)
{
    awaited_add(text, &act->behind);
}

static const struct {
    const char *name;
    void (*add)(struct text *text, const struct act *act);
} act_fields[] = {
    {"{call}", add_call},
    {"{function}", add_function},
    {"{datatype}", add_datatype},
    {"{value}", add_value},
    {"{rank}", add_rank},
    {"{number}", add_number},
    {"{more}", add_more},
    {"{name}", add_name},
    {"{phase}", add_phase},
    {"{signal}", add_signal},
    {"{description}", add_description},
    {"{ranks}", add_ranks},
    {"{wait}", add_wait},
    {"{behind}", add_behind_what},
};

/* Adds the field that the words go on with. Returns its length in them, 0 if they name none. */
static size_t add_field(struct text *text, const struct act *act, const char *words)
{
    for (size_t i = 0; i < sizeof act_fields / sizeof *act_fields; i++) {
        size_t length = strlen(act_fields[i].name);
        if (!strncmp(words, act_fields[i].name, length)) {
            act_fields[i].add(text, act);
            return length;
        }
    }
    return 0;
}

/* Adds the words up to `end`; false if a field that they name is empty. */
static bool add_words(struct text *text, const struct act *act, const char *words, const char *end)
{
    bool complete = true;
    while (words < end) {
        size_t plain = strcspn(words, "{["), len = text->len;
        if (plain > (size_t)(end - words))
            plain = (size_t)(end - words);
        text_add(text, "%.*s", (int)plain, words);
        words += plain;
        if (words == end)
            break;
        const char *close = *words == '[' ? strchr(words, ']') : NULL;
        len = text->len;
        if (close) {
            if (!add_words(text, act, words + 1, close))
                text_cut(text, len);
            words = close + 1;
            continue;
        }
        size_t field = add_field(text, act, words);
        complete = complete && text->len > len;
        words += field ? field : 1;
    }
    return complete;
}

void act_add(struct text *text, const struct act *act)
{
    const char *words = did_words(act->did);
    add_words(text, act, words, words + strlen(words));
}

char *act_words(const struct act *act)
{
    struct text text = {0};
    act_add(&text, act);
    return text_take(&text);
}

static uint64_t hash_number(uint64_t hash, uint64_t number)
{
    return hash_bytes(hash, &number, sizeof number);
}

static uint64_t hash_call(uint64_t hash, const struct called *call, bool without_peer)
{
    bool hides_peer = without_peer && call->arguments & ARGUMENT_PEER;
    const uint64_t values[] = {call->api,
                               call->arguments,
                               call->datatype,
                               call->redop,
                               hides_peer ? 0 : (uint64_t)(int64_t)call->peer,
                               (uint64_t)(int64_t)call->size,
                               call->count,
                               call->bytes};
    return hash_bytes(hash, values, sizeof values);
}

/* An exception's message may differ between runs and ranks; its type comes first, up to a colon. */
static bool has_message(const struct act *act)
{
    return act->did == DID_EXITED || act->did == DID_ENDING || act->did == DID_LEFT ||
           act->did == DID_ABORTED;
}

static size_t name_length(const struct act *act)
{
    const char *name = act->name ? act->name : "";
    const char *message = has_message(act) ? strstr(name, ": ") : NULL;
    return message ? (size_t)(message - name) : strlen(name);
}

uint64_t act_hash(const struct act *act, bool without_peer)
{
    uint64_t hash = hash_text(HASH_START, did_key(act->did));
    hash = hash_call(hash, &act->call, without_peer);
    hash = hash_number(hash, (uint64_t)(int64_t)act->value);
    hash = hash_number(hash, (uint64_t)(int64_t)act->rank);
    hash = hash_number(hash, act->number);
    hash = hash_bytes(hash, act->name ? act->name : "", name_length(act));
    return hash_text(hash, act->phase ? act->phase : "");
}

/* The words of the call without the peer, which differs between ranks that do the same. */
static uint64_t hash_words(const char *words)
{
    const char *peer = strstr(words, ", peer=");
    if (!peer)
        return hash_text(HASH_START, words);
    const char *rest = peer + strlen(", peer=");
    rest += strspn(rest, "-0123456789");
    return hash_text(hash_bytes(HASH_START, words, (size_t)(peer - words)), rest);
}

uint64_t act_first_hash(const struct act *act, bool without_peer)
{
    struct text text = {0};
    struct act untitled = *act;
    char *name = act->name ? strndup(act->name, name_length(act)) : NULL;
    untitled.name = name;
    untitled.wait.title[0] = untitled.behind.title[0] = '\0';
    const char *words = did_first_words(act->did);
    add_words(&text, &untitled, words, words + strlen(words));
    free(name);
    char *all = text_take(&text);
    if (!all)
        return 0;
    uint64_t hash = without_peer ? hash_words(all) : hash_text(HASH_START, all);
    free(all);
    return hash;
}

static bool text_equal(const char *a, const char *b)
{
    return !strcmp(a ? a : "", b ? b : "");
}

/* Ranks whose exceptions differ in their messages alone did the same. */
static bool name_equal(const struct act *a, const struct act *b)
{
    size_t length = name_length(a);
    return length == name_length(b) && (!length || !memcmp(a->name, b->name, length));
}

static bool call_equal(const struct called *a, const struct called *b)
{
    return a->api == b->api && a->arguments == b->arguments && a->datatype == b->datatype &&
           a->redop == b->redop && a->peer == b->peer && a->size == b->size &&
           a->count == b->count && a->bytes == b->bytes;
}

static bool awaited_equal(const struct awaited *a, const struct awaited *b)
{
    return a->kind == b->kind && a->comm == b->comm && a->number == b->number &&
           call_equal(&a->call, &b->call);
}

bool act_equal(const struct act *a, const struct act *b)
{
    return a->did == b->did && a->value == b->value && a->rank == b->rank &&
           a->number == b->number && name_equal(a, b) && text_equal(a->phase, b->phase) &&
           call_equal(&a->call, &b->call) && awaited_equal(&a->wait, &b->wait) &&
           awaited_equal(&a->behind, &b->behind);
}

int act_copy(struct act *to, const struct act *from)
{
    *to = *from;
    to->name = from->name ? strdup(from->name) : NULL;
    to->phase = from->phase ? strdup(from->phase) : NULL;
    return (from->name && !to->name) || (from->phase && !to->phase) ? -1 : 0;
}

void act_free(struct act *act)
{
    free((char *)act->name);
    free((char *)act->phase);
    *act = (struct act){0};
}
