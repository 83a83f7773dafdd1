/* SPDX-License-Identifier: BSD-3-Clause */
/* The commands and their options: names and letters are those of kernel nodes'
 * lnetctl (LNet wire specification section 10.1). */
#include "command.h"

/* Name, letter, key of the request, what help calls the value, help. */
#define ROW(kind_, name, letter, key_, arg, help)                              \
	{                                                                      \
		name, letter, arg, help,                                       \
			.kind = OPTION_OWN, .own = GIVEN_##kind_, .key = key_, \
			.optional = GIVEN_##kind_ == GIVEN_LEVEL,              \
	}
#define FLAG(name, letter, key, help) ROW(FLAG, name, letter, key, NULL, help)
#define MODE(name, letter, help)      ROW(MODE, name, letter, "mode", NULL, help)
#define NOTHING(name, letter, help)   ROW(NOTHING, name, letter, NULL, NULL, help)
#define LEVEL(help)		      ROW(LEVEL, "verbose", 'v', "verbose", "LEVEL", help)
#define TEXT(...)		      ROW(TEXT, __VA_ARGS__)
#define NUMBER(...)		      ROW(NUMBER, __VA_ARGS__)
#define LIST(...)		      ROW(LIST, __VA_ARGS__)
#define MANY(...)		      ROW(MANY, __VA_ARGS__)
#define END                  \
	{                    \
		.name = NULL \
	}

static const struct option_row lnet_configure[] = {
	FLAG("all", 'a', "all",
	     "also the networks that lnetd was started with"),
	FLAG("large", 'l', "large", "for IPv6: set large_nids to 1"), END
};

static const struct option_row net_add[] = {
	TEXT("net", 'n', "net", "NET", "network: tcp, tcp1..."),
	LIST("if", 'i', "interfaces", "IF[,IF]...",
	     "interfaces by name or address, each with all [CPT,CPT...] or "
	     "none"),
	TEXT("nid", 'N', "nid", "NID",
	     "the NID, instead of network and interface"),
	TEXT("ip2net", 'p', "ip2net", "RULES",
	     "networks by the node's addresses: \"tcp1 10.1.*.*\""),
	NUMBER("peer-timeout", 't', "peer_timeout", "SECONDS",
	       "after which a silent peer is asked whether it is alive"),
	NUMBER("peer-credits", 'c', "peer_credits", "N",
	       "messages at once to one peer"),
	NUMBER("peer-buffer-credits", 'b', "peer_buffer_credits", "N",
	       "routed messages at once from one peer"),
	NUMBER("credits", 'r', "credits", "N",
	       "messages at once through the interface"),
	TEXT("cpt", 's', "cpts", "[CPT,...]", "CPTs that serve the network"),
	NUMBER("conns-per-peer", 'm', "conns_per_peer", "N",
	       "connections of each kind to one peer"),
	NUMBER("tos", 'S', "tos", "N",
	       "type of service of IP packets; -1: the system's"),
	NOTHING("skip-mr-route-setup", 'k',
		"accepted: the system's routes are left alone in any case"),
	NUMBER("auth-key", 0, "auth_key", "N",
	       "refused: only networks of type kfi have it"),
	NUMBER("traffic-class", 0, "traffic_class", "N",
	       "refused: only networks of type kfi have it"),
	END
};

static const struct option_row route_add[] = {
	TEXT("net", 'n', "net", "NET", "the network it leads to"),
	TEXT("gateway", 'g', "gateway", "NID",
	     "of the router, on a network of this node"),
	NUMBER("hop", 0, "hop", "N", "routers on the way, 1 to 255"),
	NUMBER("hop-count", 'c', "hop", "N", "the same"),
	NUMBER("priority", 'p', "priority", "N",
	       "0 is the best, and the default"),
	NUMBER("health_sensitivity", 's', "health_sensitivity", "N",
	       "accepted: 1, the default of kernel nodes"),
	END
};

