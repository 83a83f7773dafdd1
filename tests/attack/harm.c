/* SPDX-License-Identifier: BSD-3-Clause */
/* What an attacker does, one thing after the other. */
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "rpc/wire/wire.h"
#include "secure/record.h"
#include "tests/attack/attacker.h"
#include "tests/slice.h"

#define TLS_HEAD 5

static size_t head_of(const struct frame *f)
{
	return frame_is_lnet(f)	      ? AT_PAYLOAD
	       : f->kind >= TLS_SHAKE ? TLS_HEAD
				      : 0;
}

/* Says how long the frame is, in its head. */
static void set_length(struct frame *f, size_t n)
{
	f->n = n;
	if (frame_is_lnet(f)) {
		store_le32(f->bytes + AT_LENGTH, (uint32_t)(n - AT_PAYLOAD));
	} else if (f->kind >= TLS_SHAKE) {
		f->bytes[3] = (uint8_t)((n - TLS_HEAD) >> 8);
		f->bytes[4] = (uint8_t)(n - TLS_HEAD);
	}
}

/* A frame that came before, of the same direction, and of those kinds. NULL:
 * there is none. */
static const struct frame *earlier(struct attacker *a, bool back,
				   unsigned int kinds)
{
	unsigned int at = attacker_random(a);

	for (unsigned int i = 0; i < CAUGHT; i++) {
		const struct frame *f = a->caught[(at + i) % CAUGHT];

		if (f && f->back == back && kinds & 1u << f->kind)
			return f;
	}
	return NULL;
}

static struct way *way_of(struct link *l, bool back)
{
	return back ? &l->back : &l->there;
}

/* ---- frames are lost, come again, late, elsewhere ---- */

static bool drops(struct attacker *a, struct link *l, struct way *w,
		  struct frame *f)
{
	(void)a;
	(void)l;
	(void)w;
	free(f);
	return true;
}

static bool repeats(struct attacker *a, struct link *l, struct way *w,
		    struct frame *f)
{
	(void)a;
	(void)l;
	attacker_pass(w, frame_copy(f));
	attacker_pass(w, f);
	return true;
}

static bool delays(struct attacker *a, struct link *l, struct way *w,
		   struct frame *f)
{
	(void)l;
	attacker_hold(w, f, 2 + attacker_random(a) % 30);
	return true;
}

static bool reorders(struct attacker *a, struct link *l, struct way *w,
		     struct frame *f)
{
	(void)a;
	(void)l;
	attacker_hold(w, f, 1);
	return true;
}

/* Something of before, perhaps of another connection, client, epoch, or of a
 * server that has ended. */
static bool replays(struct attacker *a, struct link *l, struct way *w,
		    struct frame *f)
{
	const struct frame *old = earlier(a, f->back, a->harm->kinds);
	struct frame *copy;

	(void)l;
	copy = old ? frame_copy(old) : NULL;
	if (copy && frame_is_lnet(copy))
		frame_readdress(a, copy, f->peer);
	attacker_pass(w, f);
	if (copy)
		attacker_pass(w, copy);
	return copy;
}

/* The oldest request of that client that he has seen. */
static const struct frame *oldest_request(struct attacker *a, unsigned int peer)
{
	for (unsigned int i = 0; i < CAUGHT; i++) {
		const struct frame *f = a->caught[(a->ncaught + i) % CAUGHT];

		if (f && f->kind == REQUESTS && f->peer == peer)
			return f;
	}
	return NULL;
}

/* To the connection of the other client, which may be of another CPT; and also
 * where it belongs, or not. A request only later: one that comes from elsewhere
 * first is executed, as ulnet_security(7) says, and its bulk sought there in
 * vain. */
static bool moves(struct attacker *a, struct link *l, struct way *w,
		  struct frame *f)
{
	struct link *other = attacker_link(a, 1 - l->peer, l->type);
	struct frame *copy;

	if (!other) {
		attacker_pass(w, f);
		return false;
	}
	copy = frame_copy(f->kind == REQUESTS ? oldest_request(a, l->peer) : f);
	if (frame_is_lnet(copy))
		frame_readdress(a, copy, 1 - l->peer);
	if (f->kind == REQUESTS || attacker_random(a) % 2)
		attacker_pass(w, f);
	else
		free(f);
	attacker_pass(way_of(other, copy->back), copy);
	return true;
}

static void exchange(uint8_t *p, uint8_t *q, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		uint8_t b = p[i];

		p[i] = q[i];
		q[i] = b;
	}
}

/* Back to whom it came from, as what he waits for: a request as its own reply,
 * a reply as a request. */
