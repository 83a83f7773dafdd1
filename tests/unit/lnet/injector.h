/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A node in virtual time, with an LND that the test plays: it hands messages to
 * the node as if they came from peers, with headers that may say anything, and
 * completes what the node sends in the way that the test chooses. It keeps to
 * the contract of lnd/lnd.h, and aborts when the node does not.
 */
#ifndef TESTS_INJECTOR_H
#define TESTS_INJECTOR_H

#include <errno.h>
#include <string.h>
#include "base/env.h"
#include "base/iov.h"
#include "lnd/lnd.h"
#include "lnet/message/wire.h"
#include "lnet/node/node.h"
#include "sim/sim.h"

#define INJECT_NIS  4
#define INJECT_SENT 64
#define INJECT_HEAD 128 /* bytes of a payload that are remembered */

/* How the LND stores a payload, or sends a message. */
enum inject_how {
	INJECT_NOW,    /* at once; sending: at the end of the turn */
	INJECT_LATER,  /* when the test calls inject_pump() */
	INJECT_FAIL,   /* not at all: the connection breaks */
	INJECT_REFUSE, /* send() and eager_recv() return an error */
};

/* A message that comes to the node. */
struct inject_rx {
	struct list link; /* in injector.rxs */
	struct injector *in;
	struct inject_cpt *ic;
	struct work work;
	struct ulnet_nid from;
	struct lnd_msg *msg; /* whose payload is being stored */
	bool parsed, answered;
	size_t hdr_len;
	uint8_t hdr[LNET_HDR_LARGE_SIZE];
	uint8_t *payload;
	uint32_t length; /* of the payload that really came */
};

/* The part of an NI on one CPT. */
struct inject_cpt {
	struct inject_ni *ni;
	unsigned int index;
	struct list sends; /* messages being sent, by lnd_msg.link */
	struct work work;
	bool scheduled, stopped;
};

struct inject_ni {
	struct injector *in;
	struct lnd_ni *lnd;
	struct inject_cpt cpt[LNET_CPTS_MAX];
};

/* Header and first bytes of a message that the node has sent. */
struct inject_sent {
	struct ulnet_nid to;
	uint32_t to_pid;
	struct lnet_hdr hdr;
	uint64_t sum; /* of the bytes of its payload */
	uint8_t head[INJECT_HEAD];
};

struct injector {
	struct env_sim *env;
	struct loop *loops[LNET_CPTS_MAX];
	unsigned int cpts;
	struct lnet *node;
	struct inject_ni *ni[INJECT_NIS]; /* NULL: no NI */
	struct list rxs;
	enum inject_how store, send, bounce;
	uint32_t sender_pid;  /* PID of all senders */
	unsigned int refused; /* messages that lnet_parse() has refused */
	bool push;	      /* push() takes messages */
	unsigned int pushed;  /* messages that push() has taken */
	bool straight;	      /* messages are offered to lnet_take() first */
	unsigned int taken;   /* messages that lnet_take() has taken */
	/* messages sent so far; the last INJECT_SENT are in sent[] */
	unsigned int nsent;
	struct inject_sent sent[INJECT_SENT];
};

static inline struct inject_cpt *inject_cpt(struct lnd_ni *lnd,
					    unsigned int cpt)
{
	struct inject_ni *ni = lnd->priv;

	return &ni->cpt[cpt];
}

/* ---- sending ---- */

static inline void inject_sent(struct inject_cpt *ic, struct lnd_msg *msg,
			       bool ok)
{
	list_del(&msg->link);
	msg->priv = NULL;
	lnet_finalize(msg, ok ? 0 : -EIO,
		      ok ? LNET_CAUSE_OK : LNET_CAUSE_REMOTE_ERROR);
	(void)ic;
}

static inline void inject_send_work(struct work *w)
{
	struct inject_cpt *ic = container_of(w, struct inject_cpt, work);
	struct injector *in = ic->ni->in;

	ic->scheduled = false;
	if (ic->stopped) {
		lnet_ni_stopped(ic->ni->lnd, ic->index);
		return;
	}
	while (!ic->stopped && in->send != INJECT_LATER &&
	       !list_empty(&ic->sends))
		inject_sent(ic, list_first(&ic->sends, struct lnd_msg, link),
			    in->send == INJECT_NOW);
}

/* Records what a correct peer would receive, and checks that its header is
 * sound. */
