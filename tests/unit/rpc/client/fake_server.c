/* SPDX-License-Identifier: BSD-3-Clause */
/* Receives, records and answers the client's messages: see the header. */
#include "tests/unit/rpc/client/fake_server.h"

/* ---- sending ---- */

static void fake_sent(const struct ulnet_event *ev)
{
	if (ev->unlinked)
		free(ev->user_ptr);
}

void fake_put(struct fake *f, struct ulnet_nid self, struct ulnet_id to,
	      unsigned int portal, uint64_t match, uint64_t hdr_data,
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
	if (f->rewrite)
		umd.length =
			(uint32_t)f->rewrite(&hdr_data, bytes, length, copy);
	cr_assert_eq(LNetMDBind(f->node, &umd, LNET_UNLINK, &md), 0);
	cr_assert_eq(LNetPut(self, md, LNET_NOACK_REQ, to, portal, match, 0,
			     hdr_data),
		     0);
}

static void fake_control(struct fake *f, const struct ulnet_event *ev,
			 const struct wire_control *m)
{
	uint8_t bytes[WIRE_CONTROL_BOUND];
	uint64_t hdr_data;
	size_t length = wire_control_encode(m, bytes, &hdr_data);

	fake_put(f, ev->target.nid,
		 (struct ulnet_id){ ev->source, ev->initiator.pid },
		 ULRPC_PORTAL_CONTROL, 0, hdr_data, bytes, length);
}

void fake_answer(struct fake *f, const struct arrived *a, uint32_t status,
		 const void *body, size_t length)
{
	struct wire_replies m = { .client = a->client, .epoch = a->epoch };
	struct wire_reply r = { .xid = a->xid,
				.attempt = a->attempt,
				.status = status,
				.length = (uint32_t)length,
				.retry_after = f->retry_after,
				.absent = status == WIRE_NOT_CONNECTED
						  ? f->unknown_for
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

void fake_echo(struct fake *f, const struct arrived *a)
{
	fake_answer(f, a, f->call_status, a->body,
		    f->call_status == WIRE_OK ? MIN(a->length, sizeof(a->body))
					      : 0);
}

void fake_extend(struct fake *f, const struct arrived *a, uint64_t us)
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

static void fake_on_query(struct fake *f, const struct arrived *a)
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

static void fake_on_connect(struct fake *f, const struct ulnet_event *ev,
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

static void fake_on_open(struct fake *f, const struct ulnet_event *ev,
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
			    .request_limit = f->request_limit,
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

static void fake_on_control(const struct ulnet_event *ev)
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
	/* all others: Cancel, Goodbye, and answers of the client's node */
	default:
		f->answers++;
	}
}

static void fake_on_requests(const struct ulnet_event *ev)
{
	struct fake *f = ev->user_ptr;
	struct wire_call calls[WIRE_CALLS_MAX];
	struct wire_segments_in bulk;
	struct wire_requests m;

	if (ev->type != LNET_EVENT_PUT)
		return;
	f->messages++;
	cr_assert_eq(wire_requests_decode(&m, calls, &(struct wire_common){ 0 },
					  ev->hdr_data,
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
					.reply_limit = c.reply_limit,
					.traced = view_length(c.trace),
					.remaining = c.remaining,
					.timeout = c.timeout,
					.source = ev->source,
					.local = ev->target.nid,
					.pid = ev->initiator.pid };
		if (wire_segments_next(&c.bulks.view, &bulk))
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

/* ---- begin and end ---- */

static void fake_listen(struct fake *f, unsigned int portal,
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

struct fake *fake_new(struct lnet *node)
{
	struct fake *f = calloc(1, sizeof(*f));

	f->node = node;
	f->window = 1000;
	f->unknown_for = 3600000000;
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

void fake_free(struct fake *f)
{
	free(f->memory[0]);
	free(f->memory[1]);
	free(f);
}