static void turn_lnet(struct frame *f)
{
	uint64_t data = load_le64(f->bytes + AT_HDR_DATA);

	exchange(f->bytes + AT_DEST, f->bytes + AT_SRC, 8);
	exchange(f->bytes + AT_DEST_PID, f->bytes + AT_SRC_PID, 4);
	if (f->kind != REQUESTS && f->kind != REPLIES)
		return;
	store_le32(f->bytes + AT_PORTAL, f->kind == REQUESTS
						 ? ULRPC_PORTAL_REPLY
						 : ULRPC_PORTAL_FIRST);
	data &= ~(UINT64_C(0xff) << 48);
	data |= (uint64_t)(f->kind == REQUESTS ? WIRE_REPLIES : WIRE_REQUESTS)
		<< 48;
	store_le64(f->bytes + AT_HDR_DATA, data);
}

static bool turns(struct attacker *a, struct link *l, struct way *w,
		  struct frame *f)
{
	struct frame *copy = frame_copy(f);

	(void)a;
	copy->back = !f->back;
	if (frame_is_lnet(copy))
		turn_lnet(copy);
	attacker_pass(way_of(l, copy->back), copy);
	attacker_pass(w, f);
	return true;
}

/* ---- frames are changed ---- */

static bool truncates(struct attacker *a, struct link *l, struct way *w,
		      struct frame *f)
{
	size_t head = head_of(f);
	bool can = f->n > head;

	(void)l;
	if (can)
		set_length(f, head + attacker_random(a) % (f->n - head));
	attacker_pass(w, f);
	return can;
}

/* The connection ends within it. */
static bool cuts(struct attacker *a, struct link *l, struct way *w,
		 struct frame *f)
{
	f->n = attacker_random(a) % f->n;
	attacker_pass(w, f);
	attacker_cut(l);
	return true;
}

/* Its first half, and the second one of another. */
static bool splices(struct attacker *a, struct link *l, struct way *w,
		    struct frame *f)
{
	const struct frame *old = earlier(a, f->back, 1u << f->kind);
	size_t head = head_of(f), half = head + (f->n - head) / 2, n;
	bool can;

	(void)l;
	n = old ? MIN(f->n, old->n) : 0;
	can = n > half && memcmp(f->bytes + half, old->bytes + half, n - half);
	if (can)
		memcpy(f->bytes + half, old->bytes + half, n - half);
	attacker_pass(w, f);
	return can;
}

/* A segment for another one, of the same call or of one before. */
static bool swaps(struct attacker *a, struct link *l, struct way *w,
		  struct frame *f)
{
	const struct frame *old = earlier(a, f->back, 1u << f->kind);
	bool can = old && old->n == f->n &&
		   memcmp(old->bytes + AT_PAYLOAD, f->bytes + AT_PAYLOAD,
			  f->n - AT_PAYLOAD);

	(void)l;
	if (can)
		memcpy(f->bytes + AT_PAYLOAD, old->bytes + AT_PAYLOAD,
		       f->n - AT_PAYLOAD);
	attacker_pass(w, f);
	return can;
}

static void flip(struct attacker *a, uint8_t *byte)
{
	*byte ^= (uint8_t)(1u << attacker_random(a) % 8);
}

/* Kinds that both sides send: each gets its half. */
#define BOTH (1u << CONTROL | 1u << SHAKES | 1u << TLS_SHAKE | 1u << TLS_DATA)

/* A byte of what is behind the head, of TLS with the head: in a long run the
 * next one, unless there are more than are altered. */
static bool alters(struct attacker *a, struct link *l, struct way *w,
		   struct frame *f)
{
	struct sweep *s = &a->sweep[f->back][f->kind];
	unsigned int each = BOTH & 1u << f->kind ? a->wanted / 2 : a->wanted;
	size_t from = frame_is_lnet(f) ? AT_PAYLOAD : 0;
	bool can = f->n > from && s->changed < each;

	(void)l;
	if (can) {
		bool all = slice_of(1, 0) && f->n - from <= each;
		size_t at = all ? s->at++ : attacker_random(a);

		flip(a, f->bytes + from + at % (f->n - from));
		s->changed++;
	}
	attacker_pass(w, f);
	return can;
}

/* The same for LNet's header and socklnd's. */
static bool alters_head(struct attacker *a, struct link *l, struct way *w,
			struct frame *f)
{
	struct sweep *s = &a->sweep[0][OTHER];
	size_t at = slice_of(1, 0) ? s->at++ : attacker_random(a);

	(void)l;
	flip(a, f->bytes + at % MIN(f->n, (size_t)AT_PAYLOAD));
	attacker_pass(w, f);
	return true;
}

static bool alters_body(struct attacker *a, struct link *l, struct way *w,
			struct frame *f)
{
	(void)l;
	flip(a, f->bytes + f->n - 1);
	attacker_pass(w, f);
	return true;
}