static inline void inject_look(struct injector *in, const struct lnd_msg *msg)
{
	struct inject_sent *s = &in->sent[in->nsent++ % INJECT_SENT];
	uint8_t hdr[LNET_HDR_LARGE_SIZE];
	uint8_t *payload = malloc(msg->length + 1);

	BUG_ON(!payload);
	lnet_msg_header(msg, hdr, sizeof(hdr));
	BUG_ON(hdr_decode(&s->hdr, hdr, sizeof(hdr)) != 0);
	BUG_ON(s->hdr.payload_length != msg->length);
	BUG_ON(lnet_nid_is_any(&s->hdr.src_nid));
	s->to = msg->next_hop;
	s->to_pid = msg->next_pid;
	s->sum = 0;
	iov_gather(payload, msg->iov, msg->niov, msg->offset, msg->length);
	for (uint32_t i = 0; i < msg->length; i++)
		s->sum += payload[i];
	memcpy(s->head, payload, MIN(msg->length, INJECT_HEAD));
	free(payload);
}

static inline bool inject_push(struct lnd_ni *lnd, struct lnd_msg *msg)
{
	struct inject_cpt *ic = inject_cpt(lnd, msg->cpt);
	struct injector *in = ic->ni->in;

	BUG_ON(ic->stopped);
	if (!in->push)
		return false;
	inject_look(in, msg);
	in->pushed++;
	return true;
}

static inline int inject_send(struct lnd_ni *lnd, struct lnd_msg *msg)
{
	struct inject_cpt *ic = inject_cpt(lnd, msg->cpt);
	struct injector *in = ic->ni->in;

	BUG_ON(ic->stopped);
	BUG_ON(loop_current() && loop_current() != lnd->loops[msg->cpt]);
	if (in->send == INJECT_REFUSE)
		return -EIO;
	inject_look(in, msg);
	msg->priv = NULL;
	list_add_tail(&ic->sends, &msg->link);
	if (!ic->scheduled) {
		ic->scheduled = true;
		loop_defer(lnd->loops[msg->cpt], &ic->work);
	}
	return 0;
}

/* ---- receiving ---- */

static inline void inject_rx_free(struct inject_rx *rx)
{
	list_del(&rx->link);
	free(rx->payload);
	free(rx);
}

static inline void inject_stored(struct inject_rx *rx, int status,
				 enum ulnet_cause cause)
{
	struct lnd_msg *msg = rx->msg;

	if (!status)
		iov_scatter(msg->iov, msg->niov, msg->offset, rx->payload,
			    msg->length);
	inject_rx_free(rx);
	msg->priv = NULL;
	lnet_finalize(msg, status, cause);
}

static inline void inject_recv(struct lnd_ni *lnd, void *priv,
			       struct lnd_msg *msg, uint32_t rlength)
{
	struct inject_rx *rx = priv;
	struct lnet_hdr hdr;
	bool broken;

	(void)lnd;
	BUG_ON(rx->answered);
	rx->answered = true;
	BUG_ON(hdr_decode(&hdr, rx->hdr, rx->hdr_len) != 0);
	BUG_ON(hdr.payload_length != rlength);
	if (!msg) {
		inject_rx_free(rx);
		return;
	}
	BUG_ON(msg->length > rlength);
	rx->msg = msg;
	msg->priv = rx;
	/* The header may promise more bytes than come. */
	broken = msg->length > rx->length || rx->in->store == INJECT_FAIL;
	if (rx->ic->stopped)
		inject_stored(rx, -ESHUTDOWN, LNET_CAUSE_SHUTDOWN);
	else if (broken)
		inject_stored(rx, -EIO, LNET_CAUSE_REMOTE_ERROR);
	else if (rx->in->store == INJECT_NOW)
		inject_stored(rx, 0, LNET_CAUSE_OK);
}

static inline int inject_eager_recv(struct lnd_ni *lnd, void *priv)
{
	struct inject_rx *rx = priv;

	(void)lnd;
	BUG_ON(rx->answered);
	return rx->in->bounce == INJECT_REFUSE ? -ENOMEM : 0;
}

static inline void inject_cancel(struct lnd_ni *lnd, struct lnd_msg *msg,
				 int status)
{
	struct inject_rx *rx = msg->priv;

	(void)lnd;
	if (rx) {
		inject_stored(rx, status, LNET_CAUSE_NETWORK_TIMEOUT);
		return;
	}
	list_del(&msg->link);
	lnet_finalize(msg, status, LNET_CAUSE_NETWORK_TIMEOUT);
}