static const struct option_row route_del[] = {
	TEXT("net", 'n', "net", "NET", "the network it leads to"),
	TEXT("gateway", 'g', "gateway", "NID", "of the router"), END
};

static const struct option_row route_show[] = {
	TEXT("net", 'n', "net", "NET", "only those to it"),
	TEXT("gateway", 'g', "gateway", "NID", "only those by it"),
	NUMBER("hop", 'c', "hop", "N", "only those so far away"),
	NUMBER("priority", 'p', "priority", "N", "only those of it"),
	LEVEL("1: hops, priority, and whether they are up; 5: states by name"),
	END
};

static const struct option_row udsp_add[] = {
	TEXT("src", 's', "src", "PATTERN", "nets or NIDs of this node"),
	TEXT("dst", 'd', "dst", "PATTERN", "nets or NIDs of peers"),
	TEXT("rte", 'r', "rte", "PATTERN", "NIDs of routers"),
	NUMBER("priority", 'p', "priority", "N",
	       "of src alone, or dst alone: 0 is the best, and the default"),
	NUMBER("idx", 'i', "idx", "N",
	       "where it shall stand, from 0; behind all others"),
	END
};

static const struct option_row udsp_del[] = {
	NUMBER("idx", 'i', "idx", "N", "the one there"),
	FLAG("all", 'a', "all", "all of them"), END
};

static const struct option_row udsp_show[] = {
	NUMBER("idx", 'i', "idx", "N", "only the one there"), END
};

static const struct option_row net_del[] = {
	TEXT("net", 'n', "net", "NET", "network"),
	LIST("if", 'i', "interfaces", "IF[,IF]...",
	     "only these of its interfaces"),
	TEXT("nid", 'N', "nid", "NID", "only the one with this NID"), END
};

static const struct option_row net_show[] = {
	TEXT("net", 'n', "net", "NET", "only this network"),
	LEVEL("1: counts and tunables; 2: by type of message, and health; 5: "
	      "states by name"),
	END
};

static const struct option_row peer_add[] = {
	TEXT("prim_nid", 'p', "prim_nid", "NID", "the peer's primary NID"),
	MANY("nid", 'n', "nids", "NIDS[,NIDS]...",
	     "others that it has; 10.0.0.[1-3]@tcp are several"),
	FLAG("non_mr", 'm', "non_mr",
	     "not multi-rail: sent to at the NID named, from one interface"),
	FLAG("lock_prim", 'l', "lock_prim",
	     "refused: an added peer keeps its NIDs in any case"),
	MANY("ip2nets", 'i', "ip2nets", "NIDS[,NIDS]...", "the same"),
	END
};

static const struct option_row peer_del[] = {
	TEXT("prim_nid", 'p', "prim_nid", "NID", "the peer's primary NID"),
	MANY("nid", 'n', "nids", "NIDS[,NIDS]...",
	     "only these; with the primary one among them, the whole peer"),
	NOTHING("force", 'f', "accepted: no peer is locked"),
	FLAG("lock_prim", 'l', "lock_prim",
	     "refused: an added peer keeps its NIDs in any case"),
	MANY("ip2nets", 'i', "ip2nets", "NIDS[,NIDS]...", "the same"),
	END
};

static const struct option_row peer_show[] = {
	TEXT("nid", 'n', "nid", "NID", "only the peer with this NID"),
	LEVEL("1: credits and counts; 2: by type of message, and health; 3: "
	      "peer's state; 5: states by name"),
	END
};

static const struct option_row net_set[] = {
	TEXT("nid", 'N', "nid", "NID", "of this interface"),
	FLAG("all", 'a', "all", "of all interfaces"),
	NUMBER("health", 't', "health", "N",
	       "health: 0 (the last to be used) to 1000 (good)"),
	TEXT("net", 'n', "net", "NET", "of all interfaces of this network"),
	NUMBER("conns-per-peer", 'm', "conns_per_peer", "N",
	       "refused: give it to net add"),
	NUMBER("lnd-timeout", 0, "lnd_timeout", "SECONDS",
	       "refused: follows from transaction_timeout and retry_count"),
	END
};