/* ---- flavours are lowered ---- */

/* The message without its seal: as its sender would have sent it without keys.
 */
static bool strips(struct attacker *a, struct link *l, struct way *w,
		   struct frame *f)
{
	size_t n = f->n - AT_PAYLOAD;
	uint8_t *payload = f->bytes + AT_PAYLOAD;
	bool can = n > SEAL_HEAD;

	(void)a;
	(void)l;
	if (can) {
		uint64_t data = load_le64(f->bytes + AT_HDR_DATA);

		n -= SEAL_HEAD;
		memmove(payload, payload + SEAL_HEAD, n);
		data = wire_hdr_opened(data, payload, n);
		store_le64(f->bytes + AT_HDR_DATA, data);
		set_length(f, AT_PAYLOAD + n);
	}
	attacker_pass(w, f);
	return can;
}

static void write_control(struct frame *f, const struct wire_control *m)
{
	uint64_t data;
	size_t n = wire_control_encode(m, f->bytes + AT_PAYLOAD, &data);

	store_le64(f->bytes + AT_HDR_DATA, data);
	set_length(f, AT_PAYLOAD + n);
}

/* What a client without keys would have sent in the place of a handshake. */
static struct wire_control connect_of(const struct wire_shake *s)
{
	struct wire_control m = { .kind = WIRE_CONNECT };

	m.connect.client = s->client;
	m.connect.epoch = s->epoch;
	m.connect.version_min = m.connect.version_max = WIRE_VERSION;
	memcpy(m.connect.client_id, s->client_id, WIRE_ID_SIZE);
	return m;
}

/* What a server without keys would have answered. */
static struct wire_control connected_of(struct attacker *a,
					const struct wire_shaken *s)
{
	struct wire_control m = { .kind = WIRE_CONNECTED };

	m.connected.client = s->client;
	m.connected.epoch = s->epoch;
	m.connected.status = WIRE_OK;
	m.connected.version = WIRE_VERSION;
	m.connected.connection = attacker_random(a);
	m.connected.keepalive = 1000000;
	m.connected.lease = 10000000;
	memcpy(m.connected.server_id, s->server_id, WIRE_ID_SIZE);
	return m;
}

static bool lowers(struct attacker *a, struct link *l, struct way *w,
		   struct frame *f)
{
	struct wire_control m;
	bool can =
		!wire_control_decode(&m, load_le64(f->bytes + AT_HDR_DATA),
				     f->bytes + AT_PAYLOAD, f->n - AT_PAYLOAD);

	(void)l;
	can = can && f->n > AT_PAYLOAD + WIRE_CONTROL_BOUND &&
	      (m.kind == WIRE_SHAKE || m.kind == WIRE_SHAKEN);
	if (can) {
		m = m.kind == WIRE_SHAKE ? connect_of(&m.shake)
					 : connected_of(a, &m.shaken);
		write_control(f, &m);
	}
	attacker_pass(w, f);
	return can;
}

/* A handshake in which the server says no. */
static bool refuses(struct attacker *a, struct link *l, struct way *w,
		    struct frame *f)
{
	struct wire_control m;
	bool can =
		!wire_control_decode(&m, load_le64(f->bytes + AT_HDR_DATA),
				     f->bytes + AT_PAYLOAD, f->n - AT_PAYLOAD);

	(void)a;
	(void)l;
	can = can && m.kind == WIRE_SHAKEN &&
	      f->n > AT_PAYLOAD + WIRE_CONTROL_BOUND;
	if (can) {
		m.shaken.status = WIRE_REFUSED;
		m.shaken.piece = (struct wire_view){ 0 };
		write_control(f, &m);
	}
	attacker_pass(w, f);
	return can;
}

/* ---- of TLS ---- */

/* As alters(), in handshakes. When there is data, the connection ends, so that
 * there are more of them. */
static bool alters_shakes(struct attacker *a, struct link *l, struct way *w,
			  struct frame *f)
{
	if (f->kind == TLS_SHAKE)
		return alters(a, l, w, f);
	attacker_pass(w, f);
	attacker_cut(l);
	return false;
}

/* All that a client has sent on a connection, on a new one. */
static bool replays_all(struct attacker *a, struct link *l, struct way *w,
			struct frame *f)
{
	size_t n = 0;
	uint8_t *all = malloc(CAUGHT * (size_t)(TLS_HEAD + 65536));

	BUG_ON(!all);
	for (unsigned int i = 0; i < CAUGHT; i++) {
		const struct frame *c = a->caught[(a->ncaught + i) % CAUGHT];

		if (!c || c->back || c->serial != l->serial)
			continue;
		memcpy(all + n, c->bytes, c->n);
		n += c->n;
	}
	attacker_pass(w, f);
	attacker_connect(a, all, n);
	free(all);
	return true;
}

