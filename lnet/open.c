/* SPDX-License-Identifier: BSD-3-Clause */
/* lnet_open(3): opens a node with all LNDs, as users do. */
#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lnd/lnds.h"
#include "lnet/node/node.h"
#include "lnet/text/networks.h"
#include "lnet/text/spec.h"

const struct lnd *const open_lnds[] = {
	&lolnd,
	&socklnd,
	&o2iblnd,
	&shmlnd,
	NULL,
};

/* An item of conf.nids: a NID, or networks. */
struct nids_item {
	const struct ulnet_conf *conf;
	struct lnet *node;
	const char *text;
};

#define refuse(item, rc, fmt, ...)                                \
	node_conf_refuse((item)->conf, rc, "nids: '%.64s': " fmt, \
			 (item)->text, __VA_ARGS__)

/* Says why the NI of @ni, which is for the item, was not added. @why: what the
 * LND says, or NULL. */
static int item_not_added(const struct nids_item *item,
			  const struct ulnet_ni_conf *ni, const char *why,
			  int rc)
{
	const struct ulnet_nid none = lnet_nid_make(lnet_nid_net(&ni->nid), 0);
	char net[LNET_NIDSTR_SIZE];

	lnet_net_format(lnet_nid_net(&ni->nid), net, sizeof(net));
	if (why)
		return refuse(item, rc, "%s: %s", why, strerror(-rc));
	if (lnet_nid_is_lo(&ni->nid))
		return refuse(item, rc, "%s", "every node has 0@lo");
	if (!ni->interface &&
	    !memcmp(ni->nid.addr, none.addr, sizeof(none.addr)))
		return refuse(item, rc,
			      "no interface has that address; '%s' alone "
			      "stands for the first one that works",
			      net);
	if ((rc == -EACCES || rc == -EPERM) &&
	    item->conf->port < PRIVILEGED_PORTS)
		return refuse(item, rc,
			      "port %u is below 1024, which takes root or "
			      "CAP_NET_BIND_SERVICE",
			      item->conf->port);
	switch (rc) {
	case -EEXIST:
		return refuse(item, rc, "%s", "it comes twice");
	case -ENODEV:
		return refuse(item, rc, "%s: no such interface",
			      ni->interface ? ni->interface : net);
	case -EADDRNOTAVAIL:
		return refuse(item, rc, "%s",
			      ni->interface ? "no address that could be used"
					    : "no interface has that address");
	case -EADDRINUSE:
		return refuse(item, rc, "something listens on port %u already",
			      item->conf->port);
	case -EPROTONOSUPPORT:
		return refuse(item, rc, "nothing here serves net %s", net);
	}
	return refuse(item, rc, "%s", strerror(-rc));
}

static int item_add(const struct nids_item *item,
		    const struct ulnet_ni_conf *conf)
{
	struct ulnet_ni_conf ni = *conf;
	const char *why = NULL;
	int rc;

	ni.why_p = &why;
	rc = lnet_ni_add(item->node, &ni);
	return rc ? item_not_added(item, &ni, why, rc) : 0;
}

/* Refuses an item with an '@', at @at, that is no NID. */
static int item_is_no_nid(const struct nids_item *item, const char *at)
{
	uint32_t net;

	if (!at[1])
		return refuse(item, -EINVAL, "%s", "a net is expected");
	if (lnet_net_parse(at + 1, &net))
		return refuse(item, -EINVAL, "no such net: %.64s", at + 1);
	if (isalpha((unsigned char)*item->text) &&
	    !memchr(item->text, ':', (size_t)(at - item->text)))
		return refuse(item, -EINVAL,
			      "not an address; an interface goes by its name "
			      "so: '%s(%.*s)'",
			      at + 1, (int)MIN(at - item->text, 64),
			      item->text);
	return refuse(item, -EINVAL, "%s", "not the NID of one interface");
}

static int item_add_networks(const struct nids_item *item)
{
	struct ulnet_text_error err = { 0, "" };
	struct ulnet_ni_conf *confs;
	unsigned int n;
	int rc = lnet_networks_parse(item->text, &confs, &n, &err);

	if (rc)
		return refuse(item, rc, "%s",
			      *err.what ? err.what : strerror(-rc));
	for (unsigned int i = 0; !rc && i < n; i++)
		rc = item_add(item, &confs[i]);
	free(confs);
	return rc;
}

/* The first '@' that is not in parentheses, or NULL. */
static const char *item_at(const char *text)
{
	const char *at = text + strcspn(text, "@(");

	return *at == '@' ? at : NULL;
}

static int item_take(const struct nids_item *item)
{
	struct ulnet_ni_conf ni = { 0 };
	const char *at;

	if (!lnet_nid_parse(item->text, &ni.nid))
		return item_add(item, &ni);
	at = item_at(item->text);
	return at ? item_is_no_nid(item, at) : item_add_networks(item);
}

/* Adds the NIs that conf.nids says. */
static int add_nids(struct lnet *node, const struct ulnet_conf *conf)
{
	const char *s = spec_blanks(conf->nids);
	const char *end = s + strlen(s);
	int rc = 0;

	while (*s && !rc) {
		const char *next = networks_end(s, end);
		char *text = strndup(s, (size_t)(next - s));
		struct nids_item item = { conf, node, text };

		rc = text ? item_take(&item) : -ENOMEM;
		free(text);
		s = spec_blanks(next);
	}
	return rc;
}

int lnet_open(const struct ulnet_conf *conf, struct lnet **node_p)
{
	struct node_params p = { .lnds = open_lnds,
				 .numa_dir = "/sys/devices/system/node" };
	struct lnet *node;
	int rc;

	if (conf)
		p.conf = *conf;
	rc = node_conf_fill(&p.conf);
	if (rc)
		return rc;
	rc = node_open(&p, &node);
	if (rc)
		return node_conf_refuse(&p.conf, rc, "%s", strerror(-rc));
	if (p.conf.nids)
		rc = add_nids(node, &p.conf);
	if (rc) {
		lnet_close(node);
		return rc;
	}
	*node_p = node;
	return 0;
}
