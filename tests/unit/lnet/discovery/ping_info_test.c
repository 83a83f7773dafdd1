/* SPDX-License-Identifier: BSD-3-Clause */
/* Encoding and decoding of ping information. */
#include <criterion/criterion.h>
#include <endian.h>
#include <errno.h>
#include <string.h>

#include "lnet/node/node.h"
#include "tests/unit/lnet/discovery/ping_rig.h"

static struct golden decode_golden(const char *name)
{
	struct golden g = golden(name);

	cr_assert_eq(
		decode(golden_payload(&g), golden_payload_len(&g), MAX_NIS), 0,
		"%s", name);
	return g;
}

/* ---- decoding ---- */

Test(ping_info, golden_infos)
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

/* Converts ping information to that of a machine with the other byte order. */
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
	/* Of large entries only the status is swapped: a large NID has a fixed
	 * order. */
	for (size_t at = 16 + 16 * nsmall; at + 24 <= len; at += 24, p += 24) {
		uint32_t *w = (uint32_t *)(void *)p;

		*w = __builtin_bswap32(*w);
	}
}

Test(ping_info, other_byte_order)
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

/* Decodes "reply-two-nis" with the 32-bit word at @at replaced. */
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

Test(ping_info, invalid_infos)
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

Test(ping_info, cut_short)
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
		/* Bytes behind the information are ignored. */
		cr_assert_eq(decode(golden_payload(&g), full, 10), 0);
	}
}

/* ---- large entries, by hand ---- */

/* Writes an entry of a NID with @size address bytes beyond 4, all of them @tag.
 * Returns its length. */
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

Test(ping_info, small_and_large_entries)
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
	/* The low bits of the length mean nothing. */
	put32(b + 28, (uint32_t)len | 3);
	cr_assert_eq(decode(b, len, 4), 0);
	cr_assert_eq(info.nnis, 4);
	/* With this feature bit the first large NID is the primary one. */
	put32(b + 4, 0x7e);
	cr_assert_eq(decode(b, len, 4), 0);
	cr_assert_eq(nis[0].nid.addr[15], 0xfd);
	cr_assert(nid_is(&nis[1].nid, "10.0.0.1@tcp"));
	cr_assert(nid_is(&nis[2].nid, "10.0.0.2@tcp"));
	cr_assert_eq(nis[3].nid.addr[0], 0xfe);
	/* One entry more than allowed. */
	cr_assert_eq(decode(b, len, 3), -E2BIG);
	cr_assert_eq(decode(b, len, 1), -E2BIG);
	cr_assert_eq(decode(b, len, 0), -E2BIG);
}

Test(ping_info, primary_large_without_large_entries)
{
	uint8_t b[512];
	size_t len = put_head(b, 0x5e, 3);

	cr_assert_eq(decode(b, len, 4), 0);
	cr_assert_eq(info.nnis, 2);
	cr_assert(nid_is(&nis[0].nid, "10.0.0.1@tcp"));
}

/* NIDs that are longer than any known kind are skipped, and those after them
 * are not. */
Test(ping_info, entries_of_unknown_size)
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

/* Large NIDs that no node can have are skipped, too. */
Test(ping_info, entries_that_are_no_nid)
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

/* So are such small NIDs; and a primary NID among the large ones is still
 * found. */
Test(ping_info, small_entries_that_are_no_nid)
{
	static const uint64_t nids[] = { UINT64_MAX, 0, UINT64_C(9) << 48,
					 UINT64_C(9) << 48 | 1, 0x0a000009 };

	for (size_t i = 0; i < ARRAY_SIZE(nids); i++) {
		uint8_t b[512];
		size_t len = put_head(b, 0x3e, 3);

		memcpy(b + 32, &nids[i], sizeof(nids[i]));
		len += put_large(b + len, 0x15aac0de, 12, 0xfd);
		put32(b + 28, (uint32_t)len);
		cr_assert_eq(decode(b, len, 4), 0);
		cr_assert_eq(info.nnis, 2, "%#lx", (unsigned long)nids[i]);
		cr_assert(nid_is(&nis[0].nid, "10.0.0.2@tcp"));
		put32(b + 4, 0x7e);
		cr_assert_eq(decode(b, len, 4), 0);
		cr_assert_eq(nis[0].nid.addr[0], 0xfd);
		cr_assert(nid_is(&nis[1].nid, "10.0.0.2@tcp"));
	}
}

