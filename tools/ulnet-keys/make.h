/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Makes keys, certificates and lists of what was revoked, all of them files in
 * one folder:
 *
 *	authority.crt	the authority's certificate: every node has it
 *	authority.key	signs certificates: stays with the administrator
 *	revoked.crl	what the authority has revoked: every node has it
 *	NAME.crt, .key	a node's
 *	NAME.old.crt, .old.key	the same, before they were renewed
 *	cluster.key	a cluster's keys: every node has it
 *
 * Keys are of P-256. A file is written under another name first, and keys can
 * be read by their owner only. Nothing is written over but revoked.crl,
 * cluster.key, and with @renew a node's files. Commands that change a folder at
 * the same time wait for each other.
 *
 * Functions return 0, or the exit status after a message on stderr.
 */
#ifndef TOOLS_ULNET_KEYS_MAKE_H
#define TOOLS_ULNET_KEYS_MAKE_H

#include <stdbool.h>
#include <stdint.h>

#define MAKE_NIDS 16 /* lists of NIDs in a certificate, at most */

struct make {
	const char *who; /* name of the program, with which messages begin */
	const char *folder;
	/* number of days for which a certificate is valid */
	unsigned int days;
	int64_t now; /* the time now, s since 1970 */
	/* lists of the NIDs of a node; NULL at the end */
	const char *const *nids;
	bool renew; /* the files of the node exist, and are replaced */
};

int make_authority(const struct make *m, const char *name);
int make_node(const struct make *m, const char *name);
/* Adds a key to cluster.key: with @first as the first one, which nodes show;
 * otherwise as the last one, which nodes only believe. */
int make_cluster(const struct make *m, const char *name, bool first);
/* Revokes the certificate of the node @name, and writes revoked.crl anew. */
int make_revoked(const struct make *m, const char *name);

#endif
