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

#define LNET_MTU UINT32_C(1048576) /* bytes of the longest payload */
/* the most fragments of a memory descriptor */
#define LNET_MAX_IOV  256
#define LNET_PORTALS  64 /* portal 0 is LNet's own */
#define LNET_CPTS_MAX 16

struct lnet;	   /* a node of LNet */
struct ev_loop;	   /* libev's event loop */
struct ulrpc_keys; /* ulnet/keys.h */

/* ---- nodes: lnet_open(3) ---- */

/* Which threads run the CPTs of the node. */
enum ulnet_run {
	LNET_RUN_THREADS, /* the library's: one thread for each CPT */
	/* the application's, by calling lnet_poll(); the node has one CPT */
	LNET_RUN_POLL,
	/* the application's, by its libev loop; the node has one CPT */
	LNET_RUN_EV,
	/* the library's, and threads of the application that wait for a call,
	 * while those of the library sleep: lnet_cpt_run(3) */
	LNET_RUN_SHARED,
};

/* From which TCP source ports a node accepts connections: socklnd(7). */
enum ulnet_accept {
	/* SECURE if the node's own port is below 1024, else ALL */
	LNET_ACCEPT_DEFAULT,
	LNET_ACCEPT_SECURE, /* only from privileged ports: those below 1024 */
	LNET_ACCEPT_ALL,    /* from any port */
	/* from none: the node does not listen, and may share its addresses with
	 * other nodes */
	LNET_ACCEPT_NONE,
};

/* Does the node ask peers for their NIDs before it sends the first message to
 * them? */
enum ulnet_discovery {
	LNET_DISCOVERY_DEFAULT, /* as LNET_DISCOVERY_ON */
	LNET_DISCOVERY_ON,
	LNET_DISCOVERY_OFF,
	LNET_DISCOVERY_VERIFY, /* it asks, but answers only lead to warnings */
};

/* Why a configuration was refused. */
struct ulnet_conf_error {
	/* the field, and what is wrong with its value: "nids: 'tcp(eth9)': no
	 * such interface" */
	char what[256];
};

struct ulnet_conf {
	enum ulnet_run run;
	struct ev_loop *ev; /* LNET_RUN_EV: borrowed until lnet_close() */
	/* NIs to be added with default tunables, as in "10.0.0.1@tcp
	 * tcp1(eth1)": NIDs, and networks as lnet_networks_parse() takes them.
	 * NULL: none, so the program adds them with lnet_ni_add(); to a node
	 * that only calls, RPC adds the NIs from which it reaches its targets
	 * (lnet_ni_reach()). Borrowed until lnet_open() returns */
	const char *nids;
	unsigned int cpts; /* number of CPTs, 1 to LNET_CPTS_MAX; 0 = 1 */
	/* process id of the node; 0 = LNET_PID_LUSTRE, or, with
	 * LNET_ACCEPT_NONE, a random one */
	uint32_t pid;
	/* us that an operation may take, unless its MD has a timeout; 0 = 50 s
	 */
	uint64_t transaction_timeout;
	/* Bounds of what peers can make each CPT keep in memory: */
	uint32_t peers_max;    /* peers known; 0 = 100000 */
	uint32_t messages_max; /* messages being received; 0 = 65536 */
	uint32_t lazy_max;     /* messages held by lazy portals; 0 = 4096 */
	/* bytes of payload of the messages held by lazy portals; 0 = 64 MiB */
	uint64_t lazy_bytes_max;
	/* bytes that lnet_mem_alloc() may allocate; 0 = 1 GiB */
	uint64_t shared_max;
	/* NIs that a peer may have, and that this node may have besides 0@lo; 0
	 * = 200 */
	uint32_t interfaces_max;
	/* the mode at first; later it is a setting: lnet_settings(3) */
	enum ulnet_discovery discovery;
	/* For LNDs that listen, such as socklnd: */
	uint16_t port; /* TCP port to listen on, and to connect to; 0 = 988 */
	enum ulnet_accept accept;
	/* length of the queue of connections that are not accepted yet; 0 =
	 * 4096 */
	uint32_t accept_backlog;
	/* handshakes that may be under way at once; 0 = 1024 */
	uint32_t accept_max;
	uint64_t accept_timeout; /* us for each step of a handshake; 0 = 5 s */
	/* Keys for nets with "tls: required": with them this node proves there
	 * who it is, and checks who its peers are: ulrpc_keys_load(3). NULL:
	 * such nets cannot be added. The node takes a reference of its own;
	 * lnet_use_keys() gives it other keys */
	struct ulrpc_keys *keys;
	/* result if the configuration is refused; NULL: not wanted */
	struct ulnet_conf_error *err;
};

