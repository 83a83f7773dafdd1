/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Whole nodes of a simulation whose nets are o2iblnd's, and strangers: peers
 * that the test plays itself, on queue pairs of the same fabric. What a
 * stranger says is bytes; all that it does not do by itself, it leaves undone.
 */
#ifndef TESTS_UNIT_O2IBLND_NODE_RIG_H
#define TESTS_UNIT_O2IBLND_NODE_RIG_H

#include "lnd/o2iblnd/wire.h"
#include "lnet/message/wire.h"
#include "sim/verbs.h"
#include "tests/unit/lnet/cluster.h"

#define RIG_NODES	3
#define STRANGERS	40
#define STRANGER_DEPTH	8
#define STRANGER_MEMORY (1u << 20)
#define STRANGER_HEARD	64
#define STRANGER_SLOTS	32
#define PORTAL		5
#define BITS		7
#define MIB		(1u << 20)

struct stranger_said {
	uint8_t bytes[IB_MSG_SIZE_MAX];
	uint32_t length;
};

/* A stranger's side of a connection. */
struct stranger_conn {
	struct list link; /* stranger.conns */
	struct stranger *s;
	struct ib_qp *qp;
	struct ib_end peer; /* as it has said */
	bool created;
	unsigned int established, rejected, failed, disconnected;
	struct ib_reject reject; /* rejected: what was said */
	bool said;		 /* ... if anything was */
	uint8_t *memory;	 /* receives, then what is sent */
	struct ib_mr *mr;
	unsigned int receives, sends, slot;
	uint8_t owed; /* credits */
	unsigned int nheard, next;
	struct stranger_said heard[STRANGER_HEARD];
};

enum stranger_answer {
	STRANGER_ACCEPTS,
	STRANGER_REJECTS,
	STRANGER_IS_MUTE, /* answers no requests */
};

struct stranger {
	struct node_rig *rig;
	struct lnd_ni ni;
	struct loop *loops[1];
	struct ib_port *port;
	struct ib_end self;
	uint8_t *memory; /* STRANGER_MEMORY bytes, also for nodes to write to */
	struct ib_mr *mr;
	struct list conns; /* the oldest first */
	/* What it does by itself: */
	enum stranger_answer answer;   /* to requests */
	bool is_deaf;		       /* posts no receive again */
	bool keeps_credits;	       /* gives none back */
	void (*hello)(uint8_t *bytes); /* changes what it connects, or accepts,
					* with; or NULL */
};

struct node_rig {
	struct lnet_sim *sim;
	struct simqp_fabric *fabric;
	unsigned int nnodes;
	struct lnet *node[RIG_NODES];
	struct ulnet_id id[RIG_NODES];
	struct ulnet_tunable tunables[8]; /* of all NIs */
	unsigned int ntunables;
	unsigned int nstrangers;
	struct stranger strangers[STRANGERS];
};

/* @n nodes, whose NIs have the tunables that are in @r; @conf may be NULL. */
void node_rig_open(struct node_rig *r, unsigned int n, unsigned int cpts,
		   const struct ulnet_conf *conf);
/* Strangers go, nothing is left to happen, and nothing was wrong. */
void node_rig_close(struct node_rig *r);
void node_rig_run(struct node_rig *r, uint64_t ns);
/* A PUT of node @from to @to. */
void node_rig_put(struct node_rig *r, unsigned int from, struct ulnet_id to,
		  void *bytes, uint32_t length, uint64_t hdr_data,
		  struct seen *seen);
void node_rig_get(struct node_rig *r, unsigned int from, struct ulnet_id to,
		  void *bytes, uint32_t length, struct seen *seen);

/* Another one, which listens. */
struct stranger *stranger_new(struct node_rig *r);
struct ulnet_id stranger_id(const struct stranger *s);
/* Asks node @n for a connection, and gives it a second. */
struct stranger_conn *stranger_ask(struct stranger *s, unsigned int n);
/* ... and has it. */
struct stranger_conn *stranger_connect(struct stranger *s, unsigned int n);
/* The last one that a node has asked for. */
struct stranger_conn *stranger_last(struct stranger *s);
/* Ends it; @c is no more. */
void stranger_hang_up(struct stranger_conn *c);

/* A receive of its own for each message, if it has run out of them. */
void stranger_listen(struct stranger_conn *c, unsigned int n);
/* Sends these bytes, with the credits that it owes unless it keeps them.
 * -ENOTCONN: the connection has ended. */
int stranger_say(struct stranger_conn *c, void *bytes, size_t length);
/* Writes @length bytes of its memory, and sends a message behind. */
int stranger_write(struct stranger_conn *c, uint64_t addr, uint32_t key,
		   uint32_t length, void *bytes, size_t n);
/* The next message of @type that it has heard, after the last one that this was
 * asked for; false: there is none. */
bool stranger_hears(struct stranger_conn *c, enum ib_msg_type type,
		    struct ib_msg *msg);

/* Headers of messages to @c's node. */
struct lnet_hdr stranger_put_hdr(const struct stranger_conn *c, uint32_t length,
				 uint64_t hdr_data);
struct lnet_hdr stranger_get_hdr(const struct stranger_conn *c,
				 uint32_t length);
struct ib_hdr stranger_hdr(const struct stranger_conn *c);

/* The same messages, sent as a sane peer does. */
void stranger_immediate(struct stranger_conn *c, const struct lnet_hdr *hdr);
void stranger_put_req(struct stranger_conn *c, const struct lnet_hdr *hdr,
		      uint64_t cookie);
/* One fragment: its memory. */
void stranger_get_req(struct stranger_conn *c, const struct lnet_hdr *hdr,
		      uint64_t cookie);
/* To the PUT_REQ or GET_REQ @msg. */
void stranger_ack(struct stranger_conn *c, const struct ib_msg *msg,
		  uint64_t cookie, uint32_t length);
void stranger_done(struct stranger_conn *c, enum ib_msg_type type,
		   uint64_t cookie, int32_t status);
/* Writes @length times 'g' to where the GET_REQ wants it, in one piece, and
 * says so. */
void stranger_answer_get(struct stranger_conn *c, const struct ib_msg *get,
			 uint32_t length);

#endif
