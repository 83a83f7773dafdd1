/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The network between simulated NIs: who is there, what the links do, and
 * connections on links that need them. Inside simlnd only.
 */
#ifndef LND_SIMLND_NET_H
#define LND_SIMLND_NET_H

#include <stdatomic.h>
#include "base/fsm.h"
#include "base/hash.h"
#include "base/pool.h"
#include "lnd/simlnd/simlnd.h"

struct sim_ep;
struct sim_pkt;

/* An NI's part on one CPT. Owner: the CPT. */
struct sim_cpt {
	struct sim_ep *ep;
	struct lnd_ni *ni;
	unsigned int index;
	unsigned int generation; /* ep->generation while this NI is there */
	struct loop *loop;
	bool running;
	bool scheduled; /* work will run */
	bool failed;	/* the NI has failed hard since work last ran */
	unsigned int straight; /* packets that might go the straight way */
	/* number of connections on their way from here to another CPT */
	unsigned int moving;
	struct work work;  /* sends what is queued, at the end of a turn */
	struct list queue; /* sim_tx.link: given by LNet in this turn */
	/* sim_tx.link: wait because the window was full */
	struct list blocked;
	struct list sending; /* sim_tx.link: wait for the link, or are on it */
	/* sim_pkt.link: packets on the way here, or being stored */
	struct list arriving;
	/* sim_path.in_lost: connections lost, of which LNet is to be told */
	struct list lost_conns;
	struct hash paths; /* sim_path.hash, by destination */
	struct pool txs;
};

/* A NID that is or was in the network. Lives as long as the network. */
struct sim_ep {
	struct hash_node hash; /* net->eps */
	struct ulnet_nid nid;
	struct sim_net *net;
	struct lnd_ni *ni; /* the NI with this NID; NULL: none now */
	/* grows when an NI joins or goes; odd: there is one */
	atomic_uint generation;
	atomic_bool up;
	unsigned int changes; /* how often up has changed */
	uint64_t changed;     /* ns: when up last changed */
	unsigned int cpts;
	/* the CPTs' parts of the present NI (its priv); an earlier NI may still
	 * be going down */
	struct sim_cpt *cpt;
	struct list conns; /* sim_path.of_ep: open connections to here, of all
			    * nodes; under virtual time only */
};

/* What a CPT knows of the way to a destination. */
struct sim_path {
	struct hash_node hash;
	struct sim_cpt *sc;
	struct ulnet_nid dst;
	struct sim_ep *ep; /* the destination; NULL: was never in the network */
	/* value of sim_net.rules_version when link was taken from the rules */
	uint64_t rules;
	struct ulnet_sim_link link;
	bool partitioned;
	bool deaf; /* the links lose everything in at least one direction */
	/* ns: when the link has sent all that was given to it */
	uint64_t free_at;
	uint64_t last;	 /* ns: when the last packet in order arrives */
	uint32_t unread; /* number of packets in the link's window */
	/* For what comes from dst: LNet has not answered lnet_parse() for
	 * @unanswered, so later packets wait in @backlog (sim_pkt.link) until
	 * @resume_timer, which follows the answer. */
	struct sim_pkt *unanswered;
	struct list backlog;
	struct timer resume_timer;
	/* conn.c's: */
	struct fsm conn;
	bool wanted;	       /* messages wait for the connection */
	unsigned int failures; /* failed attempts in a row */
	/* ep->generation when the connection was opened */
	unsigned int generation;
	uint64_t give_up; /* ns: when this attempt fails */
	/* LNet was told that this attempt hears nothing */
	bool told_silent;
	struct timer timer;
	/* armed while something was sent and has been lost */
	struct timer silence;
	/* a message was lost in a hole, and all copies of it would be */
	bool stuck;
	struct list of_ep;   /* sim_ep.conns */
	struct list in_lost; /* sim_cpt.lost_conns */
	uint64_t cut; /* ns: what has left dst before this does not arrive */
};

/* What users have said of a pair of NIDs, each of which may be ANY. */
struct sim_rule {
	struct hash_node hash;
	struct ulnet_nid pair[2];
	struct ulnet_sim_link link;
	bool has_link;
	bool partitioned;
};

struct sim_net {
	struct sim_net_watch watch;
	bool watched;
	sim_net_tap_fn *tap; /* sim_net_tap(); NULL: none */
	void *tap_arg;
	struct pool packets; /* of small packets, under virtual time only */
	unsigned int prefix; /* lnd_ni.prefix of NIs that start */
	uint32_t push;	     /* sim_net_push() */
	struct hash eps;
	struct hash rules;
	uint64_t rules_version;
	_Atomic uint64_t messages;
	_Atomic uint64_t faults;
};

static inline struct sim_cpt *simlnd_cpt(const struct lnd_ni *ni,
					 unsigned int cpt)
{
	return &((struct sim_cpt *)ni->priv)[cpt];
}

/* ---- simlnd.c ---- */

/* The size of a small packet, bytes, for the pool. */
size_t simlnd_packet_size(void);
/* Calls lnet_ni_stopped(), if the CPT goes down and nothing is left of it. */
void simlnd_stopped(struct sim_cpt *sc);
/* The NI has failed hard: this CPT will end what it is sending. */
void simlnd_failed(struct sim_cpt *sc);
/* Gives messages for @p that have not left back to LNet, except those given
 * back before. True: there were some. */
bool simlnd_give_back(struct sim_path *p);
/* Is nothing under way to or from @p's destination, as far as this CPT knows?
 */
