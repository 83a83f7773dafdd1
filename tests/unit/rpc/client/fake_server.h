/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A server that is played by hand: raw LNet buffers on the control portal and
 * on a service's, which answer as they are told to. Node 0 is a client by the
 * real library, node 1 is the server.
 */
#ifndef TESTS_FAKE_SERVER_H
#define TESTS_FAKE_SERVER_H

#include "rpc/client/import.h"
#include "rpc/wire/wire.h"
#include "rpc/wire/wire_reply.h"
#include "tests/unit/lnet/cluster.h"
#include "ulnet/rpc.h"

#define CLIENT	   0
#define SERVER	   1
#define PORTAL	   40
#define HANDLE	   UINT64_C(0x5e54e4)
#define CALLS_SEEN 512
#define FAKE_BUF   (1u << 20)

/* A call that arrived. */
struct arrived {
	uint64_t match, xid, client;
	uint32_t epoch, attempt, method, length, flags, reply_max;
	uint32_t priority, semantics, slot;
	uint64_t remaining, timeout;
	uint64_t bulk_match; /* of its first bulk */
	uint8_t body[64];    /* its beginning */
	struct ulnet_nid source, local;
	uint32_t pid;
};

struct fake {
	struct lnet *node;
	/* what it is to do */
	bool mute_connect, mute_open, mute_alive, mute_calls, mute_queries;
	uint32_t query_status; /* 0: it says "still working", for hours */
	uint32_t connect_status, open_status, call_status, alive_status;
	uint32_t retry_after; /* us */
	uint32_t window, request_max, message_max;
	uint64_t keepalive; /* us */
	uint64_t absent;    /* us: it says, when a connection is not known */
	uint64_t queue, service; /* us: it says of calls */
	uint64_t estimate;	 /* us: it says with replies; 0: nothing */
	uint8_t id;	    /* of this start */
	bool forgets;	    /* reconnected is not said */
	/* last changes to its answers; or NULL */
	void (*on_connected)(struct fake *f, struct wire_connected *c);
	void (*on_opened)(struct fake *f, struct wire_opened *o);
	/* says it in another way; or NULL */
	size_t (*say)(uint64_t *hdr_data, const void *bytes, size_t length,
		      uint8_t *to);
	/* what it has seen */
	unsigned int connects, opens, keepalives, disconnects, answers;
	unsigned int messages;
	uint32_t most; /* calls in one of them */
	uint32_t epoch;	     /* of the last Connect */
	uint64_t connection; /* its answer */
	void *memory[2];
	unsigned int ncalls;
	struct arrived calls[CALLS_SEEN];
	unsigned int nqueries;
	struct arrived queries[CALLS_SEEN];
};

/* ---- sending ---- */

static inline void fake_sent(const struct ulnet_event *ev)
{
	if (ev->unlinked)
		free(ev->user_ptr);
}

static inline void fake_put(struct fake *f, struct ulnet_nid self,
			    struct ulnet_id to, unsigned int portal,
			    uint64_t match, uint64_t hdr_data,
			    const void *bytes, size_t length)
{
	uint8_t *copy = malloc(64 * length + 4096);
	struct ulnet_md umd = { .start = copy,
				.length = (uint32_t)length,
				.threshold = 1,
				.user_ptr = copy,
				.handler = fake_sent };
	struct ulnet_md_handle md;

	memcpy(copy, bytes, length);
	if (f->say)
		umd.length = (uint32_t)f->say(&hdr_data, bytes, length, copy);
	cr_assert_eq(LNetMDBind(f->node, &umd, LNET_UNLINK, &md), 0);
	cr_assert_eq(LNetPut(self, md, LNET_NOACK_REQ, to, portal, match, 0,
			     hdr_data),
		     0);
}

static inline void fake_control(struct fake *f, const struct ulnet_event *ev,
				const struct wire_control *m)
{
	uint8_t bytes[WIRE_CONTROL_BOUND];
	uint64_t hdr_data;
	size_t length = wire_control_encode(m, bytes, &hdr_data);

	fake_put(f, ev->target.nid,
		 (struct ulnet_id){ ev->source, ev->initiator.pid },
		 ULRPC_PORTAL_CONTROL, 0, hdr_data, bytes, length);
}

