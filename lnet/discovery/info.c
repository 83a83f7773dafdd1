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
#define HERE_MAGIC    UINT32_C(0x686f7374)
/* bytes of the section for nodes of this host, without its entries */
#define HERE_SIZE 16
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

/* What is encoded. */
struct told {
	const struct lnet_config *c;
	/* NIDs on nets of one host are told to nodes of this host only */
	bool apart;
	/* number of entries of each kind; that of 0@lo is a small one */
	uint32_t nsmall, nlarge, nhere;
	const struct lnet_ni *primary; /* NULL: there is none */
	size_t usual;		       /* bytes of what all nodes are told */
	size_t whole;		       /* bytes in all */
};

/* Is @ni told to nodes of this host only? */
static bool is_for_here(const struct told *t, const struct lnet_ni *ni)
{
	return t->apart && ni->lnd.host;
}

static void told_count(struct told *t, const struct lnet_ni *ni)
{
	if (is_for_here(t, ni)) {
		t->nhere++;
		return;
	}
	if (lnet_nid_is_nid4(&ni->lnd.nid))
		t->nsmall++;
	else
		t->nlarge++;
	if (!t->primary && !lnet_nid_is_lo(&ni->lnd.nid))
		t->primary = ni;
}

/* A node that is on nets of one host only tells them to all: all that can ask
 * it are nodes of that host. */
static struct told told_of(const struct lnet_config *c)
{
	struct told t = { .c = c };
	size_t here;

	for (unsigned int i = 1; i < c->nnis; i++)
		t.apart |= !c->ni[i]->lnd.host;
	for (unsigned int i = 0; i < c->nnis; i++)
		told_count(&t, c->ni[i]);
	t.usual = PING_HEADER_SIZE + (size_t)t.nsmall * PING_ENTRY_SIZE +
		  (size_t)t.nlarge * PING_LARGE_SIZE;
	here = HERE_SIZE + (size_t)t.nhere * PING_ENTRY_SIZE;
	if (!t.nhere || t.usual + here > PING_USUAL_SIZE)
		t.nhere = 0;
	t.whole = t.usual + (t.nhere ? here : 0);
	return t;
}

static uint32_t info_features(const struct lnet *node, const struct told *t)
{
	uint32_t features = PING_FEATURES;

	if (!atomic_load_explicit(&node->routing, memory_order_relaxed))
		features |= LNET_PING_RTE_DISABLED;
	/* If this node only calls, peers need not know all of its NIDs. */
	if (settings_discovery(&node->settings) != LNET_DISCOVERY_OFF &&
	    !pid_only_calls(node->conf.pid))
		features |= LNET_PING_DISCOVERY;
	if (t->nlarge)
		features |= LNET_PING_LARGE_ADDR;
	if (t->primary && !lnet_nid_is_nid4(&t->primary->lnd.nid))
		features |= LNET_PING_PRIMARY_LARGE;
	return features;
}

static void write_small(struct writer *w, const struct lnet_ni *ni)
{
	write_u64(w, lnet_nid_to_nid4(&ni->lnd.nid));
	write_u32(w, ni_status(ni));
	write_u32(w, 0);
}

static void write_entries(struct writer *w, const struct told *t, bool large)
{
	for (unsigned int i = 1; i < t->c->nnis; i++) {
		const struct lnet_ni *ni = t->c->ni[i];

		if (is_for_here(t, ni) ||
		    lnet_nid_is_nid4(&ni->lnd.nid) == large)
			continue;
		if (large) {
			write_u32(w, ni_status(ni));
			write_bytes(w, &ni->lnd.nid, sizeof(ni->lnd.nid));
		} else {
			write_small(w, ni);
		}
	}
}

static void write_here(struct writer *w, const struct told *t)
{
	if (!t->nhere)
		return;
	write_u32(w, HERE_MAGIC);
	write_u32(w, t->nhere);
	write_u64(w, config_host(t->c));
	for (unsigned int i = 1; i < t->c->nnis; i++)
		if (is_for_here(t, t->c->ni[i]))
			write_small(w, t->c->ni[i]);
}

size_t ping_info_encode(const struct lnet *node, const struct lnet_config *c,
			void *buf, size_t size)
{
	/* Read first: what is encoded is at least as new as this number says.
	 */
	uint32_t version = atomic_load(&node->info_version);
	struct told t = told_of(c);
	struct writer w;

	if (t.whole > size)
		return t.whole;
	w = writer_of(buf, t.whole);
	write_u32(&w, PING_MAGIC);
	write_u32(&w, info_features(node, &t));
	write_u32(&w, node->conf.pid);
	write_u32(&w, t.nsmall);
	/* The status of the entry of 0@lo is the sequence number. */
	write_u64(&w, lnet_nid_to_nid4(&c->ni[0]->lnd.nid));
	write_u32(&w, version);
	write_u32(&w, t.nlarge ? (uint32_t)t.usual : 0);
	write_entries(&w, &t, false);
	write_entries(&w, &t, true);
	write_here(&w, &t);
	BUG_ON(w.bad);
	return t.whole;
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

/* Reads the number of entries of the section that @r begins with, if it is one
 * for nodes of @host. */
static uint32_t here_read_header(struct reader *r, bool swap, uint64_t host)
{
	uint32_t magic = read_u32(r, swap);
	uint32_t n = read_u32(r, swap);
	bool ours = read_u64(r, swap) == host;

	return !r->bad && magic == HERE_MAGIC && ours ? n : 0;
}

bool ping_info_add_here(const void *buf, size_t len, uint64_t host,
			struct ulnet_ping_info *info, struct ulnet_ping_ni *ni,
			unsigned int max)
{
	struct info_reader ir = {
		.r = reader_of(buf, len), .info = info, .ni = ni, .max = max
	};
	struct ulnet_ping_info usual = { 0 };
	struct info_reader header = { .r = ir.r, .info = &usual };
	size_t skip;
	uint32_t n;

	if (!host || info_read_header(&header))
		return false;
	skip = PING_HEADER_SIZE + (size_t)header.nsmall * PING_ENTRY_SIZE;
	if (usual.features & LNET_PING_LARGE_ADDR && header.msg_size > skip)
		skip = header.msg_size;
	if (!read_skip(&ir.r, skip))
		return false;
	n = here_read_header(&ir.r, header.swap, host);
	if (!n || n > (len - skip - HERE_SIZE) / PING_ENTRY_SIZE)
		return false;
	while (n--) {
		uint64_t nid4 = read_u64(&ir.r, header.swap);
		uint32_t status = read_u32(&ir.r, header.swap);

		read_u32(&ir.r, header.swap);
		if (add_entry(&ir, lnet_nid_from_nid4(nid4), status))
			break;
	}
	return true;
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
