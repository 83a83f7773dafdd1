/* SPDX-License-Identifier: BSD-3-Clause */
/* A user of a name, who keeps what was told last. */
#ifndef TESTS_UNIT_NAMES_TOLD_H
#define TESTS_UNIT_NAMES_TOLD_H

#include <stdio.h>
#include <string.h>

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

#endif
