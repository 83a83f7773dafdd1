/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * LNet: nodes, interfaces, portals, match entries, memory descriptors, PUT,
 * GET, events. Manual: ulnet(7), lnet_events(7), lnet_md(7) and a page for each
 * function in section 3.
 *
 * Conventions, unless a function says otherwise:
 * - functions return 0 or a negative errno; out-parameters come last and are
 *   not written on error; times are microseconds, lengths and offsets bytes;
 * - a function may be called on the thread of the CPT that owns the object, or
 *   on a thread that runs no loop, which then waits until the owner's thread
 *   has carried it out; on the thread of another CPT or node it returns
 *   -EXDEV;
 * - no function calls a handler or callback before it has returned.
 */
#ifndef ULNET_LNET_H
#define ULNET_LNET_H

#include <sys/uio.h>
#include "ulnet/nid.h"

#ifdef __cplusplus
extern "C" {
#endif

#define LNET_MTU      UINT32_C(1048576) /* bytes; longest payload */
#define LNET_MAX_IOV  256		/* fragments of a memory descriptor */
#define LNET_PORTALS  64		/* portal 0 is LNet's own */
#define LNET_CPTS_MAX 16

struct lnet;	/* a node */
struct ev_loop; /* libev's */

/* ---- nodes: lnet_open(3) ---- */

/* What drives the node. */
enum ulnet_run {
	LNET_RUN_THREADS, /* a thread of the library for each CPT */
	LNET_RUN_POLL,	  /* the application, by lnet_poll(); one CPT */
	LNET_RUN_EV,	  /* the application's ev loop; one CPT */
};

/* From which TCP ports a node accepts connections: socklnd(7). */
enum ulnet_accept {
	LNET_ACCEPT_DEFAULT, /* secure if its port is below 1024, else all */
	LNET_ACCEPT_SECURE,  /* only from privileged ports, below 1024 */
	LNET_ACCEPT_ALL,     /* from any port */
	LNET_ACCEPT_NONE,    /* from none: it does not listen, and may share its
			      * addresses with other nodes */
};

/* Are peers asked for their NIDs before the first message? */
enum ulnet_discovery {
	LNET_DISCOVERY_DEFAULT, /* on */
	LNET_DISCOVERY_ON,
	LNET_DISCOVERY_OFF,
	LNET_DISCOVERY_VERIFY, /* yes, but answers only lead to warnings */
};

struct ulnet_conf {
	enum ulnet_run run;
	struct ev_loop *ev; /* LNET_RUN_EV: borrowed until close */
	const char *nids;   /* NIs to be added with defaults, as "10.0.0.1@tcp
			     * 10.0.1.1@tcp1"; NULL: none (lnet_ni_add());
			     * borrowed until return */
	unsigned int cpts;  /* 1 .. LNET_CPTS_MAX; 0 = 1 */
	uint32_t pid;	    /* 0 = LNET_PID_LUSTRE, or with LNET_ACCEPT_NONE
			     * a random one */
	uint64_t transaction_timeout; /* us; of operations, unless their MD
				       * has its own; 0 = 50 s */
	/* Limits of what peers can make each CPT store: */
	uint32_t peers_max;	 /* 0 = 100000 */
	uint32_t messages_max;	 /* messages being received; 0 = 65536 */
	uint32_t lazy_max;	 /* messages held by lazy portals; 0 = 4096 */
	uint64_t lazy_bytes_max; /* payload of those, bytes; 0 = 64 MiB */
	uint32_t interfaces_max; /* NIDs of a peer in a ping info; 0 = 200 */
	enum ulnet_discovery discovery; /* at first; a setting later */
	/* For LNDs that listen, such as socklnd: */
	uint16_t port; /* to listen on and to connect to; 0 = 988 */
	enum ulnet_accept accept;
	uint32_t accept_backlog; /* 0 = 4096 */
	uint32_t accept_max;	 /* concurrent handshakes; 0 = 1024 */
	uint64_t accept_timeout; /* us, of each step of a handshake; 0 = 5 s */
};

/* Sets each member to its default; 0 stands for the default as well. */
ULNET_EXPORT void lnet_conf_init(struct ulnet_conf *conf);
ULNET_EXPORT int lnet_open(const struct ulnet_conf *conf, struct lnet **node_p);
ULNET_EXPORT void lnet_close(struct lnet *node);
ULNET_EXPORT int lnet_poll(struct lnet *node, uint64_t timeout);
/* For other event loops, with LNET_RUN_POLL, on the thread of lnet_open(),
 * outside of handlers. lnet_fd(): a descriptor that is readable when
 * lnet_poll() has something to do; it belongs to the node. lnet_next_timeout():
 * after how many us lnet_poll() has to be called even if the descriptor is not
 * readable (0: now; UINT64_MAX: never); changes with each call of any function.
 * */
ULNET_EXPORT int lnet_fd(struct lnet *node);
ULNET_EXPORT uint64_t lnet_next_timeout(struct lnet *node);
ULNET_EXPORT int lnet_call(struct lnet *node, unsigned int cpt,
			   int (*fn)(void *arg), void *arg);
/* Returns how many CPTs the node has. */
ULNET_EXPORT unsigned int lnet_cpts(struct lnet *node);
/* Returns the CPT that owns the peer with @nid now; -1: LNET_NID_ANY. */
ULNET_EXPORT int lnet_cpt_of(struct lnet *node, const struct ulnet_nid *nid);

/* ---- local interfaces: lnet_ni_add(3) ---- */

#define LNET_INTERFACE_SIZE 64 /* name of an interface, with terminator */
#define LNET_TUNABLES_MAX   32 /* of one LND */

#define LNET_CREDITS_MAX      UINT32_C(1073741823) /* of an NI */
#define LNET_PEER_CREDITS_MAX UINT32_C(65535) /* of a peer NI, both kinds */

/* A setting of one LND, by its name: socklnd(7). */
struct ulnet_tunable {
	const char *name;
	int64_t value;
};

/* What an LND says about one of its tunables. */
struct ulnet_tunable_info {
	const char *name; /* constant texts */
	const char *unit; /* "s", "ms", "bytes", or "" */
	const char *help;
	int64_t min, max, def;
};

struct ulnet_ni_conf {
	/* The NID. With an interface, only the net of this NID counts: the
	 * address is that of the interface, preferably of the same size. */
	struct ulnet_nid nid;
	const char *interface; /* name or address; NULL: by the NID */
	uint32_t credits;      /* concurrent sends; 0 = 256 */
	uint32_t peer_credits; /* concurrent sends to one peer NI; 0 = 8 */
	int32_t peer_timeout;  /* s, after which a router asks whether a peer is
			       * alive; 0 = 180; < 0: never */
	uint32_t peer_buffer_credits; /* routed messages one peer may have here;
				       * 0 = peer_credits */
	const struct ulnet_tunable *tunables; /* others have their defaults */
	unsigned int ntunables;
	struct ulnet_nid *nid_p; /* result: the NID of the NI; or NULL */
	const char **why_p; /* result on failure: what is missing, if the LND
			     * knows, as constant text; or NULL */
};

/* Messages by type. */
struct ulnet_counts {
	uint64_t put, get, reply, ack;
};

/* How long something took, in @n samples of @ns together. */
struct ulnet_times {
	uint64_t n, ns;
};

/* Sends that failed, by cause. The first line: because of interfaces of this
 * node; the others: of peers, or the network. */
struct ulnet_failures {
	uint64_t interrupts, dropped, aborted, no_route, timeouts, errors;
	uint64_t remote_dropped, remote_timeouts, remote_errors;
	uint64_t network_timeouts;
};

struct ulnet_ni_info {
	struct ulnet_nid nid;
	char interface[LNET_INTERFACE_SIZE]; /* as configured, or the name of
					      * the interface with the NID's
					      * address, or that address; 0@lo:
					      * empty */
	bool up;
	const char *state; /* constant text */
	/* As configured, with defaults filled in: */
	uint32_t tx_credits, peer_credits, peer_buffer_credits;
	int32_t peer_timeout;
	uint64_t lnd_timeout; /* us that an LND waits for a sign of progress */
	int numa_node;	      /* of its device; -1: unknown */
	unsigned int ntunables;
	struct ulnet_tunable tunables[LNET_TUNABLES_MAX]; /* in effect */
	struct ulnet_counts sent, received, dropped;
	uint32_t credits_max; /* of all CPTs together */
	int64_t credits;      /* free ones; negative: so many messages wait */
	int64_t credits_min;  /* lowest value of @credits so far */
	uint64_t queued;      /* messages that wait for a credit */
	uint64_t send_count, recv_count, drop_count;
	uint64_t send_length, recv_length, drop_length; /* payload bytes */
	int32_t health;	       /* 0 to LNET_HEALTH_MAX */
	bool recovering;       /* unhealthy, and recovery pings are sent */
	uint32_t pings_silent; /* of these, in a row without an answer */
	uint64_t next_ping;    /* ns, as lnet_now(); 0: not known yet */
	struct ulnet_failures failed;
	uint64_t resent; /* messages sent again after they failed here */
	/* By policies (lnet_policy(7)); UINT32_MAX: none. */
	uint32_t net_priority, priority;
	/* Of PUTs and GETs, samples: from the call until they were sent, and
	 * until their ACK or REPLY came. */
	struct ulnet_times sending;
	struct ulnet_times answered;
};

struct ulnet_peer_info {
	struct ulnet_nid nid;
	struct ulnet_nid primary;
	unsigned int cpt;
	uint32_t credits_max;
	int64_t credits, credits_min;
	/* How many more of this router's buffers it may have; negative: so many
	 * of its messages wait for one. */
	int64_t router_credits, router_credits_min;
	uint64_t queued_bytes; /* payload and headers that wait for a credit */
	uint64_t queued;       /* messages that wait for a credit */
	uint64_t connecting;   /* messages that wait for a connection */
	uint64_t refs;	       /* messages that use it */
	uint64_t send_count, recv_count; /* messages to it, and from it */
	uint64_t drop_count;		 /* of those from it */
	struct ulnet_counts sent, received, dropped;
	const char *word; /* by whose word it is the peer's: constant text */
	bool down;	  /* by what the peer says */
	int32_t health;	       /* 0 to LNET_HEALTH_MAX */
	bool recovering;       /* unhealthy, and recovery pings are sent */
	uint32_t pings_silent; /* of these, in a row without an answer */
	uint64_t next_ping;    /* ns, as lnet_now(); 0: one is under way */
	struct ulnet_failures failed;
	/* As in struct ulnet_ni_info: */
	uint64_t resent;
	uint32_t net_priority, priority;
	struct ulnet_times sending, answered;
	/* Negotiated for its connections; 0: there is none, or its LND does not
	 * negotiate. */
	uint32_t queue_depth, max_frags;
	/* Of the peer: */
	bool multi_rail;
	bool configured;	/* lnet_peer_add(3) */
	uint32_t state;		/* as kernel nodes show it */
	const char *state_name; /* constant */
};

ULNET_EXPORT int lnet_ni_add(struct lnet *node,
			     const struct ulnet_ni_conf *conf);
ULNET_EXPORT int lnet_ni_del(struct lnet *node, const struct ulnet_nid *nid);
ULNET_EXPORT int lnet_ni_info(struct lnet *node, unsigned int index,
			      struct ulnet_ni_info *info);
/* Sets the health of the local NI with @nid (NULL: of all but 0@lo). */
ULNET_EXPORT int lnet_ni_set_health(struct lnet *node,
				    const struct ulnet_nid *nid,
				    int32_t health);
/* Sets the health of the peer NI with @nid (NULL: of all that are known). */
ULNET_EXPORT int lnet_peer_set_health(struct lnet *node,
				      const struct ulnet_nid *nid,
				      int32_t health);
ULNET_EXPORT int lnet_peer_info(struct lnet *node, const struct ulnet_nid *nid,
				struct ulnet_peer_info *info);
/* Fills @infos with up to @n of the tunables of the LND for @net, always in the
 * same order; returns how many there are. -EPROTONOSUPPORT: there is no such
 * LND. Any thread. */
ULNET_EXPORT int lnet_tunables(struct lnet *node, uint32_t net,
			       struct ulnet_tunable_info *infos,
			       unsigned int n);
/* Fills @infos with up to @n of the known peer NIs, in no order; returns how
 * many there are. Takes several turns: peers that come or go meanwhile may be
 * missing. */
ULNET_EXPORT int lnet_peers(struct lnet *node, struct ulnet_peer_info *infos,
			    unsigned int n);
/* Configure a peer, with all of its NIDs: lnet_peer_add(3). */
ULNET_EXPORT int lnet_peer_add(struct lnet *node, const struct ulnet_nid *nids,
			       unsigned int n, bool multi_rail);
ULNET_EXPORT int lnet_peer_del(struct lnet *node,
			       const struct ulnet_nid *primary,
			       const struct ulnet_nid *nids, unsigned int n);
/* Returns in *@primary the primary NID, as far as it is known now, of the peer
 * with @nid: @nid itself, unless the peer is known to have several NIDs. Events
 * and match entries name a peer by its primary NID. -EINVAL: LNET_NID_ANY. Any
 * thread. */
ULNET_EXPORT int lnet_primary(struct lnet *node, const struct ulnet_nid *nid,
			      struct ulnet_nid *primary);
/* Is the peer with @nid known to have several NIDs? Any thread. */
ULNET_EXPORT bool lnet_is_multi_rail(struct lnet *node,
				     const struct ulnet_nid *nid);
ULNET_EXPORT int LNetGetId(struct lnet *node, unsigned int index,
			   struct ulnet_id *id);

/* ---- handles ---- */

/* A handle is a value, and may outlive its object: functions then return
 * -ENOENT. The node must still be open. */
struct ulnet_me_handle {
	struct lnet *node;
	uint64_t cookie;
};
struct ulnet_md_handle {
	struct lnet *node;
	uint64_t cookie;
};
struct ulnet_eq_handle {
	struct lnet *node;
	uint64_t cookie;
};
#define LNET_EQ_NONE ((struct ulnet_eq_handle){ NULL, 0 })

/* ---- events: lnet_events(7) ---- */

enum ulnet_event_type {
	LNET_EVENT_GET = 1,
	LNET_EVENT_PUT = 2,
	LNET_EVENT_REPLY = 3,
	LNET_EVENT_ACK = 4,
	LNET_EVENT_SEND = 5,
	LNET_EVENT_UNLINK = 6,
};

enum ulnet_msg_type {
	LNET_MSG_ACK = 0,
	LNET_MSG_PUT = 1,
	LNET_MSG_GET = 2,
	LNET_MSG_REPLY = 3,
	LNET_MSG_HELLO = 4,
};

/* What is known of an operation that ended. */
enum ulnet_outcome {
	LNET_OUTCOME_NONE = 0,	/* not ended: the event is not terminal */
	LNET_OUTCOME_DELIVERED, /* the target got the request and answered */
	LNET_OUTCOME_NOT_DELIVERED, /* certainly not: safe to send again */
	LNET_OUTCOME_UNKNOWN,	    /* the target may have got the request */
};

/* Why an operation ended as it did, as the LND or LNet classifies it. */
enum ulnet_cause {
	LNET_CAUSE_OK = 0,
	LNET_CAUSE_LOCAL_INTERRUPT,
	LNET_CAUSE_LOCAL_DROPPED,
	LNET_CAUSE_LOCAL_ABORTED,
	LNET_CAUSE_LOCAL_NO_ROUTE,
	LNET_CAUSE_LOCAL_ERROR,
	LNET_CAUSE_LOCAL_TIMEOUT,
	LNET_CAUSE_REMOTE_ERROR,
	LNET_CAUSE_REMOTE_DROPPED,
	LNET_CAUSE_REMOTE_TIMEOUT,
	LNET_CAUSE_NETWORK_TIMEOUT,
	LNET_CAUSE_RESPONSE_TIMEOUT, /* sent, and never answered */
	LNET_CAUSE_CANCELED,	     /* unlinked by the user */
	LNET_CAUSE_SHUTDOWN,	     /* the node or the NI goes away */
	LNET_CAUSE_COUNT
};

struct ulnet_event {
	enum ulnet_event_type type;
	int status;    /* 0 or a negative errno */
	bool unlinked; /* the last event of the MD: its memory is free again */
	bool terminal; /* the last event of the operation */
	enum ulnet_outcome outcome; /* of a terminal event */
	enum ulnet_cause cause;
	enum ulnet_msg_type msg_type; /* what the operation is: PUT or GET;
				       * meaningless for an idle MD's UNLINK */
	/* "Active": events of operations that this node has begun; "passive":
	 * events of operations of others. */
	struct ulnet_id target; /* the process asked for; passive: this one */
	struct ulnet_id initiator;   /* passive: who began it, by primary NID;
				      * ACK, REPLY: who answered */
	struct ulnet_nid source;     /* NID that the message came from */
	struct ulnet_nid sender;     /* NID of the message's last hop */
	struct ulnet_nid path_local; /* active: last local NI; ANY: none */
	struct ulnet_nid path_peer;  /* active: last NID sent to; ANY: none */
	struct ulnet_nid path_hop;   /* active: @path_peer, or the gateway */
	uint32_t paths_tried;	     /* active: attempts to send it */
	uint32_t portal;
	uint64_t match_bits;
	uint32_t rlength;  /* bytes requested */
	uint32_t mlength;  /* bytes moved */
	uint32_t offset;   /* passive: in the MD; active: the one asked for */
	uint64_t hdr_data; /* PUT */
	uint64_t elapsed;  /* active: us since the operation began */
	uint64_t sequence; /* counts the events of one CPT */
	struct ulnet_md_handle md;
	void *md_start;
	void *user_ptr;
	uint32_t md_options;
};

typedef void (*ulnet_handler_fn)(const struct ulnet_event *event);

/* ---- event queues: LNetEQAlloc(3) ---- */

ULNET_EXPORT int LNetEQAlloc(struct lnet *node, uint32_t count,
			     struct ulnet_eq_handle *eq_p);
ULNET_EXPORT int LNetEQFree(struct ulnet_eq_handle eq);
ULNET_EXPORT int LNetEQGet(struct ulnet_eq_handle eq,
			   struct ulnet_event *event);
ULNET_EXPORT int LNetEQPoll(const struct ulnet_eq_handle *eqs, int neq,
			    uint64_t timeout, struct ulnet_event *event,
			    int *which);

/* ---- memory descriptors: lnet_md(7), LNetMDAttach(3) ---- */

#define LNET_MD_OP_PUT		  0x0001u
#define LNET_MD_OP_GET		  0x0002u
#define LNET_MD_MANAGE_REMOTE	  0x0004u
#define LNET_MD_TRUNCATE	  0x0010u
#define LNET_MD_ACK_DISABLE	  0x0020u
#define LNET_MD_MAX_SIZE	  0x0080u
#define LNET_MD_IOVEC		  0x0100u /* start: array of struct iovec */
#define LNET_MD_TRACK_RESPONSE	  0x0400u
#define LNET_MD_NO_TRACK_RESPONSE 0x0800u
#define LNET_MD_URGENT		  0x1000u /* sent before others that wait */
#define LNET_MD_PREFER_PATH	  0x2000u /* another NI if @self fails */
#define LNET_MD_NUMA_NODE	  0x4000u /* numa_node is set */

#define LNET_MD_THRESH_INF (-1)

struct ulnet_md {
	void *start;
	uint32_t length;   /* bytes; with LNET_MD_IOVEC: number of fragments */
	int threshold;	   /* operations, or LNET_MD_THRESH_INF */
	uint32_t max_size; /* with LNET_MD_MAX_SIZE */
	uint32_t options;
	void *user_ptr;
	ulnet_handler_fn handler;  /* either @handler or @eq, or neither */
	struct ulnet_eq_handle eq; /* LNET_EQ_NONE: none */
	uint64_t timeout; /* us, of each operation on it; 0: the node's */
	int numa_node;	  /* of the memory, with LNET_MD_NUMA_NODE */
};

enum ulnet_unlink { LNET_RETAIN = 0, LNET_UNLINK = 1 };
enum ulnet_ins_pos {
	LNET_INS_BEFORE = 0,
	LNET_INS_AFTER = 1,
	LNET_INS_LOCAL = 2
};
enum ulnet_ack_req { LNET_NOACK_REQ = 0, LNET_ACK_REQ = 1 };

ULNET_EXPORT int LNetMEAttach(struct lnet *node, unsigned int portal,
			      struct ulnet_id match_id, uint64_t match_bits,
			      uint64_t ignore_bits, enum ulnet_unlink unlink,
			      enum ulnet_ins_pos pos,
			      struct ulnet_me_handle *me_p);
ULNET_EXPORT int LNetMEUnlink(struct ulnet_me_handle me);
ULNET_EXPORT int LNetMDAttach(struct ulnet_me_handle me,
			      const struct ulnet_md *md,
			      enum ulnet_unlink unlink,
			      struct ulnet_md_handle *md_p);
ULNET_EXPORT int LNetMDBind(struct lnet *node, const struct ulnet_md *md,
			    enum ulnet_unlink unlink,
			    struct ulnet_md_handle *md_p);
ULNET_EXPORT int LNetMDUnlink(struct ulnet_md_handle md);
ULNET_EXPORT int LNetSetLazyPortal(struct lnet *node, unsigned int portal);
ULNET_EXPORT int LNetClearLazyPortal(struct lnet *node, unsigned int portal);

/* ---- registered memory: lnet_mem_register(3) ---- */

/* Registers the memory [@addr, @addr + @length), whose mapping must not change
 * until it is unregistered. LNDs over RDMA move the payload of an MD without a
 * copy if all fragments of the MD lie in registered memory. Peers that have
 * exchanged payload with it can write to it until it is unregistered. */
ULNET_EXPORT int lnet_mem_register(struct lnet *node, void *addr,
				   size_t length);
/* Unregisters memory that was registered with the same @addr and @length. No MD
 * may use it. */
ULNET_EXPORT int lnet_mem_unregister(struct lnet *node, void *addr,
				     size_t length);

/* ---- data movement: LNetPut(3) ---- */

/* @self: the local NI to send from, or LNET_NID_ANY. */
ULNET_EXPORT int LNetPut(struct ulnet_nid self, struct ulnet_md_handle md,
			 enum ulnet_ack_req ack, struct ulnet_id target,
			 unsigned int portal, uint64_t match_bits,
			 uint32_t offset, uint64_t hdr_data);
ULNET_EXPORT int LNetGet(struct ulnet_nid self, struct ulnet_md_handle md,
			 struct ulnet_id target, unsigned int portal,
			 uint64_t match_bits, uint32_t offset);

/* ---- ping: lnet_ping(3) ---- */

enum {
	LNET_PING_NI_STATUS = 0x02,
	LNET_PING_RTE_DISABLED = 0x04,
	LNET_PING_MULTI_RAIL = 0x08,
	LNET_PING_DISCOVERY = 0x10,
	LNET_PING_LARGE_ADDR = 0x20,
	LNET_PING_PRIMARY_LARGE = 0x40,
};

struct ulnet_ping_ni {
	struct ulnet_nid nid;
	bool up;
};

struct ulnet_ping_info {
	uint32_t features;
	uint32_t pid;
	uint32_t sequence;
	unsigned int nnis;		/* without 0@lo */
	const struct ulnet_ping_ni *ni; /* nnis of them, the primary first */
};

/* @status: 0, or a negative errno, with @info NULL. @info is valid during the
 * call only. */
typedef void (*ulnet_ping_fn)(void *arg, int status,
			      const struct ulnet_ping_info *info);

ULNET_EXPORT int lnet_ping(struct lnet *node, struct ulnet_id target,
			   uint64_t timeout, ulnet_ping_fn done, void *arg);
/* lnet_ping() from the local NI @self (ANY: any). */
ULNET_EXPORT int lnet_ping_from(struct lnet *node, const struct ulnet_nid *self,
				struct ulnet_id target, uint64_t timeout,
				ulnet_ping_fn done, void *arg);

/* ---- discovery: lnet_discover(3) ---- */

#define LNET_DISCOVER_FORCE 1u /* even if the peer is up to date */

/* @status: 0, or a negative errno. */
typedef void (*ulnet_discover_fn)(void *arg, int status);

ULNET_EXPORT int lnet_discover(struct lnet *node, const struct ulnet_nid *nid,
			       unsigned int flags, ulnet_discover_fn done,
			       void *arg);

/* ---- statistics: lnet_stats(3) ---- */

struct ulnet_stat {
	const char *name; /* constant texts */
	const char *help;
	uint64_t value;
	bool now; /* a gauge, which goes up and down; else a counter */
};

ULNET_EXPORT int lnet_stats(struct lnet *node, struct ulnet_stat *stats,
			    unsigned int n);

/* Sets the counters of the node, its interfaces and its peers to 0. Gauges keep
 * their values. */
ULNET_EXPORT int lnet_stats_reset(struct lnet *node);

/* ---- settings: lnet_settings(3) ---- */

/* What "lnetctl global show" lists. */
struct ulnet_setting {
	const char *name; /* constant texts */
	const char *unit; /* "s", or "" */
	const char *help;
	int64_t value;
	int64_t min, max; /* if equal, this release supports no other value */
	int64_t def;
	bool derived; /* computed from others: cannot be set */
};

/* Fills @settings with up to @n settings, always in the same order; returns how
 * many there are. */
ULNET_EXPORT int lnet_settings(struct lnet *node,
			       struct ulnet_setting *settings, unsigned int n);
/* Sets one. -ENOENT: no such setting; -EPERM: it is derived; -EOPNOTSUPP:
 * kernel nodes support the value, and this release does not; -EINVAL: out of
 * range. */
ULNET_EXPORT int lnet_setting_set(struct lnet *node, const char *name,
				  int64_t value);

/* ---- the log: lnet_log_set(3) ---- */

enum ulnet_log_level {
	LNET_LOG_ERR,  /* an operator must act */
	LNET_LOG_WARN, /* degraded, heals by itself */
	LNET_LOG_INFO, /* the configuration changed */
	LNET_LOG_DEBUG,
};

/* @line: without a newline; valid during the call only. */
typedef void (*ulnet_log_fn)(int level, const char *line, void *arg);

/* Sets where the log of the whole process goes. @fn NULL: to stderr. Any
 * thread. */
ULNET_EXPORT void lnet_log_set(enum ulnet_log_level level, ulnet_log_fn fn,
			       void *arg);

/* Logs "@subsystem: text", if @level is logged. Any thread. */
ULNET_EXPORT void lnet_log(enum ulnet_log_level level, const char *subsystem,
			   const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
/* Is @level logged? To avoid computing arguments in vain. Any thread. */
ULNET_EXPORT bool lnet_log_on(enum ulnet_log_level level);

/* ---- names ---- */

ULNET_EXPORT const char *lnet_event_name(enum ulnet_event_type type);
ULNET_EXPORT const char *lnet_outcome_name(enum ulnet_outcome outcome);
ULNET_EXPORT const char *lnet_cause_name(enum ulnet_cause cause);

#ifdef __cplusplus
}
#endif

#endif