/* A reply to @a, with a body. */
static inline void fake_answer(struct fake *f, const struct arrived *a,
			       uint32_t status, const void *body, size_t length)
{
	struct wire_replies m = { .client = a->client, .epoch = a->epoch };
	struct wire_reply r = { .xid = a->xid,
				.attempt = a->attempt,
				.status = status,
				.length = (uint32_t)length,
				.retry_after = f->retry_after,
				.absent = status == WIRE_NOT_CONNECTED
						  ? f->absent
						  : 0,
				.error = status == WIRE_FAILED ? EDOM : 0,
				.queue = f->queue,
				.service = f->service };
	uint8_t *bytes = malloc(length + 512), *at = bytes;
	uint64_t hdr_data;

	at = wire_replies_put(at, &m);
	if (f->estimate)
		at = wire_estimate_put(at, f->estimate);
	at = wire_reply_put(at, &r);
	at = wire_bodies_put(at, r.length);
	hdr_data = wire_hdr_data(WIRE_REPLIES, bytes, (size_t)(at - bytes));
	if (length)
		memcpy(at, body, length);
	fake_put(f, a->local, (struct ulnet_id){ a->source, a->pid },
		 ULRPC_PORTAL_REPLY, a->match, hdr_data, bytes,
		 (size_t)(at - bytes) + length);
	free(bytes);
}

/* The usual one: what came goes back. */
static inline void fake_echo(struct fake *f, const struct arrived *a)
{
	fake_answer(f, a, f->call_status, a->body,
		    f->call_status == WIRE_OK ? MIN(a->length, sizeof(a->body))
					      : 0);
}

/* The call of @a needs @us more. */
static inline void fake_extend(struct fake *f, const struct arrived *a,
			       uint64_t us)
{
	const struct wire_extension e = { .xid = a->xid,
					  .slot = a->slot,
					  .attempt = a->attempt,
					  .extend = us,
					  .state = WIRE_RUNNING };
	const struct wire_control m = {
		.kind = WIRE_EXTEND,
		.extend = { .client = a->client,
			    .epoch = a->epoch,
			    .extensions = { .n = 1, .list = &e } },
	};
	uint8_t bytes[WIRE_CONTROL_MAX];
	uint64_t hdr_data;
	size_t length = wire_control_encode(&m, bytes, &hdr_data);

	fake_put(f, a->local, (struct ulnet_id){ a->source, a->pid },
		 ULRPC_PORTAL_CONTROL, 0, hdr_data, bytes, length);
}

static inline void fake_on_query(struct fake *f, const struct arrived *a)
{
	f->queries[f->nqueries++ % CALLS_SEEN] = *a;
	if (f->mute_queries)
		return;
	if (f->query_status)
		fake_answer(f, a, f->query_status, NULL, 0);
	else
		fake_extend(f, a, 3600000000);
}

/* ---- receiving ---- */

static inline void fake_on_connect(struct fake *f, const struct ulnet_event *ev,
				   const struct wire_connect *c)
{
	struct wire_control m = {
		.kind = WIRE_CONNECTED,
		.connected = { .client = c->client,
			       .epoch = c->epoch,
			       .status = f->connect_status,
			       .connection = HANDLE,
			       .reconnected = f->epoch && !f->forgets,
			       .keepalive = f->keepalive,
			       .retry_after = f->retry_after,
			       .version = WIRE_VERSION,
			       .clients = 1 },
	};

	memset(m.connected.server_id, f->id, WIRE_ID_SIZE);
	f->connects++;
	f->epoch = c->epoch;
	if (f->on_connected)
		f->on_connected(f, &m.connected);
	f->connection = m.connected.connection;
	if (!f->mute_connect)
		fake_control(f, ev, &m);
}

static inline void fake_on_open(struct fake *f, const struct ulnet_event *ev,
				const struct wire_open *o)
{
	struct wire_control m = {
		.kind = WIRE_OPENED,
		.opened = { .client = o->client,
			    .epoch = o->epoch,
			    .tag = o->tag,
			    .status = f->open_status,
			    .portal = PORTAL,
			    .request_max = f->request_max,
			    .window = f->window,
			    .message_max = f->message_max },
	};

	f->opens++;
	cr_assert_str_eq(o->service, "test");
	if (f->on_opened)
		f->on_opened(f, &m.opened);
	if (!f->mute_open)
		fake_control(f, ev, &m);
}

