/* SPDX-License-Identifier: BSD-3-Clause */
#include <criterion/criterion.h>
#include <endian.h>
#include <errno.h>
#include <string.h>
#include "cluster.h"
#include "golden.h"
#include "lnet/node.h"
#include "lnet/node.h"
#include "lnet/ping.h"

#define MAX_NIS 300

static struct ulnet_ping_ni nis[MAX_NIS];
static struct ulnet_ping_info info;
static size_t need;

static int decode(const void *bytes, size_t len, unsigned int max)
{
	/* A copy of its own, so that reading past its end is seen. */
	uint8_t *copy = malloc(len ? len : 1);
	int rc;

	memcpy(copy, bytes, len);
	rc = ping_info_decode(copy, len, &info, nis, max, &need);
	free(copy);
	return rc;
}

static struct golden decode_golden(const char *name)
{
	struct golden g = golden(name);

	cr_assert_eq(
		decode(golden_payload(&g), golden_payload_len(&g), MAX_NIS), 0,
		"%s", name);
	return g;
}

/* ---- decoding ---- */

Test(ping, golden_infos)
{
	static const struct {
		const char *name;
		uint32_t features, sequence;
		const char *nids[4];
		bool up;
	} cases[] = {
		{ "reply-ping", 0x1e, 2, { "10.77.0.2@tcp" }, true },
		{ "reply-discover", 0x1e, 2, { "10.77.0.2@tcp" }, true },
		{ "put-push", 0x1e, 2, { "10.77.0.3@tcp" }, true },
		{ "reply-two-nis",
		  0x1e,
		  3,
		  { "10.77.0.42@tcp", "10.77.1.42@tcp" },
		  true },
		{ "put-push-two-nis",
		  0x1e,
		  5,
		  { "10.77.0.41@tcp", "10.77.1.41@tcp" },
		  true },
		{ "put-push-down",
		  0x1a,
		  5,
		  { "10.77.0.41@tcp", "10.77.1.41@tcp" },
		  false },
		{ "reply-three-nis",
		  0x1e,
		  6,
		  { "10.77.0.41@tcp", "10.77.1.41@tcp", "10.77.2.41@tcp3" },
		  true },
		{ "reply-routed", 0x1e, 2, { "10.77.1.3@tcp2" }, true },
		{ "reply-large", 0x7e, 2, { "fd77::2@tcp" }, true },
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		const char *name = cases[i].name;
		unsigned int n;

		decode_golden(name);
		cr_assert_eq(info.features, cases[i].features, "%s: %#x", name,
			     info.features);
		cr_assert_eq(info.pid, 12345);
		cr_assert_eq(info.ni, nis);
		for (n = 0; n < 4 && cases[i].nids[n]; n++) {
			cr_assert(nid_is(&nis[n].nid, cases[i].nids[n]), "%s",
				  name);
			cr_assert_eq(nis[n].up, cases[i].up, "%s", name);
		}
		cr_assert_eq(info.nnis, n, "%s", name);
		cr_assert_eq(info.sequence, cases[i].sequence, "%s", name);
	}
}

/* The same information, from a machine of the other byte order. */
static void swap_info(uint8_t *p, size_t len, unsigned int nsmall)
{
	for (unsigned int i = 0; i < 4; i++) {
		uint32_t *w = (uint32_t *)(void *)(p + 4 * i);

		*w = __builtin_bswap32(*w);
	}
	p += 16;
	for (unsigned int i = 0; i < nsmall; i++, p += 16) {
		uint64_t *nid = (uint64_t *)(void *)p;
		uint32_t *w = (uint32_t *)(void *)(p + 8);

		*nid = __builtin_bswap64(*nid);
		w[0] = __builtin_bswap32(w[0]);
		w[1] = __builtin_bswap32(w[1]);
	}
	/* Large entries: the status; a large NID has its own order. */
	for (size_t at = 16 + 16 * nsmall; at + 24 <= len; at += 24, p += 24) {
		uint32_t *w = (uint32_t *)(void *)p;

		*w = __builtin_bswap32(*w);
	}
}

Test(ping, other_byte_order)
{
	static const struct {
		const char *name;
		unsigned int nsmall;
	} cases[] = { { "reply-two-nis", 3 }, { "reply-large", 1 } };

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct golden g = decode_golden(cases[i].name);
		struct ulnet_ping_ni want[2] = { nis[0], nis[1] };
		struct ulnet_ping_info was = info;
		_Alignas(8) uint8_t bytes[128];

		memcpy(bytes, golden_payload(&g), golden_payload_len(&g));
		swap_info(bytes, golden_payload_len(&g), cases[i].nsmall);
		cr_assert_eq(bytes[0], 0x70, "not swapped");
		memset(nis, 0, sizeof(nis));
		cr_assert_eq(decode(bytes, golden_payload_len(&g), MAX_NIS), 0);
		cr_assert_eq(info.features, was.features);
		cr_assert_eq(info.pid, was.pid);
		cr_assert_eq(info.sequence, was.sequence);
		cr_assert_eq(info.nnis, was.nnis);
		for (unsigned int n = 0; n < info.nnis; n++) {
			cr_assert(lnet_nid_eq(&nis[n].nid, &want[n].nid));
			cr_assert_eq(nis[n].up, want[n].up);
		}
	}
}

