/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Simulated queue pairs in virtual time: a backend of verbs.h for tests and
 * simulations. All ports of a world share a fabric, in which faults can be set.
 *
 * A port finds its fabric through lnd_ni.fabric. The code that makes the NI
 * must set that field. NIs of any number of nodes and loops may be in one world
 * (env_sim.h), which is one thread.
 *
 * As with real devices, the data of a queue pair arrives in order and once, and
 * is sent again if it is not acknowledged; a SEND that meets no receive is
 * tried again later. Memory is read and written while the data travels, so that
 * reusing it too early is noticed. Connect messages are sent apart from data,
 * may be lost, and are repeated. Each work request is one packet.
 *
 * Functions that set faults may be called from anywhere in the world, in turns
 * of any loop or between them, and cause no event before they return. For NIDs
 * they accept LNET_NID_ANY, which means all. A run is reproduced by the same
 * seed of the world and the same calls.
 */
#ifndef LND_O2IBLND_SIMQP_SIMQP_H
#define LND_O2IBLND_SIMQP_SIMQP_H

#include "lnd/o2iblnd/verbs.h"

struct simqp_fabric;

/* A probability of 1. All probabilities are parts in a million. */
#define SIMQP_ALWAYS UINT32_C(1000000)

/* Times of all devices, ns. A field that is 0 has its default. */
struct simqp_conf {
	/* for how long data may be unacknowledged, beyond the latency of the
	 * link, before it is sent again, which happens at most retry_count
	 * times; 500 ms by default */
	uint64_t ack_ns;
	/* pause before a SEND that met no receive is tried again; 1 ms by
	 * default */
	uint64_t rnr_ns;
	/* time until a connect message is repeated; 2 s by default */
	uint64_t cm_ns;
	/* most attempts to send a connect message; 15 by default */
	unsigned int cm_tries;
	/* longest random delay of completions; none by default */
	uint64_t cq_ns;
};

/* One direction between two NIDs; all 0: minimal latency, no faults.
 * Probabilities are parts in a million. */
struct simqp_link {
	uint64_t latency; /* ns, at least 1: how long a packet travels */
	/* ns: the longest random time that is added to @latency; packets, and
	 * connect messages, keep their order */
	uint64_t jitter;
	uint64_t bandwidth;  /* bytes/s; 0: no limit */
	uint64_t cm_latency; /* ns that are added for connect messages */
	/* ns that are added for the active side's confirmation, so that data
	 * overtakes it */
	uint64_t rtu_delay;
	uint32_t loss; /* probability that a packet is lost; it is sent again */
	/* probability that a connect message is lost; it is sent again, unless
	 * it ends a connection */
	uint32_t cm_loss;
	uint32_t rnr; /* probability that a SEND finds no receive */
	/*
	 * For each status, the probability that a posted work request completes
	 * with it. What happens then:
	 *	FLUSHED		the queue pair fails: failed() with -EIO
	 *	SILENT		nothing is acknowledged from here on; data may
	 *			arrive, or not
	 *	NOT_READY, REMOTE_ACCESS, REMOTE_ERROR
	 *			the peer's device says so; a SEND with
	 *			REMOTE_ERROR ends its receive with LOCAL_ERROR
	 *	LOCAL_ERROR	it is not sent
	 */
	uint32_t wc_ppm[IB_WC_STATUSES];
};

/* A device. Its limits become ib_port.limits. */
struct simqp_device {
	struct ib_limits limits;
	uint32_t max_inline; /* the largest ib_qp.max_inline, bytes */
	/* limits that the device does not tell; 0: no limit */
	/* work requests of both queues of a queue pair together */
	uint32_t wr_max;
	uint64_t locked_max; /* most bytes that are registered at a time */
	/* probability that a registration fails with -ENOMEM */
	uint32_t reg_fails;
};

enum simqp_call {
	SIMQP_CALL_OPEN,
	SIMQP_CALL_RESOLVE,
	SIMQP_CALL_CREATE,
	SIMQP_CALL_CONNECT,
	SIMQP_CALL_ACCEPT,
	SIMQP_CALL_POST_RECV,
	SIMQP_CALL_POST_SEND,
	SIMQP_CALL_REG,
	SIMQP_CALLS
};

