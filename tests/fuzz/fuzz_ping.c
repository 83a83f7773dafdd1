/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Ping information of hostile peers. The first byte is the most entries to
 * read. What can be decoded, and could be a node's own, is encoded, and decodes
 * to the same.
 */
#include "lnet/discovery/info.h"

#include <errno.h>
#include <string.h>

#include "base/util.h"
#include "lnet/node/node.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define MAX_NIS 256

struct entries {
	unsigned int n;
	struct ulnet_ping_ni ni[MAX_NIS];
};

/* Could a node have this NID? */
static bool is_sane(const struct ulnet_nid *nid)
{
	return !lnet_nid_is_any(nid) && (nid->size == 0 || nid->size == 12);
}

/* The order in which entries are written: small NIDs first; but a large primary
 * NID is read back before them. */
static struct entries in_order(const struct entries *e)
{
	bool large_first = e->n && e->ni[0].nid.size;
	struct entries out = { 0 };

	if (large_first)
		out.ni[out.n++] = e->ni[0];
	for (unsigned int i = 0; i < e->n; i++)
		if (!e->ni[i].nid.size)
			out.ni[out.n++] = e->ni[i];
	for (unsigned int i = large_first; i < e->n; i++)
		if (e->ni[i].nid.size)
			out.ni[out.n++] = e->ni[i];
	return out;
}

static struct lnet_config *config_of(const struct entries *e,
				     struct lnet_ni *nis)
{
	struct lnet_config *c =
		calloc(1, sizeof(*c) + (e->n + 1) * sizeof(c->ni[0]));

	BUG_ON(!c);
	c->nnis = e->n + 1;
	for (unsigned int i = 0; i <= e->n; i++) {
		c->ni[i] = &nis[i];
		nis[i].lnd.nid = i ? e->ni[i - 1].nid : LNET_NID_LO;
		atomic_init(&nis[i].up, i ? e->ni[i - 1].up : true);
	}
	return c;
}

#define HOST 77 /* in the corpus */

static void encode_again(const struct entries *e,
			 const struct ulnet_ping_info *was)
{
	static struct lnet_ni nis[MAX_NIS + 1];
	static struct lnet node;
	struct lnet_config *c = config_of(e, nis);
	struct entries want = in_order(e), got;
	struct ulnet_ping_info info;
	size_t need, len;
	uint8_t *buf;

	node.conf.pid = was->pid;
	atomic_store(&node.info_version, was->sequence);
	len = ping_info_encode(&node, c, NULL, 0);
	buf = malloc(len);
	BUG_ON(!buf);
	BUG_ON(ping_info_encode(&node, c, buf, len) != len);
	BUG_ON(ping_info_decode(buf, len, &info, got.ni, MAX_NIS, &need) != 0);
	BUG_ON(info.nnis != want.n || info.pid != was->pid ||
	       info.sequence != was->sequence);
	for (unsigned int i = 0; i < want.n; i++) {
		BUG_ON(!lnet_nid_eq(&got.ni[i].nid, &want.ni[i].nid));
		BUG_ON(got.ni[i].up != want.ni[i].up);
	}
	free(buf);
	free(c);
}

/* What is told to nodes of one host is added behind the others. */
static void add_here(const uint8_t *bytes, size_t size,
		     struct ulnet_ping_info info, struct ulnet_ping_ni *ni,
		     unsigned int max)
{
	unsigned int n = info.nnis;
	bool here = ping_info_add_here(bytes, size, HOST, &info, ni, max);

	BUG_ON(info.nnis > max || info.nnis < n || (info.nnis > n && !here));
	for (unsigned int i = n; i < info.nnis; i++)
		BUG_ON(!is_sane(&ni[i].nid));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct entries got, sane = { 0 };
	struct ulnet_ping_info info;
	size_t need = 0;
	unsigned int max;
	struct ulnet_ping_ni *ni;
	uint8_t *copy;
	int rc;

	if (size == 0)
		return 0;
	max = data[0];
	data++;
	size--;
	copy = malloc(size + 1);
	ni = malloc(ping_info_room(size, max) * sizeof(*ni));
	BUG_ON(!copy || !ni);
	memcpy(copy, data, size);
	rc = ping_info_decode(copy, size, &info, ni, max, &need);
	BUG_ON(!rc && info.ni != ni);
	if (!rc)
		memcpy(got.ni, ni, info.nnis * sizeof(*ni));
	if (!rc)
		add_here(copy, size, info, ni, max);
	free(copy);
	free(ni);
	BUG_ON(rc != 0 && rc != -EPROTO && rc != -EMSGSIZE && rc != -E2BIG);
	if (rc == -EMSGSIZE)
		BUG_ON(need <= size || need > 32 + (size_t)max * 40);
	if (rc)
		return 0;
	BUG_ON(need > size || info.nnis > max);
	for (unsigned int i = 0; i < info.nnis; i++) {
		BUG_ON(got.ni[i].nid.size > 12 &&
		       !lnet_nid_is_any(&got.ni[i].nid));
		if (is_sane(&got.ni[i].nid))
			sane.ni[sane.n++] = got.ni[i];
	}
	encode_again(&sane, &info);
	return 0;
}
