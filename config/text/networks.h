/* SPDX-License-Identifier: BSD-3-Clause */
/* Parses networks in the syntax of the kernel's module parameters "networks",
 * for example "tcp(eth0,eth1)", and "ip2nets". Knows no node. */
#ifndef CONFIG_TEXT_NETWORKS_H
#define CONFIG_TEXT_NETWORKS_H

#include "ulnet/lnet.h"

/* Fills @err, unless that is NULL, with the message and with the place of the
 * error: @at points into @text. Returns @rc. */
int spec_wrong(struct ulnet_text_error *err, const char *text, const char *at,
	       int rc, const char *fmt, ...)
	__attribute__((format(printf, 5, 6)));

/* A copy of @text, to be freed, of the same length, in which lines that end
 * with a backslash are joined, as modprobe joins them. NULL: no memory. */
char *spec_join(const char *text);
/* Returns the end of the comment at @s, which is that of the line, or the next
 * ';'. */
const char *spec_comment_end(const char *s);

/* Does @name look like a net of a type that other implementations have, or had,
 * as "elan0"? Such nets are passed over in texts that serve a whole cluster.
 * False: a type that is known is called that or nearly so, or it is no name. */
bool spec_is_foreign(const char *name, size_t len);

#define SPEC_CPTS_SIZE 512 /* of a list of CPTs, "[0,1]" */

/* text for users: why a list that names only some CPTs is passed over */
#define SPEC_ALL_CPTS "all CPTs use each interface"

/* Takes the next interface of a list with commas at *@pos: its name, without
 * blanks around it, and the list of CPTs behind it, or "". Returns 1, and *@pos
 * is behind it; 0: there are no more; -EINVAL: the name is empty or too long,
 * or the list of CPTs is malformed, and *@pos points to the error. */
int spec_interface(const char **pos, char name[LNET_INTERFACE_SIZE],
		   char cpts[SPEC_CPTS_SIZE]);

/* Does the list of CPTs @text have all CPTs from 0 to @cpts - 1? All doors have
 * this parser: "[0-3,5]", "0", "0-3", "[0-6/2]", "*". 0: it does; -EOPNOTSUPP:
 * it does not; -EINVAL: it is malformed. CPTs that do not exist do not matter:
 * the list may have been written for another host. */
int spec_cpts(const char *text, unsigned int cpts);

/* Reads @word, a net, or several with brackets: "tcp[1-3]", "[tcp,o2ib]2".
 * *@nets_p, to be freed, has *@n_p nets. Errors as lnet_routes_parse(). */
int spec_nets(const char *word, uint32_t **nets_p, unsigned int *n_p,
	      struct ulnet_text_error *err);

/* An address of this host; one interface may have several. */
struct ip2nets_address {
	char interface[LNET_INTERFACE_SIZE];
	struct ulnet_nid nid; /* the address, on net tcp */
	bool loopback;	      /* of the interface */
	bool carrier;	      /* the interface has one */
};

/*
 * Selects from @rules, such as "tcp1(eth1) 10.1.*.*; tcp0 10.[2-3].0.0/16",
 * those with a range that one of the @n addresses is in; of those with the same
 * net the first. *@networks_p, to be freed, has their nets, as
 * lnet_networks_parse() takes them. A net without interfaces gets each
 * interface with an address in its ranges. Any thread.
 *
 * -EINVAL: malformed; or an interface has no address in the ranges of its rule,
 * and no interface that has one is used. -ENOENT: no rule was selected.
 * -ENOMEM. On error *@err is filled, unless @err is NULL.
 */
int ip2nets_networks(const char *rules, const struct ip2nets_address *addrs,
		     unsigned int n, char **networks_p,
		     struct ulnet_text_error *err);

#endif
