/* SPDX-License-Identifier: BSD-3-Clause */
#include "lnd/o2iblnd/admit.h"

#include <errno.h>

#define PRIVILEGED_BELOW 1024

static void reject_init(struct ib_reject *reject, enum ib_reject_reason reason)
{
	*reject = (struct ib_reject){
		.version = IB_VERSION_2,
		.reason = (uint8_t)reason,
		.full = true,
		.params = { .max_msg_size = IB_MSG_SIZE_MAX },
	};
}

void ib_admit_reject(const struct ib_terms *terms, enum ib_reject_reason reason,
		     struct ib_reject *reject)
{
	reject_init(reject, reason);
	reject->stamp = terms->self.stamp;
	reject->params.queue_depth = terms->depth;
	reject->params.max_frags = terms->frags;
}

static int refuse(int rc, const char *text, const char **why)
{
	*why = text;
	return rc;
}

/* Is the request of the protocol version of this side, and for this NI? */
static int check_address(const struct ib_terms *terms,
			 const struct ib_envelope *env,
			 struct ib_reject *reject, const char **why)
{
	if (env->version != IB_VERSION_2)
		return refuse(-EPROTO, "version 1", why);
	if (lnet_nid_eq(&env->dst.nid, &terms->self.nid))
		return 0;
	if (terms->starting)
		reject->reason = IB_REJECT_EARLY;
	return refuse(-EADDRNOTAVAIL, "it is for another interface", why);
}

/* Can @nid be the NID of a peer? It must be of our net, and not our own. */
static bool is_neighbour(const struct ib_terms *terms,
			 const struct ulnet_nid *nid)
{
	return lnet_nid_net(nid) == lnet_nid_net(&terms->self.nid) &&
	       !lnet_nid_eq(nid, &terms->self.nid);
}

/* Checks the incarnation of this NI, the message type, and the limits in the
 * request. */
static int check_terms(const struct ib_terms *terms,
		       const struct ib_source *from, const struct ib_msg *msg,
		       const struct ib_envelope *env,
		       enum ib_reject_reason *reason, const char **why)
{
	const struct ib_conn_params *p = &msg->params;

	*reason = IB_REJECT_STALE;
	if (env->dst.stamp && env->dst.stamp != terms->self.stamp)
		return refuse(-ESTALE, "it is for an earlier life of this one",
			      why);
	*reason = IB_REJECT_FATAL;
	if (msg->type != IB_MSG_CONNREQ)
		return refuse(-EPROTO, "no connect request", why);
	if (!p->queue_depth || !p->max_frags || !env->src.stamp)
		return refuse(-EPROTO, "a connection for nothing", why);
	if (!is_neighbour(terms, &env->src.nid))
		return refuse(-EPROTO, "it is not of this net", why);
	/* Shares are counted by NID, so a peer must not choose its NID freely.
	 * All nodes connect from the address of the NI that they name. */
	if (!lnet_nid_eq(&env->src.nid, &from->nid))
		return refuse(-EPERM,
			      "it comes from another address than its NID's",
			      why);
	*reason = IB_REJECT_DEPTH;
	if (p->queue_depth > terms->depth)
		return refuse(-E2BIG, "its queue is too deep", why);
	*reason = IB_REJECT_FRAGS;
	if (p->max_frags > terms->frags)
		return refuse(-E2BIG, "it has too many fragments", why);
	*reason = IB_REJECT_FATAL;
	if (p->max_msg_size > IB_MSG_SIZE_MAX)
		return refuse(-EPROTO, "its messages are too long", why);
	return 0;
}

int ib_admit(const struct ib_terms *terms, const struct ib_source *from,
	     const void *private, size_t length, struct ib_request *request,
	     struct ib_reject *reject, const char **why)
{
	enum ib_reject_reason reason;
	struct ib_envelope env;
	struct ib_msg msg;
	int rc;

	/* Tells nothing of this NI before the request is known to be for it. */
	reject_init(reject, IB_REJECT_FATAL);
	if (terms->privileged && from->port >= PRIVILEGED_BELOW)
		return refuse(-EACCES, "its port is not a privileged one", why);
	if (ib_msg_decode(private, length, &msg, why))
		return -EPROTO;
	env = ib_msg_env(&msg);
	rc = check_address(terms, &env, reject, why);
	if (rc)
		return rc;
	rc = check_terms(terms, from, &msg, &env, &reason, why);
	if (rc) {
		ib_admit_reject(terms, reason, reject);
		return rc;
	}
	request->peer = env.src;
	request->depth = msg.params.queue_depth;
	request->frags = msg.params.max_frags;
	return 0;
}

