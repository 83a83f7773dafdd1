/* SPDX-License-Identifier: BSD-3-Clause */
/* The commands and their options: names and letters are those of kernel nodes'
 * lnetctl (LNet wire specification section 10.1). */
#include "command.h"

/* clang-format off */
/* Name, letter, the key in the request, what help calls the value, help. */
#define ROW(kind_, name, letter, key_, arg, help)                           \
	{ name, letter, arg, help, .kind = OPTION_OWN,                      \
	  .own = GIVEN_##kind_, .key = key_,                                \
	  .optional = GIVEN_##kind_ == GIVEN_LEVEL }
#define LEVEL(help) ROW(LEVEL, "verbose", 'v', "verbose", "LEVEL", help)
#define MODE(name, letter, help) ROW(MODE, name, letter, "mode", NULL, help)
#define UNUSED(name, letter, help) ROW(UNUSED, name, letter, NULL, NULL, help)
/* Options whose key in the request is their name. */
#define FLAG(name, letter, help) ROW(FLAG, name, letter, name, NULL, help)
#define TEXT(name, letter, ...) ROW(TEXT, name, letter, name, __VA_ARGS__)
#define HOST(name, letter, ...) ROW(HOST, name, letter, name, __VA_ARGS__)
#define NUMBER(name, letter, ...) ROW(NUMBER, name, letter, name, __VA_ARGS__)
#define MANY(name, letter, ...) ROW(MANY, name, letter, name, __VA_ARGS__)
/* clang-format on */

static int take_interval(const struct option_at *at)
{
	uint64_t *us_p = &((struct command_args *)at->object)->top.interval_us;
	int status = option_time(at, 1, us_p);

	if (!status && *us_p < 100000)
		return option_bad(at, "0.1 s at least are expected");
	return status;
}

#define AT(field) offsetof(struct command_args, field)

/* clang-format off */

/* Options that several commands about fault rules have. */
static const struct option_row fault_match[] = {
	TEXT("source", 's', "NID",
	     "messages from there: a NID, *@tcp, or * (the default)"),
	TEXT("dest", 'd', "NID", "messages to there"),
	TEXT("local_nid", 'o', "NID",
	     "messages through this interface of the node"),
	MANY("portal", 'p', "N[,N]...", "PUTs and GETs to these portals"),
	MANY("message", 'm', "TYPE[,TYPE]...",
	     "messages of these types: PUT, ACK, GET, REPLY"),
	NUMBER("rate", 'r', "N", "one message of each N"),
	TEXT("interval", 'i', "SECONDS", "one message in each such time"),
	FLAG("drop_all", 'x', "each message"),
	FLAG("random", 'n', "each by chance, as often on average"),
	{ 0 },
};
static const struct option_row fault_all[] = {
	FLAG("all", 'a', "with del: all rules"),
	{ 0 },
};
static const struct option_row fault_latency[] = {
	TEXT("latency", 'l', "SECONDS", "to keep messages for"),
	{ 0 },
};
static const struct option_row fault_status[] = {
	MANY("health_error", 'e', "STATUS[,STATUS]...",
	     "what the send fails with: local_error, random..."),
	{ 0 },
};
static const struct option_row fault_type[] = {
	TEXT("rule_type", 't', "TYPE",
	     "drop, delay, duplicate, corrupt or error"),
	{ 0 },
};

/* Name, sub-command, help; then the other fields, by their names. */
#define COMMAND(n, s, h, ...) \
	{ .name = (n), .sub = (s), .help = (h), __VA_ARGS__ }
/* The options of one command. */
#define OPTIONS(...) \
	.options = { (const struct option_row[]){ __VA_ARGS__, { 0 } } }
#define FAULT(s, h, ...)                                                    \
	COMMAND("fault", s, h, .args = "add|del|reset|show|list",           \
		.kind = COMMAND_FAULT, .options = { __VA_ARGS__ })
#define RULE(s, h, needs_, ...)                                             \
	COMMAND("fault", s, h, .needs = (needs_), .kind = COMMAND_RULE,     \
		.options = { fault_type, __VA_ARGS__ })
#define KERNEL(n, why) COMMAND(n, NULL, why, .kind = COMMAND_KERNEL)

const struct command commands[] = {
	COMMAND("lnet", "configure", "bring the node up", OPTIONS(
		FLAG("all", 'a',
		     "also the networks that lnetd was started with"),
		FLAG("large", 'l', "for IPv6: set large_nids to 1"))),
	COMMAND("lnet", "unconfigure", "take all networks down"),
	COMMAND("net", "add", "add a network, or interfaces to it",
		.needs = "net|nid|ip2net", OPTIONS(
		TEXT("net", 'n', "NET", "network: tcp, tcp1..."),
		ROW(LIST, "if", 'i', "interfaces", "IF[,IF]...",
		    "interfaces by name or address, each with all [CPT,CPT...] "
		    "or none"),
		TEXT("nid", 'N', "NID",
		     "the NID, instead of network and interface"),
		TEXT("ip2net", 'p', "RULES",
		     "networks by the node's addresses: \"tcp1 10.1.*.*\""),
		ROW(NUMBER, "peer-timeout", 't', "peer_timeout", "SECONDS",
		    "kept and shown; has an effect on kernel nodes only"),
		ROW(NUMBER, "peer-credits", 'c', "peer_credits", "N",
		    "messages at once to one peer"),
		ROW(NUMBER, "peer-buffer-credits", 'b', "peer_buffer_credits",
		    "N", "routed messages at once from one peer"),
		NUMBER("credits", 'r', "N",
		       "messages at once through the interface"),
		ROW(TEXT, "cpt", 's', "cpts", "[CPT,...]",
		    "CPTs that serve the network"),
		ROW(NUMBER, "conns-per-peer", 'm', "conns_per_peer", "N",
		    "connections of each kind to one peer"),
		NUMBER("tos", 'S', "N",
		       "type of service of IP packets; -1: the system's"),
		TEXT("tls", 0, "required",
		     "connections run through TLS; their peers prove who they "
		     "are"),
		UNUSED("skip-mr-route-setup", 'k', "accepted: the system's "
		       "routes are left alone in any case"),
		ROW(NUMBER, "auth-key", 0, "auth_key", "N",
		    "refused: only networks of type kfi have it"),
		ROW(NUMBER, "traffic-class", 0, "traffic_class", "N",
		    "refused: only networks of type kfi have it"))),
	COMMAND("net", "del", "delete a network, or interfaces of it",
		.needs = "net|nid", OPTIONS(
		TEXT("net", 'n', "NET", "network"),
		ROW(LIST, "if", 'i', "interfaces", "IF[,IF]...",
		    "only these of its interfaces"),
		TEXT("nid", 'N', "NID", "only the one with this NID"))),
	COMMAND("net", "show", "show networks and their interfaces", OPTIONS(
		TEXT("net", 'n', "NET", "only this network"),
		LEVEL("1: counts and tunables; 2: by type of message, and "
		      "health; 5: states by name"))),
	COMMAND("net", "set", "set the health of interfaces",
		.needs = "nid|all|net", OPTIONS(
		TEXT("nid", 'N', "NID", "of this interface"),
		FLAG("all", 'a', "of all interfaces"),
		NUMBER("health", 't', "N",
		       "health: 0 (the last to be used) to 1000 (good)"),
		TEXT("net", 'n', "NET", "of all interfaces of this network"),
		ROW(NUMBER, "conns-per-peer", 'm', "conns_per_peer", "N",
		    "refused: give it to net add"),
		ROW(NUMBER, "lnd-timeout", 0, "lnd_timeout", "SECONDS",
		    "refused: follows from transaction_timeout and "
		    "retry_count"))),
	COMMAND("route", "add", "add a route to a network", .needs = "net",
		OPTIONS(
		TEXT("net", 'n', "NET", "the network it leads to"),
		TEXT("gateway", 'g', "NID",
		     "of the router, on a network of this node; "
		     "10.0.0.[1-3]@tcp are several"),
		NUMBER("hop", 0, "N", "routers on the way, 1 to 255"),
		ROW(NUMBER, "hop-count", 'c', "hop", "N", "the same"),
		NUMBER("priority", 'p', "N", "0 is the best, and the default"),
		NUMBER("health_sensitivity", 's', "N",
		       "accepted: 1, the default of kernel nodes"))),
	COMMAND("route", "del", "delete a route", .needs = "net", OPTIONS(
		TEXT("net", 'n', "NET", "the network it leads to"),
		TEXT("gateway", 'g', "NID", "of the router"))),
	COMMAND("route", "show", "show routes", OPTIONS(
		TEXT("net", 'n', "NET", "only those to it"),
		TEXT("gateway", 'g', "NID", "only those by it"),
		NUMBER("hop", 'c', "N", "only those so far away"),
		NUMBER("priority", 'p', "N", "only those of it"),
		LEVEL("1: hops, priority, and whether they are up; 5: states "
		      "by name"))),
	COMMAND("routing", "show",
		"show whether this node routes, and its buffers"),
	COMMAND("peer", "add", "add a peer, or NIDs to it",
		.needs = "prim_nid", OPTIONS(
		TEXT("prim_nid", 'p', "NID", "the peer's primary NID"),
		ROW(MANY, "nid", 'n', "nids", "NIDS[,NIDS]...",
		    "others that it has; 10.0.0.[1-3]@tcp are several"),
		FLAG("non_mr", 'm', "not multi-rail: sent to at the NID named, "
		     "from one interface"),
		FLAG("lock_prim", 'l',
		     "accepted: an added peer keeps its NIDs in any case"),
		MANY("ip2nets", 'i', "NIDS[,NIDS]...", "the same"))),
	COMMAND("peer", "del", "delete a peer, or NIDs of it",
		.needs = "prim_nid", OPTIONS(
		TEXT("prim_nid", 'p', "NID", "the peer's primary NID"),
		ROW(MANY, "nid", 'n', "nids", "NIDS[,NIDS]...",
		    "only these; with the primary one among them, the whole "
		    "peer"),
		UNUSED("force", 'f', "accepted: no peer is locked"),
		FLAG("lock_prim", 'l',
		     "accepted: an added peer keeps its NIDs in any case"),
		MANY("ip2nets", 'i', "NIDS[,NIDS]...", "the same"))),
	COMMAND("peer", "show", "show peers", OPTIONS(
		HOST("nid", 'n', "NID|NAME", "only the peer with this NID"),
		LEVEL("1: credits and counts; 2: by type of message, and "
		      "health; 3: peer's state; 5: states by name"))),
	COMMAND("peer", "list", "list peers' primary NIDs"),
	COMMAND("peer", "set", "set the health of peers' NIDs",
		.needs = "nid|all", OPTIONS(
		TEXT("nid", 'n', "NID", "of this NID of a peer"),
		FLAG("all", 'a', "of all NIDs of all peers"),
		NUMBER("health", 't', "N",
		       "health: 0 (the last to be used) to 1000 (good)"),
		NUMBER("state", 's', "N",
		       "refused: it is what discovery has found"))),
	COMMAND("path", "show", "show which path a message would take, and why",
		.needs = "nid", OPTIONS(
		HOST("nid", 'n', "NID|NAME", "to this NID"),
		TEXT("source", 's', "NID",
		     "from this one of the node's NIDs"))),
	COMMAND("set", NULL, "change a setting", .args = "SETTING VALUE",
		.kind = COMMAND_SET),
	COMMAND("global", "show", "show settings"),
	COMMAND("stats", "show", "show counters"),
	COMMAND("stats", "reset", "set counters to 0"),
	COMMAND("top", NULL, "show rates, credits, health, queues and calls, live",
		.kind = COMMAND_TOP, OPTIONS(
		{ "interval", 'i', "SECONDS", "time of each block (1)",
		  .kind = OPTION_CALL, .take = take_interval },
		{ "count", 'c', "N", "blocks; without it, until Ctrl-C",
		  .kind = OPTION_NUMBER, AT(top.count), 1, 1000000000 },
		{ "rows", 'r', "N", "NIDs of peers to show: those that wait, "
		  "are ill, or busy (20)",
		  .kind = OPTION_NUMBER, AT(top.rows), 0, 1000 })),
	COMMAND("metrics", NULL, "print what Prometheus reads, or serve it",
		.kind = COMMAND_METRICS, OPTIONS(
		{ "listen", 'l', "[ADDRESS:]PORT", "serve them there by HTTP, "
		  "until Ctrl-C; without an address at 127.0.0.1",
		  .kind = OPTION_CALL, AT(metrics.address),
		  .take = metrics_take_address },
		{ "peers", 'p', "N", "NIDs of peers that have metrics (256)",
		  .kind = OPTION_NUMBER, AT(metrics.peers), 0,
		  METRICS_PEERS_MAX })),
	COMMAND("reload", NULL, "let the program read its keys again"),
	COMMAND("rpc", "show", "show statistics of calls and requests",
		OPTIONS(
		LEVEL("1: histograms, bucket by bucket"),
		FLAG("connections", 0, "only who is connected, and how"))),
	COMMAND("rpc", "slow", "show the slowest calls of the last minutes"),
	COMMAND("rpc", "set", "change a service, or clients, or show what may be",
		OPTIONS(
		TEXT("service", 's', "NAME", "of the service"),
		TEXT("client", 'c', "NAME", "of the service of clients"),
		TEXT("policy", 'p', "TEXT", "order and limits of its waiting "
		     "requests"),
		ROW(NUMBER, "workers-min", 0, "workers_min", "N",
		    "workers that it always has"),
		ROW(NUMBER, "workers-max", 0, "workers_max", "N",
		    "workers, at most"),
		ROW(NUMBER, "high-ratio", 0, "high_ratio", "N",
		    "requests in a row of higher priority"),
		ROW(NUMBER, "queue-max", 0, "queue_max", "N",
		    "requests of a client that may wait"),
		ROW(NUMBER, "queue-bytes-max", 0, "queue_bytes_max", "BYTES",
		    "bytes of its requests and replies"),
		ROW(NUMBER, "request-limit", 0, "request_limit", "BYTES",
		    "of a request, at most"),
		ROW(NUMBER, "reply-limit", 0, "reply_limit", "BYTES",
		    "of a reply, at most"),
		ROW(NUMBER, "window", 0, "window", "N",
		    "calls that a client may have in flight"),
		ROW(NUMBER, "segments", 0, "segments", "N",
		    "bulk messages under way of a request"),
		ROW(NUMBER, "retry-after", 0, "retry_after", "US",
		    "how long refused clients are to wait, at least"),
		ROW(NUMBER, "inflight-max", 0, "inflight_max", "N",
		    "calls that a client has in flight, at most"),
		ROW(NUMBER, "queue-bytes", 0, "queue_bytes", "BYTES",
		    "bytes of calls of a client that have not ended"),
		ROW(NUMBER, "window-messages", 0, "window_messages", "N",
		    "messages that a stream holds unread"),
		ROW(NUMBER, "window-bytes", 0, "window_bytes", "BYTES",
		    "bytes that a stream holds unread"),
		ROW(NUMBER, "streams-max", 0, "streams_max", "N",
		    "streams of a service that may be open"),
		ROW(NUMBER, "patience", 0, "patience", "US",
		    "how long a client's streams outlive their server"))),
	COMMAND("rpc", "reset", "set the statistics of RPC to 0"),
	COMMAND("rpc", "rules", "show who may call what, or set it",
		.args = "[FILE]", .kind = COMMAND_TEXT, OPTIONS(
		FLAG("check", 0, "only look for mistakes in the file"),
		FLAG("clear", 0, "there are no rules any more"))),
	COMMAND("debug", "recovery", "show NIDs that are ill, and pinged",
		OPTIONS(
		FLAG("local", 'l', "of this node only"),
		FLAG("peer", 'p', "of peers only"))),
	COMMAND("debug", "peer", "show a peer's inner state", .needs = "nid",
		OPTIONS(HOST("nid", 'n', "NID|NAME",
			     "of the peer with this NID"))),
	COMMAND("debug", "objects", "show how many objects the node has"),
	COMMAND("ping", NULL, "ping peers, and list their NIDs",
		.args = "NID|NAME...", .list = "nids", .kind = COMMAND_PING,
		.seconds = 1, OPTIONS(
		TEXT("source", 's', "NID",
		     "send from this one of the node's NIDs"),
		NUMBER("timeout", 't', "SECONDS",
		       "to wait for each answer (1)"))),
	COMMAND("discover", NULL, "discover peers: ask and tell all NIDs",
		.args = "NID|NAME...", .list = "nids", .kind = COMMAND_PING,
		.seconds = 30, OPTIONS(
		FLAG("force", 'f', "ask and tell also who is up to date"),
		NUMBER("timeout", 't', "SECONDS",
		       "to wait for each of them (30)"))),
	COMMAND("udsp", "add", "add a selection policy",
		.needs = "src|dst|rte", OPTIONS(
		TEXT("src", 's', "PATTERN", "nets or NIDs of this node"),
		TEXT("dst", 'd', "PATTERN", "nets or NIDs of peers"),
		TEXT("rte", 'r', "PATTERN", "NIDs of routers"),
		NUMBER("priority", 'p', "N", "of src alone, or dst alone: 0 is "
		       "the best, and the default"),
		NUMBER("idx", 'i', "N", "its number, by which they are ordered; "
		       "by default behind all others"))),
	COMMAND("udsp", "del", "delete selection policies",
		.needs = "idx|all", OPTIONS(
		NUMBER("idx", 'i', "N", "the one with this number"),
		FLAG("all", 'a', "all of them"))),
	COMMAND("udsp", "show", "show selection policies", OPTIONS(
		NUMBER("idx", 'i', "N", "only the one with this number"))),
	COMMAND("tls", "set", "let a certificate speak for NIDs, on nets with TLS",
		.needs = "name", OPTIONS(
		TEXT("name", 'n', "NAME", "of the certificate; * and ? stand "
		     "for any text, and any character"),
		TEXT("nids", 'N', "LIST", "the NIDs, beside those in the "
		     "certificate"))),
	COMMAND("tls", "del", "delete what 'tls set' has set",
		.needs = "name|all", OPTIONS(
		TEXT("name", 'n', "NAME", "the rule with this name"),
		FLAG("all", 'a', "all rules"))),
	COMMAND("tls", "show", "show what 'tls set' has set", OPTIONS(
		TEXT("name", 'n', "NAME", "only the rule with this name"))),
	COMMAND("import", NULL, "configure the node from YAML",
		.args = "[FILE]", .kind = COMMAND_IMPORT, OPTIONS(
		MODE("add", 'a', "configure what is in it (this is the "
		     "default)"),
		MODE("del", 'd', "delete what is in it"),
		MODE("show", 's', "show what is in it"),
		MODE("exec", 'e', "carry out its pings and discoveries"),
		FLAG("ignore_errors", 0,
		     "do what can be done, and say what could not"))),
	COMMAND("export", NULL, "write the configuration as YAML",
		.args = "[FILE]", .kind = COMMAND_EXPORT, OPTIONS(
		FLAG("backup", 'b',
		     "only what is needed to configure it again"),
		FLAG("kernel", 0, "the same, but only what kernel nodes know, "
		     "too"),
		FLAG("dot", 'd', "a drawing for Graphviz instead: nets, peers, "
		     "routes"))),
	RULE("add", "add a rule that loses or harms messages", "rule_type",
	     fault_match, fault_latency, fault_status),
	RULE("del", "delete such rules", "rule_type",
	     (const struct option_row[]){
		TEXT("source", 's', "NID", "those that were added with it"),
		TEXT("dest", 'd', "NID", "and with this one"),
		FLAG("all", 'a', "all of the type"),
		{ 0 } }),
	RULE("reset", "set their counters to 0", "rule_type", NULL),
	RULE("show", "show such rules, or all of them", NULL, NULL),
	FAULT("drop", "rules that drop messages", fault_match, fault_all,
	      fault_status),
	FAULT("delay", "rules that delay messages", fault_match, fault_all,
	      fault_latency),
	FAULT("duplicate", "rules that send messages twice", fault_match,
	      fault_all),
	FAULT("corrupt", "rules that corrupt payloads", fault_match,
	      fault_all),
	FAULT("error", "rules that fail what is sent", fault_match, fault_all,
	      fault_status),
	FAULT(NULL, "rules of any kind, by --rule_type", fault_type,
	      fault_match, fault_all, fault_latency, fault_status),
	COMMAND("version", NULL, "print the version of lnetctl",
		.kind = COMMAND_VERSION),
	COMMAND("cpt-of-nid", NULL, "show which CPTs NIDs of peers belong to",
		.args = "[NID...]", .list = "nids", .needs = "nid", OPTIONS(
		ROW(MANY, "nid", 'n', "nids", "NID[,NID]...", "of peers"))),
	KERNEL("service-id", "no LND here listens at an RDMA service"),
	KERNEL("setup-mrrouting", "the system's routes are left alone here"),
	KERNEL("setup-sysctl", "the system's parameters are left alone here"),
	{ .name = NULL },
};
/* clang-format on */