/* A 32-bit word of "reply-two-nis" is something else. */
static int decode_word(size_t at, uint32_t value)
{
	struct golden g = golden("reply-two-nis");
	uint8_t bytes[64];

	value = htole32(value);
	memcpy(bytes, golden_payload(&g), sizeof(bytes));
	memcpy(bytes + at, &value, sizeof(value));
	need = 0;
	return decode(bytes, sizeof(bytes), 10);
}

Test(ping, what_makes_no_sense)
{
	static const struct {
		const char *what;
		size_t at;
		uint32_t value;
		int rc;
	} cases[] = {
		{ "as it was", 0, 0x70696e67, 0 },
		{ "magic", 0, 0x70696e66, -EPROTO },
		{ "magic of the other order only", 0, 0x676e6970, -EPROTO },
		{ "all features", 4, 0xffffffff, 0 },
		{ "no NI_STATUS", 4, 0x1c, -EPROTO },
		{ "only NI_STATUS", 4, 0x02, 0 },
		{ "no entries", 12, 0, -EPROTO },
		{ "one entry", 12, 1, 0 },
		{ "more entries than bytes", 12, 4, -EMSGSIZE },
		{ "one more than may be", 12, 12, -E2BIG },
		{ "very many entries", 12, UINT32_MAX, -E2BIG },
		{ "half of the numbers", 12, 0x80000000, -E2BIG },
		{ "size wraps", 12, 0x10000001, -E2BIG },
		{ "first is not 0@lo", 20, 0x00080000, -EPROTO },
		{ "first is 1@lo", 16, 1, -EPROTO },
		{ "first is 0@lo1", 20, 0x00090001, -EPROTO },
		{ "size without LARGE_ADDR", 28, 5000, 0 },
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
		cr_assert_eq(decode_word(cases[i].at, cases[i].value),
			     cases[i].rc, "%s", cases[i].what);
}

Test(ping, cut_short)
{
	static const char *const names[] = { "reply-two-nis", "reply-large",
					     "reply-three-nis" };

	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		struct golden g = golden(names[i]);
		size_t full = golden_payload_len(&g);

		for (size_t len = 0; len < full; len++) {
			int want = len < 32 ? -EPROTO : -EMSGSIZE;

			need = 0;
			cr_assert_eq(decode(golden_payload(&g), len, 10), want,
				     "%s, %zu bytes", names[i], len);
			if (want == -EMSGSIZE)
				cr_assert_eq(need, full, "%s, %zu bytes",
					     names[i], len);
		}
		/* More than it says is not looked at. */
		cr_assert_eq(decode(golden_payload(&g), full, 10), 0);
	}
}

/* ---- large entries, by hand ---- */

static size_t put32(uint8_t *p, uint32_t v)
{
	memcpy(p, &v, sizeof(v));
	return sizeof(v);
}

/* Header and entry of 0@lo; small NIDs 10.0.0.1@tcp and on. */
static size_t put_head(uint8_t *p, uint32_t features, uint32_t nsmall)
{
	uint8_t *at = p;
	uint64_t lo = UINT64_C(9) << 48;

	at += put32(at, 0x70696e67);
	at += put32(at, features);
	at += put32(at, 12345);
	at += put32(at, nsmall);
	memcpy(at, &lo, sizeof(lo));
	at += 8;
	at += put32(at, 7);
	at += put32(at, 0);
	for (uint32_t i = 1; i < nsmall; i++) {
		uint64_t nid4 = UINT64_C(0x000200000a000000) + i;

		memcpy(at, &nid4, sizeof(nid4));
		at += 8;
		at += put32(at, 0x15aac0de);
		at += put32(at, 0);
	}
	return (size_t)(at - p);
}

/* An entry for a NID with @size address bytes beyond 4, all of them @tag. */
static size_t put_large(uint8_t *p, uint32_t status, unsigned int size,
			uint8_t tag)
{
	size_t bytes = (size_t)(4 + 4 + size + 3) / 4 * 4;

	put32(p, status);
	memset(p + 4, 0, bytes);
	p[4] = (uint8_t)size;
	p[5] = LNET_TYPE_SOCK;
	memset(p + 8, tag, 4 + size);
	return 4 + bytes;
}

