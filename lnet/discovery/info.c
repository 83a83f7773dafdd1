/* SPDX-License-Identifier: BSD-3-Clause */
#include "lnet/discovery/info.h"

#include <errno.h>

#include "base/buf.h"
#include "lnet/core/cpt.h"
#include "lnet/net/net.h"
#include "lnet/nid/nid.h"

#define PING_MAGIC    UINT32_C(0x70696e67)
#define PING_UP	      UINT32_C(0x15aac0de)
#define PING_DOWN     UINT32_C(0xdeadface)
#define PING_FEATURES (LNET_PING_NI_STATUS | LNET_PING_MULTI_RAIL)
/* bytes of the shortest entry: a status and a NID of 8 bytes */
#define SHORT_ENTRY_SIZE 12

/* ---- encoding ---- */

static uint32_t ni_status(const struct lnet_ni *ni)
{
	bool deaf = atomic_load_explicit(&ni->deaf, memory_order_relaxed);

	return ni_is_up(ni) && !deaf ? PING_UP : PING_DOWN;
}

static void write_u32(struct writer *w, uint32_t v)
{
	write_bytes(w, &v, sizeof(v));
}

static void write_u64(struct writer *w, uint64_t v)
{
	write_bytes(w, &v, sizeof(v));
}

static uint32_t count_large(const struct lnet_config *c)
{
	uint32_t n = 0;

	for (unsigned int i = 0; i < c->nnis; i++)
		n += !lnet_nid_is_nid4(&c->ni[i]->lnd.nid);
	return n;
}

static uint32_t info_features(const struct lnet *node,
			      const struct lnet_config *c, uint32_t nlarge)
{
	uint32_t features = PING_FEATURES;

	if (!atomic_load_explicit(&node->routing, memory_order_relaxed))
		features |= LNET_PING_RTE_DISABLED;
	/* If this node only calls, peers need not know all of its NIDs. */
	if (settings_discovery(&node->settings) != LNET_DISCOVERY_OFF &&
	    !pid_only_calls(node->conf.pid))
		features |= LNET_PING_DISCOVERY;
	if (nlarge)
		features |= LNET_PING_LARGE_ADDR;
	if (c->nnis > 1 && !lnet_nid_is_nid4(&c->ni[1]->lnd.nid))
		features |= LNET_PING_PRIMARY_LARGE;
	return features;
}

static void write_entries(struct writer *w, const struct lnet_config *c,
			  bool large)
{
	for (unsigned int i = 1; i < c->nnis; i++) {
		const struct lnet_ni *ni = c->ni[i];

		if (lnet_nid_is_nid4(&ni->lnd.nid) == large)
			continue;
		if (large) {
			write_u32(w, ni_status(ni));
			write_bytes(w, &ni->lnd.nid, sizeof(ni->lnd.nid));
		} else {
			write_u64(w, lnet_nid_to_nid4(&ni->lnd.nid));
			write_u32(w, ni_status(ni));
			write_u32(w, 0);
		}
	}
}

size_t ping_info_encode(const struct lnet *node, const struct lnet_config *c,
			void *buf, size_t size)
{
	/* Read first: what is encoded is at least as new as this number says.
	 */
	uint32_t version = atomic_load(&node->info_version);
	uint32_t nlarge = count_large(c);
	uint32_t nsmall = c->nnis - nlarge;
	size_t need = PING_HEADER_SIZE + (size_t)nsmall * PING_ENTRY_SIZE +
		      (size_t)nlarge * PING_LARGE_SIZE;
	struct writer w;

	if (need > size)
		return need;
	w = writer_of(buf, need);
	write_u32(&w, PING_MAGIC);
	write_u32(&w, info_features(node, c, nlarge));
	write_u32(&w, node->conf.pid);
	write_u32(&w, nsmall);
	/* The status of the entry of 0@lo is the sequence number. */
	write_u64(&w, lnet_nid_to_nid4(&c->ni[0]->lnd.nid));
	write_u32(&w, version);
	write_u32(&w, nlarge ? (uint32_t)need : 0);
	write_entries(&w, c, false);
	write_entries(&w, c, true);
	BUG_ON(w.bad);
	return need;
}

/* ---- decoding ---- */

struct info_reader {
	struct reader r;
	bool swap;
	uint32_t nsmall;
	uint32_t msg_size;
	struct ulnet_ping_info *info;
	struct ulnet_ping_ni *ni;
	unsigned int max;
};

/* Can @nid be the NID of a node? This is also checked for the sources of
 * messages (parse.c). */
static bool is_node_nid(const struct ulnet_nid *nid)
{
	return nid_is_sane(nid) && nid->type != 0 && !lnet_nid_is_any(nid) &&
	       !lnet_nid_is_lo(nid);
}

