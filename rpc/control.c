/* SPDX-License-Identifier: BSD-3-Clause */
#include "rpc/control.h"

#include <errno.h>
#include <string.h>

#include "rpc/conn_event.h"
#include "rpc/inbox.h"
#include "rpc/quota.h"
#include "rpc/sealed.h"
#include "rpc/slab.h"
#include "rpc/stats/stat.h"
#include "rpc/forwarded.h"
#include "rpc/wire/wire.h"

#define BUFFER_SIZE UINT32_C(16384)
/* Messages of a CPT that LNet is still sending, at most. */
#define SENDS_MAX 16384

_Static_assert(SEAL_HEAD + WIRE_CONTROL_MAX <= CONTROL_MESSAGE_MAX,
	       "receivers have room for each message");

struct control {
	struct inbox inbox;
	bool open;
	struct slab slab; /* of struct control_send */
	/* messages that LNet is still sending, by NID */
	struct quotas quotas;
};

struct control_send {
	struct shard *shard;
	struct quota *quota;
	control_sent_fn done; /* NULL: the sender does not want to know */
	uint64_t id;
	uint64_t tag;
	size_t size; /* bytes of this structure, including the message */
	uint8_t bytes[];
};

/* ---- sending ---- */

/* Allocates room for a message of up to @bound bytes. */
static struct control_send *send_new(struct shard *s,
				     const struct ulnet_nid *nid, size_t bound)
{
	struct control *c = s->control;
	struct quota *q = quota_take(&c->quotas, nid, 1, shard_now(s));
	struct control_send *cs;

	if (!q)
		return NULL;
	cs = slab_get(&c->slab, sizeof(*cs) + bound);
	if (!cs) {
		quota_put(&c->quotas, q, 1);
		return NULL;
	}
	cs->size = sizeof(*cs) + bound;
	cs->shard = s;
	cs->quota = q;
	return cs;
}

static void send_free(struct control_send *cs)
{
	struct control *c = cs->shard->control;

	quota_put(&c->quotas, cs->quota, 1);
	slab_put(&c->slab, cs, cs->size);
}

static void control_on_sent(const struct ulnet_event *ev)
{
	struct control_send *cs = ev->user_ptr;
	struct shard *s = cs->shard;

	if (cs->done && ev->type == LNET_EVENT_SEND)
		cs->done(s, cs->id, cs->tag, ev);
	if (!ev->unlinked)
		return;
	send_free(cs);
	shard_release(s);
}

/* Sends the message of @cs. Frees @cs, even after an error: now, or when LNet
 * has done with it. */
static int send_begin(struct control_send *cs, struct ulnet_nid self,
		      struct ulnet_id to, size_t length, uint64_t hdr_data)
{
	struct ulnet_md md = {
		.start = cs->bytes,
		.length = (uint32_t)length,
		.threshold = 1,
		.options =
			LNET_MD_URGENT | LNET_MD_PREFER_PATH | LNET_MD_OF_LAYER,
		.user_ptr = cs,
		.handler = control_on_sent,
		.timeout = cs->shard->rpc->conf.connect_timeout,
	};
	struct ulnet_md_handle mdh;
	int rc;

	rc = LNetMDBind(cs->shard->node, &md, LNET_UNLINK, &mdh);
	if (rc) {
		send_free(cs);
		return rc;
	}
	shard_hold(cs->shard);
	rc = LNetPut(self, mdh, LNET_NOACK_REQ, to, ULRPC_PORTAL_CONTROL, 0, 0,
		     hdr_data);
	if (!rc) {
		stat_count(cs->shard, RPC_STAT_control_sent);
		return 0;
	}
	/* No SEND event comes, so @done is not called. The UNLINK event frees
	 * the message. */
	cs->done = NULL;
	BUG_ON(LNetMDUnlink(mdh));
	return rc;
}

/* Writes the seal of the message to cs->bytes. The message begins SEAL_HEAD
 * bytes behind. Sets *@length_p to the length with the seal. */