Test(ping, small_and_large_entries)
{
	uint8_t b[512];
	size_t len = put_head(b, 0x3e, 3);

	len += put_large(b + len, 0x15aac0de, 12, 0xfd);
	len += put_large(b + len, 0xdeadface, 12, 0xfe);
	put32(b + 28, (uint32_t)len);
	cr_assert_eq(decode(b, len, 4), 0);
	cr_assert_eq(info.nnis, 4);
	cr_assert_eq(info.sequence, 7);
	cr_assert(nid_is(&nis[0].nid, "10.0.0.1@tcp"));
	cr_assert(nid_is(&nis[1].nid, "10.0.0.2@tcp"));
	cr_assert_eq(nis[2].nid.addr[15], 0xfd);
	cr_assert(nis[2].up);
	cr_assert_eq(nis[3].nid.addr[0], 0xfe);
	cr_assert_eq(nis[3].nid.size, 12);
	cr_assert(!nis[3].up);
	/* The low bits of the size say nothing. */
	put32(b + 28, (uint32_t)len | 3);
	cr_assert_eq(decode(b, len, 4), 0);
	cr_assert_eq(info.nnis, 4);
	/* The first large one is the primary NID. */
	put32(b + 4, 0x7e);
	cr_assert_eq(decode(b, len, 4), 0);
	cr_assert_eq(nis[0].nid.addr[15], 0xfd);
	cr_assert(nid_is(&nis[1].nid, "10.0.0.1@tcp"));
	cr_assert(nid_is(&nis[2].nid, "10.0.0.2@tcp"));
	cr_assert_eq(nis[3].nid.addr[0], 0xfe);
	/* One more than may be. */
	cr_assert_eq(decode(b, len, 3), -E2BIG);
	cr_assert_eq(decode(b, len, 1), -E2BIG);
	cr_assert_eq(decode(b, len, 0), -E2BIG);
}

Test(ping, primary_large_without_large_entries)
{
	uint8_t b[512];
	size_t len = put_head(b, 0x5e, 3);

	cr_assert_eq(decode(b, len, 4), 0);
	cr_assert_eq(info.nnis, 2);
	cr_assert(nid_is(&nis[0].nid, "10.0.0.1@tcp"));
}

/* NIDs longer than any we know are passed over, and what follows them is not.
 */
Test(ping, entries_of_unknown_size)
{
	uint8_t b[1024];
	size_t len = put_head(b, 0x3e, 1);

	len += put_large(b + len, 0x15aac0de, 16, 0xaa);
	len += put_large(b + len, 0x15aac0de, 12, 0xfd);
	len += put_large(b + len, 0x15aac0de, 13, 0xab);
	len += put_large(b + len, 0x15aac0de, 0, 0x0a);
	put32(b + 28, (uint32_t)len);
	cr_assert_eq(decode(b, len, 4), 0);
	cr_assert_eq(info.nnis, 2);
	cr_assert_eq(nis[0].nid.addr[0], 0xfd);
	cr_assert(nid_is(&nis[1].nid, "10.10.10.10@tcp"));
}

/* Nor are those that no node can have. */
Test(ping, entries_that_are_no_nid)
{
	uint8_t b[1024];
	size_t len = put_head(b, 0x3e, 1);

	len += put_large(b + len, 0x15aac0de, 1, 0xaa);
	len += put_large(b + len, 0x15aac0de, 7, 0xaa);
	len += put_large(b + len, 0x15aac0de, 11, 0xaa);
	len += put_large(b + len, 0x15aac0de, 12, 0xfd);
	put32(b + 28, (uint32_t)len);
	cr_assert_eq(decode(b, len, 4), 0);
	cr_assert_eq(info.nnis, 1);
	cr_assert_eq(nis[0].nid.addr[0], 0xfd);
}

/* What an entry says of its size does not lead out of the information. */
Test(ping, last_entry_is_cut)
{
	for (unsigned int missing = 1; missing < 24; missing++) {
		uint8_t b[512];
		size_t len = put_head(b, 0x3e, 1);

		len += put_large(b + len, 0x15aac0de, 12, 0xfd);
		len += put_large(b + len, 0x15aac0de, 12, 0xfe);
		len -= missing;
		put32(b + 28, (uint32_t)len);
		cr_assert_eq(decode(b, len, 4), 0, "%u missing", missing);
		cr_assert_eq(info.nnis, 1, "%u missing", missing);
	}
}

Test(ping, size_below_the_small_entries)
{
	uint8_t b[512];
	size_t len = put_head(b, 0x3e, 3);

	put32(b + 28, 20);
	cr_assert_eq(decode(b, len, 4), 0);
	cr_assert_eq(info.nnis, 2);
	/* Far more than there could be. */
	put32(b + 28, UINT32_MAX);
	cr_assert_eq(decode(b, len, 4), -E2BIG);
	put32(b + 28, 48 + 24 + 16);
	cr_assert_eq(decode(b, len, 4), -EMSGSIZE);
	cr_assert_eq(need, 88);
}

/* ---- encoding ---- */

static struct lnet_config *config_of(unsigned int n, uint32_t sequence)
{
	struct lnet_config *c = calloc(1, sizeof(*c) + n * sizeof(c->ni[0]));

	c->sequence = sequence;
	c->nnis = n;
	for (unsigned int i = 0; i < n; i++) {
		c->ni[i] = calloc(1, sizeof(*c->ni[i]));
		atomic_init(&c->ni[i]->up, true);
		c->ni[i]->lnd.nid = LNET_NID_LO;
	}
	return c;
}

static void config_free(struct lnet_config *c)
{
	for (unsigned int i = 0; i < c->nnis; i++)
		free(c->ni[i]);
	free(c);
}

