/* SPDX-License-Identifier: BSD-3-Clause */
/* The commands and their options: names and letters are those of kernel nodes'
 * lnetctl (LNet wire specification section 10.1). */
#include "command.h"

#define END                  \
	{                    \
		.name = NULL \
	}

static const struct option_def no_options[] = { END };

static const struct option_def lnet_configure[] = {
	{ "all", 'a', OPTION_FLAG, "all", NULL,
	  "also the networks that lnetd was started with" },
	{ "large", 'l', OPTION_FLAG, "large", NULL,
	  "for IPv6: set large_nids to 1" },
	END
};

static const struct option_def net_add[] = {
	{ "net", 'n', OPTION_TEXT, "net", "NET", "network: tcp, tcp1..." },
	{ "if", 'i', OPTION_LIST, "interfaces", "IF[,IF]...",
	  "interfaces by name or address, each with all [CPT,CPT...] or none" },
	{ "nid", 'N', OPTION_TEXT, "nid", "NID",
	  "the NID, instead of network and interface" },
	{ "ip2net", 'p', OPTION_TEXT, "ip2net", "RULES",
	  "networks by the node's addresses: \"tcp1 10.1.*.*\"" },
	{ "peer-timeout", 't', OPTION_NUMBER, "peer_timeout", "SECONDS",
	  "after which a silent peer is asked whether it is alive" },
	{ "peer-credits", 'c', OPTION_NUMBER, "peer_credits", "N",
	  "messages at once to one peer" },
	{ "peer-buffer-credits", 'b', OPTION_NUMBER, "peer_buffer_credits", "N",
	  "routed messages at once from one peer" },
	{ "credits", 'r', OPTION_NUMBER, "credits", "N",
	  "messages at once through the interface" },
	{ "cpt", 's', OPTION_TEXT, "cpts", "[CPT,...]",
	  "CPTs that serve the network" },
	{ "conns-per-peer", 'm', OPTION_NUMBER, "conns_per_peer", "N",
	  "connections of each kind to one peer" },
	{ "tos", 'S', OPTION_NUMBER, "tos", "N",
	  "type of service of IP packets; -1: the system's" },
	{ "skip-mr-route-setup", 'k', OPTION_NOTHING, NULL, NULL,
	  "accepted: the system's routes are left alone in any case" },
	{ "auth-key", 0, OPTION_NUMBER, "auth_key", "N",
	  "refused: only networks of type kfi have it" },
	{ "traffic-class", 0, OPTION_NUMBER, "traffic_class", "N",
	  "refused: only networks of type kfi have it" },
	END
};

static const struct option_def route_add[] = {
	{ "net", 'n', OPTION_TEXT, "net", "NET", "the network it leads to" },
	{ "gateway", 'g', OPTION_TEXT, "gateway", "NID",
	  "of the router, on a network of this node" },
	{ "hop", 0, OPTION_NUMBER, "hop", "N", "routers on the way, 1 to 255" },
	{ "hop-count", 'c', OPTION_NUMBER, "hop", "N", "the same" },
	{ "priority", 'p', OPTION_NUMBER, "priority", "N",
	  "0 is the best, and the default" },
	{ "health_sensitivity", 's', OPTION_NUMBER, "health_sensitivity", "N",
	  "accepted: 1, the default of kernel nodes" },
	END
};

static const struct option_def route_del[] = {
	{ "net", 'n', OPTION_TEXT, "net", "NET", "the network it leads to" },
	{ "gateway", 'g', OPTION_TEXT, "gateway", "NID", "of the router" },
	END
};

static const struct option_def route_show[] = {
	{ "net", 'n', OPTION_TEXT, "net", "NET", "only those to it" },
	{ "gateway", 'g', OPTION_TEXT, "gateway", "NID", "only those by it" },
	{ "hop", 'c', OPTION_NUMBER, "hop", "N", "only those so far away" },
	{ "priority", 'p', OPTION_NUMBER, "priority", "N", "only those of it" },
	{ "verbose", 'v', OPTION_LEVEL, "verbose", "LEVEL",
	  "1: hops, priority, and whether they are up; 5: states by name" },
	END
};

static const struct option_def udsp_add[] = {
	{ "src", 's', OPTION_TEXT, "src", "PATTERN",
	  "nets or NIDs of this node" },
	{ "dst", 'd', OPTION_TEXT, "dst", "PATTERN", "nets or NIDs of peers" },
	{ "rte", 'r', OPTION_TEXT, "rte", "PATTERN", "NIDs of routers" },
	{ "priority", 'p', OPTION_NUMBER, "priority", "N",
	  "of src alone, or dst alone: 0 is the best, and the default" },
	{ "idx", 'i', OPTION_NUMBER, "idx", "N",
	  "where it shall stand, from 0; behind all others" },
	END
};

