/* SPDX-License-Identifier: BSD-3-Clause */
#include "tools/common/spans.h"

#include <string.h>

int spans_start(struct ulrpc *rpc, const char *path, uint64_t share,
		const struct say *s, struct ulrpc_spans **spans_p)
{
	const struct ulrpc_spans_conf conf = { .path = path,
					       .name = s->who,
					       .share = (uint32_t)share };
	int rc;

	*spans_p = NULL;
	rc = path ? ulrpc_spans_start(rpc, &conf, spans_p) : 0;
	if (rc)
		say(s, LNET_LOG_ERR, "--spans %s: %s", path, strerror(-rc));
	return rc;
}
