/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Names of peers. The node at the control socket takes NIDs; names are looked
 * up here, by a node without NIs, so that a name server that is silent holds
 * up nobody but this command.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "command.h"
#include "tools/common/target.h"

static int host_find(const char *text, struct ulnet_address *found, char *why)
{
	struct ulnet_conf conf;
	struct lnet *node;
	int rc;

	lnet_conf_init(&conf);
	conf.run = LNET_RUN_POLL;
	conf.accept = LNET_ACCEPT_NONE;
	rc = lnet_open(&conf, &node);
	if (rc) {
		snprintf(why, TARGET_WHY, "%s", strerror(-rc));
		return rc;
	}
	rc = target_lookup_first(node, text, found, why);
	lnet_close(node);
	return rc;
}

char *host_nid(const char *who, const char *text, uint16_t *port_p)
{
	char why[TARGET_WHY], nid_text[LNET_NIDSTR_SIZE];
	struct ulnet_address found;

	if (host_find(text, &found, why)) {
		fprintf(stderr, "%s: %s: %s\n", who, text, why);
		return NULL;
	}
	target_say(who, text, &found);
	*port_p = found.port;
	return strdup(lnet_nid_format(&found.nid, nid_text, sizeof(nid_text)));
}
