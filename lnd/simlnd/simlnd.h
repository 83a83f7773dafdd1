/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The simulated LND: messages between nodes of one process, over a network that
 * does to them what it is told to. It serves NIDs of any type.
 *
 * Under virtual time all loops are in one thread. It also runs on real loops,
 * in several threads, for tests of threads: then the network must be complete
 * before the first message, no fault may be set afterwards, and nodes are
 * closed once nothing is sent to them any more.
 */
#ifndef LND_SIMLND_SIMLND_H
#define LND_SIMLND_SIMLND_H

#include "lnd/lnd.h"
#include "ulnet/sim.h"

struct sim_net;

/* What can happen to a message on the network. */
enum sim_fate {
	SIM_ARRIVES,
	SIM_NOBODY, /* arrives where nobody is any more */
	SIM_LOST,
	SIM_DUPLICATE,
	SIM_REFUSED,
	SIM_STALLED,
	SIM_MUTE,
	SIM_ERROR,
	SIM_CUT,
	SIM_OVERTAKEN, /* or may be: it takes longer than others */
	SIM_FATES
};

/* What may watch a network that is under virtual time. Marks: lnd_msg.mark. */
struct sim_net_watch {
	/* A packet bears the mark of its message, and a number that hold()
	 * returns; it is gone again. */
	uint32_t (*hold)(void *arg, const struct lnd_msg *msg);
	void (*drop)(void *arg, void *mark);
	/* LNet hands @msg to an NI that has failed hard at @down, ns;
	 * TIME_NEVER: that is up. */
	void (*send)(void *arg, const struct lnd_msg *msg, uint64_t down);
	/* For the event log. @hdr: LNet's header, NULL at the sender. */
	void (*trace)(void *arg, enum sim_fate fate,
		      const struct ulnet_nid *src, const struct ulnet_nid *dst,
		      const void *hdr, uint32_t length);
	void *arg;
};

struct sim_net_stats {
	uint64_t messages;
	uint64_t faults;
};

/* @watch is copied; NULL: nobody, which is a must with real loops. */
int sim_net_new(const struct sim_net_watch *watch,
		struct sim_net **net_p) must_check;
/* All NIs must be gone. */
void sim_net_free(struct sim_net *net);

int sim_net_link_set(struct sim_net *net, const struct ulnet_nid *src,
		     const struct ulnet_nid *dst,
		     const struct ulnet_sim_link *link) must_check;
int sim_net_partition(struct sim_net *net, const struct ulnet_nid *a,
		      const struct ulnet_nid *b, bool on) must_check;
/* As lnet_sim_cut(3). Virtual time. */
void sim_net_cut(struct sim_net *net, const struct ulnet_nid *a,
		 const struct ulnet_nid *b);
/*
 * Hard failure of an NI, and its end. Its connections end, of which its own
 * LNet is told, while the other side meets silence. Messages that it is sending
 * end, as lnd.h says of an NI that fails, and so do those that are just stored.
 * What is under way on the network finds it down, if it still is by then.
 * -ENOENT: no NI has this NID now.
 */
int sim_net_ni_set(struct sim_net *net, const struct ulnet_nid *nid,
		   bool up) must_check;
/* Changes when an NI gets this NID, fails, comes back, or goes; 0: there was
 * none yet. */
uint64_t sim_net_ni_changes(const struct sim_net *net,
			    const struct ulnet_nid *nid);
void sim_net_stats(const struct sim_net *net, struct sim_net_stats *stats);

/* The mark of the message that LNet knows as @rx (observer.h), and the number
 * that hold() has returned. */
void *sim_net_rx_mark(const void *rx);
uint32_t sim_net_rx_number(const void *rx);

extern const struct lnd simlnd;

#endif