/* ---- up and down ---- */

static inline int inject_startup(struct lnd_ni *lnd)
{
	struct injector *in = lnd->net;
	struct inject_ni *ni = calloc(1, sizeof(*ni));
	unsigned int at = 0;

	while (at < INJECT_NIS && in->ni[at])
		at++;
	if (!ni || at == INJECT_NIS) {
		free(ni);
		return -ENOSPC;
	}
	ni->in = in;
	ni->lnd = lnd;
	for (unsigned int i = 0; i < lnd->cpts; i++) {
		ni->cpt[i].ni = ni;
		ni->cpt[i].index = i;
		ni->cpt[i].work.fn = inject_send_work;
		list_init(&ni->cpt[i].sends);
	}
	lnd->priv = ni;
	in->ni[at] = ni;
	return 0;
}

/* Ends the storing of all payloads on @ic. */
static inline void inject_rxs_abort(struct inject_cpt *ic)
{
	struct injector *in = ic->ni->in;
	struct inject_rx *rx;
	bool found;

	/* Handlers may change the list, so each time it is searched from its
	 * head. */
	do {
		found = false;
		list_for_each_entry (rx, &in->rxs, link) {
			if (rx->ic != ic || !rx->msg)
				continue;
			inject_stored(rx, -ESHUTDOWN, LNET_CAUSE_SHUTDOWN);
			found = true;
			break;
		}
	} while (found);
}

static inline void inject_shutdown(struct lnd_ni *lnd, unsigned int cpt)
{
	struct inject_cpt *ic = inject_cpt(lnd, cpt);

	BUG_ON(ic->stopped);
	ic->stopped = true;
	while (!list_empty(&ic->sends)) {
		struct lnd_msg *msg =
			list_first(&ic->sends, struct lnd_msg, link);

		list_del(&msg->link);
		lnet_finalize(msg, -ESHUTDOWN, LNET_CAUSE_LOCAL_ABORTED);
	}
	inject_rxs_abort(ic);
	if (!ic->scheduled)
		lnet_ni_stopped(lnd, cpt);
}

static inline void inject_ni_free(struct lnd_ni *lnd)
{
	struct inject_ni *ni = lnd->priv;
	struct injector *in = ni->in;
	struct inject_rx *rx;

	/* All messages that were passed to lnet_parse() have been answered.
	 * What is left is on its way there. */
	list_for_each_entry (rx, &in->rxs, link) {
		if (!rx->ic || rx->ic->ni != ni)
			continue;
		BUG_ON(rx->parsed);
		rx->ic = NULL;
	}
	for (unsigned int i = 0; i < INJECT_NIS; i++)
		if (in->ni[i] == ni)
			in->ni[i] = NULL;
	free(ni);
}

/* The interfaces that there are: inj0 is 10.77.0.2, inj6 has a large address,
 * two has a small and a large one, bare has no address, and odd has one of a
 * size that no address has. No interface has 10.66.6.6. */
static inline int inject_resolve(const char *interface, struct ulnet_nid *nid,
				 char name[LNET_INTERFACE_SIZE])
{
	const uint8_t addr[4] = { 10, 77, 0, 2 }, nobody[4] = { 10, 66, 6, 6 };

	BUG_ON(interface &&
	       memcmp(nid->addr, (uint8_t[16]){ 0 }, sizeof(nid->addr)) != 0);
	if (!interface) {
		if (!memcmp(nid->addr, nobody, sizeof(nobody)))
			return -EADDRNOTAVAIL;
		if (!memcmp(nid->addr, addr, sizeof(addr)))
			text_copy(name, LNET_INTERFACE_SIZE, "inj0");
		return 0;
	}
	if (!strcmp(interface, "bare"))
		return -EADDRNOTAVAIL;
	if (strcmp(interface, "inj0") != 0 && strcmp(interface, "inj6") != 0 &&
	    strcmp(interface, "two") != 0 && strcmp(interface, "odd") != 0)
		return -ENODEV;
	memcpy(nid->addr, addr, sizeof(addr));
	if (!strcmp(interface, "inj6"))
		nid->size = LNET_NID_IPV6_SIZE;
	else if (strcmp(interface, "two") != 0)
		nid->size = 0;
	if (!strcmp(interface, "odd"))
		nid->size = 3;
	text_copy(name, LNET_INTERFACE_SIZE, interface);
	return 0;
}

