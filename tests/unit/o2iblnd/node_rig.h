/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Whole nodes of a simulation, with nets of o2iblnd, and peers that the test
 * plays itself ("raw_peers"), on queue pairs of the same fabric. A raw peer
 * sends what bytes it likes, and does only what its flags say.
 */
#ifndef TESTS_UNIT_O2IBLND_NODE_RIG_H
#define TESTS_UNIT_O2IBLND_NODE_RIG_H

#include "lnd/o2iblnd/wire.h"
#include "lnet/message/wire.h"
#include "sim/sim.h"
#include "tests/unit/lnet/cluster.h"

#define RIG_NODES	3
#define RAW_PEERS	40
#define RAW_PEER_DEPTH	8
#define RAW_PEER_MEMORY (1u << 20)
#define RAW_PEER_HEARD	64
#define RAW_PEER_SLOTS	32
#define PORTAL		5
#define BITS		7
#define MIB		(1u << 20)

struct raw_peer_said {
	uint8_t bytes[IB_MSG_SIZE_MAX];
	uint32_t length;
};

/* A raw peer's side of a connection. */
struct raw_peer_conn {
	struct list link; /* raw_peer.conns */
	struct raw_peer *s;
	struct ib_qp *qp;
	struct ib_end peer; /* its own parameters */
	bool created;
	unsigned int established, rejected, failed, disconnected;
	struct ib_reject reject; /* how it was rejected */
	bool said;		 /* ... by an LND */
	uint8_t *memory;	 /* receive buffers, then send buffers */
	struct ib_mr *mr;
	unsigned int receives, sends, slot;
	uint8_t owed; /* credits */
	unsigned int nheard, next;
	struct raw_peer_said heard[RAW_PEER_HEARD];
};

enum raw_peer_answer {
	RAW_PEER_ACCEPTS,
	RAW_PEER_REJECTS,
	RAW_PEER_IS_MUTE, /* does not answer requests */
};

struct raw_peer {
	struct node_rig *rig;
	struct lnd_ni ni;
	struct loop *loops[1];
	struct ib_port *port;
	struct ib_end self;
	uint8_t *memory; /* RAW_PEER_MEMORY bytes, to which nodes may write */
	struct ib_mr *mr;
	struct list conns; /* oldest first */
	/* what it does by itself */
	enum raw_peer_answer answer; /* accepts requests */
	bool is_deaf;		     /* does not post receives again */
	bool keeps_credits;	     /* returns no credits */
	/* changes the private data that it sends, or NULL */
	void (*hello)(uint8_t *bytes);
};

struct node_rig {
	struct lnet_sim *sim;
	struct simqp_fabric *fabric;
	unsigned int nnodes;
	struct lnet *node[RIG_NODES];
	struct ulnet_id id[RIG_NODES];
	struct ulnet_tunable tunables[8]; /* common to all NIs */
	unsigned int ntunables;
	unsigned int nraw_peers;
	struct raw_peer raw_peers[RAW_PEERS];
};

/* Makes @n nodes with the tunables in @r. @conf may be NULL. */
void node_rig_open(struct node_rig *r, unsigned int n, unsigned int cpts,
		   const struct ulnet_conf *conf);
/* Ends raw peers and nodes; nothing may be left, and nothing have gone wrong.
 */
void node_rig_close(struct node_rig *r);
void node_rig_run(struct node_rig *r, uint64_t ns);
/* Sends a PUT from node @from to node @to. */
void node_rig_put(struct node_rig *r, unsigned int from, struct ulnet_id to,
		  void *bytes, uint32_t length, uint64_t hdr_data,
		  struct seen *seen);
void node_rig_get(struct node_rig *r, unsigned int from, struct ulnet_id to,
		  void *bytes, uint32_t length, struct seen *seen);

/* Makes another raw peer, which listens. */
struct raw_peer *raw_peer_new(struct node_rig *r);
struct ulnet_id raw_peer_id(const struct raw_peer *s);
/* Requests a connection to node @n, and waits a second for it. */
struct raw_peer_conn *raw_peer_ask(struct raw_peer *s, unsigned int n);
/* The same; it must be established. */
struct raw_peer_conn *raw_peer_connect(struct raw_peer *s, unsigned int n);
/* The last connection that a node has requested. */
struct raw_peer_conn *raw_peer_last(struct raw_peer *s);
/* Ends and frees @c. */
void raw_peer_hang_up(struct raw_peer_conn *c);

/* Gives each message a receive of its own, if the others are used up. */
void raw_peer_listen(struct raw_peer_conn *c, unsigned int n);
/* Sends these bytes, with the credits that it owes, unless it keeps them.
 * -ENOTCONN: the connection has ended. */
int raw_peer_say(struct raw_peer_conn *c, void *bytes, size_t length);
/* Writes @length bytes of its memory, and sends a message after that. */
int raw_peer_write(struct raw_peer_conn *c, uint64_t addr, uint32_t key,
		   uint32_t length, void *bytes, size_t n);
/* Gets the next received message of @type, after the last one returned. False:
 * there is none. */
bool raw_peer_hears(struct raw_peer_conn *c, enum ib_msg_type type,
		    struct ib_msg *msg);

/* Make headers of messages to the node of @c. */
struct lnet_hdr raw_peer_put_hdr(const struct raw_peer_conn *c, uint32_t length,
				 uint64_t hdr_data);
struct lnet_hdr raw_peer_get_hdr(const struct raw_peer_conn *c,
				 uint32_t length);
struct ib_hdr raw_peer_hdr(const struct raw_peer_conn *c);

/* Send the same messages as a correct peer would. */
void raw_peer_immediate(struct raw_peer_conn *c, const struct lnet_hdr *hdr);
void raw_peer_put_req(struct raw_peer_conn *c, const struct lnet_hdr *hdr,
		      uint64_t cookie);
/* One fragment: the raw peer's memory. */
void raw_peer_get_req(struct raw_peer_conn *c, const struct lnet_hdr *hdr,
		      uint64_t cookie);
/* Answer the PUT_REQ or GET_REQ @msg. */
void raw_peer_ack(struct raw_peer_conn *c, const struct ib_msg *msg,
		  uint64_t cookie, uint32_t length);
void raw_peer_done(struct raw_peer_conn *c, enum ib_msg_type type,
		   uint64_t cookie, int32_t status);
/* Writes @length bytes of 'g' to the sink of the GET_REQ, in one WRITE, and
 * sends the GET_DONE. */
void raw_peer_answer_get(struct raw_peer_conn *c, const struct ib_msg *get,
			 uint32_t length);

#endif