/* Sets each field to its default. A field that is 0 has its default, too. */
ULNET_EXPORT void lnet_conf_init(struct ulnet_conf *conf);
ULNET_EXPORT int lnet_open(const struct ulnet_conf *conf, struct lnet **node_p);
ULNET_EXPORT void lnet_close(struct lnet *node);
/* From now on connections of nets with tls: required begin with @keys, to which
 * the node takes a reference of its own; so do those of nets that are added
 * later. Connections that exist go on, but those with a peer that @keys do not
 * believe end in the next turn: its certificate was revoked, or has ended, or
 * its authority, or its cluster's key, is not among them. 0 or -errno:
 * lnet_use_keys(3). Thread: as lnet_ni_add(). */
ULNET_EXPORT int lnet_use_keys(struct lnet *node, struct ulrpc_keys *keys);

/* ---- whom peers speak for, on nets with tls: lnet_tls_rule_set(3) ---- */

#define LNET_TLS_RULES_MAX 4096 /* rules of a node, at most */
#define LNET_TLS_NAME_SIZE 256
#define LNET_TLS_NIDS_SIZE 1024

/* On nets with tls: required a certificate that a peer has proved, with this
 * name, may speak for these NIDs, beside those in it. */
struct ulnet_tls_rule {
	/* of certificates; * is any text, and ? any character */
	char name[LNET_TLS_NAME_SIZE];
	char nids[LNET_TLS_NIDS_SIZE]; /* lnet_nidlist(3), canonical */
};

/* Adds a rule, or replaces the one with the same @name. Who may not speak for
 * his NID any more is cut off. 0; -EINVAL, -ENAMETOOLONG: @err, unless it is
 * NULL, says what is wrong; -ENOSPC; -ENOMEM; or as lnet_use_keys(). Thread: as
 * lnet_ni_add(). */
ULNET_EXPORT int lnet_tls_rule_set(struct lnet *node, const char *name,
				   const char *nids,
				   struct ulnet_text_error *err);
/* -ENOENT: there is no rule with this name. */
ULNET_EXPORT int lnet_tls_rule_del(struct lnet *node, const char *name);
/* Fills in @rule. 0 or -ENOENT. Any thread, as lnet_tls_rules(). */
ULNET_EXPORT int lnet_tls_rule(struct lnet *node, const char *name,
			       struct ulnet_tls_rule *rule);
/* Copies the first @n rules, in the order of their names. Returns how many
 * there are. @rules may be NULL if @n is 0. */
ULNET_EXPORT int lnet_tls_rules(struct lnet *node, struct ulnet_tls_rule *rules,
				unsigned int n);

/* Is this process a child of fork(), in which the node cannot be used, because
 * it is the parent's? Any thread. See lnet_is_forked(3). */
ULNET_EXPORT bool lnet_is_forked(struct lnet *node);
ULNET_EXPORT int lnet_poll(struct lnet *node, uint64_t timeout);
/* For other event loops, with LNET_RUN_POLL, on the thread of lnet_open(),
 * outside of handlers. lnet_fd() returns a descriptor that is readable when
 * lnet_poll() has something to do; it belongs to the node. lnet_next_timeout()
 * returns after how many us lnet_poll() has to be called even if the descriptor
 * is not readable (0: now; UINT64_MAX: never); any other call of a function of
 * LNet may change that. */
ULNET_EXPORT int lnet_fd(struct lnet *node);
ULNET_EXPORT uint64_t lnet_next_timeout(struct lnet *node);
ULNET_EXPORT int lnet_call(struct lnet *node, unsigned int cpt,
			   int (*fn)(void *arg), void *arg);
/* Returns how many CPTs the node has. */
ULNET_EXPORT unsigned int lnet_cpts(struct lnet *node);
/* Returns the CPT that owns the peer with @nid at present, or -1 if @nid is
 * LNET_NID_ANY. */
