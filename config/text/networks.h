/* SPDX-License-Identifier: BSD-3-Clause */
/* Networks in one text: "tcp(eth0,eth1)", as the kernel's module parameter
 * "networks" has them, and by the addresses of a host, as "ip2nets" has. Knows
 * no node. */
#ifndef CONFIG_TEXT_NETWORKS_H
#define CONFIG_TEXT_NETWORKS_H

#include "ulnet/lnet.h"

/* Says what is wrong @at a place in @text, unless @err is NULL; returns @rc. */
int spec_wrong(struct ulnet_text_error *err, const char *text, const char *at,
	       int rc, const char *fmt, ...)
	__attribute__((format(printf, 5, 6)));

#define SPEC_CPTS_SIZE 64 /* of a list of CPTs, "[0,1]" */

/* Why not all of what a list of CPTs asks for can be had. */
#define SPEC_ALL_CPTS "all CPTs use each interface"

/* Copies the next name of a list separated by commas, without blanks around
 * it, and the list of CPTs behind it ("": none). @pos: where to go on,
 * advanced; 1: there was one; 0: the list has ended; -EINVAL: an empty name or
 * one that is too long, or what is in the brackets is no list of CPTs. On error
 * @pos is what is wrong. */
int spec_interface(const char **pos, char name[LNET_INTERFACE_SIZE],
		   char cpts[SPEC_CPTS_SIZE]);

/* "[0-3,5]": does it name all of CPTs 0 to @cpts - 1? 0, -EOPNOTSUPP: not all;
 * both fill *@highest_p. -EINVAL. */
int spec_cpts(const char *text, unsigned int cpts, unsigned long *highest_p);

/* An address of this host; one interface may have several. */
struct ip2nets_address {
	char interface[LNET_INTERFACE_SIZE];
	struct ulnet_nid nid; /* the address, on net tcp */
	bool loopback;	      /* of the interface */
};

/*
 * Of @rules, "tcp1(eth1) 10.1.*.*; tcp0 10.[2-3].0.0/16", those of which a
 * range matches one of the @n addresses, in their order, as a text for
 * lnet_networks_parse(), to be given back with free(). A net without interfaces
 * gets that of the first address that matches.
 *
 * -EINVAL: not of this form; a net comes twice; an interface that is there has
 * no address in the ranges of its rule. -ENOENT: nothing matched. -ENOMEM. Each
 * with *@err filled, when not NULL. Knows no host: any thread.
 */
int ip2nets_networks(const char *rules, const struct ip2nets_address *addrs,
		     unsigned int n, char **networks_p,
		     struct ulnet_text_error *err);

#endif
