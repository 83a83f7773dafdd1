/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Two sides of connections, on queue pairs that do nothing by themselves: the
 * test decides when a work request arrives, completes or fails, and sees all
 * bytes. Time is virtual.
 */
#ifndef TESTS_UNIT_O2IBLND_IB_RIG_H
#define TESTS_UNIT_O2IBLND_IB_RIG_H

#include "base/env.h"
#include "lnd/o2iblnd/conn.h"

#define RIG_CALLS    1024
#define RIG_RECEIVES 600

/* A post_send() call. */
struct rig_call {
	unsigned int n;
	struct ib_wr last;
	struct {
		uint64_t addr;
		uint32_t rkey, length;
	} writes[80];
	unsigned int nwrites;
	uint8_t bytes[IB_MSG_SIZE_MAX]; /* of the SEND */
	uint32_t length;
	bool carried;
};

struct rig_qp {
	struct ib_qp qp;
	struct rig_qp *peer;
	struct ib_qp_conf conf;
	bool created, error, destroyed, passive;
	/* the private data of connect(), accept() or reject() */
	uint8_t private[256];
	size_t private_len;
	bool rejected;
	struct {
		struct ib_sge sge;
		void *cookie;
	} recvs[RIG_RECEIVES];
	unsigned int first_recv, nrecvs;
	struct rig_call *calls;		 /* all calls so far */
	unsigned int first_call, ncalls; /* not completed */
};

/* A message that has arrived. */
struct rig_rx {
	struct ib_rx *rx;
	enum ib_msg_type type;
	uint32_t payload_len;
};

/* What the user of a side was told. */
struct rig_side {
	struct ib_port port;
	struct lnd_ni ni;
	struct ib_conn_set set;
	struct ib_tx_pool pool;
	struct ib_conn_conf conf;
	struct ib_conn *conn;
	struct rig_qp *qp;
	uint32_t next_key;
	unsigned int mrs;
	int fail_create;    /* the next so many calls return -ENOMEM */
	int fail_post_send; /* if not 0: the next call returns this */
	int fail_post_recv;
	int fail_reg;

	unsigned int established, closed, refused, gone, silent;
	uint64_t silent_ns;
	int status;
	struct ib_refusal refusal;
	struct rig_rx got[64];
	unsigned int ngot;
	/* counts of done() */
	struct {
		void *user;
		int status;
		enum ulnet_cause cause;
		uint32_t nob;
	} done[64];
	unsigned int ndone;
	bool take;	   /* answers IMMEDIATEs at once */
	unsigned int told; /* numbers the callbacks */
};

struct rig {
	struct env_sim *world;
	struct loop *loop;
	struct rig_side a, b; /* active and passive */
	uint16_t frags;	      /* what a asks for */
};

/* A rig of depth @depth on both sides, without connection. */
void rig_open(struct rig *r, unsigned int depth);
/* Ends a rig; nothing may be left of it. */
void rig_close(struct rig *r);
/* Runs deferred work, and lets @ns pass. */
void rig_run(struct rig *r, uint64_t ns);

/* a connects to b: both the request and its acceptance are made. */
void rig_ask(struct rig *r);
/* The same, and both sides are told that it is established. */
void rig_connect(struct rig *r);
/* One side alone: the test plays its peer, and rig_put() fills its receives. */
void rig_accept(struct rig *r);

/* Delivers the first call of @from that was not delivered to the peer, if there
 * is one, but does not complete it. Returns it, or NULL. */
struct rig_call *rig_carry(struct rig_side *from);
/* Completes the first call that was not completed. */
void rig_complete(struct rig_side *of, enum ib_wc_status status);
/* Delivers and completes, both ways, until nothing is left. */
void rig_settle(struct rig *r);
/* Delivers these bytes to the first receive of @to. */
void rig_put(struct rig_side *to, const void *bytes, size_t length);
/* Flushes all that is posted there. */
void rig_flush(struct rig_side *of);
/* The last call of @of, completed or not. */
const struct rig_call *rig_last(const struct rig_side *of);

/* Sends an IMMEDIATE with @payload_len bytes of 'x'. NULL: no transmit. */
struct ib_tx *rig_send(struct rig_side *from, uint32_t payload_len, void *user);
/* The same for a PUT of @source, and a GET to @sink. */
struct ib_tx *rig_send_put(struct rig_side *from, const struct ib_sge *source,
			   uint32_t length, void *user);
struct ib_tx *rig_send_get(struct rig_side *from, const struct ib_sink *sink,
			   void *user);
/* Close the connection of one side; of both sides, and the rig. */
void rig_end_side(struct rig *r, struct rig_side *s);
void rig_end_all(struct rig *r);
/* Makes an LNet header of @type that announces @payload bytes. */
void rig_header(void *hdr, uint32_t type, uint32_t payload);

#endif
