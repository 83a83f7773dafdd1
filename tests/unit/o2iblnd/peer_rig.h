/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Nodes whose peers are those of lnd/o2iblnd/peer.h, on a simulated fabric,
 * with a small LNet on top: it keeps messages that wait for a connection, sends
 * them when there is one, and counts callbacks. In every case a message must
 * end once and arrive at most once, and not at all if its status says so.
 */
#ifndef TESTS_UNIT_O2IBLND_PEER_RIG_H
#define TESTS_UNIT_O2IBLND_PEER_RIG_H

#include <criterion/criterion.h>
#include <errno.h>

#include "lnd/o2iblnd/peer.h"
#include "lnd/o2iblnd/simqp/simqp.h"

#define PEER_NODES 3
#define PEER_MSGS  4000
#define MSEC	   NSEC_PER_MSEC
#define SEC	   NSEC_PER_SEC
#define A	   0
#define B	   1

/* What a node was told of another one. */
struct told {
	unsigned int connected, failed, disconnected, silent;
	int status;
	enum ulnet_cause cause;
	uint64_t silent_ns, failed_at;
};

struct peer_node {
	struct peer_rig *rig;
	struct loop *loop;
	struct lnd_ni ni;
	struct ib_conn_conf conn_conf;
	struct ib_peers_conf conf;
	struct ib_conn_set set;
	struct ib_tx_pool pool;
	struct ib_port *port; /* NULL: the node is down */
	struct ib_peers ps;
	uint64_t stamp;
	bool stopping, stopped;
	struct told told[PEER_NODES + 1];
	/* requests received, and what the last one asked for */
	unsigned int requests;
	uint64_t request_at[64];
	struct ib_envelope asked_env;
	struct ib_msg asked;
	/* rejects so many of the next requests */
	unsigned int force;
	unsigned int astray; /* requests delivered to the wrong CPT */
	struct ib_reject with;
	/* does not answer requests */
	bool mute;
	struct ib_qp *unanswered[8];
	unsigned int nunanswered;
};

enum msg_state { MSG_WAITS, MSG_SENT, MSG_ENDED };

struct peer_msg {
	unsigned int from, to;
	uint8_t state; /* enum msg_state */
	unsigned int arrived;
	int status;
	enum ulnet_cause cause;
	struct ib_conn *conn; /* the connection over which it was sent */
};

struct peer_rig {
	uint64_t seed;
	struct env_sim *world;
	struct simqp_fabric *fabric;
	struct peer_node nodes[PEER_NODES];
	struct peer_msg msgs[PEER_MSGS];
	unsigned int nmsgs;
};

/* Makes nodes that are down, with the default conf of this rig. With an even
 * seed, completions are delayed. */
struct peer_rig *peer_rig_new(uint64_t seed);
/* Stops the nodes that are up; nothing may be left of them. */
void peer_rig_free(struct peer_rig *r);
void peer_rig_run(struct peer_rig *r, uint64_t ns);
/* Starts a node, with a new incarnation. */
void peer_rig_up(struct peer_rig *r, unsigned int node);
/* peer_rig_new(), with all nodes up and @latency ns each way. */
struct peer_rig *peer_rig_new_up(uint64_t latency);
/* Stops a node. @silently: the fabric carries nothing of it first. */
void peer_rig_down(struct peer_rig *r, unsigned int node, bool silently);

/* PEER_NODES: a NID that no node has. */
struct ulnet_nid peer_rig_nid(const struct peer_rig *r, unsigned int node);
/* Sends an IMMEDIATE. */
struct peer_msg *peer_rig_send(struct peer_rig *r, unsigned int from,
			       unsigned int to);
/* NULL: not known. */
struct ib_peer *peer_rig_peer(struct peer_rig *r, unsigned int from,
			      unsigned int to);
/* Counts open connections, whoever has opened them. */
unsigned int peer_rig_conns(struct peer_rig *r, unsigned int from,
			    unsigned int to);
struct ib_conn *peer_rig_conn(struct peer_rig *r, unsigned int from,
			      unsigned int to);
/* Rejects the next @n requests at @node with @reason, in version 2 and full
 * length. */
struct ib_reject *peer_rig_force(struct peer_rig *r, unsigned int node,
				 unsigned int n, unsigned int reason);

#endif
