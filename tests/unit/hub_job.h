/* hub_job.h: a job on several hosts and its hub, without processes and network. Analyzers and joins
 * of the hosts, the hub and what it says are in one process; time is the records'. */
#ifndef DDPCHECK_TEST_HUB_JOB_H
#define DDPCHECK_TEST_HUB_JOB_H

#include <stdbool.h>
#include <stdint.h>

#include "collector/join.h"
#include "hub/hub.h"
#include "lib/trace/store.h"
#include "lib/trace/trace.h"
#include "verdict.h"

#define COMM   UINT64_C(0xaaaa000000000001)
#define SECOND UINT64_C(0xbbbb000000000002)

enum { HUB_RANKS = 8, HUB_HOSTS = 4, NEWS_MAX = 16, HUB_STREAM = 0x10, MS = 1000000 };

struct test_host {
    struct transport *transport;
    struct join *join;
    struct analyzer *analyzer;
    int first, ranks;
    bool dead;
};

struct test_hub {
    struct transport_local *transports;
    struct transport *transport;
    struct hub *hub;
    struct test_host host[HUB_HOSTS];
    int hosts, ranks_of_host;
    char database[64], names_path[64];
    struct store *names_store; /* symbols of all processes, where the hosts look them up */
    struct trace *names;       /* NULL: they find none */
    bool no_names;
    struct item_news news[NEWS_MAX];  /* by id */
    struct item_news heard[NEWS_MAX]; /* by the first host */
    int sent, last_news_ms;
    int reporters; /* how often the last host heard which host reports */
    int reporter;  /* a rank of it, as it heard last */
    int live;      /* findings that were open while the job ran, at its last tick */
    bool over;
    struct hub_counts counts;
};

/* A job of HUB_RANKS ranks with the communicator COMM and a stream for each; job_free ends it. */
struct job *hub_job_new(void);
/* `count` operations that all ranks issue and the GPU does. */
void hub_job_operations(struct job *job, uint64_t comm, int count);
/* All ranks exit with status 0. */
void hub_job_end(struct job *job);

/* Opens a hub and `hosts` hosts that share the ranks in order; hub_job_finish ends both. */
void hub_job_begin(struct test_hub *test, int hosts);
void hub_job_feed(struct test_host *host, int process, const struct record *record);
/* The hosts send what is due, the hub judges and asks, they answer, it judges again. */
void hub_job_exchange(struct test_hub *test, uint64_t now_ns);
void hub_job_finish(struct test_hub *test, uint64_t now_ns);
/* All of the job. `dies` is the host whose collector and network end with half of the ticks; -1
 * none. */
void hub_job_run(struct job *job, struct test_hub *test, int hosts, int dies);

/* The findings that are open: how many, the first (NULL: none), and all printed. */
int hub_job_count_news(const struct test_hub *test);
const struct item_news *hub_job_first_news(const struct test_hub *test);
void hub_job_print_news(const struct test_hub *test);
/* Fails the test unless there is one finding, the one that an analysis of all records makes; on 2
 * hosts and on 4. `code` NULL: none. */
void hub_job_expect(struct job *job, const char *code);

#endif