enum { INJECT_DEPTH, INJECT_TOS, INJECT_FIXED, INJECT_TUNABLES };
static const struct lnd_tunable inject_tunables[INJECT_TUNABLES] = {
	[INJECT_DEPTH] = { "depth", "", "how deep", 1, 100, 16 },
	[INJECT_TOS] = { "tos", "", "type of service", -1, 255, -1 },
	[INJECT_FIXED] = { "fixed", "s", "nothing else", INT64_MAX, INT64_MAX,
			   INT64_MAX },
};

static const struct lnd inject_lnd = {
	.name = "inject",
	.type = -1,
	.tunables = inject_tunables,
	.ntunables = INJECT_TUNABLES,
	.resolve = inject_resolve,
	.startup = inject_startup,
	.shutdown = inject_shutdown,
	.free = inject_ni_free,
	.send = inject_send,
	.push = inject_push,
	.recv = inject_recv,
	.eager_recv = inject_eager_recv,
	.cancel = inject_cancel,
};

/* ---- for the tests ---- */

static inline bool inject_drive(void *arg, uint64_t until)
{
	struct injector *in = arg;

	return env_sim_step(in->env, until);
}

static inline void inject_leaked(void *arg, struct lnet *node, const char *what,
				 uint32_t n)
{
	(void)arg;
	(void)node;
	fprintf(stderr, "%u %s were not freed\n", n, what);
	abort();
}

static inline void inject_nothing(void *arg, struct lnet *node, uint64_t op,
				  struct lnd_msg *req, uint64_t deadline)
{
	(void)arg;
	(void)node;
	(void)op;
	(void)req;
	(void)deadline;
}

static inline void inject_no_event(void *arg, struct lnet *node, uint64_t op,
				   const struct ulnet_event *ev)
{
	(void)arg;
	(void)node;
	(void)op;
	(void)ev;
}

static inline void inject_no_accepted(void *arg, struct lnet *node,
				      struct lnd_ni *ni, void *rx)
{
	(void)arg;
	(void)node;
	(void)ni;
	(void)rx;
}

static inline void inject_no_forward(void *arg, struct lnet *node,
				     struct lnd_ni *ni, void *rx,
				     struct lnd_msg *msg)
{
	(void)arg;
	(void)node;
	(void)ni;
	(void)rx;
	(void)msg;
}

static inline void inject_no_forwarded(void *arg, struct lnet *node,
				       struct lnd_msg *msg)
{
	(void)arg;
	(void)node;
	(void)msg;
}

static const struct lnet_observer inject_observer = {
	.begin = inject_nothing,
	.event = inject_no_event,
	.accepted = inject_no_accepted,
	.forward = inject_no_forward,
	.forwarded = inject_no_forwarded,
	.leaked = inject_leaked,
};

/* Opens a node with @n NIs and @conf->cpts CPTs. It discovers nobody. */
static inline struct injector *inject_open(const struct ulnet_conf *conf,
					   const struct ulnet_nid *nids,
					   unsigned int n)
{
	struct injector *in = calloc(1, sizeof(*in));
	struct node_params p = { .conf = *conf,
				 .lnds = open_lnds,
				 .lnd = &inject_lnd,
				 .lnd_net = in,
				 .observer = &inject_observer,
				 .drive = inject_drive,
				 .drive_arg = in };

	BUG_ON(!in);
	p.conf.discovery = LNET_DISCOVERY_OFF;
	in->cpts = conf->cpts;
	list_init(&in->rxs);
	BUG_ON(env_sim_new(1, &in->env));
	for (unsigned int i = 0; i < in->cpts; i++) {
		struct env *env;

		BUG_ON(env_sim_env(in->env, &env));
		BUG_ON(loop_new(env, &in->loops[i]));
	}
	in->sender_pid = LNET_PID_LUSTRE;
	p.loops = in->loops;
	BUG_ON(node_open(&p, &in->node));
	for (unsigned int i = 0; i < n; i++) {
		struct ulnet_ni_conf ni = { .nid = nids[i] };

		BUG_ON(lnet_ni_add(in->node, &ni));
	}
	return in;
}

