/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Queue pairs: their queues, the error state, completions; and how data gets to
 * the peer: packets, one for each work request, and acknowledgements. What is
 * lost, and what follows it, is sent again. How they are connected is in
 * cm.c. Inside simqp only.
 */
#ifndef LND_O2IBLND_SIMQP_QP_H
#define LND_O2IBLND_SIMQP_QP_H

#include "base/fsm.h"
#include "lnd/o2iblnd/simqp/fabric.h"
#include "lnd/o2iblnd/simqp/port.h"

enum simqp_state {
	/* active */
	SIMQP_RESOLVING,
	SIMQP_READY,	  /* the peer has been found */
	SIMQP_CONNECTING, /* asked, no answer yet */
	/* passive */
	SIMQP_UNTOLD,	 /* the LND does not know yet of the request */
	SIMQP_REQUESTED, /* the LND has it */
	SIMQP_ACCEPTED,	 /* answered; the active side has yet to confirm */
	/* both */
	SIMQP_OPEN,
	SIMQP_LEFT,  /* the peer has disconnected */
	SIMQP_ENDED, /* the LND knows, or wants it */
	SIMQP_STATES
};

struct simqp_recv {
	struct list link; /* simqp_qp.rq */
	struct ib_sge sge;
	void *cookie;
};

struct simqp_qp {
	struct ib_qp ib;
	struct simqp_port *port;
	struct simqp_fabric *fabric;
	struct list link;      /* port.qps */
	struct hash_node hash; /* fabric.qps */
	uint64_t id;	       /* never used again */
	struct loop *loop;     /* of ib.cpt */
	struct simqp_inbox inbox, cq;
	uint64_t cq_at; /* ns: of the last completion */
	/* cm.c's */
	struct fsm cm;
	bool active;
	struct ulnet_nid dst_nid;
	uint64_t peer; /* id; 0: not known yet */
	uint16_t src_port;
	struct simqp_way *out, *in; /* once the peer has been found */
	uint64_t cm_at;		    /* ns: arrival of the last message there */
	struct timer cm_timer;	    /* until there is an answer */
	unsigned int cm_tries;
	uint8_t private[IB_PRIVATE_ACCEPT_SIZE]; /* request, or acceptance */
	/* qp.c's */
	bool created;
	bool error;
	struct ib_qp_conf conf;
	struct list sq;	    /* simqp_wr.link: not acknowledged, by seq */
	struct list rq;	    /* simqp_recv.link */
	uint32_t send_used; /* work requests, until they are told */
	uint32_t recv_used;
	/* what is sent */
	uint64_t next_seq;
	uint64_t data_at; /* ns: arrival of the last packet there */
	uint64_t ack_at;
	struct timer retry;
	bool rnr_wait; /* retry is for a peer that has had no receive */
	bool stuck;    /* one of sq cannot be sent, nor what is behind it */
	bool mute;     /* nothing that is sent gets there */
	bool deaf;     /* no acknowledgement gets here */
	unsigned int tries, rnr_tries;
	/* and what comes */
	uint64_t expected; /* seq */
};

static inline struct simqp_qp *simqp_qp(struct ib_qp *ib)
{
	return container_of(ib, struct simqp_qp, ib);
}

struct simqp_qp *simqp_qp_new(struct simqp_port *port, unsigned int cpt,
			      enum simqp_state state);
/* Nothing is posted. */
void simqp_qp_free(struct simqp_qp *qp);
/* NULL: there is none any more. */
struct simqp_qp *simqp_qp_find(const struct simqp_fabric *f, uint64_t id);

/* It goes to error, if it is not yet: what is posted is flushed, but the first
 * SEND ends as @first. */
void simqp_qp_fail(struct simqp_qp *qp, enum ib_wc_status first);
/* The LND is going to be told. */
void simqp_qp_received(struct simqp_qp *qp, void *cookie, uint32_t length,
		       enum ib_wc_status status);
void simqp_qp_sent(struct simqp_qp *qp, const struct simqp_wr *send,
		   enum ib_wc_status status);

/* As verbs.h. */
int simqp_create(struct ib_qp *ib, const struct ib_qp_conf *conf);
void simqp_destroy(struct ib_qp *ib);
void simqp_disconnect(struct ib_qp *ib);
int simqp_post_recv(struct ib_qp *ib, const struct ib_sge *sge, void *cookie);
int simqp_post_send(struct ib_qp *ib, const struct ib_wr *wrs, unsigned int n);

/* ---- work requests ---- */

/*
 * Work requests for sending, and where their bytes are: in the LND's memory for
 * as long as they are posted, unless inlined. Inside simqp only.
 */

struct simqp_wr {
	struct list link; /* simqp_qp.sq */
	unsigned int refs;
	uint64_t seq;
	uint64_t sent_at; /* ns: when the last of it has left */
	enum ib_wr_type type;
	void *cookie;
	uint32_t batch; /* SEND: work requests that end with it */
	uint64_t remote_addr;
	uint32_t rkey;
	uint64_t length;
	enum ib_wc_status ends;	 /* as is to be; OK: by itself */
	bool local_error;	 /* it cannot be sent */
	struct simqp_port *port; /* whose memory it is; NULL: bytes has what
				  * is left of it */
	uint8_t *bytes;
	unsigned int nsge;
	struct ib_sge sge[];
};

/* Inlined bytes are copied. */
struct simqp_wr *simqp_wr_new(struct simqp_port *port,
			      const struct ib_wr *from);
void simqp_wr_put(struct simqp_wr *wr);
/* May the device read all of it? */
bool simqp_wr_is_readable(const struct simqp_wr *wr);
/* Copies all of it. */
void simqp_wr_read(const struct simqp_wr *wr, void *to);
/* It is not posted any more; what is under way of it keeps its bytes. */
void simqp_wr_detach(struct simqp_wr *wr);

/* ---- how they are connected ---- */

/*
 * How queue pairs are connected: the request, its answer, the active side's
 * confirmation, and the ends. The first two are repeated until there is an
 * answer. Inside simqp only.
 */

void simqp_cm_init(struct simqp_qp *qp, enum simqp_state state);

/* As verbs.h. */
int simqp_resolve(struct ib_port *ib, unsigned int cpt,
		  const struct ulnet_nid *dst, void *user, struct ib_qp **qp_p);
int simqp_connect(struct ib_qp *ib, const void *private, size_t length);
int simqp_accept(struct ib_qp *ib, const void *private, size_t length);
void simqp_reject(struct ib_qp *ib, const void *private, size_t length);

/* The LND wants no connection, or none any more: the peer is told, and the LND
 * hears no more of it. */
void simqp_cm_leave(struct simqp_qp *qp);
/* Tells the LND that it has failed, unless it has ended. */
void simqp_cm_fail(struct simqp_qp *qp, int status);
/* Drops the requests that the LND does not know of yet. */
void simqp_cm_reject_untold(struct simqp_port *port);

void simqp_cm_on_req(struct simqp_port *port, struct simqp_item *it);
void simqp_cm_on_item(struct simqp_qp *qp, struct simqp_item *it);

#endif
