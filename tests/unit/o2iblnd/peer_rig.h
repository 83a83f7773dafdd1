/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Nodes whose peers are those of lnd/o2iblnd/peer.h, on a simulated fabric,
 * with a small LNet on top: it keeps what waits for a connection, sends it when
 * there is one, and counts what it is told. Whatever happens, each message ends
 * once, arrives once at most, and not at all if its end says so.
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
	struct ib_home home;
	struct ib_tx_pool pool;
	struct ib_port *port; /* NULL: down */
	struct ib_peers ps;
	uint64_t stamp;
	bool stopping, stopped;
	struct told told[PEER_NODES + 1];
	/* Requests that came, and what the last one asked for. */
	unsigned int requests;
	uint64_t request_at[64];
	struct ib_envelope asked_env;
	struct ib_msg asked;
	/* The next ones are rejected so, whatever they say. */
	unsigned int force;
	unsigned int astray; /* requests that come to another CPT's peers */
	struct ib_reject with;
	/* Requests are not answered. */
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
	struct ib_conn *conn; /* that it was sent on */
};

struct peer_rig {
	uint64_t seed;
	struct env_sim *world;
	struct simqp_fabric *fabric;
	struct peer_node nodes[PEER_NODES];
	struct peer_msg msgs[PEER_MSGS];
	unsigned int nmsgs;
};

/* Nodes that are down, with the defaults of this rig in their conf. Even seeds:
 * completions come late. */
struct peer_rig *peer_rig_new(uint64_t seed);
/* Stops those that are up; nothing may be left. */
void peer_rig_free(struct peer_rig *r);
void peer_rig_run(struct peer_rig *r, uint64_t ns);
/* It comes up, in a new life. */
void peer_rig_up(struct peer_rig *r, unsigned int node);
/* peer_rig_new() with all of them up, and @latency ns each way. */
struct peer_rig *peer_rig_new_up(uint64_t latency);
/* It goes down. @silently: nobody is told, for the fabric carries nothing. */
void peer_rig_down(struct peer_rig *r, unsigned int node, bool silently);

/* PEER_NODES: a NID that nobody has. */
struct ulnet_nid peer_rig_nid(const struct peer_rig *r, unsigned int node);
/* An IMMEDIATE. */
struct peer_msg *peer_rig_send(struct peer_rig *r, unsigned int from,
			       unsigned int to);
/* NULL: it is not known. */
struct ib_peer *peer_rig_peer(struct peer_rig *r, unsigned int from,
			      unsigned int to);
/* Open connections, from either side. */
unsigned int peer_rig_conns(struct peer_rig *r, unsigned int from,
			    unsigned int to);
struct ib_conn *peer_rig_conn(struct peer_rig *r, unsigned int from,
			      unsigned int to);
/* The next @n requests at @node are rejected for @reason, version 2, full. */
struct ib_reject *peer_rig_force(struct peer_rig *r, unsigned int node,
				 unsigned int n, unsigned int reason);

#endif
