/* SPDX-License-Identifier: BSD-3-Clause */
/* The text format of Prometheus: the lines before a metric's samples, and what
 * samples are made of. */
#ifndef BASE_METRIC_H
#define BASE_METRIC_H

#include <stdint.h>
#include <stdio.h>

/* The two lines before the samples of a metric. */
void metric_head(FILE *out, const char *name, const char *type,
		 const char *help);
/* The value of a label, whatever is in it. */
void metric_quoted(FILE *out, const char *text);
/* The value of a sample in seconds, and the end of its line. */
void metric_seconds(FILE *out, uint64_t ns);

#endif