static struct lnet *node_of_pid(uint32_t pid)
{
	struct lnet *node = calloc(1, sizeof(*node));

	node->conf.pid = pid;
	return node;
}

static void encodes_to(const struct lnet_config *c, const char *name)
{
	struct golden g = golden(name);
	size_t len = golden_payload_len(&g);
	struct lnet *node = node_of_pid(12345);
	uint8_t b[512];

	memset(b, 0xa5, sizeof(b));
	cr_assert_eq(ping_info_encode(node, c, NULL, 0), len);
	cr_assert_eq(ping_info_encode(node, c, b, len - 1), len);
	cr_assert_eq(b[0], 0xa5, "written although it does not fit");
	cr_assert_eq(ping_info_encode(node, c, b, sizeof(b)), len);
	cr_assert_eq(memcmp(b, golden_payload(&g), len), 0, "%s", name);
	cr_assert_eq(b[len], 0xa5);
	free(node);
}

Test(ping, encodes_as_real_nodes_do)
{
	struct lnet_config *c = config_of(3, 3);

	c->ni[1]->lnd.nid = nid_of("10.77.0.42@tcp");
	c->ni[2]->lnd.nid = nid_of("10.77.1.42@tcp");
	encodes_to(c, "reply-two-nis");
	config_free(c);
	c = config_of(4, 6);
	c->ni[1]->lnd.nid = nid_of("10.77.0.41@tcp");
	c->ni[2]->lnd.nid = nid_of("10.77.1.41@tcp");
	c->ni[3]->lnd.nid = nid_of("10.77.2.41@tcp3");
	encodes_to(c, "reply-three-nis");
	config_free(c);
	c = config_of(2, 2);
	c->ni[1]->lnd.nid = nid_of("fd77::2@tcp");
	encodes_to(c, "reply-large");
	config_free(c);
}

Test(ping, encode_and_back)
{
	struct lnet_config *c = config_of(5, 9);
	struct lnet *node = node_of_pid(77);
	uint8_t b[512];
	size_t len;

	c->ni[1]->lnd.nid = nid_of("10.0.0.1@tcp");
	c->ni[2]->lnd.nid = nid_of("fd77::1@tcp");
	c->ni[3]->lnd.nid = nid_of("7@kfi");
	c->ni[4]->lnd.nid = nid_of("fd77::2@tcp1");
	atomic_store(&c->ni[2]->up, false);
	atomic_store(&c->ni[3]->up, false);
	len = ping_info_encode(node, c, b, sizeof(b));
	cr_assert_eq(len, 16 + 3 * 16 + 2 * 24);
	cr_assert_eq(decode(b, len, 4), 0);
	cr_assert_eq(info.features, 0x3e);
	cr_assert_eq(info.pid, 77);
	cr_assert_eq(info.sequence, 9);
	cr_assert_eq(info.nnis, 4);
	cr_assert(nid_is(&nis[0].nid, "10.0.0.1@tcp"));
	cr_assert(nid_is(&nis[1].nid, "7@kfi"));
	cr_assert(nid_is(&nis[2].nid, "fd77::1@tcp"));
	cr_assert(nid_is(&nis[3].nid, "fd77::2@tcp1"));
	cr_assert(nis[0].up && !nis[1].up && !nis[2].up && nis[3].up);
	config_free(c);
	free(node);
}

/* A node without NIs has something to say, too. */
Test(ping, encode_nothing_but_lo)
{
	struct lnet_config *c = config_of(1, 1);
	struct lnet *node = node_of_pid(12345);
	uint8_t b[64];

	cr_assert_eq(ping_info_encode(node, c, b, sizeof(b)), 32);
	cr_assert_eq(decode(b, 32, 0), 0);
	cr_assert_eq(info.nnis, 0);
	config_free(c);
	free(node);
}

/* ---- a node answers ---- */

static struct lnet_sim *sim_of(const char *nids, const struct ulnet_conf *conf)
{
	struct lnet_sim *sim;

	cr_assert_eq(lnet_sim_new(1, 1, &sim), 0);
	cr_assert_eq(lnet_sim_node_add(sim, nids, conf, NULL, NULL), 0);
	return sim;
}

/* GETs portal 0 of @target into @sink, which is in one node. */
static void get_info(struct lnet *node, const char *target, void *sink,
		     size_t size, uint32_t offset, struct seen *s)
{
	struct ulnet_md umd = md_of(sink, size, 0, s);

	umd.threshold = 2;
	cr_assert_eq(LNetGet(LNET_NID_ANY, bind_md(node, &umd), id_of(target),
			     0, PING_MATCH_BITS, offset),
		     0);
}

