/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * LNet: nodes, interfaces, portals, match entries, memory descriptors, PUT,
 * GET, events. Manual: ulnet(7), lnet_events(7), lnet_md(7) and a page for each
 * function in section 3.
 *
 * Conventions, unless a function says otherwise:
 * - 0 or a negative errno is returned; results come last and are left alone on
 *   error; times are microseconds, lengths and offsets bytes;
 * - a function may be called on the thread of the CPT that owns the object (at
 *   once), or on a thread that runs no loop (it is then carried out on the
 *   owner's thread, and waited for); on the thread of another CPT or node it
 *   returns -EXDEV;
 * - nothing calls back before it has returned.
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

enum ulnet_run {
	LNET_RUN_THREADS, /* the library runs a thread for each CPT */
	LNET_RUN_POLL,	  /* the application does: lnet_poll(); one CPT */
	LNET_RUN_EV,	  /* inside the application's ev loop; one CPT */
};

/* From which TCP ports a node takes connections: socklnd(7). */
enum ulnet_accept {
	LNET_ACCEPT_DEFAULT, /* secure if its port is below 1024, else all */
	LNET_ACCEPT_SECURE,  /* from privileged ports, below 1024, only */
	LNET_ACCEPT_ALL,     /* from any */
	LNET_ACCEPT_NONE,    /* it does not listen, and so may share its
			      * addresses with other nodes */
};

/* Are peers asked for their NIDs before the first message? */
enum ulnet_discovery {
	LNET_DISCOVERY_DEFAULT, /* on */
	LNET_DISCOVERY_ON,
	LNET_DISCOVERY_OFF,
	LNET_DISCOVERY_VERIFY, /* they are, but it only leads to warnings */
};

struct ulnet_conf {
	enum ulnet_run run;
	struct ev_loop *ev; /* LNET_RUN_EV: borrowed until close */
	const char *nids;   /* an NI for each, with its defaults, as
			     * "10.0.0.1@tcp 10.0.1.1@tcp1"; NULL: none, until
			     * lnet_ni_add(); borrowed until return */
	unsigned int cpts;  /* 1 .. LNET_CPTS_MAX; 0 = 1 */
	uint32_t pid;	    /* 0 = LNET_PID_LUSTRE, or with LNET_ACCEPT_NONE
			     * one of its own, drawn at random */
	uint64_t transaction_timeout; /* us; for operations that say none; 0 =
				       * 50 s */
	/* What strangers can make the node hold, each for one CPT: */
	uint32_t peers_max;	 /* 0 = 100000 */
	uint32_t messages_max;	 /* messages being received; 0 = 65536 */
	uint32_t lazy_max;	 /* messages held by lazy portals; 0 = 4096 */
	uint64_t lazy_bytes_max; /* payload of those, bytes; 0 = 64 MiB */
	uint32_t interfaces_max; /* entries of a ping info that are looked at;
				  * 0 = 200 */
	enum ulnet_discovery discovery; /* at first; a setting later */
	/* LNDs that listen, as the TCP one: */
	uint16_t port; /* it listens on and connects to; 0 = 988 */
	enum ulnet_accept accept;
	uint32_t accept_backlog; /* 0 = 4096 */
	uint32_t accept_max;	 /* handshakes going on at once; 0 = 1024 */
	uint64_t accept_timeout; /* us for each step of one; 0 = 5 s */
};

/* Fills in all defaults, for those who want to see them: 0 stands for each. */
ULNET_EXPORT void lnet_conf_init(struct ulnet_conf *conf);
ULNET_EXPORT int lnet_open(const struct ulnet_conf *conf, struct lnet **node_p);
ULNET_EXPORT void lnet_close(struct lnet *node);
ULNET_EXPORT int lnet_poll(struct lnet *node, uint64_t timeout);
/* For other event loops. lnet_fd(): a descriptor that is readable when
 * lnet_poll() has something to do; it is the node's until close.
 * lnet_next_timeout(): us after which lnet_poll() has something to do even if
 * the descriptor stays silent (0: now; UINT64_MAX: never), to be asked before
 * each wait. LNET_RUN_POLL; the thread of lnet_open(), outside of handlers. */
ULNET_EXPORT int lnet_fd(struct lnet *node);
ULNET_EXPORT uint64_t lnet_next_timeout(struct lnet *node);
ULNET_EXPORT int lnet_call(struct lnet *node, unsigned int cpt,
			   int (*fn)(void *arg), void *arg);
/* How many CPTs the node has. */
ULNET_EXPORT unsigned int lnet_cpts(struct lnet *node);
/* The CPT that owns what belongs to the peer @nid, now; -1: LNET_NID_ANY. */
ULNET_EXPORT int lnet_cpt_of(struct lnet *node, const struct ulnet_nid *nid);

/* ---- local interfaces: lnet_ni_add(3) ---- */

#define LNET_INTERFACE_SIZE 64 /* name of an interface, with terminator */
#define LNET_TUNABLES_MAX   32 /* that an LND has at most */

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
	/* The NID. With an interface only its net counts, and the address is
	 * the interface's: the first one of the size of this NID's, if there is
	 * one. */
	struct ulnet_nid nid;
	const char *interface; /* name or address; NULL: the NID says it */
	uint32_t credits;      /* concurrent sends; 0 = 256 */
	uint32_t peer_credits; /* concurrent sends to one peer NI; 0 = 8 */
	int32_t peer_timeout; /* s; for a router: is a peer alive? 0 = 180; < 0:
			       * never asks */
	uint32_t peer_buffer_credits; /* routed messages one peer may have here;
				       * 0 = peer_credits */
	const struct ulnet_tunable *tunables; /* what is not here: default */
	unsigned int ntunables;
	struct ulnet_nid *nid_p; /* if not NULL, lnet_ni_add() writes the NID
				  * there that the NI has got */
	const char **why_p; /* if not NULL, lnet_ni_add() that fails writes
			     * there what is missing, if the LND can tell:
			     * constant text */
};