/* The present resources of a port. */
struct simqp_usage {
	bool open;
	unsigned int qps; /* number of queue pairs that the LND knows */
	unsigned int mrs;
	uint64_t locked; /* number of bytes that are registered */
};

/* Counters of a fabric. */
struct simqp_stats {
	/* number of queue pairs that were connected, counted at active sides */
	uint64_t connected;
	/* number of SENDs and of WRITEs that the receiver has completed */
	uint64_t sends, writes;
	uint64_t bytes;
	uint64_t not_ready; /* number of SENDs that met no receive */
	uint64_t resent;    /* number of packets that were sent again */
	/* number of packets and connect messages that were lost */
	uint64_t lost;
	/* number of WRITEs that were refused for their key, range or permission
	 */
	uint64_t refused;
	/* number of packets that overtook the confirmation */
	uint64_t overtaken;
};

struct env_sim;

/* Makes a fabric. @conf NULL: the defaults. The random seed is taken from
 * @world. Returns 0 or -errno. */
int simqp_fabric_new(struct env_sim *world, const struct simqp_conf *conf,
		     struct simqp_fabric **fabric_p) must_check;
/* Frees a fabric, in which no port may be open. */
void simqp_fabric_free(struct simqp_fabric *f);

/* Returns the backend. Its open() requires ni->fabric to be a struct
 * simqp_fabric. */
const struct ib_verbs *simqp_verbs(void);

/* ---- devices ---- */

/* Sets the device of @nid; NULL: the default, with large limits. Must be called
 * before open(). A NID becomes known to the network, and can be resolved, by
 * its first open(), or by the first call of a function of this section that
 * names it. */
void simqp_device_set(struct simqp_fabric *f, const struct ulnet_nid *nid,
		      const struct simqp_device *device);
/* Makes the link of @nid go down or come up. While it is down nothing passes.
 * An open port is told, with @why, constant text. */
void simqp_port_set(struct simqp_fabric *f, const struct ulnet_nid *nid,
		    bool up, const char *why);
/* Removes the device: connections fail with -ENODEV, an open port is told that
 * it was removed, and open() returns -ENODEV until simqp_insert(). */
void simqp_remove(struct simqp_fabric *f, const struct ulnet_nid *nid);
void simqp_insert(struct simqp_fabric *f, const struct ulnet_nid *nid);
void simqp_usage(const struct simqp_fabric *f, const struct ulnet_nid *nid,
		 struct simqp_usage *usage);
void simqp_stats(const struct simqp_fabric *f, struct simqp_stats *stats);

/* ---- faults ---- */

/* Sets the link from @src to @dst. Of several calls that match, the latest
 * counts. */
void simqp_link_set(struct simqp_fabric *f, const struct ulnet_nid *src,
		    const struct ulnet_nid *dst, const struct simqp_link *link);
/* Drops all that arrives in this direction for @ns; TIME_NEVER: for ever; 0:
 * ends what was set for the same two NIDs. */
void simqp_silence(struct simqp_fabric *f, const struct ulnet_nid *src,
		   const struct ulnet_nid *dst, uint64_t ns);
/* The node with @nid dies: nothing more arrives from it, and its port completes
 * all work requests at once. The caller must then close the port. */
void simqp_die(struct simqp_fabric *f, const struct ulnet_nid *nid);
/* Queue pairs that are connected or connecting fail on both sides with -EIO or
 * -ENOTCONN, and what is under way between them is lost. */
void simqp_cut(struct simqp_fabric *f, const struct ulnet_nid *a,
	       const struct ulnet_nid *b);
/* Makes one call at @nid fail with @status, after @skip successful ones. */
void simqp_fail_call(struct simqp_fabric *f, const struct ulnet_nid *nid,
		     enum simqp_call call, unsigned int skip, int status);
/* The CM rejects the next connect request to @nid with @reason. */
void simqp_reject_next(struct simqp_fabric *f, const struct ulnet_nid *nid,
		       int reason);
/* The next resolve() at @nid fails with @status; -ETIMEDOUT: after its time. */
void simqp_unresolve_next(struct simqp_fabric *f, const struct ulnet_nid *nid,
			  int status);

#endif
