/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Two sides of connections, on queue pairs that do nothing by themselves: a
 * test says when what was posted arrives, ends or fails, and sees every byte of
 * it. Times are those of a virtual clock.
 */
#ifndef TESTS_UNIT_O2IBLND_IB_RIG_H
#define TESTS_UNIT_O2IBLND_IB_RIG_H

#include "base/env.h"
#include "lnd/o2iblnd/conn.h"

#define RIG_CALLS    1024
#define RIG_RECEIVES 600

/* A post_send(). */
struct rig_call {
	unsigned int n;
	struct ib_wr last;
	struct {
		uint64_t addr;
		uint32_t rkey, length;
	} writes[80];
	unsigned int nwrites;
	uint8_t bytes[IB_MSG_SIZE_MAX]; /* of its SEND */
	uint32_t length;
	bool carried;
};

struct rig_qp {
	struct ib_qp qp;
	struct rig_qp *peer;
	struct ib_qp_conf conf;
	bool created, error, destroyed, passive;
	uint8_t private[256]; /* connected, accepted or rejected with */
	size_t private_len;
	bool rejected;
	struct {
		struct ib_sge sge;
		void *cookie;
	} recvs[RIG_RECEIVES];
	unsigned int first_recv, nrecvs;
	struct rig_call *calls;		 /* all of them, ever */
	unsigned int first_call, ncalls; /* not ended */
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
	struct ib_home home;
	struct ib_tx_pool pool;
	struct ib_conn_conf conf;
	struct ib_conn *conn;
	struct rig_qp *qp;
	uint32_t next_key;
	unsigned int mrs;
	int fail_create;    /* so many times -ENOMEM */
	int fail_post_send; /* if not 0: once, with this */
	int fail_post_recv;
	int fail_reg;

	unsigned int established, closed, refused, gone, silent;
	uint64_t silent_ns;
	int status;
	struct ib_refusal refusal;
	struct rig_rx got[64];
	unsigned int ngot;
	/* Of those that are done. */
	struct {
		void *user;
		int status;
		enum ulnet_cause cause;
		uint32_t nob;
	} done[64];
	unsigned int ndone;
	bool take;	   /* IMMEDIATEs are taken at once */
	unsigned int told; /* a number for each thing that was told */
};

struct rig {
	struct env_sim *world;
	struct loop *loop;
	struct rig_side a, b; /* active, passive */
	uint16_t frags;	      /* that a asks for */
};

/* Of depth @depth on both sides, and nothing else yet. */
void rig_open(struct rig *r, unsigned int depth);
/* All of it must have been given back. */
void rig_close(struct rig *r);
/* Lets deferred work be done, and time pass. */
void rig_run(struct rig *r, uint64_t ns);

/* a connects to b, up to where both have asked and accepted. */
void rig_ask(struct rig *r);
/* ... and both sides are told that it is established. */
void rig_connect(struct rig *r);
/* A side alone, connected to a peer that the test plays: its receives take what
 * rig_put() is given. */
void rig_accept(struct rig *r);

/* The first post_send() of @from that has not been carried: to the peer, if
 * there is one. The call, or NULL: there was none. It has not ended. */
struct rig_call *rig_carry(struct rig_side *from);
/* The first one that has not ended does. */
void rig_complete(struct rig_side *of, enum ib_wc_status status);
/* Carries and completes, both ways, until nothing is left. */
void rig_settle(struct rig *r);
/* These bytes arrive in the first receive of @to. */
void rig_put(struct rig_side *to, const void *bytes, size_t length);
/* All that is posted there is flushed. */
void rig_flush(struct rig_side *of);
/* The last call of @of, whatever has become of it. */
const struct rig_call *rig_last(const struct rig_side *of);

/* An IMMEDIATE with @payload_len bytes of 'x'. NULL: no transmit. */
struct ib_tx *rig_send(struct rig_side *from, uint32_t payload_len, void *user);
/* The same for a PUT of what is at @source, and a GET to @sink. */
struct ib_tx *rig_send_put(struct rig_side *from, const struct ib_sge *source,
			   uint32_t length, void *user);
struct ib_tx *rig_send_get(struct rig_side *from, const struct ib_sink *sink,
			   void *user);
/* Closes the connection of a side, of both sides and the rig. */
void rig_end_side(struct rig *r, struct rig_side *s);
void rig_end_all(struct rig *r);
/* An LNet header of @type that announces @payload bytes. */
void rig_header(void *hdr, uint32_t type, uint32_t payload);

#endif