static const struct option_row peer_set[] = {
	TEXT("nid", 'n', "nid", "NID", "of this NID of a peer"),
	FLAG("all", 'a', "all", "of all NIDs of all peers"),
	NUMBER("health", 't', "health", "N",
	       "health: 0 (the last to be used) to 1000 (good)"),
	NUMBER("state", 's', "state", "N",
	       "refused: it is what discovery has found"),
	END
};

static const struct option_row path_show[] = {
	TEXT("nid", 'n', "nid", "NID", "to this NID"),
	TEXT("source", 's', "source", "NID",
	     "from this one of the node's NIDs"),
	END
};

static const struct option_row rpc_show[] = {
	LEVEL("1: histograms, bucket by bucket"), END
};

static const struct option_row ping[] = {
	TEXT("source", 's', "source", "NID",
	     "send from this one of the node's NIDs"),
	NUMBER("timeout", 't', "timeout", "SECONDS",
	       "to wait for each answer (1)"),
	END
};

static const struct option_row debug_recovery[] = {
	FLAG("local", 'l', "local", "of this node only"),
	FLAG("peer", 'p', "peer", "of peers only"), END
};

static const struct option_row cpt_of_nid[] = {
	MANY("nid", 'n', "nids", "NID[,NID]...", "of peers"), END
};

static const struct option_row debug_peer[] = {
	TEXT("nid", 'n', "nid", "NID", "of the peer with this NID"), END
};

static const struct option_row discover[] = {
	FLAG("force", 'f', "force", "ask and tell also who is up to date"),
	NUMBER("timeout", 't', "timeout", "SECONDS",
	       "to wait for each of them (30)"),
	END
};

static const struct option_row import[] = {
	MODE("add", 'a', "configure what is in it (this is the default)"),
	MODE("del", 'd', "delete what is in it"),
	MODE("show", 's', "show what is in it"),
	MODE("exec", 'e', "carry out its pings and discoveries"),
	FLAG("ignore_errors", 0, "ignore_errors",
	     "do what can be done, and say what could not"),
	END
};

static int take_interval(const struct option_at *at)
{
	uint64_t *us_p = &((struct command_args *)at->object)->top.interval_us;
	int status = option_time(at, 1, us_p);

	if (!status && *us_p < 100000)
		return option_bad(at, "0.1 s at least are expected");
	return status;
}

#define AT(field) offsetof(struct command_args, field)

static const struct option_row top[] = {
	{ "interval", 'i', "SECONDS", "time of each block (1)",
	  .kind = OPTION_CALL, .take = take_interval },
	{ "count", 'c', "N", "blocks; without it, until Ctrl-C",
	  .kind = OPTION_NUMBER, AT(top.count), 1, 1000000000 },
	{ "rows", 'r', "N",
	  "NIDs of peers to show: those that wait, are ill, or busy (20)",
	  .kind = OPTION_NUMBER, AT(top.rows), 0, 1000 },
	END
};

static const struct option_row metrics[] = {
	{ "listen", 'l', "[ADDRESS:]PORT",
	  "serve them there by HTTP, until Ctrl-C; without an address at "
	  "127.0.0.1",
	  .kind = OPTION_CALL, AT(metrics.address),
	  .take = metrics_take_place },
	{ "peers", 'p', "N", "NIDs of peers that have metrics (256)",
	  .kind = OPTION_NUMBER, AT(metrics.peers), 0, METRICS_PEERS_MAX },
	END
};

static const struct option_row export[] = {
	FLAG("backup", 'b', "backup",
	     "only what is needed to configure it again"),
	FLAG("dot", 'd', "dot",
	     "a drawing for Graphviz instead: nets, peers, routes"),
	END
};

