/* log_records.h: logs that a service gave out as one JSON document: Loki's answer to a query,
 * Grafana's downloads, CloudWatch's events, arrays of records of Google's and Elastic's.
 *
 * What counts is the form: an object with a text (log_unwrap.h) and perhaps a time, or Loki's pair
 * ["1790000000000000000", "text"], wherever in the document. */
#ifndef DDPCHECK_IMPORT_LOG_RECORDS_H
#define DDPCHECK_IMPORT_LOG_RECORDS_H

#include "lib/import/import.h"

/* Whether a file that begins so is one document, and not a record in each line. */
bool log_is_document(const struct import_head *head);

/* Gets a line of the log, with its time before it, which it may change. Returns 0, or -1. */
typedef int log_record_take(void *context, char *text, size_t bytes, bool is_first);

/* Gives all records, those of one array after the other, each in the order of their times;
 * is_first: of an array. Returns 0, or -1: `take` has failed, or err says what can't be read; what
 * precedes a cut is given. */
int log_records_read(struct import_input *input, log_record_take *take, void *context,
                     struct error *err);

#endif