static void answers_as(const char *nids, const char *golden_name,
		       const char *target, const char *asker)
{
	struct golden g = golden(golden_name);
	size_t len = golden_payload_len(&g);
	struct lnet_sim *sim = sim_of(nids, NULL);
	static struct seen s;
	uint8_t sink[3960];

	s.n = 0;
	cr_assert_eq(lnet_sim_node_add(sim, asker, NULL, NULL, NULL), 1);
	memset(sink, 0xa5, sizeof(sink));
	get_info(lnet_sim_node(sim, 1), target, sink, sizeof(sink), 0, &s);
	lnet_sim_run_all(sim);
	seen_types(&s, LNET_EVENT_SEND, LNET_EVENT_REPLY, 0);
	cr_assert_eq(s.ev[1].mlength, len);
	cr_assert_eq(s.ev[1].rlength, len);
	cr_assert_eq(memcmp(sink, golden_payload(&g), len), 0);
	cr_assert_eq(sink[len], 0xa5);
	cluster_end(sim);
}

/* Byte for byte what a real node with these NIs says. */
Test(ping, answer_is_golden)
{
	answers_as("10.77.0.42@tcp 10.77.1.42@tcp", "reply-two-nis",
		   "10.77.1.42@tcp", "10.77.0.41@tcp");
	answers_as("10.77.1.3@tcp2", "reply-routed", "10.77.1.3@tcp2",
		   "10.77.1.4@tcp2");
	answers_as("fd77::2@tcp", "reply-large", "fd77::2@tcp", "fd77::3@tcp");
}

Test(ping, offsets_and_small_sinks)
{
	static const struct {
		uint32_t offset, sink, want;
	} cases[] = {
		{ 0, 272, 48 },
		{ 0, 48, 48 },
		{ 0, 47, 47 },
		{ 0, 1, 1 },
		{ 0, 0, 0 },
		{ 16, 272, 32 },
		{ 16, 5, 5 },
		{ 47, 272, 1 },
		{ 48, 272, 0 },
		{ 49, 272, 0 },
		{ UINT32_MAX, 272, 0 },
	};
	struct lnet_sim *sim = cluster(2);
	static uint8_t whole[272];
	static struct seen s;

	get_info(lnet_sim_node(sim, 0), "10.0.0.2@tcp", whole, sizeof(whole), 0,
		 &s);
	lnet_sim_run_all(sim);
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		uint8_t sink[272] = { 0 };

		s.n = 0;
		get_info(lnet_sim_node(sim, 0), "10.0.0.2@tcp", sink,
			 cases[i].sink, cases[i].offset, &s);
		lnet_sim_run_all(sim);
		seen_end(&s, LNET_EVENT_REPLY, 0, LNET_OUTCOME_DELIVERED,
			 LNET_CAUSE_OK);
		cr_assert_eq(s.ev[1].mlength, cases[i].want, "offset %u",
			     cases[i].offset);
		if (cases[i].want)
			cr_assert_eq(memcmp(sink, whole + cases[i].offset,
					    cases[i].want),
				     0, "offset %u", cases[i].offset);
	}
	cluster_end(sim);
}

/* Other bits of portal 0 are nobody's. */
Test(ping, other_bits)
{
	struct lnet_sim *sim = cluster(2);
	struct lnet *node = lnet_sim_node(sim, 0);
	struct ulnet_md umd;
	static struct seen s;
	uint8_t sink[64];

	umd = md_of(sink, sizeof(sink), 0, &s);
	umd.timeout = 1000000;
	umd.threshold = 2;
	cr_assert_eq(LNetGet(LNET_NID_ANY, bind_md(node, &umd), nth_id(1), 0,
			     PING_MATCH_BITS + 1, 0),
		     0);
	lnet_sim_run_all(sim);
	seen_end(&s, LNET_EVENT_UNLINK, -ETIMEDOUT, LNET_OUTCOME_UNKNOWN,
		 LNET_CAUSE_RESPONSE_TIMEOUT);
	cr_assert_eq(counter(lnet_sim_node(sim, 1), "drop_no_match"), 1);
	cluster_end(sim);
}

/* What the target says follows what it has. */
Test(ping, follows_the_configuration)
{
	struct lnet_sim *sim = cluster(2);
	struct lnet *node = lnet_sim_node(sim, 1);
	struct ulnet_ni_conf conf = { .nid = nid_of("10.1.0.2@tcp1") };
	struct ulnet_nid nid = nid_of("10.0.0.2@tcp");
	static struct seen s;
	uint8_t sink[272];

	cr_assert_eq(lnet_ni_add(node, &conf), 0);
	get_info(lnet_sim_node(sim, 0), "10.0.0.2@tcp", sink, sizeof(sink), 0,
		 &s);
	lnet_sim_run_all(sim);
	cr_assert_eq(decode(sink, s.ev[1].mlength, 10), 0);
	cr_assert_eq(info.sequence, 3);
	cr_assert_eq(info.nnis, 2);
	cr_assert(nid_is(&nis[1].nid, "10.1.0.2@tcp1"));
	cr_assert(nis[1].up);

	cr_assert_eq(lnet_sim_ni_set(sim, &conf.nid, false), 0);
	lnet_sim_run_all(sim);
	get_info(lnet_sim_node(sim, 0), "10.0.0.2@tcp", sink, sizeof(sink), 0,
		 &s);
	lnet_sim_run_all(sim);
	cr_assert_eq(decode(sink, s.ev[3].mlength, 10), 0);
	cr_assert(nis[0].up);
	cr_assert(!nis[1].up);

	cr_assert_eq(lnet_ni_del(node, &conf.nid), 0);
	get_info(lnet_sim_node(sim, 0), "10.0.0.2@tcp", sink, sizeof(sink), 0,
		 &s);
	lnet_sim_run_all(sim);
	cr_assert_eq(decode(sink, s.ev[5].mlength, 10), 0);
	cr_assert_eq(info.sequence, 4);
	cr_assert_eq(info.nnis, 1);
	cr_assert(lnet_nid_eq(&nis[0].nid, &nid));
	cluster_end(sim);
}