/* Adds an entry, unless @nid cannot be the NID of a node. */
static int add_entry(struct info_reader *ir, struct ulnet_nid nid,
		     uint32_t status)
{
	struct ulnet_ping_info *info = ir->info;

	if (!is_node_nid(&nid))
		return 0;
	if (info->nnis == ir->max)
		return -E2BIG;
	ir->ni[info->nnis].nid = nid;
	ir->ni[info->nnis].up = status == PING_UP;
	info->nnis++;
	return 0;
}

static int read_small(struct info_reader *ir)
{
	for (uint32_t i = 1; i < ir->nsmall; i++) {
		uint64_t nid4 = read_u64(&ir->r, ir->swap);
		uint32_t status = read_u32(&ir->r, ir->swap);
		int rc;

		read_u32(&ir->r, ir->swap);
		rc = add_entry(ir, lnet_nid_from_nid4(nid4), status);
		if (rc)
			return rc;
	}
	return 0;
}

/* Skips entries that are longer than all known kinds of NIDs, and ignores an
 * entry that is cut off. */
static int read_large(struct info_reader *ir, size_t bytes)
{
	while (bytes >= SHORT_ENTRY_SIZE) {
		uint32_t status = read_u32(&ir->r, ir->swap);
		const uint8_t *p = read_skip(&ir->r, 8);
		struct ulnet_nid nid = { 0 };
		size_t rest;
		int rc;

		if (!p)
			return -EPROTO;
		rest = (size_t)(p[0] + 3) / 4 * 4;
		if (bytes < SHORT_ENTRY_SIZE + rest)
			return 0;
		bytes -= SHORT_ENTRY_SIZE + rest;
		if (p[0] > 12) {
			read_skip(&ir->r, rest);
			continue;
		}
		memcpy(&nid, p, 8);
		read_bytes(&ir->r, nid.addr + 4, rest);
		rc = add_entry(ir, nid, status);
		if (rc)
			return rc;
	}
	return 0;
}

static int info_read_header(struct info_reader *ir)
{
	uint32_t magic = read_u32(&ir->r, false);
	uint64_t lo;

	ir->swap = magic == __builtin_bswap32(PING_MAGIC);
	if (magic != PING_MAGIC && !ir->swap)
		return -EPROTO;
	ir->info->features = read_u32(&ir->r, ir->swap);
	ir->info->pid = read_u32(&ir->r, ir->swap);
	ir->nsmall = read_u32(&ir->r, ir->swap);
	lo = read_u64(&ir->r, ir->swap);
	ir->info->sequence = read_u32(&ir->r, ir->swap);
	ir->msg_size = read_u32(&ir->r, ir->swap) & ~UINT32_C(3);
	if (ir->r.bad || !(ir->info->features & LNET_PING_NI_STATUS) ||
	    ir->nsmall < 1 || lo != UINT64_C(9) << 48)
		return -EPROTO;
	return 0;
}

/* If the primary NID is large, moves it to the front: it was read after the
 * small ones. */
static void primary_first(struct info_reader *ir, unsigned int nsmall)
{
	struct ulnet_ping_ni primary;

	if (!(ir->info->features & LNET_PING_PRIMARY_LARGE) ||
	    nsmall >= ir->info->nnis)
		return;
	primary = ir->ni[nsmall];
	memmove(ir->ni + 1, ir->ni, nsmall * sizeof(*ir->ni));
	ir->ni[0] = primary;
}

int ping_info_decode(const void *buf, size_t len, struct ulnet_ping_info *info,
		     struct ulnet_ping_ni *ni, unsigned int max, size_t *need_p)
{
	struct info_reader ir = {
		.r = reader_of(buf, len), .info = info, .ni = ni, .max = max
	};
	unsigned int nsmall;
	size_t small, need;
	int rc;

	*info = (struct ulnet_ping_info){ .ni = ni };
	rc = info_read_header(&ir);
	if (rc)
		return rc;
	if (ir.nsmall - 1 > max)
		return -E2BIG;
	small = PING_HEADER_SIZE + (size_t)ir.nsmall * PING_ENTRY_SIZE;
	need = small;
	if (info->features & LNET_PING_LARGE_ADDR && ir.msg_size > small)
		need = ir.msg_size;
	*need_p = need;
	if (need > small + (size_t)max * PING_LARGE_SIZE)
		return -E2BIG;
	if (len < need)
		return -EMSGSIZE;
	rc = read_small(&ir);
	nsmall = info->nnis;
	if (!rc)
		rc = read_large(&ir, need - small);
	if (rc)
		return rc;
	primary_first(&ir, nsmall);
	return 0;
}

unsigned int ping_info_room(size_t len, unsigned int max)
{
	return MAX(MIN(max, len / SHORT_ENTRY_SIZE), 1);
}

int ping_info_read(const void *buf, size_t len, struct ulnet_ping_info *info,
		   struct ulnet_ping_ni **ni_p, unsigned int max,
		   size_t *need_p)
{
	*ni_p = malloc(ping_info_room(len, max) * sizeof(**ni_p));
	return *ni_p ? ping_info_decode(buf, len, info, *ni_p, max, need_p)
		     : -ENOMEM;
}
