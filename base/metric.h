/* SPDX-License-Identifier: BSD-3-Clause */
/* Writes parts of Prometheus' text format. */
#ifndef BASE_METRIC_H
#define BASE_METRIC_H

#include <stdint.h>
#include <stdio.h>

/* Writes the two lines that precede the samples of a metric. */
void metric_head(FILE *out, const char *name, const char *type,
		 const char *help);
/* Writes the value of a label, quoted and escaped. */
void metric_quoted(FILE *out, const char *text);
/* Writes the value of a sample, converted from @ns to seconds, and ends its
 * line. */
void metric_seconds(FILE *out, uint64_t ns);

#endif
