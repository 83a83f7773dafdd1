/* SPDX-License-Identifier: BSD-3-Clause */
/* Parses routes, and nets with brackets, in the syntax of the kernel's module
 * parameter "routes". Knows no node. lnet_routes_parse(3) is in
 * ulnet/control.h. */
#ifndef CONFIG_TEXT_ROUTES_H
#define CONFIG_TEXT_ROUTES_H

#include "ulnet/lnet.h"

/* Reads @word, a net, or several with brackets: "tcp[1-3]", "[tcp,o2ib]2".
 * *@nets_p, to be freed, has *@n_p nets. Errors as lnet_routes_parse(). */
int spec_nets(const char *word, uint32_t **nets_p, unsigned int *n_p,
	      struct ulnet_text_error *err);

#endif
