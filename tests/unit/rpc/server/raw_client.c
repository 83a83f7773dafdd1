/* SPDX-License-Identifier: BSD-3-Clause */
#include "tests/unit/rpc/server/raw_client.h"

#include <sys/mman.h>

#include "ulnet/loop.h"

/* ---- receiving ---- */

static void raw_client_on_extend(struct raw_client *c,
				 const struct wire_extend *m)
{
	struct wire_view view = m->extensions.view;
	struct wire_extension x;

	cr_assert_eq(m->client, c->client);
	cr_assert_eq(m->epoch, c->epoch);
	c->extends++;
	for (uint32_t i = 0; i < m->extensions.n; i++) {
		cr_assert(wire_extension_next(&view, &x));
		if (c->nextensions < RAW_CLIENT_EXTENSIONS) {
			c->extension[c->nextensions] = x;
			c->extended[c->nextensions] = lnet_now(c->node, 0);
		}
		c->nextensions++;
	}
}

static void raw_client_on_control(const struct ulnet_event *ev)
{
	struct raw_client *c = ev->user_ptr;
	struct wire_control m;

	if (ev->type != LNET_EVENT_PUT)
		return;
	cr_assert_eq(wire_control_decode(&m, ev->hdr_data,
					 c->controls_in + ev->offset,
					 ev->mlength),
		     0);
	if (m.kind == WIRE_EXTEND) {
		raw_client_on_extend(c, &m.extend);
		return;
	}
	c->control = m;
	c->controls++;
}

static void raw_client_on_reply(const struct ulnet_event *ev)
{
	struct raw_client *c = ev->user_ptr;
	struct wire_reply reply[WIRE_CALLS_MAX];
	struct wire_replies m;

	if (ev->type != LNET_EVENT_PUT)
		return;
	c->messages++;
	cr_assert_eq(wire_replies_decode(&m, reply, ev->hdr_data,
					 c->replies_in + ev->offset,
					 ev->mlength),
		     0);
	cr_assert(c->careless || m.client == c->client);
	for (uint32_t i = 0; i < m.nreplies; i++) {
		cr_assert_lt(c->replies, RAW_CLIENT_ANSWERS);
		memcpy(c->body[c->replies], reply[i].body,
		       MIN(reply[i].length, sizeof(c->body[0])));
		c->to[c->replies] = ev->match_bits;
		c->reply[c->replies++] = reply[i];
	}
}

void raw_client_attach(struct raw_client *c, unsigned int portal,
		       uint64_t ignore, void *memory, uint32_t length,
		       ulnet_handler_fn handler)
{
	struct ulnet_md md = {
		.start = memory,
		.length = length,
		.threshold = LNET_MD_THRESH_INF,
		.options = LNET_MD_OP_PUT,
		.user_ptr = c,
		.handler = handler,
	};
	struct ulnet_md_handle mdh;
	struct ulnet_me_handle me;

	cr_assert_eq(LNetMEAttach(c->node, portal, ANY_ID, 0, ignore,
				  LNET_UNLINK, LNET_INS_AFTER, &me),
		     0);
	cr_assert_eq(LNetMDAttach(me, &md, LNET_RETAIN, &mdh), 0);
}

