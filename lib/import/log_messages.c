/* log_messages.c: messages of a job's log that say what went wrong, by a table of what they
 * contain. */
#include "lib/import/log_messages.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MESSAGES_MAX = 512, TODO_BYTES = 400 };

struct log_message {
    struct log_speaker speaker;
    enum said how;
    const char *who, *todo;
    char text[MESSAGE_BYTES];
    uint64_t time_ns;
};

struct log_messages {
    struct log_message *message;
    uint32_t count;
    struct log_speaker last_error; /* its next line is what NCCL said last */
    bool wants_last_error;
};

static const char todo_remote[] =
    "As a rule another rank ended or its node lost the network first: look for that rank's own "
    "message, and for its process's end.";
static const char todo_heartbeat[] =
    "A CUDA or NCCL call of that rank hangs, or a thread holds the GIL inside one: look at its "
    "stacks (py-spy dump, gdb) when it happens again. TORCH_NCCL_HEARTBEAT_TIMEOUT_SEC only delays "
    "it.";
static const char todo_memory[] =
    "That rank ended or left its loop; the others then wait for it. Give it less to do (batch, "
    "sequence length), and let all ranks skip a batch together or none.";
static const char todo_host_memory[] =
    "The kernel ran out of host memory and killed a process: fewer data loader workers, less "
    "pinned "
    "memory, or a larger limit. The other ranks then wait for it.";
static const char todo_gpu[] =
    "The GPU or its driver failed: NVIDIA's list of Xid errors says whether to restart the job, "
    "reset the GPU or replace it. Take the node out and run diagnostics (dcgmi diag).";
static const char todo_cuda[] =
    "The first CUDA error counts; run again with CUDA_LAUNCH_BLOCKING=1 or compute-sanitizer to "
    "see which kernel it is. The other ranks then wait for this one.";
static const char todo_nccl[] =
    "Run again with NCCL_DEBUG=WARN: the line that NCCL prints before this says why.";
static const char todo_model[] =
    "Build the same model on every rank: the same configuration, no rank-dependent modules, the "
    "same frozen parameters, and wait for downloads before it.";
static const char todo_clients[] =
    "Some ranks never came to the rendezvous: see whether all nodes started, with the same master "
    "address, port and world size.";
static const char todo_launcher[] = "Look at what that rank printed last, and at its core dump.";
static const char todo_limit[] =
    "The scheduler terminated the job; what follows it is a consequence.";
static const char todo_shm[] = "/dev/shm is too small for the data loaders: docker run "
                               "--shm-size=16g or --ipc=host.";

