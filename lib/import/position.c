/* position.c: decides by positions.def where a process stands. */
#include "lib/import/position.h"

#include <fnmatch.h>
#include <stdio.h>
#include <string.h>

#include "lib/trace/names.h"
#include "lib/trace/site.h"

static const struct position_row {
    enum place_kind place;
    const char *function, *of, *words; /* function NULL: any call of the class */
    enum api_class class;
} position_rows[] = {
#define POSITION(place, function, of, words) {PLACE_##place, function, of, words, 0},
#define CALLS(place, class)                  {PLACE_##place, NULL, "", "", class},
#include "lib/import/positions.def"
#undef CALLS
#undef POSITION
};

/* The call of CUDA's or NCCL's that the frame is, by its name in apis.def; NULL: none. Functions of
 * these libraries have suffixes, "_ptsz", and NCCL's may begin with p. */
static const char *find_place_call(const struct frame *frame, enum api_class class)
{
    const char *name = frame->function + (*frame->function == 'p');
    size_t length = strcspn(name, "@_.");
    for (unsigned api = 1; frame->address && length && api < API_COUNT; api++)
        if (api_class_of(api) == class && !strncmp(api_name(api), name, length) &&
            !api_name(api)[length])
            return api_name(api);
    return NULL;
}

/* py-spy leaves out where packages lie: "torch/distributed/distributed_c10d.py". */
static bool is_file_of(const char *part, const char *file)
{
    return strstr(file, part) || (*part == '/' && !strncmp(file, part + 1, strlen(part + 1)));
}

static bool is_frame_of(const struct position_row *row, const struct frame *frame)
{
    if (!row->function)
        return find_place_call(frame, row->class) != NULL;
    if (*row->of && !is_file_of(row->of, frame->file) && !is_file_of(row->of, frame->module))
        return false;
    return !fnmatch(row->function, frame->function, 0);
}

/* The first row that fits a frame of the thread; NULL: none does. */
static const struct position_row *find_place_row(const struct position_report *report,
                                                 const struct position_thread *thread,
                                                 const struct frame **fitting)
{
    for (size_t i = 0; i < sizeof position_rows / sizeof *position_rows; i++)
        for (int k = 0; k < thread->frames; k++)
            if (is_frame_of(&position_rows[i], &thread->frame[k]) &&
                (position_rows[i].place != PLACE_LAUNCHER || !report->is_rank)) {
                *fitting = &thread->frame[k];
                return &position_rows[i];
            }
    return NULL;
}

static const char *row_words(const struct position_row *row, const struct frame *frame)
{
    if (!row->function)
        return find_place_call(frame, row->class);
    return *row->words ? row->words : frame->function;
}

static const struct position_thread *find_holder(const struct position_report *report,
                                                 const struct position_thread *thread)
{
    for (int i = 0; thread->holder && i < report->threads; i++)
        if (report->thread[i].id == thread->holder)
            return &report->thread[i];
    return NULL;
}

/* "a lock that thread loader holds in read" */
static void describe_lock(const struct position_report *report,
                          const struct position_thread *thread, struct position_found *found)
{
    char called[POSITION_TEXT_BYTES / 2];
    const struct position_thread *holder = find_holder(report, thread);
    if (!holder || strcmp(found->text, "pthread_mutex_lock") != 0)
        return;
    site_called(holder->frame, holder->frames, called, sizeof called);
    snprintf(found->text, sizeof found->text,
             "pthread_mutex_lock, for a lock that %s%.40s holds%s%.100s",
             holder == thread ? "it" : "thread ", holder == thread ? " itself" : holder->name,
             *called && holder != thread ? ", in " : "", holder == thread ? "" : called);
}

static void find_in_thread(const struct position_report *report,
                           const struct position_thread *thread, struct position_found *found)
{
    const struct frame *frame = NULL;
    const struct position_row *row = find_place_row(report, thread, &frame);
    *found = (struct position_found){.place = row ? row->place : PLACE_ELSEWHERE,
                                     .is_named = row && (!row->function || *row->function != '*'),
                                     .thread = thread};
    if (thread->state == 'T' || thread->state == 't')
        found->place = PLACE_STOPPED;
    if (row)
        snprintf(found->text, sizeof found->text, "%.200s", row_words(row, frame));
    else
        site_called(thread->frame, thread->frames, found->text, sizeof found->text);
    describe_lock(report, thread, found);
}

bool position_is_join(const struct frame *frame)
{
    bool is_python = is_file_of("/threading.py", frame->file);
    return is_python ? !strcmp(frame->function, "join")
                     : frame->address && !fnmatch("*pthread_*join*", frame->function, 0);
}

bool position_is_wait(enum place_kind place)
{
    return place == PLACE_OPERATION || place == PLACE_SETUP || place == PLACE_WAIT;
}

/* A thread that trains rather than serves a library: it has a line of the program, or is
 * autograd's. */
static bool is_thread_of_program(const struct position_thread *thread)
{
    return site_user_frame(thread->frame, thread->frames) >= 0 ||
           !strncmp(thread->name, "pt_autograd", strlen("pt_autograd"));
}

/* The main thread, unless another one waits and it does not. */
void position_find(const struct position_report *report, struct position_found *found)
{
    struct position_found other;
    *found = (struct position_found){.place = report->is_gone ? PLACE_GONE : PLACE_ELSEWHERE};
    for (int i = 0; i < report->threads && !found->thread; i++)
        if (report->thread[i].is_main)
            find_in_thread(report, &report->thread[i], found);
    if (report->is_gone ||
        (found->thread && (position_is_wait(found->place) || found->place == PLACE_STOPPED)))
        return;
    for (int i = 0; i < report->threads; i++) {
        if (report->thread[i].is_main || !is_thread_of_program(&report->thread[i]))
            continue;
        find_in_thread(report, &report->thread[i], &other);
        /* Threads of NCCL's own are always in it. */
        if (!found->thread || (position_is_wait(other.place) && other.is_named)) {
            *found = other;
            return;
        }
    }
}