/* What all rules have; and what some have. */
static const struct option_row fault[] = {
	TEXT("source", 's', "source", "NID",
	     "messages from there: a NID, *@tcp, or * (the default)"),
	TEXT("dest", 'd', "dest", "NID", "messages to there"),
	TEXT("local_nid", 'o', "local_nid", "NID",
	     "messages through this interface of the node"),
	MANY("portal", 'p', "portal", "N[,N]...",
	     "PUTs and GETs to these portals"),
	MANY("message", 'm', "message", "TYPE[,TYPE]...",
	     "messages of these types: PUT, ACK, GET, REPLY"),
	NUMBER("rate", 'r', "rate", "N", "one message of each N"),
	TEXT("interval", 'i', "interval", "SECONDS",
	     "one message in each such time"),
	FLAG("drop_all", 'x', "drop_all", "each message"),
	FLAG("random", 'n', "random", "each by chance, as often on average"),
	END
};
static const struct option_row fault_all[] = {
	FLAG("all", 'a', "all", "with del: all rules"), END
};
static const struct option_row fault_latency[] = {
	TEXT("latency", 'l', "latency", "SECONDS", "to keep messages for"), END
};
static const struct option_row fault_status[] = {
	MANY("health_error", 'e', "health_error", "STATUS[,STATUS]...",
	     "what the send fails with: local_error, random..."),
	END
};
static const struct option_row fault_type[] = {
	TEXT("rule_type", 't', "rule_type", "TYPE",
	     "drop, delay, duplicate, corrupt or error"),
	END
};
static const struct option_row fault_del[] = {
	TEXT("source", 's', "source", "NID", "those that were added with it"),
	TEXT("dest", 'd', "dest", "NID", "and with this one"),
	FLAG("all", 'a', "all", "all of the type"), END
};

/* Name, sub-command, help, tables of options, of which the most part has one;
 * then the rest, by the names of the fields. */
#define COMMAND(n, s, h, o, ...)                                        \
	{                                                               \
		.name = (n), .sub = (s), .help = (h), .options = { o }, \
		__VA_ARGS__                                             \
	}
#define FAULT(s, h, ...)                                                       \
	{                                                                      \
		.name = "fault", .sub = (s), .help = (h),                      \
		.options = { __VA_ARGS__ }, .args = "add|del|reset|show|list", \
		.kind = COMMAND_FAULT,                                         \
	}
#define RULE(s, h, needs_, ...)                                \
	{                                                      \
		.name = "fault", .sub = (s), .help = (h),      \
		.options = { __VA_ARGS__ }, .needs = (needs_), \
		.kind = COMMAND_RULE,                          \
	}
#define KERNEL(n, why) COMMAND(n, NULL, why, NULL, .kind = COMMAND_KERNEL)