static const struct message_pattern {
    const char *contains;
    enum said how;
    const char *who;
    const char *says; /* what is reported; NULL: the line from `contains` on */
    const char *todo;
} patterns[] = {
    {"watchdog got stuck for ", SAID_ERROR, "PyTorch",
     "its watchdog got no sign of life from CUDA or NCCL (heartbeat) and terminated the process",
     todo_heartbeat},
    {"Heartbeat monitor timed out", SAID_ERROR, "PyTorch",
     "its watchdog got no sign of life from CUDA or NCCL (heartbeat) and terminated the process",
     todo_heartbeat},
    {"ncclRemoteError: ", SAID_ERROR, "NCCL", NULL, todo_remote},
    {"ncclSystemError: ", SAID_ERROR, "NCCL", NULL, todo_nccl},
    {"ncclInternalError: ", SAID_ERROR, "NCCL", NULL, todo_nccl},
    {"ncclUnhandledCudaError: ", SAID_ERROR, "NCCL", NULL, todo_nccl},
    {"ncclInvalidUsage: ", SAID_ERROR, "NCCL", NULL, todo_nccl},
    {"ncclInvalidArgument: ", SAID_ERROR, "NCCL", NULL, todo_nccl},
    {"CUDA out of memory", SAID_ERROR, "PyTorch", NULL, todo_memory},
    {"HIP out of memory", SAID_ERROR, "PyTorch", NULL, todo_memory},
    {"NVRM: Xid", SAID_ERROR, "the driver", NULL, todo_gpu},
    {"HW Exception by GPU node", SAID_ERROR, "ROCm", NULL, todo_gpu},
    {"Memory access fault by GPU node", SAID_ERROR, "ROCm", NULL, todo_cuda},
    {"GPU has fallen off the bus", SAID_ERROR, "the driver", NULL, todo_gpu},
    {"CUDA error: ", SAID_ERROR, "CUDA", NULL, todo_cuda},
    {"DDP expects same model across all ranks", SAID_ERROR, "PyTorch", NULL, todo_model},
    {"appears not to match sizes of the same param in process", SAID_ERROR, "PyTorch",
     "a parameter has other sizes than in process 0: the models differ between ranks", todo_model},
    {" clients joined", SAID_ERROR, "PyTorch", NULL, todo_clients},
    {"Out of memory: Killed process", SAID_ERROR, "the kernel", NULL, todo_host_memory},
    {"Memory cgroup out of memory", SAID_ERROR, "the kernel", NULL, todo_host_memory},
    {"oom_kill event", SAID_ERROR, "Slurm", "oom_kill: a process was killed for memory",
     todo_host_memory},
    {"oom-kill event", SAID_ERROR, "Slurm", "oom-kill: a process was killed for memory",
     todo_host_memory},
    {"DUE TO TIME LIMIT", SAID_ERROR, "Slurm", "the job reached its time limit", todo_limit},
    {"mpirun noticed that process rank ", SAID_ERROR, "mpirun", NULL, todo_launcher},
    {"srun: error: ", SAID_WARNING, "srun", NULL, todo_launcher},
    {"It is possible that dataloader's workers are out of shared memory", SAID_ERROR, "PyTorch",
     NULL, todo_shm},
    {"Segmentation fault", SAID_ERROR, "the system", NULL, todo_launcher},
    {"Fatal Python error: ", SAID_ERROR, "Python", NULL, todo_launcher},
    {"NCCL WARN ", SAID_WARNING, "NCCL", NULL, ""},
    {"unhandled system error", SAID_ERROR, "NCCL", NULL, todo_nccl},
    {"unhandled cuda error", SAID_ERROR, "NCCL", NULL, todo_nccl},
    {"remote process exited or there was a network error", SAID_ERROR, "NCCL", NULL, todo_remote},
};

static struct log_messages *messages_of(struct log_job *job)
{
    if (!job->messages)
        job->messages = calloc(1, sizeof *job->messages);
    return job->messages;
}

/* The latest that any line so far has said; 0 if none has. */
static uint64_t latest_time(const struct log_job *job)
{
    return job->torch_ns > job->last_ns ? job->torch_ns : job->last_ns;
}

int log_messages_add(struct log_job *job, struct log_speaker speaker, enum said how,
                     const char *who, const char *text, const char *todo)
{
    struct log_messages *messages = messages_of(job);
    if (!messages)
        return -1;
    if (speaker.rank < 0)
        speaker.rank = job->file_rank;
    for (uint32_t i = 0; i < messages->count; i++)
        if (messages->message[i].speaker.rank == speaker.rank &&
            !strncmp(messages->message[i].text, text, MESSAGE_BYTES - 1))
            return 1;
    if (messages->count == MESSAGES_MAX)
        return 1;
    if (!messages->message &&
        !(messages->message = malloc(MESSAGES_MAX * sizeof *messages->message)))
        return -1;
    struct log_message *message = &messages->message[messages->count++];
    *message = (struct log_message){.speaker = speaker, .how = how, .who = who, .todo = todo};
    message->time_ns = latest_time(job);
    size_t used = 0;
    for (; *text && used + 1 < sizeof message->text; text++)
        message->text[used++] = (unsigned char)*text < ' ' ? ' ' : *text;
    message->text[used] = '\0';
    return 1;
}

/* NCCL's "Last error:" stands before the line that says it. */
static int last_error_line(struct log_job *job, struct log_speaker speaker, const char *text)
{
    struct log_messages *messages = job->messages;
    const char *found = strstr(text, "Last error:");
    if (found) {
        messages = messages_of(job);
        if (!messages)
            return -1;
        found += strlen("Last error:");
        while (*found == ' ')
            found++;
        messages->wants_last_error = !*found;
        messages->last_error = speaker;
        return *found ? log_messages_add(job, speaker, SAID_ERROR, "NCCL's last error", found,
                                         todo_nccl)
                      : 1;
    }
    if (!messages || !messages->wants_last_error || messages->last_error.rank != speaker.rank)
        return 0;
    messages->wants_last_error = false;
    const char *behind = *text == '[' ? strstr(text, "]: ") : NULL;
    return log_messages_add(job, speaker, SAID_ERROR, "NCCL's last error",
                            behind ? behind + 3 : text, todo_nccl);
}

