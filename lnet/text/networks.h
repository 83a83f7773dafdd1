/* SPDX-License-Identifier: BSD-3-Clause */
/* Parses networks in the syntax of the kernel's module parameters "networks",
 * for example "tcp(eth0,eth1)", and "ip2nets". Knows no node. */
#ifndef LNET_TEXT_NETWORKS_H
#define LNET_TEXT_NETWORKS_H

#include "ulnet/lnet.h"

/* The end of the networks at @s: the first blank before @end that is neither in
 * parentheses, nor next to a comma, nor before a parenthesis. */
const char *networks_end(const char *s, const char *end);

/* An address of this host; one interface may have several. */
struct ip2nets_address {
	char interface[LNET_INTERFACE_SIZE];
	struct ulnet_nid nid; /* the address, on net tcp */
	bool loopback;	      /* it is an address of the loopback interface */
	bool carrier;	      /* the interface has a carrier */
};

/*
 * Selects from @rules, such as "tcp1(eth1) 10.1.*.*; tcp0 10.[2-3].0.0/16",
 * each rule with a range that contains one of the @n addresses; of several
 * rules for the same net, the first. *@networks_p, to be freed, has the nets of
 * these rules, as lnet_networks_parse() takes them. A net without interfaces
 * gets each interface with an address in the ranges of its rule. Any thread.
 *
 * -EINVAL: malformed; or an interface has no address in the ranges of its rule,
 * and no interface that has one is used. -ENOENT: no rule was selected.
 * -ENOMEM. On error *@err is filled, unless @err is NULL.
 */
int ip2nets_networks(const char *rules, const struct ip2nets_address *addrs,
		     unsigned int n, char **networks_p,
		     struct ulnet_text_error *err);

#endif