int ib_admit_answer(const struct ib_end *self, const struct ulnet_nid *peer,
		    const struct ib_request *asked, const void *private,
		    size_t length, struct ib_request *agreed, const char **why)
{
	struct ib_envelope env;
	struct ib_msg msg;

	if (ib_msg_decode(private, length, &msg, why))
		return -EPROTO;
	env = ib_msg_env(&msg);
	if (msg.type != IB_MSG_CONNACK || env.version != IB_VERSION_2)
		return refuse(-EPROTO, "not the answer to a connect request",
			      why);
	if (!msg.params.queue_depth || msg.params.queue_depth > asked->depth)
		return refuse(-EPROTO, "its queue is too deep", why);
	if (!msg.params.max_frags || msg.params.max_frags > asked->frags)
		return refuse(-EPROTO, "it has too many fragments", why);
	if (msg.params.max_msg_size > IB_MSG_SIZE_MAX)
		return refuse(-EPROTO, "its messages are too long", why);
	if (!lnet_nid_eq(&env.src.nid, peer) || !env.src.stamp)
		return refuse(-ESTALE, "it is somebody else", why);
	if (!lnet_nid_eq(&env.dst.nid, &self->nid) ||
	    env.dst.stamp != self->stamp)
		return refuse(-ESTALE, "it is for an earlier life of this one",
			      why);
	agreed->peer = env.src;
	agreed->depth = msg.params.queue_depth;
	agreed->frags = msg.params.max_frags;
	return 0;
}

/* ---- races of requests ---- */

uint32_t ib_race_hash(const struct ulnet_nid *nid)
{
	return lnet_nid_net(nid) ^ load_le32(nid->addr);
}

bool ib_race_is_lower(enum ib_race_rule rule, const struct ulnet_nid *a,
		      const struct ulnet_nid *b)
{
	if (rule == IB_RACE_NID)
		return lnet_nid_to_nid4(a) < lnet_nid_to_nid4(b);
	return ib_race_hash(a) < ib_race_hash(b);
}

/* ---- refusals ---- */

/* If less is @offered than was @asked for, lowers *@next to what is offered,
 * and returns true. */
static bool take_offer(uint16_t asked, uint16_t offered, uint16_t *next)
{
	if (!offered || offered >= asked)
		return false;
	*next = MIN(*next, offered);
	return true;
}

/* Does the peer's LND, which has rejected our request with @r, want another
 * request? Sets in @next what the peer has told. */
static bool is_again(const struct ib_reject *r, const struct ib_request *asked,
		     struct ib_request *next)
{
	if (r->full && r->stamp)
		next->peer.stamp = r->stamp;
	switch (r->reason) {
	case IB_REJECT_RACE:
	case IB_REJECT_STALE:
		return true;
	case IB_REJECT_INCOMPATIBLE:
		return r->version == IB_VERSION_2;
	case IB_REJECT_FRAGS:
		return take_offer(asked->frags, r->params.max_frags,
				  &next->frags);
	case IB_REJECT_DEPTH:
		return take_offer(asked->depth, r->params.queue_depth,
				  &next->depth);
	default:
		return false;
	}
}

static enum ulnet_cause admit_cause_of(int status)
{
	switch (status) {
	case -EHOSTUNREACH:
	case -ENODEV:
		return LNET_CAUSE_LOCAL_NO_ROUTE;
	case -ECONNREFUSED:
	case -ETIMEDOUT:
	case -EPROTO:
	case -ESTALE:
	case -ECONNRESET:
		return LNET_CAUSE_REMOTE_DROPPED;
	default:
		return LNET_CAUSE_LOCAL_DROPPED;
	}
}

struct ib_verdict ib_refusal_judge(int status, const struct ib_refusal *refusal,
				   const struct ib_request *asked,
				   struct ib_request *next)
{
	struct ib_verdict v = { .status = status };

	/* The peer does not answer. LNet would take -ENETDOWN for a link that
	 * is down, for which no health is taken. */
	if (status == -ENETDOWN)
		v.status = -ETIMEDOUT;
	v.cause = admit_cause_of(v.status);
	if (refusal->has_reject)
		v.again = is_again(&refusal->reject, asked, next);
	else
		v.again = refusal->cm_reason == IB_CM_REJECT_STALE;
	return v;
}