/* ---- pushes ---- */

static void push(struct lnet *node, struct ulnet_id target, const void *bytes,
		 size_t len, struct seen *s)
{
	struct ulnet_md umd = md_of((void *)bytes, len, 0, s);

	umd.threshold = 2;
	cr_assert_eq(LNetPut(LNET_NID_ANY, bind_md(node, &umd), LNET_ACK_REQ,
			     target, 0, PING_MATCH_BITS, 0, 0),
		     0);
}

Test(ping, push_is_acknowledged)
{
	struct golden g = golden("put-push-two-nis");
	struct lnet_sim *sim = cluster(2);
	struct lnet *node = lnet_sim_node(sim, 0);
	struct lnet *target = lnet_sim_node(sim, 1);
	static struct seen s;

	push(node, nth_id(1), golden_payload(&g), 64, &s);
	lnet_sim_run_all(sim);
	seen_types(&s, LNET_EVENT_SEND, LNET_EVENT_ACK, 0);
	cr_assert_eq(s.ev[1].mlength, 64);
	cr_assert_eq(counter(target, "pushes"), 1);
	/* Nonsense is acknowledged as well: it was received. */
	s.n = 0;
	push(node, nth_id(1), "nonsense", 8, &s);
	lnet_sim_run_all(sim);
	seen_types(&s, LNET_EVENT_SEND, LNET_EVENT_ACK, 0);
	cr_assert_eq(s.ev[1].mlength, 8);
	cr_assert_eq(counter(target, "pushes"), 1);
	cr_assert_eq(counter(target, "pushes_bad"), 1);
	cluster_end(sim);
}

/* While one push comes in there is no buffer: the others wait, and all come to
 * be, in their order. */
Test(ping, pushes_wait_for_the_buffer)
{
	struct golden g = golden("put-push");
	const struct ulnet_sim_link slow = { .bandwidth = 1000 };
	struct lnet_sim *sim = cluster(4);
	struct lnet *target = lnet_sim_node(sim, 0);
	static struct seen s;
	unsigned int acks = 0;

	for (unsigned int i = 1; i < 4; i++)
		link_set(sim, i, 0, &slow);
	for (unsigned int i = 1; i < 4; i++)
		push(lnet_sim_node(sim, i), nth_id(0), golden_payload(&g), 48,
		     &s);
	lnet_sim_run_all(sim);
	cr_assert_eq(s.n, 6);
	for (unsigned int i = 0; i < 6; i++) {
		if (s.ev[i].type != LNET_EVENT_ACK)
			continue;
		cr_assert_eq(s.ev[i].mlength, 48);
		/* 48 ms of storing each, one behind the other. */
		cr_assert_geq(s.ev[i].elapsed, ++acks * 48000);
	}
	cr_assert_eq(acks, 3);
	cr_assert_eq(counter(target, "pushes"), 3);
	cr_assert_eq(counter(target, "drop_count"), 0);
	cluster_end(sim);
}

/* The first node from @from on that belongs to @cpt of node 0. */
static unsigned int node_of_cpt(struct lnet_sim *sim, unsigned int from,
				unsigned int cpt)
{
	struct ulnet_id id = nth_id(from);

	while (node_cpt_of(lnet_sim_node(sim, 0), &id.nid) != cpt)
		id = nth_id(++from);
	return from;
}

/*
 * Each of two CPTs is storing a push, one of them for long. A third push, which
 * belongs to the CPT that is long about it, gets the target of the other one as
 * soon as that is free: @ns after the third push has come, which is before, at
 * the same moment, or after.
 */
static void push_and_two_cpts(int64_t ns)
{
	const struct ulnet_sim_link slow = { .bandwidth = 12 };
	const struct ulnet_sim_link fast = { .bandwidth = 1200 };
	struct golden g = golden("put-push");
	struct lnet_sim *sim = cluster_with(30, 2, NULL);
	unsigned int a = node_of_cpt(sim, 1, 0);
	unsigned int b = node_of_cpt(sim, 1, 1);
	unsigned int c = node_of_cpt(sim, a + 1, 0);
	static struct seen sa, sb, sc;
	/* 48 bytes are stored. */
	const struct ulnet_sim_link late = { .latency = (uint64_t)(40 * MSEC +
								   ns) };

	sa.n = sb.n = sc.n = 0;
	link_set(sim, a, 0, &slow);
	link_set(sim, b, 0, &fast);
	link_set(sim, c, 0, &late);
	push(lnet_sim_node(sim, a), nth_id(0), golden_payload(&g), 48, &sa);
	lnet_sim_run(sim, MSEC);
	push(lnet_sim_node(sim, b), nth_id(0), golden_payload(&g), 48, &sb);
	push(lnet_sim_node(sim, c), nth_id(0), golden_payload(&g), 48, &sc);
	lnet_sim_run(sim, 41 * MSEC);
	cr_assert_eq(sa.n, 0);
	cr_assert_eq(seen_last(&sb), LNET_EVENT_ACK);
	cr_assert_eq(seen_last(&sc), LNET_EVENT_ACK, "it waits (%ld ns)",
		     (long)ns);
	cluster_end(sim);
}