/* ---- the lists ---- */

#define SEALED	 (1u << REQUESTS | 1u << REPLIES | 1u << CONTROL)
#define SEGMENTS (1u << GOT | 1u << PUT)
#define MESSAGES (SEALED | 1u << SHAKES | 1u << HELD | SEGMENTS)
#define RECORDS	 (1u << TLS_SHAKE | 1u << TLS_DATA)

/* so often in a short run, and in a long one; to one in so many frames */
#define HARM(what, fn, which, few, many, in)                                 \
	.name = what, .harm = fn, .kinds = which, .slice = few, .all = many, \
	.one_in = in

/* clang-format off */
const struct harm plain_harms[] = {
	{ HARM("drops", drops, MESSAGES | 1u << OTHER, 20, 400, 10) },
	{ HARM("repeats", repeats, MESSAGES, 40, 2000, 4) },
	{ HARM("delays", delays, MESSAGES, 20, 400, 10) },
	{ HARM("reorders", reorders, MESSAGES, 20, 1000, 6) },
	{ HARM("replays", replays, MESSAGES, 100, 4000, 4) },
	{ HARM("replays after a restart", replays, MESSAGES, 100, 4000, 4), .restart = true },
	{ HARM("splices", splices, MESSAGES, 20, 400, 8) },
	{ HARM("truncates", truncates, MESSAGES, 20, 400, 8) },
	{ HARM("cuts", cuts, MESSAGES | 1u << OTHER | 1u << GREETING, 20, 400, 20) },
	{ HARM("alters requests", alters, 1u << REQUESTS, 20, 450, 6) },
	{ HARM("alters replies", alters, 1u << REPLIES, 20, 450, 6) },
	{ HARM("alters control messages", alters, 1u << CONTROL, 20, 120, 4), .session = 8 },
	{ HARM("alters handshakes", alters, 1u << SHAKES, 20, 250, 4), .session = 4 },
	{ HARM("alters replies that are fetched", alters, 1u << HELD, 10, 300, 2) },
	{ HARM("alters sources", alters, 1u << GOT, 20, 700, 4) },
	{ HARM("alters sinks", alters, 1u << PUT, 20, 700, 4) },
	{ HARM("alters headers", alters_head, MESSAGES | 1u << OTHER, 20, 150, 20) },
	{ HARM("swaps segments", swaps, SEGMENTS, 20, 400, 4) },
	{ HARM("moves to another connection", moves, MESSAGES, 40, 1000, 6) },
	{ HARM("turns them round", turns, MESSAGES, 40, 1000, 6) },
	{ HARM("strips seals", strips, SEALED, 20, 400, 8) },
	{ HARM("puts connections without keys in the place of handshakes", lowers, 1u << SHAKES, 8, 40, 4), .session = 4 },
	{ HARM("refuses handshakes", refuses, 1u << SHAKES, 8, 40, 4), .session = 4 },
};
const unsigned int nplain_harms = ARRAY_SIZE(plain_harms);

const struct harm tls_harms[] = {
	/* A handshake of which something is lost lasts for accept_timeout. */
	{ HARM("drops", drops, 1u << TLS_DATA, 10, 40, 20) },
	{ HARM("repeats", repeats, RECORDS, 10, 200, 20) },
	{ HARM("delays", delays, 1u << TLS_DATA, 10, 40, 20) },
	{ HARM("reorders", reorders, 1u << TLS_DATA, 10, 40, 20) },
	{ HARM("replays", replays, RECORDS, 10, 400, 20) },
	{ HARM("replays after a restart", replays, RECORDS, 10, 400, 20), .restart = true },
	{ HARM("replays whole connections", replays_all, 1u << TLS_DATA, 10, 200, 20) },
	{ HARM("splices", splices, RECORDS, 10, 200, 20) },
	{ HARM("truncates", truncates, RECORDS, 10, 40, 20) },
	{ HARM("cuts", cuts, RECORDS, 10, 200, 20) },
	{ HARM("alters handshakes", alters_shakes, RECORDS, 20, 400, 4) },
	{ HARM("alters records", alters, 1u << TLS_DATA, 20, 500, 20) },
	{ HARM("moves to another connection", moves, RECORDS, 10, 200, 20) },
	{ HARM("turns them round", turns, RECORDS, 10, 200, 20) },
};
const unsigned int ntls_harms = ARRAY_SIZE(tls_harms);

const struct harm body_harm = {
	HARM("alters bodies", alters_body, 1u << REQUESTS, 4, 4, 4)
};
/* clang-format on */