static int send_seal(struct control_send *cs, struct sealed *sd,
		     size_t *length_p, uint64_t *hdr_data_p)
{
	const struct sealed_to to = { ULRPC_PORTAL_CONTROL, 0, *hdr_data_p };
	uint8_t *message = cs->bytes + SEAL_HEAD;
	const struct iovec iov = { message, *length_p };
	int rc = sealed_make(sd, &to, &iov, 1, shard_now(cs->shard), cs->bytes,
			     sd->private ? message : NULL);

	*length_p += SEAL_HEAD;
	*hdr_data_p = wire_hdr_sealed(*hdr_data_p);
	return rc;
}

int control_send_tracked(struct shard *s, struct sealed *sd,
			 struct ulnet_nid self, struct ulnet_id to,
			 const struct wire_control *m, control_sent_fn done,
			 uint64_t id, uint64_t tag)
{
	size_t before = sd ? SEAL_HEAD : 0, length;
	struct control_send *cs;
	uint64_t hdr_data;
	int rc = 0;

	if (!s->control)
		return -ESHUTDOWN;
	cs = send_new(s, &to.nid, before + wire_control_bound(m));
	if (!cs)
		return -ENOMEM;
	cs->done = done;
	cs->id = id;
	cs->tag = tag;
	length = wire_control_encode(m, cs->bytes + before, &hdr_data);
	if (sd)
		rc = send_seal(cs, sd, &length, &hdr_data);
	if (rc) {
		send_free(cs);
		return rc;
	}
	return send_begin(cs, self, to, length, hdr_data);
}

int control_send(struct shard *s, struct sealed *sd, struct ulnet_nid self,
		 struct ulnet_id to, const struct wire_control *m)
{
	return control_send_tracked(s, sd, self, to, m, NULL, 0, 0);
}

/* ---- receiving ---- */

/* Returns the side (client or server) that messages of @kind are for; NULL:
 * neither. */
static const struct rpc_side *control_side(const struct shard *s,
					   enum wire_control_kind kind)
{
	switch (kind) {
	case WIRE_CONNECTED:
	case WIRE_OPENED:
	case WIRE_DISCONNECTED:
	case WIRE_ALIVE:
	case WIRE_EXTEND:
	case WIRE_GOODBYE:
	case WIRE_SHAKEN:
	case WIRE_LOST:
		return s->rpc->client;
	case WIRE_CONNECT:
	case WIRE_SHAKE:
	case WIRE_OPEN:
	case WIRE_DISCONNECT:
	case WIRE_KEEPALIVE:
	case WIRE_CANCEL:
		return s->rpc->server;
	default:
		return NULL;
	}
}

static void control_forwarded_there(struct forwarded *forwarded)
{
	struct shard *s = forwarded->to;
	struct wire_control m;

	if (!wire_control_decode(&m, forwarded->ev.hdr_data, forwarded->payload,
				 forwarded->length))
		control_side(s, m.kind)->on_control(s, &forwarded->ev, &m);
}

/* ---- sealed messages ---- */

/* Returns the side whose connection @handle names. */
static const struct rpc_side *handle_side(const struct shard *s,
					  uint64_t handle)
{
	unsigned int cpt = s->rpc->client->handle_cpt(handle);

	return cpt < LNET_CPTS_MAX ? s->rpc->client : s->rpc->server;
}

/* Opens a sealed message. Handles it if it is for the side that has the
 * connection. */
static void sealed_take(struct shard *s, const struct ulnet_event *ev,
			void *record, size_t length)
{
	uint64_t handle = unseal_handle(record, length);
	const struct rpc_side *side = handle_side(s, handle);
	struct ulnet_event plain = *ev;
	struct wire_control m;
	struct opened o;
	int rc;

	if (side->unseal(s, handle, ev, record, length, &o))
		return;
	plain.hdr_data = o.hdr_data;
	rc = wire_control_decode(&m, o.hdr_data, o.payload, o.length);
	if (rc)
		stat_count(s, RPC_STAT_control_malformed + stat_of_bad(rc));
	else if (control_side(s, m.kind) != side)
		stat_count(s, RPC_STAT_control_unexpected);
	else
		side->on_control(s, &plain, &m);
	side->unsealed(s);
}