static const struct option_def udsp_del[] = {
	{ "idx", 'i', OPTION_NUMBER, "idx", "N", "the one there" },
	{ "all", 'a', OPTION_FLAG, "all", NULL, "all of them" },
	END
};

static const struct option_def udsp_show[] = {
	{ "idx", 'i', OPTION_NUMBER, "idx", "N", "only the one there" }, END
};

static const struct option_def net_del[] = {
	{ "net", 'n', OPTION_TEXT, "net", "NET", "network" },
	{ "if", 'i', OPTION_LIST, "interfaces", "IF[,IF]...",
	  "only these of its interfaces" },
	{ "nid", 'N', OPTION_TEXT, "nid", "NID", "only the one with this NID" },
	END
};

static const struct option_def net_show[] = {
	{ "net", 'n', OPTION_TEXT, "net", "NET", "only this network" },
	{ "verbose", 'v', OPTION_LEVEL, "verbose", "LEVEL",
	  "1: counts and tunables; 2: by type of message, and health; "
	  "5: states by name" },
	END
};

static const struct option_def peer_add[] = {
	{ "prim_nid", 'p', OPTION_TEXT, "prim_nid", "NID",
	  "the peer's primary NID" },
	{ "nid", 'n', OPTION_MANY, "nids", "NIDS[,NIDS]...",
	  "others that it has; 10.0.0.[1-3]@tcp are several" },
	{ "non_mr", 'm', OPTION_FLAG, "non_mr", NULL,
	  "not multi-rail: sent to at the NID named, from one interface" },
	{ "lock_prim", 'l', OPTION_FLAG, "lock_prim", NULL,
	  "refused: an added peer keeps its NIDs in any case" },
	{ "ip2nets", 'i', OPTION_MANY, "ip2nets", "NIDS[,NIDS]...",
	  "the same" },
	END
};

static const struct option_def peer_del[] = {
	{ "prim_nid", 'p', OPTION_TEXT, "prim_nid", "NID",
	  "the peer's primary NID" },
	{ "nid", 'n', OPTION_MANY, "nids", "NIDS[,NIDS]...",
	  "only these; with the primary one among them, the whole peer" },
	{ "force", 'f', OPTION_NOTHING, NULL, NULL,
	  "accepted: no peer is locked" },
	{ "lock_prim", 'l', OPTION_FLAG, "lock_prim", NULL,
	  "refused: an added peer keeps its NIDs in any case" },
	{ "ip2nets", 'i', OPTION_MANY, "ip2nets", "NIDS[,NIDS]...",
	  "the same" },
	END
};

static const struct option_def peer_show[] = {
	{ "nid", 'n', OPTION_TEXT, "nid", "NID",
	  "only the peer with this NID" },
	{ "verbose", 'v', OPTION_LEVEL, "verbose", "LEVEL",
	  "1: credits and counts; 2: by type of message, and health; "
	  "3: peer's state; 5: states by name" },
	END
};

static const struct option_def net_set[] = {
	{ "nid", 'N', OPTION_TEXT, "nid", "NID", "of this interface" },
	{ "all", 'a', OPTION_FLAG, "all", NULL, "of all interfaces" },
	{ "health", 't', OPTION_NUMBER, "health", "N",
	  "health: 0 (the last to be used) to 1000 (good)" },
	{ "net", 'n', OPTION_TEXT, "net", "NET",
	  "of all interfaces of this network" },
	{ "conns-per-peer", 'm', OPTION_NUMBER, "conns_per_peer", "N",
	  "refused: give it to net add" },
	{ "lnd-timeout", 0, OPTION_NUMBER, "lnd_timeout", "SECONDS",
	  "refused: follows from transaction_timeout and retry_count" },
	END
};

static const struct option_def peer_set[] = {
	{ "nid", 'n', OPTION_TEXT, "nid", "NID", "of this NID of a peer" },
	{ "all", 'a', OPTION_FLAG, "all", NULL, "of all NIDs of all peers" },
	{ "health", 't', OPTION_NUMBER, "health", "N",
	  "health: 0 (the last to be used) to 1000 (good)" },
	{ "state", 's', OPTION_NUMBER, "state", "N",
	  "refused: it is what discovery has found" },
	END
};

static const struct option_def path_show[] = {
	{ "nid", 'n', OPTION_TEXT, "nid", "NID", "to this NID" },
	{ "source", 's', OPTION_TEXT, "source", "NID",
	  "from this one of the node's NIDs" },
	END
};

static const struct option_def rpc_show[] = {
	{ "verbose", 'v', OPTION_LEVEL, "verbose", "LEVEL",
	  "1: histograms, bucket by bucket" },
	END
};