Test(ping, push_takes_the_target_of_another_cpt)
{
	push_and_two_cpts(-20 * (int64_t)MSEC);
	for (int64_t ns = -4; ns <= 4; ns++)
		push_and_two_cpts(ns);
}

/* What did not fit this time will the next time; within limits. */
Test(ping, big_push_enlarges_the_target)
{
	struct lnet_sim *sim = cluster(2);
	struct lnet *node = lnet_sim_node(sim, 0);
	static uint8_t big[100000];
	static struct seen s;
	size_t len = put_head(big, 0x1e, 40);

	push(node, nth_id(1), big, len, &s);
	lnet_sim_run_all(sim);
	cr_assert_eq(s.ev[1].mlength, 272);
	push(node, nth_id(1), big, len, &s);
	lnet_sim_run_all(sim);
	cr_assert_eq(s.ev[3].mlength, len);
	cr_assert_eq(counter(lnet_sim_node(sim, 1), "pushes"), 2);
	/* It does not shrink again. */
	push(node, nth_id(1), big, 100, &s);
	push(node, nth_id(1), big, len, &s);
	lnet_sim_run_all(sim);
	cr_assert_eq(s.n, 8);
	cr_assert_eq(s.ev[7].mlength, len);
	/* No stranger can make it as large as he likes. */
	for (unsigned int i = 0; i < 2; i++) {
		push(node, nth_id(1), big, sizeof(big), &s);
		lnet_sim_run_all(sim);
	}
	cr_assert_leq(s.ev[s.n - 1].mlength, 16 + 201 * 24);
	cr_assert_gt(s.ev[s.n - 1].mlength, len);
	cluster_end(sim);
}

/* The node goes while a push comes in: its entry is gone already. */
Test(ping, push_while_closing)
{
	struct golden g = golden("put-push");
	const struct ulnet_sim_link slow = { .bandwidth = 1000 };

	for (unsigned int cpts = 1; cpts <= 4; cpts++) {
		struct lnet_sim *sim = cluster_with(5, cpts, NULL);
		static struct seen s;

		s.n = 0;
		cluster_links(sim, &slow);
		for (unsigned int i = 1; i < 5; i++)
			push(lnet_sim_node(sim, i), nth_id(0),
			     golden_payload(&g), 48, &s);
		lnet_sim_run(sim, 20 * MSEC);
		cr_assert_eq(counter(lnet_sim_node(sim, 0), "pushes"), 0);
		cr_assert_gt(counter(lnet_sim_node(sim, 0), "recv_count"), 0);
		cr_assert_eq(lnet_sim_crash(sim, 0), 0);
		cluster_end(sim);
	}
}

/* ---- lnet_ping() ---- */

struct pong {
	unsigned int calls;
	int status;
	struct ulnet_ping_info info;
	struct ulnet_ping_ni ni[MAX_NIS];
	struct lnet_sim *sim;
	uint64_t at;
};

static void ponged(void *arg, int status, const struct ulnet_ping_info *got)
{
	struct pong *p = arg;

	p->calls++;
	p->status = status;
	p->at = lnet_sim_now(p->sim);
	cr_assert_eq(got == NULL, status != 0);
	if (!got)
		return;
	p->info = *got;
	cr_assert_leq(got->nnis, MAX_NIS);
	if (got->nnis)
		memcpy(p->ni, got->ni, got->nnis * sizeof(p->ni[0]));
}

static struct pong pong;

static void ping(struct lnet_sim *sim, unsigned int from,
		 struct ulnet_id target, uint64_t timeout)
{
	pong = (struct pong){ .sim = sim };
	cr_assert_eq(lnet_ping(lnet_sim_node(sim, from), target, timeout,
			       ponged, &pong),
		     0);
	cr_assert_eq(pong.calls, 0, "called back before it returned");
	lnet_sim_run_all(sim);
	cr_assert_eq(pong.calls, 1);
}

Test(ping, other_node)
{
	struct lnet_sim *sim = cluster(2);

	ping(sim, 0, nth_id(1), 0);
	cr_assert_eq(pong.status, 0);
	cr_assert_eq(pong.info.features, 0x1e);
	cr_assert_eq(pong.info.pid, 12345);
	cr_assert_eq(pong.info.sequence, 2);
	cr_assert_eq(pong.info.nnis, 1);
	cr_assert(nid_is(&pong.ni[0].nid, "10.0.0.2@tcp"));
	cr_assert(pong.ni[0].up);
	cluster_end(sim);
}

