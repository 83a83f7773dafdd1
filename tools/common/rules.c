/* SPDX-License-Identifier: BSD-3-Clause */
#include "rules.h"

#include <errno.h>
#include <stdlib.h>

#include "ulnet/control.h"
#include "ulnet/service.h"

int rules_use(struct ulrpc *rpc, const char *path, const struct say *say_to)
{
	struct ulrpc_rules_conf *conf = NULL;
	struct ulrpc_rules *rules = NULL;
	char *text, why[512] = "no memory";
	int rc = file_read(say_to->who, path, &text);

	if (rc)
		return rc;
	rc = lnet_rules_parse(text, &conf, why, sizeof(why));
	free(text);
	if (rc == -ENOENT)
		return 0;
	if (!rc)
		rc = ulrpc_rules_new(conf, &rules, why, sizeof(why));
	if (rc)
		say(say_to, LNET_LOG_ERR, "%s: %s", path, why);
	else
		rc = ulrpc_use_rules(rpc, rules);
	ulrpc_rules_put(rules);
	free(conf);
	return rc;
}
