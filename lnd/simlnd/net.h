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
	unsigned int generation; /* ep's, while this NI is there */
	struct loop *loop;
	bool running;
	bool scheduled;	      /* @work will run */
	bool failed;	      /* hard, since @work last ran */
	unsigned int moving;  /* connections on their way to another CPT */
	struct work work;     /* sends what is queued, at the end of a turn */
	struct list queue;    /* sim_tx.link: new */
	struct list blocked;  /* sim_tx.link: the window was full */
	struct list sending;  /* sim_tx.link: waiting for the link, or on it */
	struct list arriving; /* sim_pkt.link: on the way, or being stored */
	struct list lost_conns; /* sim_path.in_lost: LNet is to be told */
	struct hash paths;	/* sim_path.hash, by destination */
	struct pool txs;
};

/* A NID that is or was in the network. Lives as long as the network. */
struct sim_ep {
	struct hash_node hash; /* net->eps */
	struct ulnet_nid nid;
	struct sim_net *net;
	struct lnd_ni *ni;	/* control; NULL while there is none */
	atomic_uint generation; /* of NIs with this NID; odd: there is one */
	atomic_bool up;
	unsigned int changes; /* of @up */
	uint64_t changed;     /* ns: the last of these */
	unsigned int cpts;
	struct sim_cpt *cpt; /* of the present NI, which are its priv; an
			      * earlier NI may still be going down */
	struct list conns;   /* sim_path.of_ep: open connections to here, of all
			    * nodes; under virtual time only */
};

/* What a CPT knows of the way to a destination. */
struct sim_path {
	struct hash_node hash;
	struct sim_cpt *sc;
	struct ulnet_nid dst;
	struct sim_ep *ep; /* NULL: was never there */
	uint64_t rules;	   /* sim_net.rules_version that link comes from */
	struct ulnet_sim_link link;
	bool partitioned;
	bool deaf; /* the links lose everything in at least one direction */
	uint64_t free_at; /* when the link has sent what was given to it */
	uint64_t last;	  /* arrival of the last packet in order */
	uint32_t unread;  /* packets in its window */
	/* What comes from there: LNet has not answered lnet_parse() for
	 * @unanswered, so later packets wait in @backlog (sim_pkt.link) until
	 * @resume_timer, which follows the answer. */
	struct sim_pkt *unanswered;
	struct list backlog;
	struct timer resume_timer;
	/* conn.c's: */
	struct fsm conn;
	bool wanted;		 /* messages wait for the connection */
	unsigned int failures;	 /* in a row */
	unsigned int generation; /* of the NI that it leads to */
	uint64_t give_up;	 /* ns: when this attempt fails */
	bool told_silent;	 /* LNet is, that it hears nothing */
	struct timer timer;
	struct timer silence; /* armed: something was sent, and lost */
	struct list of_ep;    /* sim_ep.conns */
	struct list in_lost;  /* sim_cpt.lost_conns */
	uint64_t cut; /* ns: what has left there before does not arrive */
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
	struct pool packets; /* small ones, under virtual time */
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

/* Bytes of a small packet (for the pool). */
size_t simlnd_packet_size(void);
/* Calls lnet_ni_stopped(), if the CPT goes down and nothing is left of it. */
void simlnd_stopped(struct sim_cpt *sc);
/* The NI has failed hard: this CPT will end what it is sending. */
void simlnd_failed(struct sim_cpt *sc);
/* Gives messages that have not left by @p back to LNet, unless they were given
 * back before. Were there any? */
bool simlnd_give_back(struct sim_path *p);
/* Is nothing under way to or from there, as far as this CPT knows? */
bool simlnd_is_idle(const struct sim_path *p);

/* ---- net.c ---- */

struct sim_ep *net_ep(const struct sim_net *net, const struct ulnet_nid *nid);
/* @ni joins the network with @cpts. 0; -EADDRINUSE: another NI has its NID;
 * -EINVAL: an earlier NI of this NID had another number of CPTs; -ENOMEM. */
int net_join(struct sim_net *net, struct lnd_ni *ni,
	     struct sim_cpt *cpts) must_check;
/* The NI has gone. */
void net_left(struct sim_ep *ep);

static inline bool ep_is_there(const struct sim_ep *ep)
{
	return atomic_load(&ep->generation) & 1;
}

/* NULL: there is none. */
struct sim_path *net_path_find(const struct sim_cpt *sc,
			       const struct ulnet_nid *dst);
/* The path to @dst, which is created if need be, by the present rules. NULL: no
 * memory. */
struct sim_path *net_path(struct sim_cpt *sc, const struct ulnet_nid *dst);
/* @p, by the present rules. */
struct sim_path *net_path_now(const struct sim_cpt *sc, struct sim_path *p);
void net_paths_free(struct sim_cpt *sc);

/* ---- connections (conn.c) ---- */

/*
 * Links with ulnet_sim_link.connect need connections. An attempt takes that
 * time. It is refused where no NI is, and hears nothing where the network is
 * cut: then it is repeated until the LND's time-out. A connection ends when the
 * peer is gone or the network cuts it: LNet is told, and the next message makes
 * a new one. Each direction has its own connection; both are opened and cut
 * together.
 *
 * A connection is silent if what was sent, or its acknowledgement, is lost, and
 * would still be a while later. Then LNet is told, messages that have not left
 * are given back, and a new connection is tried. What was lost stays lost; TCP
 * would deliver it late.
 *
 * As over TCP, a process that only calls can be reached only over a connection
 * that it has opened, and is never silent.
 *
 * This does not use lnd/connect.h, though pauses follow the same law. Here an
 * attempt has no turn to wait for and a peer asks for no retries, which is most
 * of connect.h. And connect.h begins attempts at the end of the turn, which
 * would change the course of every seed that tests and mutants rely on.
 */
enum sim_conn_state {
	SIM_CONN_NONE,
	SIM_CONN_TRYING, /* an attempt is under way */
	SIM_CONN_PAUSED, /* one has failed; the timer ends the pause */
	SIM_CONN_OPEN,
	SIM_CONN_STATES
};

void sim_conn_init(struct sim_path *p);

/* 0, or as send() (lnd.h) without a connection. */
int sim_conn_ready(struct sim_path *p);

/* Is the network cut, so that there is not even a refusal? */
bool sim_conn_is_cut(const struct sim_path *p);
/* Something has left on the connection, and is lost because of that. */
void sim_conn_lost(struct sim_path *p);

/* Something has come in from where @p leads, over a connection that can be used
 * for answers. */
void sim_conn_heard(struct sim_path *p);

/* Ends an open connection. Under virtual time: any thread in lockstep. */
void sim_conn_end(struct sim_path *p);
/* The same, and what is on its way, in either direction, is lost. */
void sim_conn_cut(struct sim_path *p);
/* The NI has failed hard: its connections end, and what is on its way here over
 * them is lost. */
void sim_conns_fail(struct sim_cpt *sc);
/* Tells LNet of the connections that have ended. */
void sim_conns_tell(struct sim_cpt *sc);

/* The CPT goes down: no more upcalls. */
void sim_conns_stop(struct sim_cpt *sc);

/* lnd.can_move() and lnd.move(). A connection leaves its path here, and is
 * added to the path there in a turn of that CPT. What is on its way to this CPT
 * meanwhile is passed on when it arrives, and may then be overtaken by what was
 * sent later. */
bool sim_can_move(struct lnd_ni *ni, unsigned int cpt,
		  const struct ulnet_nid *nid);
void sim_move(struct lnd_ni *ni, unsigned int cpt, const struct ulnet_nid *nid);

#endif