static inline void inject_parse(struct work *w)
{
	struct inject_rx *rx = container_of(w, struct inject_rx, work);
	struct inject_cpt *ic = rx->ic;
	struct ulnet_id from = { rx->from, rx->in->sender_pid };

	if (!ic || ic->stopped) {
		inject_rx_free(rx);
		return;
	}
	if (rx->in->straight && lnet_take(ic->ni->lnd, rx->hdr, rx->hdr_len,
					  &from, rx, rx->payload)) {
		rx->in->taken++;
		inject_rx_free(rx);
		return;
	}
	rx->parsed = true;
	/* lnet_parse() may have freed @rx when it returns 0. */
	if (lnet_parse(ic->ni->lnd, rx->hdr, rx->hdr_len, &from, rx) == 0)
		return;
	BUG_ON(rx->answered);
	ic->ni->in->refused++;
	inject_rx_free(rx);
}

/* A message arrives at NI number @ni. The node gets it in the next turn of the
 * CPT of @from. */
static inline void inject(struct injector *in, unsigned int ni, const void *hdr,
			  size_t hdr_len, const struct ulnet_nid *from,
			  const void *payload, uint32_t length)
{
	struct inject_rx *rx = calloc(1, sizeof(*rx));
	unsigned int cpt;

	BUG_ON(!rx || hdr_len > sizeof(rx->hdr));
	if (ni >= INJECT_NIS || !in->ni[ni]) {
		free(rx);
		return;
	}
	cpt = lnet_ni_cpt_of(in->ni[ni]->lnd, from);
	rx->in = in;
	rx->ic = &in->ni[ni]->cpt[cpt];
	rx->work.fn = inject_parse;
	rx->from = *from;
	rx->hdr_len = hdr_len;
	memcpy(rx->hdr, hdr, hdr_len);
	rx->payload = malloc(length + 1);
	BUG_ON(!rx->payload);
	if (length)
		memcpy(rx->payload, payload, length);
	rx->length = length;
	list_add_tail(&in->rxs, &rx->link);
	loop_post(in->loops[cpt], &rx->work);
}

static inline void inject_run(struct injector *in, uint64_t ns)
{
	uint64_t until = env_sim_now(in->env) + ns;

	while (env_sim_step(in->env, until))
		;
}

static inline int inject_pump_call(void *arg)
{
	struct inject_cpt *ic = arg;
	struct injector *in = ic->ni->in;
	enum inject_how send = in->send;
	struct inject_rx *rx;
	bool found;

	if (send == INJECT_LATER)
		in->send = INJECT_NOW;
	inject_send_work(&ic->work);
	in->send = send;
	do {
		found = false;
		list_for_each_entry (rx, &in->rxs, link) {
			if (rx->ic != ic || !rx->msg)
				continue;
			inject_stored(rx, 0, LNET_CAUSE_OK);
			found = true;
			break;
		}
	} while (found && !ic->stopped);
	return 0;
}

struct inject_pump {
	struct work work;
	struct injector *in;
	unsigned int cpt;
};

static inline void inject_pump_work(struct work *w)
{
	struct inject_pump *p = container_of(w, struct inject_pump, work);

	for (unsigned int i = 0; i < INJECT_NIS; i++) {
		struct inject_ni *ni = p->in->ni[i];

		if (ni && !ni->cpt[p->cpt].stopped &&
		    !ni->cpt[p->cpt].scheduled)
			inject_pump_call(&ni->cpt[p->cpt]);
	}
	free(p);
}

/* Completes in the next turn what INJECT_LATER has postponed. */
static inline void inject_pump(struct injector *in)
{
	for (unsigned int i = 0; i < in->cpts; i++) {
		struct inject_pump *p = malloc(sizeof(*p));

		BUG_ON(!p);
		*p = (struct inject_pump){ .work.fn = inject_pump_work,
					   .in = in,
					   .cpt = i };
		loop_post(in->loops[i], &p->work);
	}
}

static inline void inject_check(struct injector *in)
{
	char buf[256];
	const char *wrong = node_check(in->node, buf, sizeof(buf));

	if (!wrong)
		return;
	fprintf(stderr, "node_check: %s\n", wrong);
	abort();
}

static inline void inject_close(struct injector *in)
{
	inject_check(in);
	lnet_close(in->node);
	/* Once the node is closed nothing happens any more, and no message is
	 * left. */
	inject_run(in, NSEC_PER_SEC);
	BUG_ON(!list_empty(&in->rxs));
	for (unsigned int i = 0; i < in->cpts; i++)
		loop_free(in->loops[i]);
	env_sim_free(in->env);
	free(in);
}

#endif