static void sealed_there(struct forwarded *forwarded)
{
	sealed_take(forwarded->to, &forwarded->ev, forwarded->payload,
		    forwarded->length);
}

static void control_on_sealed(struct shard *s, const struct ulnet_event *ev,
			      void *record, size_t length)
{
	uint64_t handle = unseal_handle(record, length);
	unsigned int cpt = handle_side(s, handle)->handle_cpt(handle);
	struct forwarded *forwarded;

	if (likely(cpt == s->cpt || cpt >= s->rpc->ncpts)) {
		sealed_take(s, ev, record, length);
		return;
	}
	forwarded = forwarded_new(s, cpt, ev, record, length, false);
	if (forwarded)
		forwarded_send(forwarded, sealed_there, NULL, NULL);
}

void control_on_message(void *shard, const struct ulnet_event *ev,
			const void *payload, size_t length)
{
	struct shard *s = shard;
	const struct rpc_side *side;
	struct forwarded *forwarded;
	struct wire_control m;
	unsigned int cpt;
	int rc;

	stat_count(s, RPC_STAT_control_received);
	if (wire_is_sealed(ev->hdr_data)) {
		control_on_sealed(s, ev, (void *)payload, length);
		return;
	}
	rc = wire_control_decode(&m, ev->hdr_data, payload, length);
	if (rc) {
		stat_count(s, RPC_STAT_control_malformed + stat_of_bad(rc));
		return;
	}
	side = control_side(s, m.kind);
	if (!side) {
		stat_count(s, RPC_STAT_control_unexpected);
		return;
	}
	if (m.kind == WIRE_CONNECT || m.kind == WIRE_SHAKE)
		conn_event_heard(s, &ev->source);
	cpt = side->control_cpt(s, ev, &m);
	if (likely(cpt == s->cpt || cpt >= s->rpc->ncpts)) {
		side->on_control(s, ev, &m);
		return;
	}
	forwarded = forwarded_new(s, cpt, ev, payload, length, false);
	if (forwarded) /* without memory, the sender repeats the message */
		forwarded_send(forwarded, control_forwarded_there, NULL, NULL);
}

/* ---- life ---- */

static int control_shard_open(struct shard *s)
{
	struct control *c = s->control;
	int rc;

	slab_init(&c->slab, s);
	quotas_init(&c->quotas, "control messages on their way", SENDS_MAX,
		    shard_random(s, UINT64_MAX));
	c->inbox = (struct inbox){
		.shard = s,
		.portal = ULRPC_PORTAL_CONTROL,
		.buffers = s->rpc->conf.control_buffers,
		.buffer_size = BUFFER_SIZE,
		.message_max = CONTROL_MESSAGE_MAX,
		.fn = control_on_message,
		.arg = s,
	};
	rc = inbox_open(&c->inbox);
	if (rc)
		return rc;
	c->open = true;
	shard_hold(s);
	return 0;
}

static void control_on_inbox_closed(void *arg)
{
	struct shard *s = arg;

	s->control->open = false;
	shard_release(s);
}

static void control_shard_stop(struct shard *s)
{
	if (s->control->open)
		inbox_close(&s->control->inbox, control_on_inbox_closed, s);
}

static void control_shard_free(struct shard *s)
{
	struct control *c = s->control;

	slab_stop(&c->slab);
	slab_fini(&c->slab);
	quotas_fini(&c->quotas);
}

const struct rpc_part control_part = {
	RPC_PART_STATE(struct control, control),
	.shard_open = control_shard_open,
	.shard_stop = control_shard_stop,
	.shard_free = control_shard_free,
};