static const struct option_def ping[] = {
	{ "source", 's', OPTION_TEXT, "source", "NID",
	  "send from this one of the node's NIDs" },
	{ "timeout", 't', OPTION_NUMBER, "timeout", "SECONDS",
	  "to wait for each answer (1)" },
	END
};

static const struct option_def debug_recovery[] = {
	{ "local", 'l', OPTION_FLAG, "local", NULL, "of this node only" },
	{ "peer", 'p', OPTION_FLAG, "peer", NULL, "of peers only" },
	END
};

static const struct option_def cpt_of_nid[] = {
	{ "nid", 'n', OPTION_MANY, "nids", "NID[,NID]...", "of peers" }, END
};

static const struct option_def debug_peer[] = {
	{ "nid", 'n', OPTION_TEXT, "nid", "NID", "of the peer with this NID" },
	END
};

static const struct option_def discover[] = {
	{ "force", 'f', OPTION_FLAG, "force", NULL,
	  "ask and tell also who is up to date" },
	{ "timeout", 't', OPTION_NUMBER, "timeout", "SECONDS",
	  "to wait for each of them (30)" },
	END
};

static const struct option_def import[] = {
	{ "add", 'a', OPTION_MODE, "mode", NULL,
	  "configure what is in it (this is the default)" },
	{ "del", 'd', OPTION_MODE, "mode", NULL, "delete what is in it" },
	{ "show", 's', OPTION_MODE, "mode", NULL, "show what is in it" },
	{ "exec", 'e', OPTION_MODE, "mode", NULL,
	  "carry out its pings and discoveries" },
	{ "ignore_errors", 0, OPTION_FLAG, "ignore_errors", NULL,
	  "do what can be done, and say what could not" },
	END
};

static const struct option_def top[] = {
	{ "interval", 'i', OPTION_LOCAL, NULL, "SECONDS",
	  "time of each block (1)" },
	{ "count", 'c', OPTION_LOCAL, NULL, "N",
	  "blocks; without it, until Ctrl-C" },
	{ "rows", 'r', OPTION_LOCAL, NULL, "N",
	  "NIDs of peers to show: those that wait, are ill, or busy (20)" },
	END
};

static const struct option_def metrics[] = {
	{ "listen", 'l', OPTION_LOCAL, NULL, "[ADDRESS:]PORT",
	  "serve them there by HTTP, until Ctrl-C; without an address at "
	  "127.0.0.1" },
	{ "peers", 'p', OPTION_LOCAL, NULL, "N",
	  "NIDs of peers that have metrics (256)" },
	END
};

static const struct option_def export[] = {
	{ "backup", 'b', OPTION_FLAG, "backup", NULL,
	  "only what is needed to configure it again" },
	{ "dot", 'd', OPTION_FLAG, "dot", NULL,
	  "a drawing for Graphviz instead: nets, peers, routes" },
	END
};

/* What all rules have, and which of them an action is about. */
#define FAULT_OPTIONS                                                               \
	{                                                                           \
		"source",                                                           \
		's',                                                                \
		OPTION_TEXT,                                                        \
		"source",                                                           \
		"NID",                                                              \
		"messages from there: a NID, *@tcp, or * (the default)"             \
	},                                                                          \
		{ "dest", 'd', OPTION_TEXT, "dest", "NID", "messages to there" },   \
		{ "local_nid", 'o',                                                 \
		  OPTION_TEXT, "local_nid",                                         \
		  "NID",       "messages through this interface of the node" },     \
		{ "portal", 'p',	OPTION_MANY,                                \
		  "portal", "N[,N]...", "PUTs and GETs to these portals" },         \
		{ "message",                                                        \
		  'm',                                                              \
		  OPTION_MANY,                                                      \
		  "message",                                                        \
		  "TYPE[,TYPE]...",                                                 \
		  "messages of these types: PUT, ACK, GET, REPLY" },                \
		{ "rate", 'r', OPTION_NUMBER,                                       \
		  "rate", "N", "one message of each N" },                           \
		{ "interval", 'i',	 OPTION_TEXT,                               \
		  "interval", "SECONDS", "one message in each such time" },         \
		{ "drop_all", 'x', OPTION_FLAG, "drop_all", NULL, "each message" }, \
	{                                                                           \
		"random", 'n', OPTION_FLAG, "random", NULL,                         \
			"each by chance, as often on average"                       \
	}
#define FAULT_ALL                                                           \
	{                                                                   \
		"all", 'a', OPTION_FLAG, "all", NULL, "with del: all rules" \
	}
#define FAULT_LATENCY                                              \
	{                                                          \
		"latency", 'l', OPTION_TEXT, "latency", "SECONDS", \
			"to keep messages for"                     \
	}
