/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Queue pairs in memory, under virtual time: a backend of verbs.h for tests and
 * simulations. All ports of a world share one fabric, which does to them what
 * it is told to. It knows nothing of what the bytes mean.
 *
 * A port finds its fabric through lnd_ni.fabric of its NI, which whoever makes
 * the NI sets to the struct simqp_fabric. NIs of any number of nodes and loops
 * may be in one world (env_sim.h), which is one thread.
 *
 * What it does as devices do: data of a queue pair arrives in order and once,
 * is acknowledged, and sent again when no acknowledgement comes; a SEND whose
 * peer has no receive posted is tried again later; memory is read and written
 * while the data travels, so what the LND reuses too early, shows. Connect
 * messages are another lane, may be lost, and are repeated. Each work request
 * is one packet: a WRITE arrives whole.
 *
 * Functions that set faults are called from anywhere in the world: in turns of
 * any loop, or between them. They make no event before they return. Where
 * they take two NIDs, LNET_NID_ANY stands for all. Same seed of the world, same
 * calls: the same run.
 */
#ifndef LND_O2IBLND_SIMQP_SIMQP_H
#define LND_O2IBLND_SIMQP_SIMQP_H

#include "lnd/o2iblnd/verbs.h"

struct simqp_fabric;

/* Probabilities: parts in a million. */
#define SIMQP_ALWAYS UINT32_C(1000000)

/* Times of all devices; 0: the default. */
struct simqp_conf {
	/* No acknowledgement for so long, latencies aside: sent again, for
	 * retry_count times; 500 ms. */
	uint64_t ack_ns;
	uint64_t rnr_ns;       /* pause before a receive is tried again; 1 ms */
	uint64_t cm_ns;	       /* no answer for so long: asked again; 2 s */
	unsigned int cm_tries; /* to connect, or to accept; 15 */
	uint64_t cq_ns;	       /* up to so much later are completions told; 0 */
};

/* One direction between two NIDs. All zero: immediate, and without faults. */
struct simqp_link {
	uint64_t latency;    /* ns; at least 1 */
	uint64_t jitter;     /* ns: up to that much is added; data, and connect
			     * messages, keep their order */
	uint64_t bandwidth;  /* bytes/s; 0: no limit */
	uint64_t cm_latency; /* ns: added to connect messages */
	uint64_t rtu_delay;  /* ns: added to the active side's last one, which
			      * its data overtakes then */
	uint32_t loss;	     /* of a packet, which is sent again later */
	uint32_t cm_loss;    /* of a connect message, likewise; those that end
			      * a connection are sent but once */
	uint32_t rnr;	     /* of a SEND that comes: it is as if no receive
			      * were posted, this time */
	/*
	 * Of each work request that is posted: how it ends. OK has no meaning.
	 *	FLUSHED		the device gives the queue pair up: failed()
	 *			with -EIO
	 *	SILENT		nothing is acknowledged from here on; the peer
	 *			may get it, and the next ones, or not
	 *	NOT_READY, REMOTE_ACCESS, REMOTE_ERROR
	 *			the peer's device says so; of a SEND, with
	 *			REMOTE_ERROR its receive ends LOCAL_ERROR there
	 *	LOCAL_ERROR	it is not sent
	 */
	uint32_t ends[IB_WC_STATUSES];
};

/* A device, whose limits ib_port.limits says. */
struct simqp_device {
	struct ib_limits limits;
	uint32_t max_inline; /* bytes */
	/* What it does not say; 0: no limit. */
	uint32_t wr_max;     /* work requests of both queues together */
	uint64_t locked_max; /* bytes that are registered at a time */
	uint32_t reg_fails;  /* of registrations: -ENOMEM */
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

/* What a port has just now. */
struct simqp_usage {
	bool open;
	unsigned int qps; /* that the LND has been told of */
	unsigned int mrs;
	uint64_t locked; /* bytes */
};

/* What has happened on the fabric, ever. */
struct simqp_stats {
	uint64_t connected;	/* queue pairs of active sides */
	uint64_t sends, writes; /* that have arrived, and been done */
	uint64_t bytes;
	uint64_t not_ready; /* SENDs that came and met no receive */
	uint64_t resent;    /* packets */
	uint64_t lost;	    /* packets and connect messages */
	uint64_t refused;   /* WRITEs: key, range or permission */
	uint64_t overtaken; /* data that came before the last connect message */
};

struct env_sim;

/* @conf NULL: the defaults. Its generator is seeded from @world's. */
int simqp_fabric_new(struct env_sim *world, const struct simqp_conf *conf,
		     struct simqp_fabric **fabric_p) must_check;
/* No port is open. */
void simqp_fabric_free(struct simqp_fabric *f);

/* The backend. Its open() wants ni->fabric to be a struct simqp_fabric. */
const struct ib_verbs *simqp_verbs(void);

/* ---- who is there ---- */

/* A NID is in the network, with a device, from its first open() or the
 * first of these calls on; before that there is no way to it. @device NULL:
 * the defaults, which are large. To be called before open(). */
void simqp_device_set(struct simqp_fabric *f, const struct ulnet_nid *nid,
		      const struct simqp_device *device);
/* The link of @nid goes down, or comes back: nothing passes while it is down,
 * and its port, if there is one, is told. @why: constant text. */
void simqp_port_set(struct simqp_fabric *f, const struct ulnet_nid *nid,
		    bool up, const char *why);
/* The device goes: connections fail with -ENODEV, the port is told (@removed)
 * and of no use, and open() says -ENODEV until simqp_insert(). */
void simqp_remove(struct simqp_fabric *f, const struct ulnet_nid *nid);
void simqp_insert(struct simqp_fabric *f, const struct ulnet_nid *nid);
void simqp_usage(const struct simqp_fabric *f, const struct ulnet_nid *nid,
		 struct simqp_usage *usage);
void simqp_stats(const struct simqp_fabric *f, struct simqp_stats *stats);

/* ---- faults ---- */

/* The direction is like that from now on; what was said last is what holds. */
void simqp_link_set(struct simqp_fabric *f, const struct ulnet_nid *src,
		    const struct ulnet_nid *dst, const struct simqp_link *link);
/* Nothing arrives in this direction for @ns (TIME_NEVER: for ever; 0: it ends
 * what was said of the same two). */
void simqp_silence(struct simqp_fabric *f, const struct ulnet_nid *src,
		   const struct ulnet_nid *dst, uint64_t ns);
/* The node that has @nid dies: as simqp_silence() for ever, of all that comes
 * from there, and its port, which is to be closed, waits for nothing: queue
 * pairs complete what they have at once. */
void simqp_die(struct simqp_fabric *f, const struct ulnet_nid *nid);
/* Queue pairs that are connected, or about to be, fail on both sides at once,
 * and what is under way is lost: failed() with -EIO, or -ENOTCONN. */
void simqp_cut(struct simqp_fabric *f, const struct ulnet_nid *a,
	       const struct ulnet_nid *b);
/* The one call at @nid that comes after @skip good ones returns @status. */
void simqp_fail_call(struct simqp_fabric *f, const struct ulnet_nid *nid,
		     enum simqp_call call, unsigned int skip, int status);
/* The next connect request to @nid is rejected for @reason by its system. */
void simqp_reject_next(struct simqp_fabric *f, const struct ulnet_nid *nid,
		       int reason);
/* The next resolve() at @nid ends with @status; -ETIMEDOUT: after its time. */
void simqp_unresolve_next(struct simqp_fabric *f, const struct ulnet_nid *nid,
			  int status);

#endif
