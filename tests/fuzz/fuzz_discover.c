/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Discovery among hostile strangers, on a whole node: the input is a script of
 * what the node's user sends, and of what strangers tell of themselves and of
 * others, asked or not. Whatever they tell:
 *	- a configured peer keeps its NIDs, and gets no other ones;
 *	- a NID that was in use as a peer of its own never joins another peer
 *	  without having told of itself;
 *	- what the node keeps is consistent, and nothing is left when the node
 *	  is closed.
 */
#include "tests/unit/lnet/injector.h"

#include "base/buf.h"
#include "base/log.h"
#include "lnet/discovery/info.h"
#include "lnet/peer/provenance.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define PEERS	   8
#define PORTAL	   5
#define ENTRIES	   16
#define CONFIGURED 6 /* first of the two peers[] that are one configured peer */
#define STEPS_MAX  400
#define MAGIC	   UINT32_C(0x70696e67)
#define UP	   UINT32_C(0x15aac0de)
#define DOWN	   UINT32_C(0xdeadface)

static const struct ulnet_nid own[] = {
	{ 0, LNET_TYPE_SOCK, { 0, 0 }, { 10, 77, 0, 1 } },
	{ 0, LNET_TYPE_SOCK, { 0, 1 }, { 10, 77, 1, 1 } },
};

static const struct ulnet_nid peers[PEERS] = {
	{ 0, LNET_TYPE_SOCK, { 0, 0 }, { 10, 77, 0, 2 } },
	{ 0, LNET_TYPE_SOCK, { 0, 1 }, { 10, 77, 1, 2 } },
	{ 0, LNET_TYPE_SOCK, { 0, 0 }, { 10, 77, 0, 3 } },
	{ 0, LNET_TYPE_SOCK, { 0, 1 }, { 10, 77, 1, 3 } },
	{ 0, LNET_TYPE_SOCK, { 0, 0 }, { 10, 77, 0, 4 } },
	{ 0, LNET_TYPE_SOCK, { 0, 1 }, { 10, 77, 1, 4 } },
	{ 0, LNET_TYPE_SOCK, { 0, 0 }, { 10, 77, 0, 5 } },
	{ 0, LNET_TYPE_SOCK, { 0, 1 }, { 10, 77, 1, 5 } },
};

struct fuzz {
	struct reader script;
	struct injector *in;
	/* for each of peers[]: known as a peer of its own, from messages to it
	 * or from it */
	bool in_use[PEERS];
	/* for each of peers[]: has announced itself, in a push or an answer */
	bool has_told[PEERS];
	unsigned int steps;
	uint32_t payload_length;
	uint8_t payload[PING_HEADER_SIZE + ENTRIES * PING_ENTRY_SIZE];
};

static uint8_t next_u8(struct fuzz *f)
{
	uint8_t b;

	read_bytes(&f->script, &b, 1);
	return b;
}

static unsigned int index_of(const struct ulnet_nid *nid)
{
	unsigned int i = 0;

	while (i < PEERS && !lnet_nid_eq(&peers[i], nid))
		i++;
	return i;
}

static unsigned int fuzz_ni(unsigned int peer)
{
	return peer % ARRAY_SIZE(own);
}

/* ---- what strangers tell ---- */

static void put_u32(struct fuzz *f, uint32_t v)
{
	memcpy(f->payload + f->payload_length, &v, sizeof(v));
	f->payload_length += (uint32_t)sizeof(v);
}

static void put_entry(struct fuzz *f, const struct ulnet_nid *nid,
		      uint32_t status)
{
	uint64_t nid4 = lnet_nid_to_nid4(nid);

	memcpy(f->payload + f->payload_length, &nid4, sizeof(nid4));
	f->payload_length += (uint32_t)sizeof(nid4);
	put_u32(f, status);
	put_u32(f, 0);
}

/* Makes ping information, mostly well-formed, whatever it says. */
static void next_info(struct fuzz *f)
{
	uint8_t shape = next_u8(f), named = next_u8(f), first = next_u8(f);
	unsigned int n = 0;

	f->payload_length = PING_HEADER_SIZE;
	put_entry(f, &peers[first % PEERS], first & 0x80 ? DOWN : UP);
	for (unsigned int i = 0; i < PEERS; i++)
		if (named & 1u << i && i != first % PEERS)
			put_entry(f, &peers[i], UP);
	if (shape & 0x10)
		put_entry(f, &own[shape & 1], UP);
	/* counts the entry of 0@lo, too */
	n = f->payload_length / PING_ENTRY_SIZE;
	f->payload_length = 0;
	put_u32(f, MAGIC);
	put_u32(f, (shape & 3) == 3 ? shape : 0x1e);
	put_u32(f, LNET_PID_LUSTRE);
	put_u32(f, shape & 0x20 ? n + next_u8(f) : n);
	put_entry(f, &LNET_NID_LO, next_u8(f));
	f->payload_length = n * PING_ENTRY_SIZE + PING_HEADER_SIZE;
	if (shape & 0x40)
		f->payload[next_u8(f) % f->payload_length] ^= next_u8(f);
	if (shape & 0x80)
		f->payload_length -= next_u8(f) % f->payload_length;
}

static void come(struct fuzz *f, struct lnet_hdr *hdr, unsigned int from,
		 bool told)
{
	uint8_t bytes[LNET_HDR_SIZE];
	uint8_t *payload = malloc(f->payload_length + 1);

	BUG_ON(!payload);
	memcpy(payload, f->payload, f->payload_length);
	hdr->src_nid = peers[from];
	hdr->dest_nid = own[fuzz_ni(from)];
	hdr->src_pid = hdr->dest_pid = LNET_PID_LUSTRE;
	hdr->payload_length = f->payload_length;
	hdr_encode(hdr, bytes, sizeof(bytes));
	f->has_told[from] |= told;
	inject(f->in, fuzz_ni(from), bytes, sizeof(bytes), &peers[from],
	       payload, f->payload_length);
	free(payload);
}

