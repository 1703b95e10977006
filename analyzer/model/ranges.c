/* ranges.c: classifies NVTX ranges by their names. */
#include "analyzer/model/ranges.h"

#include <ctype.h>
#include <string.h>

#include "lib/base/text.h"

enum { WORDS_MAX = 12, WORD_BYTES = 24 };

struct range_words {
    char word[WORDS_MAX][WORD_BYTES]; /* lower case; a number is a word of its own */
    int count;
    bool truncated;
};

static bool is_number(const char *word)
{
    return isdigit((unsigned char)*word);
}

/* "Optimizer.step#Adam.step" is optimizer, step, adam, step. PyTorch's ", seq = 7, op_id = 9" is
 * left out. */
static struct range_words split(const char *text)
{
    struct range_words words = {.count = 0};
    while (*text && *text != ',') {
        if (!isalnum((unsigned char)*text)) {
            text++;
            continue;
        }
        if (words.count == WORDS_MAX) {
            words.truncated = true;
            break;
        }
        char *word = words.word[words.count++];
        bool digits = is_number(text);
        for (int i = 0; isalnum((unsigned char)*text) && is_number(text) == digits; text++)
            if (i < WORD_BYTES - 1)
                word[i++] = (char)tolower((unsigned char)*text);
    }
    return words;
}

/* The word is one of a list that is separated by spaces. */
static bool is_one_of(const char *word, const char *list)
{
    size_t bytes = strlen(word);
    for (const char *at = strstr(list, word); bytes && at; at = strstr(at + 1, word))
        if ((at == list || at[-1] == ' ') && (at[bytes] == ' ' || !at[bytes]))
            return true;
    return false;
}

static int word_index(const struct range_words *words, const char *list)
{
    for (int i = 0; i < words->count; i++)
        if (is_one_of(words->word[i], list))
            return i;
    return -1;
}

/* Not of the training loop, whatever else the name says. */
static const char not_training[] =
    "eval evaluate evaluation val valid validate validation test testing inference predict "
    "zero warmup";
/* What may come after the word that says the phase: "discriminator reduce bucket 3". */
static const char trailing[] = "bucket pass phase grads gradients gradient";

/* A range is of the phase whose word is the last one that counts. */
static const struct phase_word {
    const char *words;
    enum range_kind kind;
} phases[] = {
    {"forward fwd", RANGE_FORWARD},
    {"backward bwd", RANGE_BACKWARD},
    {"reduce allreduce reduction", RANGE_REDUCE},
    {"step", RANGE_STEP},
};

/* Before "step", these make it the loop's and not the optimizer's. */
static const char loop_words[] = "train training global loop";
static const char iteration_words[] = "iteration iter profilerstep trainstep minibatch";

static void take_number(const struct range_words *words, int after, struct range_meaning *meaning)
{
    for (int i = after + 1; i < words->count && !meaning->has_number; i++)
        if (is_number(words->word[i])) {
            meaning->has_number = true;
            for (const char *digit = words->word[i]; *digit; digit++)
                meaning->number = 10 * meaning->number + (uint64_t)(*digit - '0');
        }
}

static struct range_meaning iteration_at(const struct range_words *words, int place,
                                         enum range_kind kind)
{
    struct range_meaning meaning = {.kind = kind};
    take_number(words, place, &meaning);
    return meaning;
}

/* The last word that is neither a number nor of those that may come after the phase; -1 none. */
static int last_word(const struct range_words *words)
{
    int last = words->count - 1;
    while (last >= 0 && (is_number(words->word[last]) || is_one_of(words->word[last], trailing)))
        last--;
    return last;
}

static uint64_t model_of(const struct range_words *words, int end)
{
    uint64_t hash = HASH_START;
    for (int i = 0; i < end; i++)
        hash = hash_text(hash, words->word[i]);
    return end > 0 ? hash : 0;
}

static struct range_meaning phase_of(const struct range_words *words)
{
    int last = last_word(words);
    for (size_t i = 0; last >= 0 && i < sizeof phases / sizeof *phases; i++)
        if (is_one_of(words->word[last], phases[i].words))
            return (struct range_meaning){.kind = phases[i].kind, .model = model_of(words, last)};
    return (struct range_meaning){.kind = RANGE_OTHER};
}

/* "train_step", "step 12", "global step 12", "batch 12"; not "batch norm". */
static bool find_iteration(const struct range_words *words, struct range_meaning *meaning)
{
    int place = word_index(words, iteration_words);
    if (place >= 0 && place <= 2) {
        *meaning = iteration_at(words, place, RANGE_ITERATION);
        return true;
    }
    place = word_index(words, "step batch");
    bool last = place >= 0 && (place + 1 == words->count || is_number(words->word[place + 1]));
    bool of_loop = place > 0 && is_one_of(words->word[place - 1], loop_words);
    if (!last || (place > 0 && !of_loop))
        return false;
    bool bare_step = place == 0 && !strcmp(words->word[0], "step");
    *meaning = iteration_at(words, place, bare_step ? RANGE_STEP_OR_ITERATION : RANGE_ITERATION);
    return true;
}

struct range_meaning range_meaning_of(const char *text, const char *iteration_name)
{
    struct range_meaning meaning = {.kind = RANGE_OTHER};
    struct range_words words = split(text);
    bool is_named = iteration_name && *iteration_name &&
                    !strncmp(text, iteration_name, strlen(iteration_name));
    if (is_named)
        return iteration_at(&words, -1, RANGE_ITERATION);
    /* "aten::convolution_backward" is one operator of many, and "autograd::engine::..." the
     * framework's own. */
    if (!words.count || words.truncated || strstr(text, "::") ||
        word_index(&words, not_training) >= 0)
        return meaning;
    if (word_index(&words, "micro microbatch microstep accumulation") >= 0)
        return (struct range_meaning){.kind = RANGE_MICRO_STEP};
    if (!(iteration_name && *iteration_name) && find_iteration(&words, &meaning))
        return meaning;
    if (!strcmp(words.word[0], "step"))
        return (struct range_meaning){.kind = RANGE_STEP};
    return phase_of(&words);
}