/* Messages by type. */
struct ulnet_counts {
	uint64_t put, get, reply, ack;
};

/* How long something took, each time that it was measured: mean is ns / n. */
struct ulnet_times {
	uint64_t n, ns;
};

/* Sends that failed, by cause: those of the first line are evidence against
 * interfaces of this node, the others against those of peers, or the net
 * between. */
struct ulnet_failures {
	uint64_t interrupts, dropped, aborted, no_route, timeouts, errors;
	uint64_t remote_dropped, remote_timeouts, remote_errors;
	uint64_t network_timeouts;
};

struct ulnet_ni_info {
	struct ulnet_nid nid;
	char interface[LNET_INTERFACE_SIZE]; /* as configured, else the name of
					      * the one with this address, else
					      * the address; 0@lo: empty */
	bool up;
	const char *state; /* by name, constant text */
	/* as configured, defaults filled in: */
	uint32_t tx_credits, peer_credits, peer_buffer_credits;
	int32_t peer_timeout;
	uint64_t lnd_timeout; /* us that an LND waits for a sign of progress */
	int numa_node;	      /* of its device; -1: not known */
	unsigned int ntunables;
	struct ulnet_tunable tunables[LNET_TUNABLES_MAX]; /* in effect */
	struct ulnet_counts sent, received, dropped;
	uint32_t credits_max; /* sum of the CPTs' shares */
	int64_t credits;      /* free now; negative: that many wait */
	int64_t credits_min;  /* lowest so far */
	uint64_t queued;      /* messages that wait for a credit */
	uint64_t send_count, recv_count, drop_count;
	uint64_t send_length, recv_length, drop_length; /* payload bytes */
	int32_t health;	       /* 0 to LNET_HEALTH_MAX */
	bool recovering;       /* it is ill, and pings are sent from it */
	uint32_t pings_silent; /* of these, in a row without an answer */
	uint64_t next_ping;    /* ns, as lnet_now() has it; 0: not known yet */
	struct ulnet_failures failed;
	uint64_t resent; /* messages that had another try, having failed here */
	/* By policies (lnet_policy(7)); UINT32_MAX: none. */
	uint32_t net_priority, priority;
	struct ulnet_times sending;  /* PUTs and GETs, until they were sent:
				      * samples */
	struct ulnet_times answered; /* ... until their ACK or REPLY came */
};

