/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Inside simqp: queue pairs. Each work request is one packet to the peer, which
 * is acknowledged; lost ones, and all after them, are sent again.
 */
#ifndef LND_O2IBLND_SIMQP_QP_H
#define LND_O2IBLND_SIMQP_QP_H

#include "base/fsm.h"
#include "lnd/o2iblnd/simqp/fabric.h"

enum simqp_state {
	/* Of the active side: */
	SIMQP_RESOLVING,
	SIMQP_READY,	  /* resolved */
	SIMQP_CONNECTING, /* request sent */
	/* Of the passive side: */
	SIMQP_PENDING,	 /* the LND was not told of the request yet */
	SIMQP_REQUESTED, /* the LND was told */
	SIMQP_ACCEPTED,	 /* answered, not confirmed by the active side */
	/* Of both sides: */
	SIMQP_OPEN,
	SIMQP_LEFT,  /* the peer has disconnected */
	SIMQP_ENDED, /* the LND was told of the end, or has caused it */
	SIMQP_STATES
};

struct simqp_qp {
	struct ib_qp ib;
	struct simqp_port *port;
	struct simqp_fabric *fabric;
	struct list link;      /* in port.qps */
	struct hash_node hash; /* in fabric.qps */
	uint64_t id;	       /* never used for another queue pair */
	struct loop *loop;     /* the loop of the CPT ib.cpt */
	struct simqp_inbox inbox, cq;
	uint64_t cq_at; /* ns: when the last completion is reported */
	/* For the connection (cm.c): */
	struct fsm cm;
	bool active;
	struct ulnet_nid dst_nid;
	uint64_t peer; /* id of the peer's queue pair; 0: unknown */
	uint16_t src_port;
	/* the ways to and from the peer; known once it is resolved */
	struct simqp_way *out, *in;
	/* ns: when the last connect message arrives at the peer */
	uint64_t cm_at;
	struct timer cm_timer; /* repeats a message until it is answered */
	unsigned int cm_tries;
	/* private data of the last connect message, for repeats */
	uint8_t private[IB_PRIVATE_ACCEPT_SIZE];
	/* For the queues (qp.c): */
	bool created;
	bool error;
	struct ib_qp_conf conf;
	/* of simqp_wr.link: work requests that are not acknowledged, by seq */
	struct list sq;
	struct list rq; /* of simqp_recv.link: posted receives */
	/* number of work requests that were not reported as completed */
	uint32_t send_used;
	uint32_t recv_used;
	/* For the sender: */
	uint64_t next_seq;
	uint64_t data_at; /* ns: when the last packet arrives at the peer */
	uint64_t ack_at;
	struct timer retry;
	bool rnr_wait;	/* the retry timer waits for the peer's receive */
	bool stuck;	/* sq has a work request that cannot be sent */
	bool drop_data; /* nothing that is sent arrives */
	bool drop_acks; /* no acknowledgement arrives */
	unsigned int tries, rnr_tries;
	/* For the receiver: */
	uint64_t expected; /* seq of the next packet */
};

static inline struct simqp_qp *simqp_qp(struct ib_qp *ib)
{
	return container_of(ib, struct simqp_qp, ib);
}

struct simqp_qp *simqp_qp_new(struct simqp_port *port, unsigned int cpt,
			      enum simqp_state state);
/* Frees the queue pair, on which nothing may be posted. */
void simqp_qp_free(struct simqp_qp *qp);
/* Returns the queue pair with @id; NULL: it does not exist any more. */
struct simqp_qp *simqp_qp_find(const struct simqp_fabric *f, uint64_t id);

void simqp_wr_put(struct simqp_wr *wr);

/* Puts the queue pair in error, unless it is already: flushes all work
 * requests, except that the first SEND completes with @first. */
void simqp_qp_fail(struct simqp_qp *qp, enum ib_wc_status first);
/* The functions of struct ib_verbs (verbs.h) for queues. */
int simqp_create(struct ib_qp *ib, const struct ib_qp_conf *conf);
void simqp_destroy(struct ib_qp *ib);
void simqp_disconnect(struct ib_qp *ib);
int simqp_post_recv(struct ib_qp *ib, const struct ib_sge *sge, void *cookie);
int simqp_post_send(struct ib_qp *ib, const struct ib_wr *wrs, unsigned int n);

/* ---- connections ---- */

/*
 * How connections begin, by request, acceptance and confirmation ("RTU"), and
 * how they end. Request and acceptance are repeated until they are answered.
 */

void simqp_cm_init(struct simqp_qp *qp, enum simqp_state state);

/* The functions of struct ib_verbs (verbs.h) for connections. */
int simqp_resolve(struct ib_port *ib, unsigned int cpt,
		  const struct ulnet_nid *dst, void *user, struct ib_qp **qp_p);
int simqp_connect(struct ib_qp *ib, const void *private, size_t length);
int simqp_accept(struct ib_qp *ib, const void *private, size_t length);
void simqp_reject(struct ib_qp *ib, const void *private, size_t length);

/* The LND ends the connection: tells the peer. No event of the connection
 * follows. */
void simqp_cm_leave(struct simqp_qp *qp);
/* Reports failed() to the LND in a turn of its own, unless the connection has
 * ended by then. */
void simqp_cm_fail(struct simqp_qp *qp, int status);
/* Rejects requests that the LND was not told of yet. */
void simqp_cm_reject_pending(struct simqp_port *port);

void simqp_cm_on_req(struct simqp_port *port, struct simqp_item *it);
void simqp_cm_on_item(struct simqp_qp *qp, struct simqp_item *it);

#endif