/* Room that stays until the process ends. */
static uint8_t *raw_client_room(void)
{
	void *room = mmap(NULL, RAW_CLIENT_ROOM, PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	cr_assert_neq(room, MAP_FAILED);
	return room;
}

void raw_client_init(struct raw_client *c, struct lnet_sim *sim,
		     unsigned int node, unsigned int server)
{
	memset(c, 0, sizeof(*c));
	c->controls_in = raw_client_room();
	c->replies_in = raw_client_room();
	c->sim = sim;
	c->node = lnet_sim_node(sim, node);
	c->server = nth_id(server);
	c->client = 0x1122334455667788 + node;
	memset(c->client_id, (int)node + 1, sizeof(c->client_id));
	c->match = RAW_CLIENT_MATCH;
	c->epoch = 1;
	raw_client_attach(c, ULRPC_PORTAL_CONTROL, ~UINT64_C(0), c->controls_in,
			  RAW_CLIENT_ROOM, raw_client_on_control);
	raw_client_attach(c, ULRPC_PORTAL_REPLY, ~UINT64_C(0), c->replies_in,
			  RAW_CLIENT_ROOM, raw_client_on_reply);
}

/* ---- sending ---- */

static void raw_client_sent(const struct ulnet_event *ev)
{
	if (ev->unlinked)
		free(ev->user_ptr);
}

void raw_client_put(struct raw_client *c, unsigned int portal, uint64_t match,
		    uint64_t hdr_data, const void *payload, size_t length)
{
	void *copy = malloc(64 * length + 4096);
	struct ulnet_md md = { .start = copy,
			       .length = (uint32_t)length,
			       .threshold = 1,
			       .user_ptr = copy,
			       .handler = raw_client_sent };
	struct ulnet_md_handle mdh;

	memcpy(copy, payload, length);
	if (c->rewrite)
		md.length =
			(uint32_t)c->rewrite(&hdr_data, payload, length, copy);
	cr_assert_eq(LNetMDBind(c->node, &md, LNET_UNLINK, &mdh), 0);
	cr_assert_eq(LNetPut(LNET_NID_ANY, mdh, LNET_NOACK_REQ, c->server,
			     portal, match, 0, hdr_data),
		     0);
}

void raw_client_control(struct raw_client *c, const struct wire_control *m)
{
	uint8_t bytes[WIRE_CONTROL_MAX];
	uint64_t hdr_data;
	size_t length = wire_control_encode(m, bytes, &hdr_data);

	raw_client_put(c, ULRPC_PORTAL_CONTROL, 0, hdr_data, bytes, length);
}

const struct wire_control *raw_client_ask(struct raw_client *c,
					  const struct wire_control *m)
{
	unsigned int before = c->controls;

	raw_client_control(c, m);
	lnet_sim_run(c->sim, MSEC);
	cr_assert_eq(c->controls, before + 1, "%u answers",
		     c->controls - before);
	return &c->control;
}

const struct wire_connected *raw_client_connect(struct raw_client *c)
{
	struct wire_control m = { .kind = WIRE_CONNECT };
	const struct wire_control *a;

	memcpy(m.connect.client_id, c->client_id, sizeof(c->client_id));
	m.connect.client = c->client;
	m.connect.epoch = c->epoch;
	m.connect.keepalive = c->keepalive;
	m.connect.version_min = m.connect.version_max = WIRE_VERSION;
	a = raw_client_ask(c, &m);
	cr_assert_eq(a->kind, WIRE_CONNECTED);
	cr_assert_eq(a->connected.client, c->client);
	cr_assert_eq(a->connected.epoch, c->epoch);
	if (a->connected.status == WIRE_OK)
		c->connection = a->connected.connection;
	return &a->connected;
}

const struct wire_opened *raw_client_open(struct raw_client *c,
					  const char *service)
{
	struct wire_control m = {
		.kind = WIRE_OPEN,
		.open = { .connection = c->connection,
			  .client = c->client,
			  .epoch = c->epoch,
			  .tag = 77,
			  .rtt = c->rtt,
			  .numbers = c->numbers },
	};
	const struct wire_control *a;

	strcpy(m.open.service, service);
	a = raw_client_ask(c, &m);
	cr_assert_eq(a->kind, WIRE_OPENED);
	cr_assert_eq(a->opened.tag, 77);
	if (a->opened.status == WIRE_OK) {
		c->portal = a->opened.portal;
		c->number = a->opened.number;
	}
	return &a->opened;
}

uint32_t raw_client_keepalive(struct raw_client *c)
{
	struct wire_control m = {
		.kind = WIRE_KEEPALIVE,
		.keepalive = { .connection = c->connection,
			       .client = c->client,
			       .epoch = c->epoch,
			       .sequence = 5,
			       .rtt = c->rtt },
	};
	const struct wire_control *a = raw_client_ask(c, &m);

	cr_assert_eq(a->kind, WIRE_ALIVE);
	cr_assert_eq(a->alive.sequence, 5);
	return a->alive.status;
}

void raw_client_disconnect(struct raw_client *c)
{
	const struct wire_control m = {
		.kind = WIRE_DISCONNECT,
		.disconnect = { .connection = c->connection,
				.client = c->client,
				.epoch = c->epoch },
	};

	cr_assert_eq(raw_client_ask(c, &m)->kind, WIRE_DISCONNECTED);
}

struct wire_call raw_client_call_of(uint64_t xid, const char *method,
				    uint32_t length)
{
	return (struct wire_call){ .xid = xid,
				   .slot = (uint32_t)(xid % WIRE_SLOTS_USUAL),
				   .method = ulrpc_method(method),
				   .length = length,
				   .timeout = 10000000,
				   .remaining = 10000000,
				   .reply_max = 4096 };
}

void raw_client_cancel(struct raw_client *c, const uint64_t *xids,
		       unsigned int n)
{
	struct wire_gone gone[WIRE_ENTRIES_MAX];
	struct wire_control m = {
		.kind = WIRE_CANCEL,
		.cancel = { .connection = c->connection,
			    .client = c->client,
			    .epoch = c->epoch,
			    .gone = { .n = n, .list = gone } },
	};

	for (unsigned int i = 0; i < n; i++)
		gone[i] = (struct wire_gone){
			.xid = xids[i],
			.slot = raw_client_call_of(xids[i], "", 0).slot,
		};
	raw_client_control(c, &m);
	lnet_sim_run(c->sim, MSEC);
}

size_t raw_client_pack(struct raw_client *c, const struct wire_call *calls,
		       unsigned int n, const void *bodies, uint64_t acked,
		       uint8_t *to, uint64_t *hdr_data)
{
	struct wire_requests m = { .connection = c->connection,
				   .client = c->client,
				   .epoch = c->epoch,
				   .acked = acked };
	uint8_t *p = wire_requests_put(to, &m);
	uint32_t length = 0;

	for (unsigned int i = 0; i < n; i++) {
		p = wire_call_put(p, &calls[i]);
		length += calls[i].length;
	}
	if (c->number)
		p = wire_service_put(p, c->number);
	if (length)
		p = wire_bodies_put(p, length);
	*hdr_data = wire_hdr_data(WIRE_REQUESTS, to, (size_t)(p - to));
	if (length)
		memcpy(p, bodies, length);
	return (size_t)(p - to) + length;
}

void raw_client_send(struct raw_client *c, const struct wire_call *calls,
		     unsigned int n, const void *bodies, uint64_t acked)
{
	static uint8_t bytes[LNET_MTU];
	uint64_t hdr_data;
	size_t length =
		raw_client_pack(c, calls, n, bodies, acked, bytes, &hdr_data);

	c->match += 256;
	raw_client_put(c, c->portal, c->match, hdr_data, bytes, length);
}

void raw_client_call(struct raw_client *c, uint64_t xid, const char *method,
		     const char *body)
{
	struct wire_call call =
		raw_client_call_of(xid, method, (uint32_t)strlen(body));

	raw_client_send(c, &call, 1, body, 0);
}

const struct wire_reply *raw_client_reply(const struct raw_client *c,
					  uint64_t xid)
{
	const struct wire_reply *found = NULL;

	for (unsigned int i = 0; i < c->replies; i++) {
		if (c->reply[i].xid != xid)
			continue;
		cr_assert_null(found, "two replies to %llu",
			       (unsigned long long)xid);
		found = &c->reply[i];
	}
	cr_assert_not_null(found, "no reply to %llu", (unsigned long long)xid);
	return found;
}