/* The world size, as frameworks print it. */
static void learn_world(struct log_job *job, const char *text)
{
    static const char *const names[] = {"dist_world_size=",
                                        "WORLD_SIZE=",
                                        "WORLD_SIZE: ",
                                        "global_world_sizes=[",
                                        "All distributed processes registered. Starting with ",
                                        NULL};
    const char *member = strstr(text, "MEMBER: "), *slash = member ? strchr(member, '/') : NULL;
    int64_t world = slash ? atoi(slash + 1) : -1;
    for (size_t i = 0; world < 0 && names[i]; i++) {
        const char *found = strstr(text, names[i]);
        world = found ? text_number_behind(found, names[i]) : -1;
    }
    if (world > job->world && world < 1 << 20)
        job->world = (int)world;
}

int log_messages_line(struct log_job *job, const char *text, size_t bytes)
{
    learn_world(job, text);
    struct log_speaker speaker = log_speaker_of(text, bytes);
    int result = last_error_line(job, speaker, text);
    for (size_t i = 0; !result && i < sizeof patterns / sizeof *patterns; i++) {
        const struct message_pattern *pattern = &patterns[i];
        const char *found = strstr(text, pattern->contains);
        if (!found)
            continue;
        if (!strcmp(pattern->who, "mpirun"))
            speaker.rank = (int)text_number_behind(found, "process rank ");
        if (*pattern->contains == ' ' && found > text) /* the sentence before it counts, too */
            found = text;
        result = log_messages_add(job, speaker, pattern->how, pattern->who,
                                  pattern->says ? pattern->says : found, pattern->todo);
    }
    return result;
}

/* --- the end --- */

static int speaker_process(struct log_job *job, const struct log_message *message)
{
    struct log_speaker speaker = message->speaker;
    const struct log_process *known = NULL;
    if (speaker.rank >= 0)
        known = log_job_process_of_rank(job, speaker.rank);
    if (known)
        return log_process_index(known);
    struct import_process process = import_process_new();
    process.rank = speaker.rank;
    process.key = speaker.rank >= 0 ? "watchdog" : "not named";
    process.file = job->path;
    process.title = "what PyTorch printed";
    process.lacks = LACKS_MESSAGES;
    if (message->how == SAID_TIMEOUT) { /* the process of log_groups.c that its calls belong to */
        process.key = "fingerprint";
        process.lacks &= ~(uint32_t)LACKS_DATATYPE;
    }
    return import_process(job->import, &process);
}

/* The launcher's report of an exit is only a note where the exception is known. */
static enum said said_how(const struct log_messages *messages, const struct log_message *message)
{
    for (uint32_t i = 0; !strcmp(message->who, "torchelastic") && i < messages->count; i++)
        if (messages->message[i].speaker.rank == message->speaker.rank &&
            !strcmp(messages->message[i].who, "Python"))
            return SAID_NOTE;
    return message->how;
}

int log_messages_end(struct log_job *job)
{
    struct log_messages *messages = job->messages;
    /* Of what stands before the first line with a time. */
    uint64_t else_ns = latest_time(job) ? latest_time(job) : job->modified_ns;
    int result = 0;
    for (uint32_t i = 0; messages && !result && i < messages->count; i++) {
        const struct log_message *message = &messages->message[i];
        char text[MESSAGE_BYTES + TODO_BYTES];
        int process = speaker_process(job, message);
        snprintf(text, sizeof text, "%s%s%s", message->text, *message->todo ? "\n" : "",
                 message->todo);
        enum said how = said_how(messages, message);
        result = -1;
        if (process >= 0)
            result = import_said(job->import, process, how, message->who, text,
                                 message->time_ns ? message->time_ns : else_ns);
    }
    if (messages)
        free(messages->message);
    free(messages);
    job->messages = NULL;
    return result;
}
