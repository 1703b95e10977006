/* JSON lines: what `ddpcheck report --json` prints, as a file. */
#include "cmd/export/export.h"
#include "cmd/report/report_print.h"

int export_jsonl(const struct export *export, struct error *err)
{
    return report_print_json(export->report, &(struct report_parts){0}, export->out, err);
}