ULNET_EXPORT int lnet_cpt_of(struct lnet *node, const struct ulnet_nid *nid);

/* ---- local interfaces: lnet_ni_add(3) ---- */

/* bytes of an interface's name, with its terminator */
#define LNET_INTERFACE_SIZE 64
#define LNET_TUNABLES_MAX   32 /* the highest number of tunables of an LND */

/* the highest .credits of an NI */
#define LNET_CREDITS_MAX UINT32_C(1073741823)
/* the highest .peer_credits and .peer_buffer_credits of an NI */
#define LNET_PEER_CREDITS_MAX UINT32_C(65535)

/* A tunable of an LND, by its name: socklnd(7). */
struct ulnet_tunable {
	const char *name;
	int64_t value;
};

/* What an LND says about one of its tunables. */
struct ulnet_tunable_info {
	const char *name; /* all three texts are constant */
	const char *unit; /* "s", "ms", "bytes", or "" */
	const char *help;
	int64_t min, max, def;
};

struct ulnet_ni_conf {
	/* The NID of the NI. If .interface is given, only the net of this NID
	 * counts: the address is that of the interface, preferably one of the
	 * same size. */
	struct ulnet_nid nid;
	/* name or address of the interface; NULL: the interface that has the
	 * address of .nid */
	const char *interface;
	uint32_t credits; /* sends under way at once; 0 = 256 */
	/* sends to one peer NI under way at once; 0 = 8 */
	uint32_t peer_credits;
	/* s of silence after which a kernel node that is a router asks whether
	 * a peer is alive; here it is only kept and shown. 0 = 180; < 0: never
	 */
	int32_t peer_timeout;
	/* of a router: buffers that messages of one peer NI may use at once; 0
	 * = peer_credits */
	uint32_t peer_buffer_credits;
	/* tunables that are not listed have their defaults */
	const struct ulnet_tunable *tunables;
	unsigned int ntunables;
	/* result: the NID of the NI; NULL: not wanted */
	struct ulnet_nid *nid_p;
	/* result on failure: what is missing, as constant text; unchanged if
	 * the LND does not say; NULL: not wanted */
	const char **why_p;
};

/* Messages by type. */
struct ulnet_counts {
	uint64_t put, get, reply, ack;
};

/* The sum, in ns, of the durations of @n samples. */
struct ulnet_times {
	uint64_t n, ns;
};

/* Sends that failed, by cause: because of NIs of this node (first line), of
 * peer NIs (second line), or of the network. */
struct ulnet_failures {
	uint64_t interrupts, dropped, aborted, no_route, timeouts, errors;
	uint64_t remote_dropped, remote_timeouts, remote_errors;
	uint64_t network_timeouts;
};

/* How many messages were sent again, by the cause of their failure. timeout:
 * LNET_CAUSE_LOCAL_TIMEOUT; local: another LNET_CAUSE_LOCAL_*; remote:
 * LNET_CAUSE_REMOTE_DROPPED. */
struct ulnet_resends {
	uint64_t timeout, local, remote;
};

struct ulnet_ni_info {
	struct ulnet_nid nid;
	/* as configured; or else the name of the interface that has the NID's
	 * address, or, if there is none, the address; 0@lo: empty */
	char interface[LNET_INTERFACE_SIZE];
	bool up;
	const char *state; /* name of the state, constant text */
	/* As configured, with defaults filled in: */
	uint32_t tx_credits, peer_credits, peer_buffer_credits;
	int32_t peer_timeout;
	uint64_t lnd_timeout; /* us that the LND waits for progress */
	int numa_node;	      /* NUMA node of the NI's device; -1: unknown */
	unsigned int ntunables;
	struct ulnet_tunable tunables[LNET_TUNABLES_MAX]; /* values in effect */
	struct ulnet_counts sent, received, dropped;
	uint32_t credits_max; /* credits of all CPTs together */
	/* free credits; if negative, the number of messages that wait for one
	 */
	int64_t credits;
	int64_t credits_min; /* lowest value of @credits so far */
	uint64_t queued;     /* messages that wait for a credit */
	uint64_t send_count, recv_count, drop_count;
	uint64_t send_length, recv_length, drop_length; /* payload bytes */
	int32_t health;	 /* 0 to LNET_HEALTH_MAX */
	bool recovering; /* unhealthy, and recovery pings are sent */
	/* recovery pings in a row that were not answered */
	uint32_t pings_silent;
	/* ns, as lnet_now(), when the next recovery ping is due; 0: not known
	 * yet */
	uint64_t next_ping;
	struct ulnet_failures failed;
	/* messages that failed on this NI and were sent again */
	uint64_t resent;
	/* Set by policies (lnet_policy(7)); UINT32_MAX: no priority. */
	uint32_t net_priority, priority;
	/* Measured for a sample of PUTs and GETs: the time from the call until
	 * the message was sent, and until its ACK or REPLY came. */
	struct ulnet_times sending;
	struct ulnet_times answered;
	struct ulnet_resends resends; /* .resent, by cause */
	/* how often the NI went down, and came up again */
	uint64_t downs, ups;
};

