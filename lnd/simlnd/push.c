/* SPDX-License-Identifier: BSD-3-Clause */
#include "lnd/simlnd/net.h"

#include <string.h>

#include "base/iov.h"

/* A message that push() has taken. */
struct sim_pushed {
	struct lnd_msg msg;
	struct iovec iov;
	size_t hdr_len;
	uint8_t hdr[LNET_HDR_LARGE_SIZE];
	uint8_t payload[];
};

static struct sim_pushed *pushed_of(struct lnd_msg *copy)
{
	return container_of(copy, struct sim_pushed, msg);
}

/* Could something be pushed on @p now, as far as the network goes? */
static bool is_open(const struct sim_path *p)
{
	if (!p->ep || !ep_is_there(p->ep) || p->unread)
		return false;
	return !p->link.connect ||
	       (p->conn.state == SIM_CONN_OPEN &&
		p->generation == atomic_load(&p->ep->generation));
}

struct sim_path *sim_push_path(struct sim_cpt *sc, const struct lnd_msg *msg)
{
	const struct sim_net *net = sc->ep->net;
	struct sim_path *p;

	if (likely(!net->push) || !atomic_load(&sc->ep->up))
		return NULL;
	p = net_path_find(sc, &msg->next_hop);
	if (!p || !is_open(net_path_now(sc, p)))
		return NULL;
	return loop_random(sc->loop) % LNET_SIM_ALWAYS < net->push ? p : NULL;
}

size_t sim_msg_header(const struct lnd_msg *msg, const struct ulnet_nid *src,
		      uint8_t *hdr)
{
	size_t len = lnet_nid_is_nid4(src) && lnet_nid_is_nid4(&msg->next_hop)
			     ? LNET_HDR_SIZE
			     : LNET_HDR_LARGE_SIZE;

	lnet_msg_header(msg, hdr, len);
	return len;
}

struct lnd_msg *sim_pushed_new(const struct sim_cpt *sc, struct lnd_msg *msg)
{
	const struct sim_net *net = sc->ep->net;
	struct sim_pushed *p = malloc(sizeof(*p) + msg->length);

	if (!p)
		return NULL;
	p->hdr_len = sim_msg_header(msg, &sc->ep->nid, p->hdr);
	iov_gather(p->payload, msg->iov, msg->niov, msg->offset, msg->length);
	p->iov = (struct iovec){ p->payload, msg->length };
	p->msg = (struct lnd_msg){ .ni = msg->ni,
				   .next_hop = msg->next_hop,
				   .cpt = msg->cpt,
				   .iov = &p->iov,
				   .niov = 1,
				   .length = msg->length };
	if (net->watched)
		net->watch.push(net->watch.arg, msg, &p->msg);
	return &p->msg;
}

size_t sim_pushed_header(struct lnd_msg *copy, uint8_t *hdr)
{
	const struct sim_pushed *p = pushed_of(copy);

	memcpy(hdr, p->hdr, p->hdr_len);
	return p->hdr_len;
}

void sim_pushed_free(const struct sim_cpt *sc, struct lnd_msg *copy)
{
	const struct sim_net *net = sc->ep->net;

	if (copy->mark)
		net->watch.drop(net->watch.arg, copy->mark);
	free(pushed_of(copy));
}
