/* SPDX-License-Identifier: BSD-3-Clause */
/* Networks by the addresses of a host: the kernel's "ip2nets". */
#ifndef CONFIG_IP2NETS_H
#define CONFIG_IP2NETS_H

#include "ulnet/lnet.h"

/* An address of this host; one interface may have several. */
struct ip2nets_address {
	char interface[LNET_INTERFACE_SIZE];
	struct ulnet_nid nid; /* the address, on net tcp */
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
