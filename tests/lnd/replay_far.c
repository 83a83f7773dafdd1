/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The far node: the one on the other side of a router. A tape has the messages
 * on one side of the router only. What the router forwards to that side must
 * come from the far node, and what it forwards from that side must reach the
 * far node, byte for byte, except for socklnd's cookies, which belong to a
 * connection.
 */
#include "tests/lnd/replay.h"

#include <string.h>

#include "lnet/nid/nid.h"

#define ACCEPT_PORT 988
/* port of the first connection; the next ones have lower ports */
#define FAR_PORT    1023
#define COOKIES	    8
#define COOKIES_LEN 16
#define MIN_BULK    1024 /* payloads from this length on use bulk connections */

static const enum sock_type types[REPLAY_FAR_CONNS] = { SOCK_CONTROL,
							SOCK_BULK_IN,
							SOCK_BULK_OUT };

static bool send_all(struct replay *r, unsigned int i, struct raw_conn *c,
		     const void *bytes, size_t len)
{
	size_t sent = 0;

	while (sent < len) {
		if (raw_send(c, bytes, len, &sent))
			return replay_complain(r, i, "the far node is cut off");
		if (sent < len && !replay_pump(r, i))
			return false;
	}
	return true;
}

static bool take_all(struct replay *r, unsigned int i, struct raw_conn *c,
		     void *bytes, size_t len)
{
	while (!raw_take(c, bytes, len)) {
		if (c->eof)
			return replay_complain(r, i, "the far node is cut off");
		if (!replay_pump(r, i))
			return false;
	}
	return true;
}

/* Opens connection @k, as a kernel node does. */
static bool connect_far(struct replay *r, unsigned int k,
			const struct ulnet_nid *far,
			const struct ulnet_nid *near)
{
	union netif_addr from = netif_addr(far, (uint16_t)(FAR_PORT - k));
	union netif_addr to = netif_addr(near, ACCEPT_PORT);
	struct sock_hello h = { .version = 3,
				.src_nid = *far,
				.dst_nid = *near,
				.src_pid = LNET_PID_LUSTRE,
				.src_incarnation = 1,
				.type = types[k] };
	uint8_t bytes[SOCK_REQUEST_LARGE_SIZE + SOCK_HELLO_LARGE_SIZE];
	struct raw_conn *c = &r->far[k];
	struct sock_hello got;
	size_t len;

	if (raw_connect(&from, &to, c))
		return replay_complain(r, 0, "the far node cannot connect");
	len = sock_request_encode(near, bytes);
	len += sock_hello_encode(&h, bytes + len);
	if (!send_all(r, 0, c, bytes, len) ||
	    !take_all(r, 0, c, bytes, SOCK_HELLO_SIZE))
		return false;
	if (sock_hello_size(&got, bytes) != SOCK_HELLO_SIZE ||
	    sock_hello_decode(&got, bytes, SOCK_HELLO_SIZE) ||
	    !lnet_nid_eq(&got.src_nid, near) ||
	    got.type != sock_type_invert(types[k]))
		return replay_complain(r, 0, "no HELLO to the far node");
	return true;
}

/* Finds the router's NID on the net of @far. */
static bool find_near(const struct replay *r, const struct ulnet_nid *far,
		      struct ulnet_nid *near)
{
	for (unsigned int i = 0; i < REPLAY_NIS_MAX && r->c->nis[i]; i++)
		if (!lnet_nid_parse(r->c->nis[i], near) &&
		    lnet_nid_net(near) == lnet_nid_net(far))
			return true;
	return false;
}

bool replay_far_open(struct replay *r)
{
	struct ulnet_nid far, near;
	union netif_addr at;

	if (!r->c->router)
		return true;
	if (lnet_nid_parse(r->c->far, &far) || !find_near(r, &far, &near))
		return replay_complain(r, 0, "no net of the far node");
	at = netif_addr(&far, 0);
	if (replay_add_addr(&at))
		return replay_complain(r, 0, "no address of the far node");
	for (unsigned int k = 0; k < REPLAY_FAR_CONNS; k++)
		if (!connect_far(r, k, &far, &near))
			return false;
	return true;
}

/* Returns the connection on which the far node receives or sends frame @i: if
 * it is large, the one of type @bulk. */
static struct raw_conn *conn_of(struct replay *r, unsigned int i,
				enum sock_type bulk)
{
	bool is_bulk = r->plan.step[i].hdr.payload_length >= MIN_BULK;
	enum sock_type want = is_bulk ? bulk : SOCK_CONTROL;
	unsigned int k = 0;

	while (types[k] != want)
		k++;
	return &r->far[k];
}

bool replay_far_sends(struct replay *r, unsigned int i)
{
	const struct tape_frame *f = &r->tape.frame[i];
	uint8_t *bytes = malloc(f->len);
	bool ok;

	if (!bytes)
		return replay_complain(r, i, "no memory");
	memcpy(bytes, f->bytes, f->len);
	memset(bytes + COOKIES, 0, COOKIES_LEN);
	ok = send_all(r, i, conn_of(r, i, SOCK_BULK_OUT), bytes, f->len);
	free(bytes);
	return ok;
}

bool replay_far_takes(struct replay *r, unsigned int i)
{
	const struct tape_frame *f = &r->tape.frame[i];
	uint8_t *got = malloc(f->len);
	bool ok;

	if (!got)
		return replay_complain(r, i, "no memory");
	ok = take_all(r, i, conn_of(r, i, SOCK_BULK_IN), got, f->len);
	if (ok) {
		memcpy(got + COOKIES, f->bytes + COOKIES, COOKIES_LEN);
		ok = replay_compare(r, i, got);
	}
	free(got);
	return ok;
}

bool replay_far_fill(struct replay *r)
{
	for (unsigned int k = 0; k < REPLAY_FAR_CONNS; k++)
		if (r->far[k].fd >= 0 && raw_fill(&r->far[k]))
			return false;
	return true;
}

bool replay_far_is_empty(struct replay *r)
{
	bool ok = replay_far_fill(r);

	for (unsigned int k = 0; k < REPLAY_FAR_CONNS; k++) {
		struct raw_conn *c = &r->far[k];

		if (c->fd < 0 || (c->eof && !c->have))
			continue;
		fprintf(stderr, "the far node's connection %u: %s\n", k + 1,
			c->have ? "more than there was:" : "is still there");
		replay_dump("ours", c->in, c->have, 0);
		ok = false;
	}
	return ok;
}

void replay_far_close(struct replay *r)
{
	for (unsigned int k = 0; k < REPLAY_FAR_CONNS; k++)
		raw_close(&r->far[k]);
}
