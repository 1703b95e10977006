/* log_reports.h: what the readers of PyTorch's reports share. */
#ifndef DDPCHECK_IMPORT_LOG_REPORTS_H
#define DDPCHECK_IMPORT_LOG_REPORTS_H

#include "lib/import/log_torch.h"

/* "Rank 1 is running collective: CollectiveFingerPrint(SequenceNumber=21, OpType=BROADCAST, ...".
 * False if it is something else. line->seq counts from 0, as it does there. */
bool log_fingerprint_parse(const char *text, struct watchdog_line *line);

#endif