static inline void fake_on_control(const struct ulnet_event *ev)
{
	struct fake *f = ev->user_ptr;
	struct wire_control m, out = { .kind = WIRE_ALIVE };

	if (ev->type != LNET_EVENT_PUT)
		return;
	cr_assert_eq(wire_control_decode(&m, ev->hdr_data,
					 (uint8_t *)ev->md_start + ev->offset,
					 ev->mlength),
		     0);
	switch (m.kind) {
	case WIRE_CONNECT:
		fake_on_connect(f, ev, &m.connect);
		break;
	case WIRE_OPEN:
		fake_on_open(f, ev, &m.open);
		break;
	case WIRE_DISCONNECT:
		f->disconnects++;
		break;
	case WIRE_KEEPALIVE:
		f->keepalives++;
		out.alive.client = m.keepalive.client;
		out.alive.epoch = m.keepalive.epoch;
		out.alive.sequence = m.keepalive.sequence;
		out.alive.status = f->alive_status;
		if (!f->mute_alive)
			fake_control(f, ev, &out);
		break;
	default: /* the client's node may be asked, too */
		f->answers++;
	}
}

static inline void fake_on_requests(const struct ulnet_event *ev)
{
	struct fake *f = ev->user_ptr;
	struct wire_call calls[WIRE_CALLS_MAX];
	struct wire_segments_in bulk;
	struct wire_requests m;

	if (ev->type != LNET_EVENT_PUT)
		return;
	f->messages++;
	cr_assert_eq(wire_requests_decode(&m, calls, ev->hdr_data,
					  (uint8_t *)ev->md_start + ev->offset,
					  ev->mlength),
		     0);
	cr_assert_eq(m.connection, f->connection);
	f->most = MAX(f->most, m.ncalls);
	for (uint32_t i = 0; i < m.ncalls; i++) {
		struct wire_call c = calls[i];
		struct arrived now, *a = &f->calls[f->ncalls % CALLS_SEEN];

		now = (struct arrived){ .match = ev->match_bits,
				       .xid = c.xid,
				       .client = m.client,
				       .epoch = m.epoch,
				       .attempt = c.attempt,
				       .method = c.method,
				       .length = c.length,
				       .flags = c.flags,
				       .reply_max = c.reply_max,
				       .priority = c.priority,
				       .semantics = c.semantics,
				       .slot = c.slot,
				       .remaining = c.remaining,
				       .timeout = c.timeout,
				       .source = ev->source,
				       .local = ev->target.nid,
				       .pid = ev->initiator.pid };
		if (wire_segments_next(&c.bulks, &bulk))
			now.bulk_match = bulk.match;
		memcpy(now.body, c.body, MIN(c.length, sizeof(now.body)));
		if (c.flags & WIRE_CALL_QUERY) {
			fake_on_query(f, &now);
			continue;
		}
		*a = now;
		f->ncalls++;
		if (!f->mute_calls)
			fake_echo(f, a);
	}
}

/* ---- life ---- */

static inline void fake_listen(struct fake *f, unsigned int portal,
			       ulnet_handler_fn fn, void **memory)
{
	struct ulnet_md md = { .start = *memory = calloc(1, 16 * FAKE_BUF),
			       .length = 16 * FAKE_BUF,
			       .threshold = LNET_MD_THRESH_INF,
			       .options = LNET_MD_OP_PUT,
			       .user_ptr = f,
			       .handler = fn };
	struct ulnet_me_handle me;
	struct ulnet_md_handle mdh;

	cr_assert_eq(LNetMEAttach(f->node, portal, ANY_ID, 0, ~UINT64_C(0),
				  LNET_UNLINK, LNET_INS_AFTER, &me),
		     0);
	cr_assert_eq(LNetMDAttach(me, &md, LNET_UNLINK, &mdh), 0);
}

static inline struct fake *fake_new(struct lnet *node)
{
	struct fake *f = calloc(1, sizeof(*f));

	f->node = node;
	f->window = 1000;
	f->absent = 3600000000;
	f->request_max = 65536;
	f->message_max = LNET_MTU;
	f->keepalive = 10000000;
	f->queue = 5;
	f->service = 7;
	f->id = 1;
	fake_listen(f, ULRPC_PORTAL_CONTROL, fake_on_control, &f->memory[0]);
	fake_listen(f, PORTAL, fake_on_requests, &f->memory[1]);
	return f;
}

/* After its node. */
static inline void fake_free(struct fake *f)
{
	free(f->memory[0]);
	free(f->memory[1]);
	free(f);
}

#endif