struct ulnet_peer_info {
	struct ulnet_nid nid;
	struct ulnet_nid primary;
	unsigned int cpt;
	uint32_t credits_max;
	int64_t credits, credits_min;
	/* How many more of this router's buffers messages of the peer NI may
	 * use; if negative, the number of its messages that wait for a buffer.
	 */
	int64_t router_credits, router_credits_min;
	/* bytes of payload and headers of messages that wait for a credit */
	uint64_t queued_bytes;
	uint64_t queued;     /* messages that wait for a credit */
	uint64_t connecting; /* messages that wait for a connection */
	uint64_t refs;	     /* messages that use this peer NI */
	/* messages sent to it, and received from it */
	uint64_t send_count, recv_count;
	/* received messages that were dropped */
	uint64_t drop_count;
	struct ulnet_counts sent, received, dropped;
	/* by whose word this NID belongs to the peer, as constant text: "own",
	 * for example */
	const char *word;
	bool down;	 /* the peer says that this NI is down */
	int32_t health;	 /* 0 to LNET_HEALTH_MAX */
	bool recovering; /* unhealthy, and recovery pings are sent */
	/* recovery pings in a row that were not answered */
	uint32_t pings_silent;
	/* ns, as lnet_now(), when the next recovery ping is due; 0: a ping is
	 * under way */
	uint64_t next_ping;
	struct ulnet_failures failed;
	/* As in struct ulnet_ni_info: */
	uint64_t resent;
	uint32_t net_priority, priority;
	struct ulnet_times sending, answered;
	/* Negotiated for the connections of this peer NI; 0: there are no
	 * connections, or the LND does not negotiate. */
	uint32_t queue_depth, max_frags;
	/* About the whole peer: */
	bool multi_rail;
	/* the user has configured it: lnet_peer_add(3) */
	bool configured;
	/* its state, in the bits that kernel nodes show */
	uint32_t state;
	const char *state_name; /* name of the state, constant text */
	/* messages to this NID that were sent again */
	struct ulnet_resends resends;
};

ULNET_EXPORT int lnet_ni_add(struct lnet *node,
			     const struct ulnet_ni_conf *conf);
/* Adds the NI, on the target's net, from which this host reaches @target. Does
 * nothing if the node has that NI; if it has a route to that net; or if it has
 * an NI that this function has not added. -ENETUNREACH: this host has no way to
 * @target. */
ULNET_EXPORT int lnet_ni_reach(struct lnet *node,
			       const struct ulnet_nid *target);
/* From now on this node connects over TCP to @nid at @port, and not at the port
 * at which this node listens itself (ulnet_conf.port). Connections that there
 * are stay. Any thread. -EINVAL: @port is 0, or @nid is LNET_NID_ANY; -ENOSPC;
 * -ENOMEM. */
ULNET_EXPORT int lnet_peer_port_set(struct lnet *node,
				    const struct ulnet_nid *nid, uint16_t port);

/* Who says at which port a node listens; the strongest first. */
enum ulnet_port_source {
	LNET_PORT_SET,	 /* lnet_peer_port_set() */
	LNET_PORT_TEXT,	 /* an address that the program has as a text */
	LNET_PORT_GIVEN, /* the program has given the NID, without a port */
	LNET_PORT_FOUND, /* DNS, or what else has looked up a name */
};