const struct command commands[] = {
	COMMAND("lnet", "configure", "bring the node up", lnet_configure),
	COMMAND("lnet", "unconfigure", "take all networks down", NULL),
	COMMAND("net", "add", "add a network, or interfaces to it", net_add,
		.needs = "net|nid|ip2net"),
	COMMAND("net", "del", "delete a network, or interfaces of it", net_del,
		.needs = "net|nid"),
	COMMAND("net", "show", "show networks and their interfaces", net_show),
	COMMAND("net", "set", "set the health of interfaces", net_set,
		.needs = "nid|all|net"),
	COMMAND("route", "add", "add a route to a network", route_add,
		.needs = "net"),
	COMMAND("route", "del", "delete a route", route_del, .needs = "net"),
	COMMAND("route", "show", "show routes", route_show),
	COMMAND("routing", "show",
		"show whether this node routes, and its buffers", NULL),
	COMMAND("peer", "add", "add a peer, or NIDs to it", peer_add,
		.needs = "prim_nid"),
	COMMAND("peer", "del", "delete a peer, or NIDs of it", peer_del,
		.needs = "prim_nid"),
	COMMAND("peer", "show", "show peers", peer_show),
	COMMAND("peer", "list", "list peers' primary NIDs", NULL),
	COMMAND("peer", "set", "set the health of peers' NIDs", peer_set,
		.needs = "nid|all"),
	COMMAND("path", "show", "show which path a message would take, and why",
		path_show, .needs = "nid"),
	COMMAND("set", NULL, "change a setting", NULL, .args = "SETTING VALUE",
		.kind = COMMAND_SET),
	COMMAND("global", "show", "show settings", NULL),
	COMMAND("stats", "show", "show counters", NULL),
	COMMAND("stats", "reset", "set counters to 0", NULL),
	COMMAND("top", NULL, "show rates, credits, health and queues, live",
		top, .kind = COMMAND_TOP),
	COMMAND("metrics", NULL, "print what Prometheus reads, or serve it",
		metrics, .kind = COMMAND_METRICS),
	COMMAND("rpc", "show", "show statistics of calls and requests",
		rpc_show),
	COMMAND("rpc", "reset", "set the statistics of RPC to 0", NULL),
	COMMAND("debug", "recovery", "show NIDs that are ill, and pinged",
		debug_recovery),
	COMMAND("debug", "peer", "show a peer's inner state", debug_peer,
		.needs = "nid"),
	COMMAND("ping", NULL, "ping peers, and list their NIDs", ping,
		.args = "NID...", .list = "nids", .kind = COMMAND_PING,
		.seconds = 1),
	COMMAND("discover", NULL, "discover peers: ask and tell all NIDs",
		discover, .args = "NID...", .list = "nids",
		.kind = COMMAND_PING, .seconds = 30),
	COMMAND("udsp", "add", "add a selection policy", udsp_add,
		.needs = "src|dst|rte"),
	COMMAND("udsp", "del", "delete selection policies", udsp_del,
		.needs = "idx|all"),
	COMMAND("udsp", "show", "show selection policies", udsp_show),
	COMMAND("import", NULL, "configure the node from YAML", import,
		.args = "[FILE]", .kind = COMMAND_IMPORT),
	COMMAND("export", NULL, "write the configuration as YAML", export,
		.args = "[FILE]", .kind = COMMAND_EXPORT),
	RULE("add", "add a rule that loses or harms messages", "rule_type",
	     fault_type, fault, fault_latency, fault_status),
	RULE("del", "delete such rules", "rule_type", fault_type, fault_del),
	RULE("reset", "set their counters to 0", "rule_type", fault_type),
	RULE("show", "show such rules, or all of them", NULL, fault_type),
	FAULT("drop", "rules that drop messages", fault, fault_all,
	      fault_status),
	FAULT("delay", "rules that delay messages", fault, fault_all,
	      fault_latency),
	FAULT("duplicate", "rules that send messages twice", fault, fault_all),
	FAULT("corrupt", "rules that corrupt payloads", fault, fault_all),
	FAULT("error", "rules that fail what is sent", fault, fault_all,
	      fault_status),
	FAULT(NULL, "rules of any kind, by --rule_type", fault_type, fault,
	      fault_all, fault_latency, fault_status),
	COMMAND("version", NULL, "print the version of lnetctl", NULL,
		.kind = COMMAND_VERSION),
	COMMAND("cpt-of-nid", NULL, "show which CPTs NIDs of peers belong to",
		cpt_of_nid, .needs = "nid"),
	KERNEL("service-id", "no LND here listens at an RDMA service"),
	KERNEL("setup-mrrouting", "the system's routes are left alone here"),
	KERNEL("setup-sysctl", "the system's parameters are left alone here"),
	{ .name = NULL },
};

const char *const settings[] = {
	"tiny_buffers",
	"small_buffers",
	"large_buffers",
	"routing",
	"numa_range",
	"max_interfaces",
	"discovery",
	"drop_asym_route",
	"retry_count",
	"transaction_timeout",
	"health_sensitivity",
	"recovery_interval",
	"router_sensitivity",
	"response_tracking",
	"recovery_limit",
	"max_recovery_ping_interval",
	"health_gain",
	"busy_poll",
	"use_tcp_bonding",
	"large_nids",
	NULL,
};
