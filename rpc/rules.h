/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Who may call what: ulrpc_rules_new(3). Rules are immutable, and shared by all
 * CPTs, which read them without a lock; new rules replace them as a whole.
 *
 * A rule allows the callers that it names to call what it names, so the order
 * of rules means nothing. As soon as there are rules, what no rule allows is
 * refused. RULES_PATTERNS bounds what one judgement costs.
 */
#ifndef RPC_RULES_H
#define RPC_RULES_H

#include "ulnet/service.h"

struct identity;
struct ulrpc;

/* rules in a configuration, and groups, at most */
#define RULES_MAX 1000
/* patterns of all rules and groups together, at most */
#define RULES_PATTERNS 10000
/* bytes of a pattern, with the 0 at its end, at most */
#define RULES_NAME_SIZE 256

struct ulrpc_rules *rules_ref(struct ulrpc_rules *rules);
/* Returns the node's rules now, and a reference to them for the caller; NULL:
 * there are none. Any thread. */
struct ulrpc_rules *rules_get(struct ulrpc *rpc);
/* Returns the configuration from which the rules were made, borrowed. */
const struct ulrpc_rules_conf *rules_conf(const struct ulrpc_rules *rules);

/* A caller, as rules see it. */
struct rules_caller {
	/* the caller's identity; NULL: it has proved nothing */
	const struct identity *who;
	const struct ulnet_nid *nid;
	enum ulrpc_flavour flavour; /* flavour of the caller's messages */
};

enum rules_verdict {
	RULES_LET, /* the caller may call */
	/* the caller may call with *@flavour_p, which is more than it has */
	RULES_LOW,
	RULES_NOBODY,  /* a caller that has proved who it is might be allowed */
	RULES_UNNAMED, /* no rule allows this to the caller */
};

/* May @caller call @method of @service? @method: NULL: all methods, also those
 * that nobody knows. */
enum rules_verdict rules_judge(const struct ulrpc_rules *rules,
			       const struct rules_caller *caller,
			       const char *service, const char *method,
			       enum ulrpc_flavour *flavour_p);

#endif
