/* SPDX-License-Identifier: BSD-3-Clause */
/* Writes parts of Prometheus' text format. */
#ifndef BASE_METRIC_H
#define BASE_METRIC_H

#include <stdint.h>
#include <stdio.h>

/* The two lines before the samples of a metric. */
void metric_head(FILE *out, const char *name, const char *type,
		 const char *help);
/* The value of a label, quoted and escaped. */
void metric_quoted(FILE *out, const char *text);
/* The value of a sample, converted to seconds, and the end of its line. */
void metric_seconds(FILE *out, uint64_t ns);

#endif