/* Until it is released as often, this node connects to @nid at @port (0:
 * ulnet_conf.port), unless a stronger source says something else. Any thread.
 * -EEXIST: @source, or a stronger one, has another port for @nid, and not for
 * LNET_PORT_GIVEN; -EINVAL: @source is LNET_PORT_SET, or @nid LNET_NID_ANY;
 * -ENOSPC; -ENOMEM. */
ULNET_EXPORT int lnet_peer_port_claim(struct lnet *node,
				      const struct ulnet_nid *nid,
				      uint16_t port,
				      enum ulnet_port_source source);
/* Takes one claim back. Any thread. */
ULNET_EXPORT void lnet_peer_port_release(struct lnet *node,
					 const struct ulnet_nid *nid,
					 enum ulnet_port_source source);
ULNET_EXPORT int lnet_ni_del(struct lnet *node, const struct ulnet_nid *nid);
ULNET_EXPORT int lnet_ni_info(struct lnet *node, unsigned int index,
			      struct ulnet_ni_info *info);
/* Fills @distances with up to @n of the distances from the NUMA node @from to
 * NUMA nodes 0, 1, and so on; 0: there is no such node. Returns the number of
 * all distances, or 0: the machine has one NUMA node, or its distances are not
 * known. Any thread. */
ULNET_EXPORT unsigned int lnet_numa_distances(struct lnet *node, int from,
					      uint32_t *distances,
					      unsigned int n);
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
/* Fills @infos with up to @n tunables of the LND for @net, always in the same
 * order. Returns the number of all its tunables. -EPROTONOSUPPORT: there is no
 * LND for that net. Any thread. */
ULNET_EXPORT int lnet_tunables(struct lnet *node, uint32_t net,
			       struct ulnet_tunable_info *infos,
			       unsigned int n);
/* Fills @infos with up to @n of the known peer NIs, in no particular order.
 * Returns the number of all known ones. This takes several turns: peers that
 * come or go meanwhile may be missing. */
ULNET_EXPORT int lnet_peers(struct lnet *node, struct ulnet_peer_info *infos,
			    unsigned int n);
/* Configure a peer, with all of its NIDs: lnet_peer_add(3). */
ULNET_EXPORT int lnet_peer_add(struct lnet *node, const struct ulnet_nid *nids,
			       unsigned int n, bool multi_rail);
ULNET_EXPORT int lnet_peer_del(struct lnet *node,
			       const struct ulnet_nid *primary,
			       const struct ulnet_nid *nids, unsigned int n);
/* Sets *@primary to the primary NID of the peer with @nid, as far as it is
 * known now. That is @nid itself unless the peer is known to have several NIDs.
 * Events and match entries name a peer by its primary NID. -EINVAL: @nid is
 * LNET_NID_ANY. Any thread. */
ULNET_EXPORT int lnet_primary(struct lnet *node, const struct ulnet_nid *nid,
			      struct ulnet_nid *primary);
/* Is the peer with @nid known to have several NIDs? Any thread. */
ULNET_EXPORT bool lnet_is_multi_rail(struct lnet *node,
				     const struct ulnet_nid *nid);
ULNET_EXPORT int LNetGetId(struct lnet *node, unsigned int index,
			   struct ulnet_id *id);

/* ---- networks in one line: lnet_networks_parse(3) ---- */

/*
 * Parses networks such as "tcp(eth0,eth1),tcp1(127.0.0.2)" into what
 * lnet_ni_add() needs for each interface, in the order of the text. A net
 * without interfaces gets the first interface of this host that is up, is not a
 * loopback, and has an IPv4 address. *@confs_p is an array of *@n_p elements,
 * to be freed with free(), which also frees the names in it. A list of CPTs, as
 * in "tcp(eth0)[0,1]", is ignored and logged, since all CPTs use each
 * interface. -EINVAL: the text is wrong; -ENODEV: a net is named without
 * interfaces, and this host has none for it. With both errors *@err is filled,
 * unless @err is NULL. -ENOMEM.
 */
ULNET_EXPORT int lnet_networks_parse(const char *text,
				     struct ulnet_ni_conf **confs_p,
				     unsigned int *n_p,
				     struct ulnet_text_error *err);

/*
 * Parses rules such as "tcp1(eth1) 10.1.*.*; o2ib 10.[2-3].0.0/16". A rule is
 * for this host if one of its ranges matches an address of this host. Uses, for
 * each net, the first rule for this host; the nets come in the order of the
 * text. A net that is named without interfaces gets each interface that has a
 * matching address. Results and errors are those of lnet_networks_parse(); also
 * -ENOENT: no rule is for this host. lnet_ip2nets_parse(3).
 */