static void do_push(struct fuzz *f)
{
	unsigned int from = next_u8(f) % PEERS;
	struct lnet_hdr hdr = { .type = LNET_MSG_PUT,
				.wmd = LNET_WIRE_NONE,
				.portal = PING_PORTAL,
				.match_bits = PING_MATCH_BITS };

	next_info(f);
	come(f, &hdr, from, true);
}

static void do_word(struct fuzz *f)
{
	struct lnet_hdr hdr = { .type = LNET_MSG_PUT,
				.wmd = LNET_WIRE_NONE,
				.portal = PORTAL };

	f->payload_length = 0;
	come(f, &hdr, next_u8(f) % PEERS, false);
}

/* Answers one of the node's last messages, from the NID that it was sent to. */
static void do_answer(struct fuzz *f)
{
	unsigned int back = next_u8(f), from;
	struct lnet_hdr hdr = { .type = LNET_MSG_REPLY };
	const struct inject_sent *s;

	if (!f->in->nsent)
		return;
	back %= MIN(f->in->nsent, INJECT_SENT);
	s = &f->in->sent[(f->in->nsent - 1 - back) % INJECT_SENT];
	from = index_of(&s->to);
	if (from == PEERS)
		return;
	hdr.wmd = s->hdr.wmd;
	f->payload_length = 0;
	if (s->hdr.type == LNET_MSG_GET)
		next_info(f);
	else
		hdr.type = LNET_MSG_ACK;
	come(f, &hdr, from, s->hdr.type == LNET_MSG_GET);
}

/* ---- the user ---- */

static void do_put(struct fuzz *f)
{
	static char word[8];
	struct ulnet_md umd = { .start = word,
				.length = sizeof(word),
				.threshold = 2,
				.timeout = 20000000 };
	struct ulnet_id to = { peers[next_u8(f) % PEERS], LNET_PID_LUSTRE };
	struct ulnet_md_handle md;

	if (LNetMDBind(f->in->node, &umd, LNET_UNLINK, &md))
		return;
	if (LNetPut(LNET_NID_ANY, md, LNET_ACK_REQ, to, PORTAL, 0, 0, 0))
		LNetMDUnlink(md);
}

static void do_mode(struct fuzz *f)
{
	BUG_ON(lnet_setting_set(f->in->node, "discovery", next_u8(f) % 3));
}

/* ---- what must hold ---- */

static struct ulnet_nid primary_of(const struct fuzz *f, unsigned int i)
{
	struct ulnet_nid primary;

	BUG_ON(lnet_primary(f->in->node, &peers[i], &primary));
	return primary;
}

static void check_configured(const struct fuzz *f)
{
	for (unsigned int i = 0; i < PEERS; i++) {
		struct ulnet_nid primary = primary_of(f, i);

		BUG_ON(lnet_nid_eq(&primary, &peers[CONFIGURED]) !=
		       (i == CONFIGURED || i == CONFIGURED + 1));
	}
}

/* Is the NID known only because another NID of its peer has named it? */
static bool is_unverified(const struct ulnet_peer_info *info)
{
	return strcmp(info->word, peer_provenances[PEER_UNVERIFIED].name) ==
		       0 ||
	       strcmp(info->word, peer_provenances[PEER_QUESTIONED].name) == 0;
}

static void check_in_use(struct fuzz *f)
{
	for (unsigned int i = 0; i < CONFIGURED; i++) {
		struct ulnet_nid primary = primary_of(f, i);
		struct ulnet_peer_info info = { 0 };

		if (!lnet_nid_eq(&primary, &peers[i])) {
			BUG_ON(f->in_use[i] && !f->has_told[i]);
			continue;
		}
		if (!lnet_peer_info(f->in->node, &peers[i], &info) &&
		    (info.send_count || info.recv_count) &&
		    !is_unverified(&info))
			f->in_use[i] = true;
	}
}

static void step(struct fuzz *f)
{
	static void (*const acts[])(struct fuzz *) = {
		do_push,   do_push, do_answer, do_answer,
		do_answer, do_put,  do_put,    do_word,
	};
	uint8_t b = next_u8(f);

	if (b % 16 < ARRAY_SIZE(acts))
		acts[b % 16](f);
	else if (b % 16 == 8)
		do_mode(f);
	else
		inject_run(f->in, UINT64_C(1) << b / 16 * 2);
	inject_run(f->in, 1000);
	check_configured(f);
	check_in_use(f);
	inject_check(f->in);
}

static void begin(struct fuzz *f)
{
	struct ulnet_conf conf;

	lnet_conf_init(&conf);
	conf.cpts = 1 + next_u8(f) % 3;
	conf.discovery = LNET_DISCOVERY_ON;
	f->in = inject_open(&conf, own, ARRAY_SIZE(own));
	BUG_ON(lnet_setting_set(f->in->node, "recovery_limit", 10));
	BUG_ON(lnet_peer_add(f->in->node, &peers[CONFIGURED], 2, true));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fuzz *f = calloc(1, sizeof(*f));

	BUG_ON(!f);
	log_setup(LOG_ERR, NULL, NULL);
	f->script = reader_of(data, size);
	begin(f);
	while (reader_left(&f->script) && !f->script.bad &&
	       f->steps++ < STEPS_MAX)
		step(f);
	inject_close(f->in);
	free(f);
	return 0;
}
