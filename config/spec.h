/* SPDX-License-Identifier: BSD-3-Clause */
/* Texts that name interfaces: "tcp(eth0,eth1)", "eth0,eth1", "[0,1]". */
#ifndef CONFIG_SPEC_H
#define CONFIG_SPEC_H

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

/* As lnet_networks_parse(3), but that nets without an interface have
 * @interface, unless that is NULL. */
int spec_networks(const char *text, const char *interface,
		  struct ulnet_ni_conf **confs_p, unsigned int *n_p,
		  struct ulnet_text_error *err);

/* "[0-3,5]": does it name all of CPTs 0 to @cpts - 1? 0, -EOPNOTSUPP: not all;
 * both fill *@highest_p. -EINVAL. */
int spec_cpts(const char *text, unsigned int cpts, unsigned long *highest_p);

#endif