ULNET_EXPORT int lnet_ip2nets_parse(const char *text,
				    struct ulnet_ni_conf **confs_p,
				    unsigned int *n_p,
				    struct ulnet_text_error *err);

/* ---- handles ---- */

/* A handle is a value, and may outlive its object: functions then return
 * -ENOENT. It must not be used after its node was closed. */
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

/* What is known about the delivery of an operation that has ended. */
enum ulnet_outcome {
	/* the operation has not ended: the event is not terminal */
	LNET_OUTCOME_NONE = 0,
	LNET_OUTCOME_DELIVERED, /* the target got the request and answered */
	LNET_OUTCOME_NOT_DELIVERED, /* certainly not: safe to send again */
	/* the target may have received the request */
	LNET_OUTCOME_UNKNOWN,
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
	/* 0: what the event reports has succeeded; or a negative errno */
	int status;
	/* this is the last event of the MD: its memory is the user's again */
	bool unlinked;
	bool terminal; /* this is the last event of the operation */
	/* of a terminal event: the outcome of the operation */
	enum ulnet_outcome outcome;
	enum ulnet_cause cause;
	/* type of the operation, PUT or GET; undefined in the UNLINK event of
	 * an MD that no operation used */
	enum ulnet_msg_type msg_type;
	/* "Active": an event of an operation that this node has begun;
	 * "passive": an event of an operation that another node has begun. */
	/* active: the process that the operation was for; passive: this process
	 */
	struct ulnet_id target;
	/* ACK, REPLY: the process that answered; passive: the process that
	 * began the operation, by its primary NID */
	struct ulnet_id initiator;
	struct ulnet_nid source; /* NID that the message was sent from */
	struct ulnet_nid sender; /* NID of the message's last hop */
	/* active: the local NI used last; ANY: none was used */
	struct ulnet_nid path_local;
	/* active: the peer's NID that was sent to last; ANY: none was */
	struct ulnet_nid path_peer;
	/* active: the next hop on that path: @path_peer or a gateway */
	struct ulnet_nid path_hop;
	/* active: number of sends that were begun, and of paths that were given
	 * up after a wait for a credit or a connection */
	uint32_t paths_tried;
	uint32_t portal;
	uint64_t match_bits;
	uint32_t rlength; /* bytes requested */
	uint32_t mlength; /* bytes moved */
	/* passive: where in the MD the data is; active: the offset asked for */
	uint32_t offset;
	uint64_t hdr_data; /* PUT: what the initiator gave to LNetPut() */
	uint64_t elapsed;  /* active: us since the operation began */
	uint64_t sequence; /* number of the event, counted by its CPT */
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
#define LNET_MD_URGENT		  0x1000u /* overtakes messages that wait */
/* sent from another NI if the one named by @self fails */
#define LNET_MD_PREFER_PATH 0x2000u
#define LNET_MD_NUMA_NODE   0x4000u /* numa_node is set */

#define LNET_MD_THRESH_INF (-1)

struct ulnet_md {
	void *start;
	uint32_t length; /* bytes; with LNET_MD_IOVEC: number of fragments */
	/* number of operations after which the MD is used up, or
	 * LNET_MD_THRESH_INF */
	int threshold;
	uint32_t max_size; /* bytes; with LNET_MD_MAX_SIZE */
	uint32_t options;
	void *user_ptr;
	/* called for each event; an MD has a handler, an event queue, or
	 * neither */
	ulnet_handler_fn handler;
	struct ulnet_eq_handle eq; /* LNET_EQ_NONE: none */
	/* us for each operation on the MD; 0: the node's transaction_timeout */
	uint64_t timeout;
	int numa_node; /* NUMA node of the memory, with LNET_MD_NUMA_NODE */
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
 * until the memory is unregistered. LNDs over RDMA move the payload of an MD
 * without a copy if all fragments of the MD lie in registered memory. Peers
 * that have exchanged payload with this memory can write to it until it is
 * unregistered. */
ULNET_EXPORT int lnet_mem_register(struct lnet *node, void *addr,
				   size_t length);
/* Unregisters memory that was registered with the same @addr and @length. No MD
 * may be using the memory. */
ULNET_EXPORT int lnet_mem_unregister(struct lnet *node, void *addr,
				     size_t length);

/* ---- memory that is shared from birth: lnet_mem_alloc(3) ---- */

/* Allocates memory that peers of this host can read: nodes in other processes
 * copy large payloads in it without the system's help. It belongs to the caller
 * until lnet_mem_free() or lnet_close(). 0; -EINVAL: @length is 0; -ENOSPC:
 * more than is free of shared_max; -ENOMEM; -EOPNOTSUPP: the system has no such
 * memory; -EFBIG: RLIMIT_FSIZE is below shared_max; -EMFILE, -ENFILE;
 * -ESHUTDOWN. Any thread. */
ULNET_EXPORT int lnet_mem_alloc(struct lnet *node, size_t length,
				void **addr_p);
/* Frees memory that begins at @addr, which no MD may be using. If a peer is
 * still reading it for a message that was given up, it is used for something
 * else only after that. 0; -EINVAL: no memory of lnet_mem_alloc() begins there;
 * -ESHUTDOWN. Any thread. */
ULNET_EXPORT int lnet_mem_free(struct lnet *node, void *addr);

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
	unsigned int nnis; /* NIs of the node, without 0@lo */
	/* an array of nnis, the primary NI first */
	const struct ulnet_ping_ni *ni;
};

/* @status: 0; or a negative errno, and then @info is NULL. @info is valid only
 * during the call. */
typedef void (*ulnet_ping_fn)(void *arg, int status,
			      const struct ulnet_ping_info *info);

ULNET_EXPORT int lnet_ping(struct lnet *node, struct ulnet_id target,
			   uint64_t timeout, ulnet_ping_fn done, void *arg);
/* As lnet_ping(), but from the local NI @self (LNET_NID_ANY: from any NI). */
ULNET_EXPORT int lnet_ping_from(struct lnet *node, const struct ulnet_nid *self,
				struct ulnet_id target, uint64_t timeout,
				ulnet_ping_fn done, void *arg);

/* ---- discovery: lnet_discover(3) ---- */

/* discovers the peer even if what is known of it is up to date */
#define LNET_DISCOVER_FORCE 1u

/* The discovery has ended. @status: 0 or a negative errno. */
typedef void (*ulnet_discover_fn)(void *arg, int status);

ULNET_EXPORT int lnet_discover(struct lnet *node, const struct ulnet_nid *nid,
			       unsigned int flags, ulnet_discover_fn done,
			       void *arg);

/* ---- statistics: lnet_stats(3) ---- */

struct ulnet_stat {
	const char *name; /* both texts are constant */
	const char *help;
	uint64_t value;
	/* a gauge: a number that goes up and down; false: a counter */
	bool now;
};

ULNET_EXPORT int lnet_stats(struct lnet *node, struct ulnet_stat *stats,
			    unsigned int n);

/* Sets the counters of the node, its interfaces and its peers to 0. Gauges keep
 * their values. */
ULNET_EXPORT int lnet_stats_reset(struct lnet *node);

/* ---- objects: lnet_objects(3) ---- */

/* How many objects of one kind a node has now. */
struct ulnet_object {
	const char *name; /* both texts are constant */
	const char *help;
	uint64_t now;
};
/* Fills @objects with at most @n kinds (0: @objects may be NULL). Returns how
 * many there are; -EXDEV: called in a turn of a node with several CPTs. Waits
 * for each CPT. */
ULNET_EXPORT int lnet_objects(struct lnet *node, struct ulnet_object *objects,
			      unsigned int n);

/* ---- settings: lnet_settings(3) ---- */

/* One of the settings that "lnetctl global show" lists. */
struct ulnet_setting {
	const char *name; /* all three texts are constant */
	const char *unit; /* "s", or "" */
	const char *help;
	int64_t value;
	int64_t min, max; /* if equal, this release supports only this value */
	int64_t def;	  /* the default */
	bool derived;	  /* computed from other settings, and cannot be set */
};

/* Fills @settings with up to @n settings, always in the same order. Returns the
 * number of all settings. */
ULNET_EXPORT int lnet_settings(struct lnet *node,
			       struct ulnet_setting *settings, unsigned int n);
/* Sets the setting @name. -ENOENT: there is none of that name; -EPERM: it is
 * derived; -EOPNOTSUPP: kernel nodes support @value, and this release does not;
 * -EINVAL: @value is out of range. */
ULNET_EXPORT int lnet_setting_set(struct lnet *node, const char *name,
				  int64_t value);

/* ---- the log: lnet_log_set(3) ---- */

enum ulnet_log_level {
	LNET_LOG_ERR,  /* an operator must act */
	LNET_LOG_WARN, /* degraded, heals by itself */
	LNET_LOG_INFO, /* the configuration changed */
	LNET_LOG_DEBUG,
};

/* @line has no newline, and is valid only during the call. */
typedef void (*ulnet_log_fn)(int level, const char *line, void *arg);

/* Sends log lines of the whole process up to @level to @fn, or to stderr if @fn
 * is NULL. Any thread. */
ULNET_EXPORT void lnet_log_set(enum ulnet_log_level level, ulnet_log_fn fn,
			       void *arg);

/* lnet_log_level() returns the level of lines that belong to none of the
 * library's subsystems. lnet_log_level_set() sets the level of all lines. Both
 * may be called while nodes run, on any thread. */
ULNET_EXPORT enum ulnet_log_level lnet_log_level(void);
ULNET_EXPORT void lnet_log_level_set(enum ulnet_log_level level);
/* The names of levels, for options and commands: "err", "warn", "info",
 * "debug". lnet_log_level_name() returns NULL if there is no such level;
 * lnet_log_level_parse() returns 0 or -EINVAL. Any thread. */
ULNET_EXPORT const char *lnet_log_level_name(enum ulnet_log_level level);
ULNET_EXPORT int lnet_log_level_parse(const char *name,
				      enum ulnet_log_level *level_p);

/* lnet_log_levels_set() sets levels from @text. "warn": the level of all
 * subsystems; "info,route=debug": the level of all, but of route another;
 * "rpc=err,route=debug": the levels of these two only. -EINVAL: *@err, unless
 * @err is NULL, says what is wrong, and which subsystems there are; nothing was
 * set. lnet_log_levels_check() only checks @text. Any thread. */
ULNET_EXPORT int lnet_log_levels_set(const char *text,
				     struct ulnet_conf_error *err);
ULNET_EXPORT int lnet_log_levels_check(const char *text,
				       struct ulnet_conf_error *err);
#define LNET_LOG_LEVELS 512
/* Fills @text with all levels, in a form that lnet_log_levels_set() takes:
 * "info,route=debug". LNET_LOG_LEVELS bytes are enough. Returns @text. Any
 * thread. */
ULNET_EXPORT const char *lnet_log_levels(char *text, size_t size);

#define LNET_LOG_STAMP 128
/* Fills @text with the time, the name of the node and a space, if the
 * environment variable ULNET_LOG_STAMP asks for that; otherwise with "".
 * Returns @text. For programs that write lines of their own. Any thread. */
ULNET_EXPORT const char *lnet_log_stamp(char *text, size_t size);

/* Makes @text, which may come from anywhere, fit for a terminal and for one
 * line, as lines of the log are: '?' replaces control characters, and bytes
 * that are not UTF-8. Any thread. */
ULNET_EXPORT void lnet_text_clean(char *text);

/* Logs "@subsystem: text", if lines of @level are logged. Any thread. */
ULNET_EXPORT void lnet_log(enum ulnet_log_level level, const char *subsystem,
			   const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
/* lnet_log_on(): are lines of @level logged that belong to none of the
 * library's subsystems, such as a program's? lnet_log_on_for(): are lines of
 * @level logged that belong to @subsystem? If not, the caller need not compute
 * what it would log. Any thread. */
ULNET_EXPORT bool lnet_log_on(enum ulnet_log_level level);
ULNET_EXPORT bool lnet_log_on_for(enum ulnet_log_level level,
				  const char *subsystem);

/* ---- names ---- */

ULNET_EXPORT const char *lnet_event_name(enum ulnet_event_type type);
ULNET_EXPORT const char *lnet_outcome_name(enum ulnet_outcome outcome);
ULNET_EXPORT const char *lnet_cause_name(enum ulnet_cause cause);

#ifdef __cplusplus
}
#endif

#endif
