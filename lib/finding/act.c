/* act.c: makes the words of what ranks did from its fields, and hashes the fields. */
#include "lib/finding/act.h"

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/rankset.h"
#include "lib/finding/template.h"
#include "lib/trace/names.h"

enum { CALL_TEXT_BYTES = 512, SIGNAL_TEXT_BYTES = 24, RANKS_TEXT_BYTES = 160 };

bool did_end(enum did did)
{
    return did == DID_EXITED || did == DID_LACKED || did == DID_KILLED ||
           did == DID_KILLED_FOR_MEMORY || did == DID_GONE;
}

bool did_is_awaited(enum did did)
{
    static const enum did missing[] = {DID_NEVER_CALLED,
                                       DID_NEVER_CALLED_HERE,
                                       DID_NOT_CALLED_OR_INSIDE,
                                       DID_NEVER_SENT,
                                       DID_NEVER_RECEIVED,
                                       DID_HELD_IN_GROUP,
                                       DID_NOT_COME,
                                       DID_LEFT,
                                       DID_ABORTED,
                                       DID_NOT_SEEN,
                                       DID_MAY_BE_PROCESS,
                                       DID_NO_CALL_YET,
                                       DID_ENDING,
                                       DID_ENDED,
                                       DID_THREAD_ENDED,
                                       DID_STOPPED};
    for (size_t i = 0; i < sizeof missing / sizeof *missing; i++)
        if (missing[i] == did)
            return true;
    return did_end(did);
}

bool act_is_exception(const struct act *act)
{
    static const char words[] = ABORT_EXCEPTION;
    return act->did == DID_KILLED && act->name && !strncmp(act->name, words, strlen(words));
}

bool did_not_call(enum did did)
{
    return did == DID_RUNNING || did == DID_NOT_IN_CALL;
}

bool did_step(enum did did)
{
    return did == DID_STEP_UNCALLED || did == DID_STEP_SAME_STREAM || did == DID_STEP_EARLIER ||
           did == DID_STEP_OTHER_STREAM;
}

static const struct {
    const char *key;
    const char *noun; /* of a set-up, before "of comm 5ae7"; "": it is called by `call` */
    enum api call;
} awaited_rows[] = {
    [AWAITED_NOTHING] = {.key = "nothing"},
    [AWAITED_OPERATION] = {.key = "operation"},
#define SETUP(kind, key, noun, call, ...) [AWAITED_##kind] = {key, noun, API_##call},
#include "lib/finding/setups.def"
#undef SETUP
    [AWAITED_COMM] = {.key = "communicator"},
};

const char *awaited_key(enum awaited_kind kind)
{
    return awaited_rows[kind].key;
}

enum awaited_kind awaited_of_key(const char *key)
{
    for (size_t kind = 0; kind < sizeof awaited_rows / sizeof *awaited_rows; kind++)
        if (!strcmp(awaited_rows[kind].key, key))
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
    case AWAITED_COMM:
        text_add(text, "%s", comm);
        break;
    default:
        if (*awaited_rows[awaited->kind].noun)
            text_add(text, "%s of %s", awaited_rows[awaited->kind].noun, comm);
        else
            text_add(text, "%s #%" PRIu64 " of %s", api_name(awaited_rows[awaited->kind].call),
                     awaited->number, comm);
        break;
    }
}

static const struct act *act_of(const struct words *words)
{
    return words->from;
}

static void add_call(struct words *words)
{
    char call[CALL_TEXT_BYTES];
    if (act_of(words)->call.api)
        text_add(words->text, "%s", call_text(&act_of(words)->call, call, sizeof call));
}

static void add_function(struct words *words)
{
    text_add(words->text, "%s", call_name(&act_of(words)->call));
}

static void add_datatype(struct words *words)
{
    text_add(words->text, "%s", datatype_name(act_of(words)->call.datatype));
}

static void add_value(struct words *words)
{
    text_add(words->text, "%d", act_of(words)->value);
}

static void add_rank_words(struct words *words)
{
    text_add(words->text, "%d", act_of(words)->rank);
}

static void add_number_words(struct words *words)
{
    text_add(words->text, "%" PRIu64, act_of(words)->number);
}

static void add_more(struct words *words)
{
    if (act_of(words)->number)
        add_number_words(words);
}

static void add_name(struct words *words)
{
    text_add(words->text, "%s", act_of(words)->name ? act_of(words)->name : "");
}

static void add_phase(struct words *words)
{
    text_add(words->text, "%s", act_of(words)->phase ? act_of(words)->phase : "");
}

static void add_signal(struct words *words)
{
    char name[SIGNAL_TEXT_BYTES];
    text_add(words->text, "%s", signal_text(act_of(words)->value, name, sizeof name));
}

static void add_description(struct words *words)
{
    int value = act_of(words)->value;
    text_add(words->text, "%s", value > 0 && value < NSIG ? strsignal(value) : "?");
}

/* `name` is the set, `number` how many. */
static void add_ranks(struct words *words)
{
    char text[RANKS_TEXT_BYTES];
    struct rankset set = {0};
    const char *ranks = act_of(words)->name ? act_of(words)->name : "";
    words->is_one = act_of(words)->number == 1;
    if (rankset_parse(&set, ranks) == 0)
        text_add(words->text, "%s", rankset_words(&set, text, sizeof text));
    else /* it was cut */
        text_add(words->text, words->is_one ? "rank %s" : "ranks %s", ranks);
    rankset_free(&set);
}

static void add_wait(struct words *words)
{
    awaited_add(words->text, &act_of(words)->wait);
}

static void add_behind_what(struct words *words)
{
    awaited_add(words->text, &act_of(words)->behind);
}

static const struct template_field act_fields[] = {
    {"call", add_call, 1},
    {"function", add_function, 1},
    {"datatype", add_datatype, 1},
    {"value", add_value, 1},
    {"rank", add_rank_words, 1},
    {"number", add_number_words, 1},
    {"more", add_more, 1},
    {"name", add_name, 1},
    {"phase", add_phase, 1},
    {"signal", add_signal, 1},
    {"description", add_description, 1},
    {"ranks", add_ranks, 1},
    {"wait", add_wait, 1},
    {"behind", add_behind_what, 1},
    {NULL, NULL, 0},
};

static void add_act_words(struct text *text, const struct act *act, const char *template)
{
    struct words words = {.text = text, .fields = act_fields, .from = act};
    template_add(&words, template);
}

void act_add(struct text *text, const struct act *act)
{
    add_act_words(text, act, did_words(act->did));
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
