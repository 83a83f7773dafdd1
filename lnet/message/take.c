/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The straight way of an incoming message: a PUT, all of whose payload is at
 * hand, goes from its header to its event in one function. Nothing can happen
 * to such a message in between, so it needs no msg_in: no state, no timer, no
 * share of its sender.
 *
 * What takes this way is what needs no decision. A message about which there is
 * anything to ask goes the general way, which begins in parse.c: messages of
 * other types, PUTs that are to be acknowledged, what is not for this node or
 * not from the process at the other end of the connection, senders of whom
 * other messages are held, or who have to wait, or whose NID is unverified,
 * nodes with fault rules, and PUTs without a buffer. The event of a PUT is the
 * same on both ways.
 */
#include "lnet/message/msgs.h"
#include "lnet/net/net.h"
#include "lnet/path/health.h"
#include "lnet/peer/provenance.h"
#include "lnet/portal/md.h"

/* Is the message with @hdr a PUT that wants no ACK, for @ni from @from? */
static bool is_plain_put(const struct lnet_ni *ni, const struct lnet_hdr *hdr,
			 const struct ulnet_nid *from)
{
	return hdr->type == LNET_MSG_PUT && wire_handle_is_none(&hdr->wmd) &&
	       hdr->portal < LNET_PORTALS && lnet_nid_eq(&hdr->src_nid, from) &&
	       lnet_nid_eq(&hdr->dest_nid, &ni->lnd.nid);
}

/* Does the CPT handle messages on @portal of @ni as they come, without faults,
 * and before any that came earlier? */
static bool is_plain_time(const struct lnet_cpt *cpt, const struct lnet_ni *ni,
			  unsigned int portal)
{
	const struct msg_cpt *mc = msg_cpt(cpt);

	return !cpt->closing && !ni->cpt[cpt->index].stopped && !mc->faults &&
	       list_empty(&mc->unexpected[portal].queries);
}

/* Returns the sender, without a reference; NULL: it is not known yet, its NID
 * is unverified, other messages of it are held, or it has to wait. */
static struct lnet_peer_ni *plain_sender(const struct lnet_cpt *cpt,
					 const struct ulnet_nid *from)
{
	struct lnet_peer_ni *lpni = peer_find(cpt, from);

	return likely(lpni && !lpni->has.msgs && !lpni->has.full &&
		      !provenance_is_unverified(lpni))
		       ? lpni
		       : NULL;
}

static bool find_buffer(struct lnet_cpt *cpt, const struct lnet_hdr *hdr,
			struct match_found *found)
{
	const struct match_want want = {
		.peers = &cpt->node->directory,
		.id = { hdr->src_nid, hdr->src_pid },
		.bits = hdr->match_bits,
		.portal = hdr->portal,
		.op = LNET_MD_OP_PUT,
		.rlength = hdr->payload_length,
		.roffset = hdr->offset,
	};

	return !match_find(cpt, &want, found);
}

static void count_taken(struct lnet_cpt *cpt, struct lnet_ni *ni,
			struct lnet_peer_ni *lpni,
			const struct match_found *found, uint32_t length)
{
	cpt_stat(cpt, STAT_recv_count);
	stat_add(&cpt->stats[STAT_recv_length], found->mlength);
	traffic_add(&ni->cpt[cpt->index].traffic.recv, LNET_MSG_PUT,
		    found->mlength);
	traffic_add(&lpni->traffic.recv, LNET_MSG_PUT, length);
	health_heard(cpt, ni, lpni);
}

bool upcall_take(struct lnd_ni *lnd, const void *bytes, size_t hdr_len,
		 const struct ulnet_id *sender, void *rx, const void *payload)
{
	struct lnet_ni *ni = ni_of(lnd);
	struct lnet_cpt *cpt = node_cpt_here(ni->node);
	const struct lnet_observer *o = cpt->node->observer;
	struct lnet_peer_ni *lpni;
	struct match_found found;
	struct ulnet_event ev;
	struct lnet_hdr hdr;

	if (unlikely(hdr_decode(&hdr, bytes, hdr_len) ||
		     !is_plain_put(ni, &hdr, &sender->nid) ||
		     !is_plain_time(cpt, ni, hdr.portal)))
		return false;
	hdr.src_pid = sender->pid;
	lpni = plain_sender(cpt, &sender->nid);
	if (unlikely(!lpni || !find_buffer(cpt, &hdr, &found)))
		return false;
	if (unlikely(o))
		o->accepted(o->arg, cpt->node, lnd, rx);
	count_taken(cpt, ni, lpni, &found, hdr.payload_length);
	iov_scatter(found.md->iov, found.md->niov, found.offset, payload,
		    found.mlength);
	request_event_init(&ev, &hdr);
	ev.status = 0;
	ev.cause = LNET_CAUSE_OK;
	ev.initiator.nid = lpni->peer->primary;
	ev.sender = sender->nid;
	ev.mlength = found.mlength;
	ev.offset = found.offset;
	peer_touch(lpni);
	md_event_put(found.md, &ev, 0);
	return true;
}
