/* SPDX-License-Identifier: BSD-3-Clause */
/* The steps of a plan, and what is said of them: in errors, with words and
 * numbers of the kernel's lnetctl, and in the log. For plan.c only. */
#ifndef CONFIG_REQUEST_STEP_H
#define CONFIG_REQUEST_STEP_H

#include "config/request/plan.h"

enum step_kind {
	STEP_NI,
	STEP_PEER,
	STEP_FAULT,
	STEP_ROUTE,
	STEP_ROUTING,
	STEP_POLICY,
	STEP_TLS,
	STEP_SET,
};

struct step {
	enum step_kind kind;
	/* NI, FAULT, ROUTE, POLICY, TLS: to add (true), or to delete */
	bool add;
	struct scope scope; /* where errors go; borrows trees */
	const struct tree *at;
	/* the NI to be added; or the deleted NI, which may be restored */
	struct ni_spec spec;
	/* NID of the NI that was added, or that is deleted */
	struct ulnet_nid nid;
	/* why the NI was not added: constant text, or NULL */
	const char *ni_why;
	struct peer_change *peer; /* owned by the step */
	/* FAULT to delete: all rules with this kind, source and destination */
	struct ulnet_fault fault;
	struct ulnet_route route;
	struct ulnet_routing routing, routing_old;
	struct ulnet_policy *policy; /* owned by the step */
	uint32_t id; /* POLICY to add: its id, or LNET_POLICY_LAST */
	/* POLICY, TLS: what is wrong with the policy, or the rule */
	struct ulnet_text_error why;
	/* TLS: of the rule; owned by the step, as one block */
	char *tls_name, *tls_nids;
	/* TLS, owned by the step: the rule that there was; NULL: there was none
	 */
	struct ulnet_tls_rule *tls_was;
	/* SET: name of the setting, constant text; new and old value */
	const char *setting;
	int64_t value, old;
	bool deferred; /* SET: was moved to the end of the plan */
};

/* "tcp(eth0)" or "10.0.0.1@tcp" */
#define STEP_NAME_SIZE (LNET_NIDSTR_SIZE + LNET_INTERFACE_SIZE)

/* Returns the name, for messages, of what @step changes; it may be in @text. */
const char *step_name(const struct step *step, char text[STEP_NAME_SIZE]);
/* Adds an error to the answer: the step could not be done, because of @rc. */
void step_complain(const struct step *step, int rc);
/* Says in the log, and if need be in the answer, what was done. */
void step_tell(const struct step *step);

#endif
