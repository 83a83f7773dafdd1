/* SPDX-License-Identifier: BSD-3-Clause */
/* Spans of a program's calls and requests: ulrpc_spans_start(3). */
#ifndef TOOLS_SPANS_H
#define TOOLS_SPANS_H

#include <ulnet/spans.h>

#include "tools/common/program.h"

/* Starts them if @path is given; *@spans_p is NULL otherwise. 0, or -errno
 * after a message. */
int spans_start(struct ulrpc *rpc, const char *path, uint64_t share,
		const struct say *say, struct ulrpc_spans **spans_p);

#endif