struct ulnet_peer_info {
	struct ulnet_nid nid;
	struct ulnet_nid primary;
	unsigned int cpt;
	uint32_t credits_max;
	int64_t credits, credits_min;
	/* How many more of this router's buffers it may have; negative: that
	 * many of its messages wait for one. */
	int64_t router_credits, router_credits_min;
	uint64_t queued_bytes; /* payload and headers that wait for a credit */
	uint64_t queued;       /* messages that wait for a credit */
	uint64_t connecting;   /* ... for a connection, and hold no credit */
	uint64_t refs;	       /* messages that use it */
	uint64_t send_count, recv_count; /* messages to it, and from it */
	uint64_t drop_count;		 /* of those from it */
	struct ulnet_counts sent, received, dropped;
	const char *word; /* by whose word it is the peer's: constant text */
	bool down;	       /* the peer says that it does not work */
	int32_t health;	       /* 0 to LNET_HEALTH_MAX */
	bool recovering;       /* it is ill, and pinged */
	uint32_t pings_silent; /* of these, in a row without an answer */
	uint64_t next_ping; /* ns, as lnet_now() has it; 0: one is under way */
	struct ulnet_failures failed;
	uint64_t resent; /* as of an interface of this node */
	uint32_t net_priority, priority; /* the same */
	struct ulnet_times sending, answered;
	/* What its connections were negotiated to; 0: there is none, or its LND
	 * negotiates nothing. */
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
/* Sets the health of the NI with this NID, or with NULL of all but 0@lo. */
ULNET_EXPORT int lnet_ni_set_health(struct lnet *node,
				    const struct ulnet_nid *nid,
				    int32_t health);
/* The same of an NI of a peer, or with NULL of all that are known. */
ULNET_EXPORT int lnet_peer_set_health(struct lnet *node,
				      const struct ulnet_nid *nid,
				      int32_t health);
ULNET_EXPORT int lnet_peer_info(struct lnet *node, const struct ulnet_nid *nid,
				struct ulnet_peer_info *info);
/* Fills @infos with up to @n of the tunables of the LND that serves @net,
 * always in the same order; returns how many there are, or -EPROTONOSUPPORT: no
 * LND does. Any thread. */
ULNET_EXPORT int lnet_tunables(struct lnet *node, uint32_t net,
			       struct ulnet_tunable_info *infos,
			       unsigned int n);
/* Fills @infos with up to @n of the peer NIs known now, in no order; returns
 * how many there are. Takes several turns: peers that come or go meanwhile may
 * be missing. */
ULNET_EXPORT int lnet_peers(struct lnet *node, struct ulnet_peer_info *infos,
			    unsigned int n);
/* Peers that the application knows, with all of their NIDs: lnet_peer_add(3).
 */
ULNET_EXPORT int lnet_peer_add(struct lnet *node, const struct ulnet_nid *nids,
			       unsigned int n, bool multi_rail);
ULNET_EXPORT int lnet_peer_del(struct lnet *node,
			       const struct ulnet_nid *primary,
			       const struct ulnet_nid *nids, unsigned int n);
/* The primary NID of the peer that has @nid, as far as is known now: @nid
 * itself, unless the peer is known to have several. Events and match entries
 * name a peer by its primary NID. -EINVAL: LNET_NID_ANY. Any thread. */
ULNET_EXPORT int lnet_primary(struct lnet *node, const struct ulnet_nid *nid,
			      struct ulnet_nid *primary);
/* Is the peer with @nid known to have several NIDs? Any thread. */
ULNET_EXPORT bool lnet_is_multi_rail(struct lnet *node,
				     const struct ulnet_nid *nid);
ULNET_EXPORT int LNetGetId(struct lnet *node, unsigned int index,
			   struct ulnet_id *id);

/* ---- handles ---- */

/* Handles are values. A handle may outlive its object: functions return -ENOENT
 * then. Only the node must still be open. */
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
	bool unlinked; /* the MD's last event: its memory is yours again */
	bool terminal; /* the operation's last event */
	enum ulnet_outcome outcome; /* of a terminal event */
	enum ulnet_cause cause;
	enum ulnet_msg_type msg_type; /* what the operation is: PUT or GET;
				       * meaningless for an idle MD's UNLINK */
	struct ulnet_id target; /* the process asked for; passive: this one */
	struct ulnet_id initiator;   /* passive: primary NID of who began it;
				    * ACK, REPLY: who answered */
	struct ulnet_nid source;     /* NID that the message came from */
	struct ulnet_nid sender;     /* NID of the message's last hop */
	struct ulnet_nid path_local; /* active: NI last used; ANY if none */
	struct ulnet_nid path_peer;  /* active: NID last sent to; ANY if none */
	struct ulnet_nid path_hop; /* active: the same, or the gateway's */
	uint32_t paths_tried;	     /* active: transmissions begun */
	uint32_t portal;
	uint64_t match_bits;
	uint32_t rlength;  /* requested */
	uint32_t mlength;  /* moved */
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
#define LNET_MD_URGENT		  0x1000u /* before others that wait */
#define LNET_MD_PREFER_PATH	  0x2000u /* self is left when it fails */
#define LNET_MD_NUMA_NODE	  0x4000u /* numa_node is given */

#define LNET_MD_THRESH_INF (-1)

struct ulnet_md {
	void *start;
	uint32_t length;   /* bytes; with LNET_MD_IOVEC: number of fragments */
	int threshold;	   /* operations, or LNET_MD_THRESH_INF */
	uint32_t max_size; /* with LNET_MD_MAX_SIZE */
	uint32_t options;
	void *user_ptr;
	ulnet_handler_fn handler;  /* this or eq or neither */
	struct ulnet_eq_handle eq; /* LNET_EQ_NONE: none */
	uint64_t timeout; /* us for each operation begun on it; 0: the node's */
	int numa_node;	  /* with LNET_MD_NUMA_NODE: where the memory is */
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

/* Registers [@addr, @addr + @length), which must stay mapped as it is until it
 * is unregistered. LNDs over RDMA move the payload of an MD without a copy if
 * all fragments of the MD lie in it. Until it is unregistered, peers with whom
 * payload was moved can write to it. */
ULNET_EXPORT int lnet_mem_register(struct lnet *node, void *addr,
				   size_t length);
/* @addr and @length: as it was registered. No MD may lie in it. */
ULNET_EXPORT int lnet_mem_unregister(struct lnet *node, void *addr,
				     size_t length);

/* ---- data movement: LNetPut(3) ---- */

/* @self: one of the node's NIDs, or LNET_NID_ANY. */
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
	unsigned int nnis;		/* without 0@lo; primary first */
	const struct ulnet_ping_ni *ni; /* nnis of them */
};

/* @status: 0, or a negative errno and @info is NULL. @info ends with the call.
 */
typedef void (*ulnet_ping_fn)(void *arg, int status,
			      const struct ulnet_ping_info *info);

ULNET_EXPORT int lnet_ping(struct lnet *node, struct ulnet_id target,
			   uint64_t timeout, ulnet_ping_fn done, void *arg);
/* Through the NI @self of this node, or ANY, and exactly to that NID. */
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
	bool now; /* goes up and down; else it only grows */
};