Test(ping, itself)
{
	struct lnet_sim *sim = cluster(1);
	struct ulnet_id any = nth_id(0);

	ping(sim, 0, id_of("0@lo"), 0);
	cr_assert_eq(pong.status, 0);
	cr_assert(nid_is(&pong.ni[0].nid, "10.0.0.1@tcp"));
	any.pid = LNET_PID_ANY;
	ping(sim, 0, any, 0);
	cr_assert_eq(pong.status, 0);
	cr_assert_eq(pong.info.nnis, 1);
	cluster_end(sim);
}

Test(ping, bad_arguments)
{
	struct lnet_sim *sim = cluster(1);
	struct lnet *node = lnet_sim_node(sim, 0);

	cr_assert_eq(lnet_ping(node, nth_id(0), 0, NULL, NULL), -EINVAL);
	cr_assert_eq(lnet_ping(node, ANY_ID, 0, ponged, NULL), -EINVAL);
	cluster_end(sim);
}

Test(ping, nobody_there)
{
	struct lnet_sim *sim = cluster(1);

	ping(sim, 0, nth_id(7), 0);
	cr_assert_eq(pong.status, -EHOSTUNREACH);
	ping(sim, 0, id_of("10.0.0.9@tcp9"), 0);
	cr_assert_eq(pong.status, -EHOSTUNREACH);
	cluster_end(sim);
}

Test(ping, timeout)
{
	const struct ulnet_sim_link lossy = { .loss = LNET_SIM_ALWAYS };
	struct lnet_sim *sim = cluster(2);
	uint64_t began;

	link_set(sim, 1, 0, &lossy);
	ping(sim, 0, nth_id(1), 1500000);
	cr_assert_eq(pong.status, -ETIMEDOUT);
	cr_assert_geq(pong.at, 1500 * MSEC);
	cr_assert_leq(pong.at, 1600 * MSEC);
	/* The node's own, when none is said. */
	began = lnet_sim_now(sim);
	ping(sim, 0, nth_id(1), 0);
	cr_assert_eq(pong.status, -ETIMEDOUT);
	cr_assert_geq(pong.at - began, 50000 * MSEC);
	cluster_end(sim);
}

static struct lnet_sim *many_nis(unsigned int n, uint32_t max)
{
	static char nids[MAX_NIS * 20];
	struct lnet_sim *sim;
	struct ulnet_conf conf;
	size_t len = 0;

	for (unsigned int i = 0; i < n; i++)
		len += (size_t)snprintf(nids + len, sizeof(nids) - len,
					"10.1.%u.%u@tcp ", i / 200, i % 200);
	lnet_conf_init(&conf);
	conf.interfaces_max = 300;
	sim = sim_of(nids, &conf);
	conf.interfaces_max = max;
	cr_assert_eq(lnet_sim_node_add(sim, "10.0.0.2@tcp", &conf, NULL, NULL),
		     1);
	return sim;
}

/* More than a first sink holds: it asks again. */
Test(ping, more_than_the_first_sink)
{
	struct lnet_sim *sim = many_nis(260, 300);

	ping(sim, 1, id_of("10.1.1.7@tcp"), 0);
	cr_assert_eq(pong.status, 0);
	cr_assert_eq(pong.info.nnis, 260);
	cr_assert(nid_is(&pong.ni[0].nid, "10.1.0.0@tcp"));
	cr_assert(nid_is(&pong.ni[259].nid, "10.1.1.59@tcp"));
	cr_assert_eq(counter(lnet_sim_node(sim, 1), "recv_count"), 2);
	cluster_end(sim);
}

Test(ping, more_than_we_want)
{
	struct lnet_sim *sim = many_nis(20, 19);

	ping(sim, 1, id_of("10.1.0.0@tcp"), 0);
	cr_assert_eq(pong.status, -E2BIG);
	cluster_end(sim);
	sim = many_nis(20, 20);
	ping(sim, 1, id_of("10.1.0.0@tcp"), 0);
	cr_assert_eq(pong.status, 0);
	cluster_end(sim);
}

/* The node that asks goes away: it is told, once; a crashed one is not. */
Test(ping, while_closing)
{
	const struct ulnet_sim_link lossy = { .loss = LNET_SIM_ALWAYS };
	struct lnet_sim *sim = cluster(2);

	cluster_links(sim, &lossy);
	pong = (struct pong){ .sim = sim };
	cr_assert_eq(
		lnet_ping(lnet_sim_node(sim, 0), nth_id(1), 0, ponged, &pong),
		0);
	lnet_sim_run(sim, MSEC);
	cr_assert_eq(lnet_sim_crash(sim, 0), 0);
	cr_assert_eq(pong.calls, 0);
	cr_assert_eq(
		lnet_ping(lnet_sim_node(sim, 1), nth_id(0), 0, ponged, &pong),
		0);
	cr_assert_eq(lnet_sim_free(sim), 0);
	cr_assert_eq(pong.calls, 1);
	cr_assert_eq(pong.status, -ESHUTDOWN);
}
