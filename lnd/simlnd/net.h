/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The network between simulated NIs: who is there, and what the links do.
 * Inside simlnd only.
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
	bool scheduled;
	bool failed;	      /* hard, since @work ran last */
	unsigned int leaving; /* connections on their way to another CPT */
	struct work work;     /* sends what is queued, at the end of a turn */
	struct list queue;    /* sim_tx.link: not looked at yet */
	struct list blocked;  /* sim_tx.link: their window was full */
	struct list sending;  /* sim_tx.link: in the LND's hands */
	struct list arriving; /* sim_pkt.link: on the way, or being stored */
	struct list severed;  /* sim_path.severed: LNet is to be told */
	struct hash paths;    /* sim_path.hash, by destination */
	struct pool txs;
};

/* A NID that is or was in the network. Lives as long as the network. */
struct sim_ep {
	struct hash_node hash; /* net->eps */
	struct ulnet_nid nid;
	struct sim_net *net;
	struct lnd_ni *ni;	/* control; NULL while there is none */
	atomic_uint generation; /* of starts; odd: it is there */
	atomic_bool up;
	unsigned int changes; /* of @up; the last one, ns: */
	uint64_t changed;
	unsigned int cpts;
	struct sim_cpt *cpt; /* of the present NI, whose priv it is; an earlier
			      * one may still be on its way out */
	struct list conns; /* sim_path.of_ep: under virtual time, those that are
			    * open to here, of all nodes */
};

/* What a CPT knows of the way to a destination. */
struct sim_path {
	struct hash_node hash;
	struct sim_cpt *sc;
	struct ulnet_nid dst;
	struct sim_ep *ep; /* NULL: was never there */
	uint64_t rules;	   /* version of the rules that link comes from */
	struct ulnet_sim_link link;
	bool partitioned;
	bool deaf; /* the links lose all that is sent there, or comes back */
	uint64_t free_at; /* when the link has sent what was given to it */
	uint64_t last;	  /* arrival of the last one in order */
	uint32_t unread;  /* packets in its window */
	/* What comes from there: */
	struct sim_pkt *standing; /* LNet has not answered it, so these wait: */
	struct list behind;	  /* sim_pkt.link */
	struct timer resume;	  /* after that answer */
	/* conn.c's: */
	struct fsm conn;
	bool wanted;		 /* somebody waits for the connection */
	unsigned int failures;	 /* in a row */
	unsigned int generation; /* of the peer that it leads to */
	uint64_t give_up;	 /* ns: when this attempt fails */
	bool told_silent;	 /* LNet is, that it hears nothing */
	struct timer timer;
	struct timer silence; /* armed: something was sent, and is lost */
	struct list of_ep;   /* sim_ep.conns */
	struct list severed; /* sim_cpt.severed: it was open, and has ended */
	uint64_t cut; /* ns: what has left there before does not arrive */
};

/* What was said of a pair of NIDs, either may be ANY. */
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

/* Bytes of a small packet (for the pool). */
size_t simlnd_packet_size(void);

static inline struct sim_cpt *simlnd_cpt(const struct lnd_ni *ni,
					 unsigned int cpt)
{
	return &((struct sim_cpt *)ni->priv)[cpt];
}

/* Tells LNet, if the CPT has gone down and nothing is left of it. */
void simlnd_stopped(struct sim_cpt *sc);

/* The NI has failed hard: this CPT will end what it is sending. */
void simlnd_failed(struct sim_cpt *sc);
/* LNet gets back what has not left by @p yet, unless it was given back before.
 * Was there any? */
bool simlnd_give_back(struct sim_path *p);
/* Does nothing go that way, nor come from there, as far as this CPT knows? */
bool simlnd_is_idle(const struct sim_path *p);

struct sim_ep *net_ep(const struct sim_net *net, const struct ulnet_nid *nid);
/* The NID joins, with @cpts: its end point is made if it was never there.
 * -EADDRINUSE: somebody has it; -EINVAL: other number of CPTs than before;
 * -ENOMEM. */
int net_join(struct sim_net *net, struct lnd_ni *ni,
	     struct sim_cpt *cpts) must_check;
/* Its NI has gone. */
void net_left(struct sim_ep *ep);

/* NULL: none was ever wanted. */
struct sim_path *net_path_find(const struct sim_cpt *sc,
			       const struct ulnet_nid *dst);
/* With the rules of this moment; NULL: no memory. */
struct sim_path *net_path(struct sim_cpt *sc, const struct ulnet_nid *dst);
/* @p, with the rules of this moment. */
struct sim_path *net_path_now(const struct sim_cpt *sc, struct sim_path *p);
void net_paths_free(struct sim_cpt *sc);

static inline bool ep_is_there(const struct sim_ep *ep)
{
	return atomic_load(&ep->generation) & 1;
}

#endif
