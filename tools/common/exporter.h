/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Serves a node's metrics to Prometheus, by HTTP. One thread of its own, which
 * asks the node at most once a second, however many ask; EXPORTER_CONNECTIONS
 * connections at once, others wait in the kernel; EXPORTER_TIMEOUT_S of silence
 * end one, so who does not read, or does not ask, has it only so long.
 */
#ifndef TOOLS_EXPORTER_H
#define TOOLS_EXPORTER_H

#include "program.h"

struct exporter;
struct metrics_source;

#define EXPORTER_CONNECTIONS 32
#define EXPORTER_MEMORY	     16384 /* bytes of a connection: headers */
#define EXPORTER_TIMEOUT_S   5

/*
 * Serves at @address, as metrics_place() reads it. If it is NULL, nothing is
 * done. @source, which the exporter's thread asks, and @say are borrowed until
 * exporter_stop(). Logs what fails; -EINVAL, -ENOMEM, or what the address is
 * refused with.
 */
int exporter_start(const struct metrics_source *source, const char *address,
		   const struct say *say, struct exporter **exporter_p);
/* Waits for its thread, and so for the node's. NULL is fine. */
void exporter_stop(struct exporter *e);

#endif
