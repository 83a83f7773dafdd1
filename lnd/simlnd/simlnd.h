/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The simulated LND: messages between nodes of one process, over a network
 * whose faults are under control. It serves NIDs of any type.
 *
 * Under virtual time all loops are in one thread. The LND also runs on real
 * loops, in several threads, for tests of threads: then the network must be
 * complete before the first message, no fault may be set afterwards, and nodes
 * may be closed only once nothing is sent to them any more.
 */
#ifndef LND_SIMLND_SIMLND_H
#define LND_SIMLND_SIMLND_H

#include "lnd/lnd.h"
#include "ulnet/sim.h"

struct sim_net;

/* What can happen to a message on the network: see struct ulnet_sim_link. */
enum sim_fate {
	SIM_ARRIVES,
	SIM_NOBODY, /* arrives, but the NI has gone */
	SIM_LOST,
	SIM_DUPLICATE,
	SIM_REFUSED,
	SIM_STALLED,
	SIM_MUTE,
	SIM_ERROR,
	SIM_CUT,
	SIM_OVERTAKEN, /* takes longer, so that others may overtake it */
	SIM_PUSHED,    /* was taken by push(), and waits to be sent */
	SIM_FATES
};

/* Functions that observe a network under virtual time. Marks are those of
 * lnd_msg.mark. */
struct sim_net_watch {
	/* A packet is made for @msg, which has a mark. Returns a number, which
	 * sim_net_rx_number() tells the receiver. drop(): a packet with @mark
	 * is gone. */
	uint32_t (*hold)(void *arg, const struct lnd_msg *msg);
	void (*drop)(void *arg, void *mark);
	/* @copy is made of @msg, which push() takes; the function sets its
	 * mark and its number. drop(): @copy is gone, too. */
	void (*push)(void *arg, const struct lnd_msg *msg,
		     struct lnd_msg *copy);
	/* LNet gives @msg to an NI. @down: when the NI failed hard, ns;
	 * TIME_NEVER: it is up. */
	void (*send)(void *arg, const struct lnd_msg *msg, uint64_t down);
	/* Something has happened to a message: for the event log. @hdr: LNet's
	 * header; NULL at the sender. */
	void (*trace)(void *arg, enum sim_fate fate,
		      const struct ulnet_nid *src, const struct ulnet_nid *dst,
		      const void *hdr, uint32_t length);
	void *arg;
};

struct sim_net_stats {
	uint64_t messages;
	uint64_t faults;
};

/* Makes a network. @watch is copied; NULL: no observer. With real loops it must
 * be NULL. 0 or -ENOMEM. */
int sim_net_new(const struct sim_net_watch *watch,
		struct sim_net **net_p) must_check;
/* Frees @net, which all NIs must have left. */
void sim_net_free(struct sim_net *net);

int sim_net_link_set(struct sim_net *net, const struct ulnet_nid *src,
		     const struct ulnet_nid *dst,
		     const struct ulnet_sim_link *link) must_check;
int sim_net_partition(struct sim_net *net, const struct ulnet_nid *a,
		      const struct ulnet_nid *b, bool on) must_check;
/* Cuts connections, as lnet_sim_cut(3). Virtual time only. */
void sim_net_cut(struct sim_net *net, const struct ulnet_nid *a,
		 const struct ulnet_nid *b);
/*
 * The NI @nid fails hard (@up false), or is back. When it fails, its own LNet
 * is told that its connections have ended, while the other side hears nothing.
 * Messages that the NI is sending or storing end (lnet_ni_set_up()). Packets
 * that arrive while it is down are lost. -ENOENT: no NI has this NID now.
 */
int sim_net_ni_set(struct sim_net *net, const struct ulnet_nid *nid,
		   bool up) must_check;
/* A number that changes whenever an NI gets the NID @nid, fails, comes back, or
 * goes; 0: no NI has had it yet. */
uint64_t sim_net_ni_changes(const struct sim_net *net,
			    const struct ulnet_nid *nid);
/* From now on calls @fn(@arg, ...) for each packet that is sent, which may
 * change it: LNet's header, of @hdr_len bytes, and the payload; NULL: for none.
 */
typedef void sim_net_tap_fn(void *arg, uint8_t *hdr, size_t hdr_len,
			    uint8_t *payload, size_t length);
void sim_net_tap(struct sim_net *net, sim_net_tap_fn *fn, void *arg);
/* The prefix (lnd_ni.prefix) of the NIs that start from now on. */
void sim_net_prefix(struct sim_net *net, unsigned int bits);
/* From now on push() takes a small message with the probability @ppm, where a
 * message could be sent at once, and otherwise refuses it as if the socket were
 * full. What it has taken shares the faults of all messages, but nobody is told
 * of them. 0, at first: it takes none. */
void sim_net_push(struct sim_net *net, uint32_t ppm);
void sim_net_stats(const struct sim_net *net, struct sim_net_stats *stats);

/* The mark of the message that lnet_parse() has got as @rx, and the number that
 * hold() has returned for its packet. */
void *sim_net_rx_mark(const void *rx);
uint32_t sim_net_rx_number(const void *rx);

extern const struct lnd simlnd;

#endif