bool simlnd_is_idle(const struct sim_path *p);

/* ---- push.c: messages that push() takes ---- */

/* Returns the path of @msg if push() takes it, or NULL. */
struct sim_path *sim_push_path(struct sim_cpt *sc, const struct lnd_msg *msg);
/* Returns a copy of @msg with its payload and header, or NULL: no memory. */
struct lnd_msg *sim_pushed_new(const struct sim_cpt *sc, struct lnd_msg *msg);
void sim_pushed_free(const struct sim_cpt *sc, struct lnd_msg *copy);
/* Writes the header of @copy, and returns its length. */
size_t sim_pushed_header(struct lnd_msg *copy, uint8_t *hdr);
/* The same for a message that LNet has lent. @src: the NI. */
size_t sim_msg_header(const struct lnd_msg *msg, const struct ulnet_nid *src,
		      uint8_t *hdr);

/* ---- net.c ---- */

struct sim_ep *net_ep(const struct sim_net *net, const struct ulnet_nid *nid);
/* @ni joins the network with @cpts. 0; -EADDRINUSE: another NI has its NID;
 * -EINVAL: an earlier NI of this NID had another number of CPTs; -ENOMEM. */
int net_join(struct sim_net *net, struct lnd_ni *ni,
	     struct sim_cpt *cpts) must_check;
/* The NI leaves the network. */
void net_left(struct sim_ep *ep);

static inline bool ep_is_there(const struct sim_ep *ep)
{
	return atomic_load(&ep->generation) & 1;
}

/* The path to @dst, as it is; NULL: there is none. */
struct sim_path *net_path_find(const struct sim_cpt *sc,
			       const struct ulnet_nid *dst);
/* The path to @dst, brought up to date with the present rules; created if need
 * be. NULL: no memory. */
struct sim_path *net_path(struct sim_cpt *sc, const struct ulnet_nid *dst);
/* Brings @p up to date with the present rules, and returns it. */
struct sim_path *net_path_now(const struct sim_cpt *sc, struct sim_path *p);
void net_paths_free(struct sim_cpt *sc);

/* ---- connections (conn.c) ---- */

/*
 * Links whose ulnet_sim_link.connect is not 0 need connections. An attempt to
 * open one takes that time. It is refused where no NI is, and hears nothing
 * where the network is cut: then it is repeated until the LND's time-out. A
 * connection ends when the peer is gone or the network cuts it: LNet is told,
 * and the next message makes a new one. Each direction has its own connection;
 * both are opened and cut together.
 *
 * A connection is silent if something that was sent is lost, and the network is
 * still cut SILENT_AFTER later, or what was lost is too large for the link
 * (ulnet_sim_link.hole): TCP would repeat it in vain. Then LNet is told,
 * messages that have not left are given back, and a new connection is tried.
 * What was lost stays lost; over a network that is whole again TCP would
 * deliver it late. Small messages pass a hole although large ones are stuck, as
 * if they had a connection of their own.
 *
 * As over TCP, a process that only calls can be reached only over a connection
 * that it has opened. Such a connection is never silent.
 *
 * This file does not use lnd/connect.h, though pauses follow the same law. Most
 * of connect.h would have no use, since here an attempt waits for no turn, and
 * no peer asks for retries. And connect.h begins attempts at the end of the
 * turn, which would change the course of every seed that tests and mutants rely
 * on.
 */
enum sim_conn_state {
	SIM_CONN_NONE,
	SIM_CONN_TRYING, /* an attempt is under way */
	SIM_CONN_PAUSED, /* an attempt has failed; the timer ends the pause */
	SIM_CONN_OPEN,
	SIM_CONN_STATES
};

void sim_conn_init(struct sim_path *p);

/* May a message be sent on @p now? 0: yes; -EINPROGRESS, -EHOSTUNREACH: no,
 * send() returns this (lnd.h). */
int sim_conn_ready(struct sim_path *p);

/* Is the network cut, so that there is not even a refusal? */
bool sim_conn_is_cut(const struct sim_path *p);
/* A message has left on the connection, and is lost: @hole: it is too large for
 * the link; otherwise the network is cut. */
void sim_conn_lost(struct sim_path *p, bool hole);

/* A message has come in from @p's destination, over a connection that can be
 * used for answers. */
void sim_conn_heard(struct sim_path *p);

/* Ends an open connection. Under virtual time: any thread in lockstep. */
void sim_conn_end(struct sim_path *p);
/* Ends an open connection; what is on its way, in either direction, is lost. */
void sim_conn_cut(struct sim_path *p);
/* The NI has failed hard: its connections end, and what is on its way here over
 * them is lost. */
void sim_conns_fail(struct sim_cpt *sc);
/* Tells LNet of the connections that have ended. */
void sim_conns_tell(struct sim_cpt *sc);

/* The CPT goes down: no more upcalls. */
void sim_conns_stop(struct sim_cpt *sc);

/* See lnd.can_move() and lnd.move(). The connection is taken off its path on
 * this CPT, and in a later turn is added to the path on the new owner's CPT.
 * What arrives on this CPT meanwhile is passed on, and may then be overtaken by
 * what was sent later. */
bool sim_can_move(struct lnd_ni *ni, unsigned int cpt,
		  const struct ulnet_nid *nid);
void sim_move(struct lnd_ni *ni, unsigned int cpt, const struct ulnet_nid *nid);

#endif
