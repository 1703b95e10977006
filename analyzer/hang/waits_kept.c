/* waits_kept.c: keeps the wait graph from tick to tick while nothing happens. To build it takes as
 * long as the job has ranks, and a job that hangs has many ticks. */
#include <stdlib.h>

#include "analyzer/hang/waits_nodes.h"

struct wait_graph *wait_graph_now(struct analyzer *analyzer, enum moment moment)
{
    struct wait_graph *graph = analyzer->wait_graph;
    if (graph && graph->lasts && moment == MOMENT_TICK) {
        graph->now_ns = wait_graph_last_tick_ns(analyzer);
        if (!graph->supposes_idle || !wait_graph_suppose(graph, false))
            return graph;
    }
    graph = malloc(sizeof *graph);
    if (!graph || wait_graph_build(analyzer, moment, graph)) {
        free(graph);
        return NULL;
    }
    return analyzer->wait_graph = graph;
}

void wait_graph_forget(struct analyzer *analyzer)
{
    if (!analyzer->wait_graph)
        return;
    wait_graph_free(analyzer->wait_graph);
    free(analyzer->wait_graph);
    analyzer->wait_graph = NULL;
}
