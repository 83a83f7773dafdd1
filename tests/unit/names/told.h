/* SPDX-License-Identifier: BSD-3-Clause */
/* A user of a name on a node that is polled, who keeps what was told last. */
#ifndef TESTS_UNIT_NAMES_TOLD_H
#define TESTS_UNIT_NAMES_TOLD_H

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "ulnet/loop.h"
#include "ulnet/names.h"

static struct {
	unsigned int times;
	int status;
	char why[LNET_NAME_WHY];
	char servers[1024]; /* with port and weight: "10.0.0.1@tcp 0 7;..." */
} told;

/* The function for lnet_name_open(). */
static inline void tell(void *arg, const struct ulnet_name_answer *a)
{
	char nid[LNET_NIDSTR_SIZE];

	(void)arg;
	told.times++;
	told.status = a->status;
	strcpy(told.why, a->why);
	*told.servers = '\0';
	for (unsigned int i = 0; i < a->n; i++)
		sprintf(told.servers + strlen(told.servers), "%s %u %u;",
			lnet_nid_format(&a->addresses[i].nid, nid, sizeof(nid)),
			a->addresses[i].port, a->addresses[i].weight);
}

/* Waits until these servers, and this status and text, were told, and @also
 * returns true. @why, @also: NULL: whatever. */
static inline void told_await(struct lnet *node, int status, const char *why,
			      const char *servers, bool (*also)(void *arg),
			      void *arg)
{
	uint64_t until = lnet_now(node, 0) + UINT64_C(120000000000); /* ns */

	while ((also && !also(arg)) || !told.times || told.status != status ||
	       (why && strcmp(told.why, why) != 0) ||
	       strcmp(told.servers, servers) != 0) {
		cr_assert_lt(lnet_now(node, 0), until, "%d %s %s, not %d %s %s",
			     told.status, told.why, told.servers, status,
			     why ? why : "", servers);
		lnet_poll(node, 100000);
	}
}

#endif