#define FAULT_STATUS                                                       \
	{                                                                  \
		"health_error", 'e', OPTION_MANY, "health_error",          \
			"STATUS[,STATUS]...",                              \
			"what the send fails with: local_error, random..." \
	}

static const struct option_def fault_drop[] = { FAULT_OPTIONS, FAULT_ALL,
						FAULT_STATUS, END };
static const struct option_def fault_delay[] = { FAULT_OPTIONS, FAULT_ALL,
						 FAULT_LATENCY, END };
static const struct option_def fault_copy[] = { FAULT_OPTIONS, FAULT_ALL, END };
#define FAULT_TYPE                                             \
	{                                                      \
		"rule_type", 't', OPTION_TEXT, "rule_type",    \
			"TYPE",                                \
			"drop, delay, duplicate, corrupt or error" \
	}
static const struct option_def fault_any[] = { FAULT_TYPE,   FAULT_OPTIONS,
					       FAULT_ALL,    FAULT_LATENCY,
					       FAULT_STATUS, END };
static const struct option_def fault_add[] = { FAULT_TYPE, FAULT_OPTIONS,
					       FAULT_LATENCY, FAULT_STATUS,
					       END };
static const struct option_def fault_del[] = {
	FAULT_TYPE,
	{ "source", 's', OPTION_TEXT, "source", "NID",
	  "those that were added with it" },
	{ "dest", 'd', OPTION_TEXT, "dest", "NID", "and with this one" },
	{ "all", 'a', OPTION_FLAG, "all", NULL, "all of the type" },
	END
};
static const struct option_def fault_type[] = { FAULT_TYPE, END };

/* Name, sub-command, help, options; then the rest, by the names of the
 * fields. */
#define COMMAND(n, s, h, o, ...)                                      \
	{                                                             \
		.name = (n), .sub = (s), .help = (h), .options = (o), \
		__VA_ARGS__                                           \
	}
#define FAULT(s, h, o)                                          \
	COMMAND("fault", s, h, o, .args = "add|del|reset|show|list", \
		.kind = COMMAND_FAULT)
#define RULE(s, h, o)                            \
	COMMAND("fault", s, h, o, .needs = "rule_type", \
		.kind = COMMAND_RULE)
#define KERNEL(n, why) COMMAND(n, NULL, why, no_options, .kind = COMMAND_KERNEL)

const struct command commands[] = {
	COMMAND("lnet", "configure", "bring the node up", lnet_configure),
	COMMAND("lnet", "unconfigure", "take all networks down", no_options),
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
		"show whether this node routes, and its buffers", no_options),
	COMMAND("peer", "add", "add a peer, or NIDs to it", peer_add,
		.needs = "prim_nid"),
	COMMAND("peer", "del", "delete a peer, or NIDs of it", peer_del,
		.needs = "prim_nid"),
	COMMAND("peer", "show", "show peers", peer_show),
	COMMAND("peer", "list", "list peers' primary NIDs", no_options),
	COMMAND("peer", "set", "set the health of peers' NIDs", peer_set,
		.needs = "nid|all"),
	COMMAND("path", "show", "show which way a message would go, and why",
		path_show, .needs = "nid"),
	COMMAND("set", NULL, "change a setting", no_options,
		.args = "SETTING VALUE", .kind = COMMAND_SET),
	COMMAND("global", "show", "show settings", no_options),
	COMMAND("stats", "show", "show counters", no_options),
	COMMAND("stats", "reset", "set counters to 0", no_options),
	COMMAND("top", NULL, "show rates, credits, health and queues, live",
		top, .kind = COMMAND_TOP),
	COMMAND("metrics", NULL, "print what Prometheus reads, or serve it",
		metrics, .kind = COMMAND_METRICS),
	COMMAND("rpc", "show", "show statistics of calls and requests",
		rpc_show),
	COMMAND("rpc", "reset", "set them to 0", no_options),
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
	RULE("add", "add a rule that loses or harms messages", fault_add),
	RULE("del", "delete such rules", fault_del),
	RULE("reset", "set their counters to 0", fault_type),
	COMMAND("fault", "show", "show such rules, or all of them", fault_type,
		.kind = COMMAND_RULE),
	FAULT("drop", "rules that drop messages", fault_drop),
	FAULT("delay", "rules that delay messages", fault_delay),
	FAULT("duplicate", "rules that send messages twice", fault_copy),
	FAULT("corrupt", "rules that corrupt payloads", fault_copy),
	FAULT("error", "rules that fail what is sent", fault_drop),
	FAULT(NULL, "rules of any kind, by --rule_type", fault_any),
	COMMAND("version", NULL, "print the version of lnetctl", no_options,
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
