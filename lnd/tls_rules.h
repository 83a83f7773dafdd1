/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Rules by which peers on nets with proofs (lnd_ni.proven) may speak for NIDs
 * that are not in their certificates: lnet_tls_rule_set(3). A node has one
 * table. Its LNDs ask it when a peer has proved its name, and again when
 * lnd.use_keys() says that something has changed.
 *
 * Bounded by LNET_TLS_RULES_MAX; all rules are the user's own. Any thread.
 */
#ifndef LND_TLS_RULES_H
#define LND_TLS_RULES_H

#include <pthread.h>
#include "base/util.h"
#include "ulnet/lnet.h"

struct tls_rule;

struct lnd_tls_rules {
	pthread_mutex_t lock;
	struct tls_rule **all; /* sorted by name */
	unsigned int n, room;
};

void lnd_tls_rules_init(struct lnd_tls_rules *rules);
void lnd_tls_rules_fini(struct lnd_tls_rules *rules);
/* As lnet_tls_rule_set(). *@replaced_p: there was a rule with this name, which
 * may have allowed more. */
int lnd_tls_rules_set(struct lnd_tls_rules *rules, const char *name,
		      const char *nids, bool *replaced_p,
		      struct ulnet_text_error *err) must_check;
/* 0 or -ENOENT. */
int lnd_tls_rules_del(struct lnd_tls_rules *rules, const char *name) must_check;
/* Does a rule let the certificate with the name @name speak for @nid? */
bool lnd_tls_rules_allow(struct lnd_tls_rules *rules, const char *name,
			 const struct ulnet_nid *nid);
/* As lnet_tls_rule() and lnet_tls_rules(). */
int lnd_tls_rules_get(struct lnd_tls_rules *rules, const char *name,
		      struct ulnet_tls_rule *rule) must_check;
unsigned int lnd_tls_rules_list(struct lnd_tls_rules *rules,
				struct ulnet_tls_rule *all, unsigned int n);

#endif
