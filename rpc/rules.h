/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Who may call what: ulrpc_rules_new(3). Rules are immutable, and shared by all
 * CPTs, which read them without a lock; new rules replace them as a whole.
 *
 * A rule lets those whom it names call what it names, so the order of rules
 * means nothing. As soon as there are rules, what none of them lets in is
 * refused. What one judgement costs is bounded by RULES_PATTERNS.
 */
#ifndef RPC_RULES_H
#define RPC_RULES_H

#include "ulnet/service.h"

struct identity;
struct ulrpc;

#define RULES_MAX	1000  /* rules, and groups */
#define RULES_PATTERNS	10000 /* of all rules, those of groups included */
#define RULES_NAME_SIZE 256   /* bytes of a pattern, with its terminator */

struct ulrpc_rules *rules_ref(struct ulrpc_rules *rules);
/* Returns the node's rules now, and a reference to them for the caller; NULL:
 * there are none. Any thread. */
struct ulrpc_rules *rules_get(struct ulrpc *rpc);
/* What the rules were made of: borrowed. */
const struct ulrpc_rules_conf *rules_conf(const struct ulrpc_rules *rules);

/* Who calls. */
struct rules_caller {
	const struct identity *who; /* NULL: it has proved nothing */
	const struct ulnet_nid *nid;
	enum ulrpc_flavour flavour; /* of the connection */
};

enum rules_verdict {
	RULES_LET,     /* it may */
	RULES_LOW,     /* it might, if its connection had *@flavour_p */
	RULES_NOBODY,  /* others may; it has proved nothing */
	RULES_UNNAMED, /* no rule names it for this */
};

/* May @caller call @method of @service? @method NULL: all methods, also those
 * that nobody knows. */
enum rules_verdict rules_judge(const struct ulrpc_rules *rules,
			       const struct rules_caller *caller,
			       const char *service, const char *method,
			       enum ulrpc_flavour *flavour_p);

/* Does @pattern, in which * is any text and ? any character, fit @text? */
bool rules_fit(const char *pattern, const char *text);

#endif