/* The length in an entry does not lead beyond the information. */
Test(ping_info, last_entry_is_cut)
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

Test(ping_info, size_below_the_small_entries)
{
	uint8_t b[512];
	size_t len = put_head(b, 0x3e, 3);

	put32(b + 28, 20);
	cr_assert_eq(decode(b, len, 4), 0);
	cr_assert_eq(info.nnis, 2);
	/* A length beyond all limits. */
	put32(b + 28, UINT32_MAX);
	cr_assert_eq(decode(b, len, 4), -E2BIG);
	put32(b + 28, 48 + 24 + 16);
	cr_assert_eq(decode(b, len, 4), -EMSGSIZE);
	cr_assert_eq(need, 88);
}

/* ---- encoding ---- */

static struct lnet_config *config_of(unsigned int n)
{
	struct lnet_config *c = calloc(1, sizeof(*c) + n * sizeof(c->ni[0]));

	c->net = calloc(1, sizeof(c->net[0]));
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
	free(c->net);
	free(c);
}

static struct lnet *node_of(uint32_t pid, uint32_t version)
{
	struct lnet *node = calloc(1, sizeof(*node));

	node->conf.pid = pid;
	atomic_init(&node->info_version, version);
	return node;
}

static void encodes_to(const struct lnet_config *c, uint32_t version,
		       const char *name)
{
	struct golden g = golden(name);
	size_t len = golden_payload_len(&g);
	struct lnet *node = node_of(12345, version);
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

Test(ping_info, encodes_as_real_nodes_do)
{
	struct lnet_config *c = config_of(3);

	c->ni[1]->lnd.nid = nid_of("10.77.0.42@tcp");
	c->ni[2]->lnd.nid = nid_of("10.77.1.42@tcp");
	encodes_to(c, 3, "reply-two-nis");
	config_free(c);
	c = config_of(4);
	c->ni[1]->lnd.nid = nid_of("10.77.0.41@tcp");
	c->ni[2]->lnd.nid = nid_of("10.77.1.41@tcp");
	c->ni[3]->lnd.nid = nid_of("10.77.2.41@tcp3");
	encodes_to(c, 6, "reply-three-nis");
	config_free(c);
	c = config_of(2);
	c->ni[1]->lnd.nid = nid_of("fd77::2@tcp");
	encodes_to(c, 2, "reply-large");
	config_free(c);
}

Test(ping_info, encode_and_back)
{
	struct lnet_config *c = config_of(5);
	struct lnet *node = node_of(77, 9);
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

/* ---- NIDs that are told to nodes of one host ---- */

#define HERE 77

/* Decodes, and adds the NIDs for nodes of @host. Returns whether the peer is
 * one. */
static bool decode_at(const void *bytes, size_t len, uint64_t host)
{
	uint8_t *copy = malloc(len);
	bool here;

	cr_assert_eq(decode(bytes, len, MAX_NIS), 0);
	memcpy(copy, bytes, len);
	here = ping_info_add_here(copy, len, host, &info, nis, MAX_NIS);
	free(copy);
	return here;
}

/* Puts the net of NI @i on this host only. */
static void put_here(struct lnet_config *c, unsigned int i)
{
	c->ni[i]->lnd.host = HERE;
	c->net[0].host = HERE;
	c->nnets = 1;
}

static struct lnet_config *config_here(const char *first, const char *second)
{
	struct lnet_config *c = config_of(4);

	c->ni[1]->lnd.nid = nid_of("7@shm");
	c->ni[2]->lnd.nid = nid_of(first);
	c->ni[3]->lnd.nid = nid_of(second);
	put_here(c, 1);
	return c;
}

/* Nodes that do not know the section read the others, with the first of them as
 * the primary NID, and the same length. */
Test(ping_info, of_one_host_apart)
{
	struct lnet_config *c = config_here("10.0.0.1@tcp", "10.0.0.2@tcp");
	struct lnet *node = node_of(12345, 9);
	uint8_t b[512];
	size_t len = ping_info_encode(node, c, b, sizeof(b));

	cr_assert_eq(len, 16 + 3 * 16 + 16 + 16);
	cr_assert_eq(ping_info_encode(node, c, NULL, 0), len);
	cr_assert_not(decode_at(b, len, 0));
	cr_assert_not(decode_at(b, len, HERE + 1));
	cr_assert_eq(need, 16 + 3 * 16);
	cr_assert_eq(info.nnis, 2);
	cr_assert(nid_is(&nis[0].nid, "10.0.0.1@tcp"));
	cr_assert(decode_at(b, len, HERE));
	cr_assert_eq(info.nnis, 3);
	cr_assert(nid_is(&nis[2].nid, "7@shm") && nis[2].up);
	config_free(c);
	free(node);
}

Test(ping_info, of_one_host_behind_large_ones)
{
	struct lnet_config *c = config_here("fd77::1@tcp", "10.0.0.2@tcp");
	struct lnet *node = node_of(12345, 9);
	uint8_t b[512];
	size_t len = ping_info_encode(node, c, b, sizeof(b));

	atomic_store(&c->ni[1]->up, false);
	len = ping_info_encode(node, c, b, sizeof(b));
	cr_assert_eq(len, 16 + 2 * 16 + 24 + 16 + 16);
	cr_assert(decode_at(b, len, HERE));
	cr_assert_eq(need, 16 + 2 * 16 + 24);
	cr_assert_eq(info.nnis, 3);
	cr_assert(nid_is(&nis[0].nid, "fd77::1@tcp"));
	cr_assert(nid_is(&nis[2].nid, "7@shm") && !nis[2].up);
	config_free(c);
	free(node);
}

/* A node that is on such nets only tells them as others do. */
Test(ping_info, of_one_host_only)
{
	struct lnet_config *c = config_of(2);
	struct lnet *node = node_of(12345, 9);
	uint8_t b[512];
	size_t len;

	c->ni[1]->lnd.nid = nid_of("7@shm");
	put_here(c, 1);
	len = ping_info_encode(node, c, b, sizeof(b));
	cr_assert_eq(len, 16 + 2 * 16);
	cr_assert_not(decode_at(b, len, HERE));
	cr_assert_eq(info.nnis, 1);
	config_free(c);
	free(node);
}

/* What would be cut off in the usual buffers, also at kernel nodes, is not
 * sent. */
Test(ping_info, of_one_host_with_many)
{
	struct lnet *node = node_of(12345, 9);
	uint8_t b[512];

	for (unsigned int n = 13; n < 16; n++) {
		struct lnet_config *c = config_of(n + 2);
		size_t len;

		for (unsigned int i = 1; i <= n; i++)
			c->ni[i]->lnd.nid = lnet_nid_make(
				lnet_nid_net(&(struct ulnet_nid){ 0 }) |
					2u << 16,
				i);
		c->ni[n + 1]->lnd.nid = nid_of("7@shm");
		put_here(c, n + 1);
		len = ping_info_encode(node, c, b, sizeof(b));
		cr_assert_leq(len, PING_USUAL_SIZE);
		cr_assert_eq(decode_at(b, len, HERE), n == 13, "%u", n);
		cr_assert_eq(info.nnis, n + (n == 13));
		config_free(c);
	}
	free(node);
}

/* Whatever follows the entries, what all nodes read is read. */
Test(ping_info, of_one_host_malformed)
{
	struct lnet_config *c = config_here("10.0.0.1@tcp", "10.0.0.2@tcp");
	struct lnet *node = node_of(12345, 9);
	const size_t usual = 16 + 3 * 16;
	uint8_t b[512], bad[512];
	size_t len = ping_info_encode(node, c, b, sizeof(b));

	for (size_t n = usual; n < len; n++)
		cr_assert_not(decode_at(b, n, HERE), "%zu", n);
	for (size_t at = usual; at < usual + 16; at++) {
		memcpy(bad, b, len);
		bad[at] ^= 0x80;
		cr_assert_not(decode_at(bad, len, HERE), "%zu", at);
		cr_assert_eq(info.nnis, 2);
	}
	/* more than there is room for */
	cr_assert(ping_info_add_here(b, len, HERE, &info, nis, 2));
	cr_assert_eq(info.nnis, 2);
	config_free(c);
	free(node);
}

/* A node without NIs encodes 0@lo only. */
Test(ping_info, encode_nothing_but_lo)
{
	struct lnet_config *c = config_of(1);
	struct lnet *node = node_of(12345, 1);
	uint8_t b[64];

	cr_assert_eq(ping_info_encode(node, c, b, sizeof(b)), 32);
	cr_assert_eq(decode(b, 32, 0), 0);
	cr_assert_eq(info.nnis, 0);
	config_free(c);
	free(node);
}
