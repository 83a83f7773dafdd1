/* SPDX-License-Identifier: BSD-3-Clause */
/* lnet_open(3): opens a node with all LNDs, as users do. */
#include <errno.h>
#include <string.h>

#include "lnd/lnds.h"
#include "lnet/node/node.h"

const struct lnd *const open_lnds[] = {
	&lolnd,
	&socklnd,
	&o2iblnd,
	NULL,
};

/* Adds an NI for each NID in @text. */
static int add_nids(struct lnet *node, const char *text)
{
	char *copy = strdup(text), *save = NULL;
	int rc = copy ? 0 : -ENOMEM;

	for (char *word = copy ? strtok_r(copy, " ", &save) : NULL; word && !rc;
	     word = strtok_r(NULL, " ", &save)) {
		struct ulnet_ni_conf ni = { 0 };

		rc = lnet_nid_parse(word, &ni.nid);
		if (!rc)
			rc = lnet_ni_add(node, &ni);
	}
	free(copy);
	return rc;
}

int lnet_open(const struct ulnet_conf *conf, struct lnet **node_p)
{
	struct node_params p = { .lnds = open_lnds };
	struct lnet *node;
	int rc;

	if (conf)
		p.conf = *conf;
	rc = node_conf_fill(&p.conf);
	if (!rc)
		rc = node_open(&p, &node);
	if (rc)
		return rc;
	if (p.conf.nids)
		rc = add_nids(node, p.conf.nids);
	if (rc) {
		lnet_close(node);
		return rc;
	}
	*node_p = node;
	return 0;
}