ULNET_EXPORT int lnet_stats(struct lnet *node, struct ulnet_stat *stats,
			    unsigned int n);

/* Sets the counters of the node, its interfaces and its peers to 0. Gauges,
 * which tell how many of something there are now, stay. */
ULNET_EXPORT int lnet_stats_reset(struct lnet *node);

/* ---- settings: lnet_settings(3) ---- */

/* What "lnetctl global show" lists. */
struct ulnet_setting {
	const char *name; /* constant texts */
	const char *unit; /* "s", or "" */
	const char *help;
	int64_t value;
	int64_t min, max; /* equal: this release can do nothing else */
	int64_t def;
	bool derived; /* follows from others: cannot be set */
};

/* Fills @settings with up to @n, always in the same order; returns how many
 * there are. */
ULNET_EXPORT int lnet_settings(struct lnet *node,
			       struct ulnet_setting *settings, unsigned int n);
/* -ENOENT: no such setting; -EPERM: it is derived; -EOPNOTSUPP: a value that a
 * kernel node takes, and this release can do nothing about; -EINVAL: out of
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

/* @line: without a newline; ends with the call. */
typedef void (*ulnet_log_fn)(int level, const char *line, void *arg);

/* Any thread. Of the whole process. @fn NULL: stderr. */
ULNET_EXPORT void lnet_log_set(enum ulnet_log_level level, ulnet_log_fn fn,
			       void *arg);

/* Any thread. A line of the program's own in the same log, if @level is logged:
 * "subsystem: text". */
ULNET_EXPORT void lnet_log(enum ulnet_log_level level, const char *subsystem,
			   const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
/* Any thread. Is @level logged? For arguments that cost something. */
ULNET_EXPORT bool lnet_log_on(enum ulnet_log_level level);

/* ---- words ---- */

ULNET_EXPORT const char *lnet_event_name(enum ulnet_event_type type);
ULNET_EXPORT const char *lnet_outcome_name(enum ulnet_outcome outcome);
ULNET_EXPORT const char *lnet_cause_name(enum ulnet_cause cause);

#ifdef __cplusplus
}
#endif

#endif
