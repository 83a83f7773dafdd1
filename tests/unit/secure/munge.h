/* SPDX-License-Identifier: BSD-3-Clause */
/* A munged of the user alice, for tests: its credentials are the payload in
 * hexadecimal digits, and it reads them again. */
#ifndef TESTS_UNIT_SECURE_MUNGE_H
#define TESTS_UNIT_SECURE_MUNGE_H

#include <errno.h>
#include <stdio.h>

#include "secure/munge.h"

#define FAKE_UID 1000
#define FAKE_GID 100
#define FAKE_GROUPS "gid=200\0group=audio\0gid=201\0"

static inline void fake_read(const struct munge_question *q,
			     struct munge_answer *a)
{
	uint8_t *payload = (uint8_t *)&a->payload;
	const char *at = q->credential + strlen("MUNGE:");

	for (size_t i = 0; i < sizeof(a->payload); i++)
		if (sscanf(at + 2 * i, "%2hhx", &payload[i]) != 1) {
			a->rc = -EACCES;
			text_copy(a->why, sizeof(a->why), "MUNGE: invalid");
			return;
		}
	a->carried = sizeof(a->payload);
	a->uid = FAKE_UID;
	a->gid = FAKE_GID;
	text_copy(a->user, sizeof(a->user), "alice");
	text_copy(a->group, sizeof(a->group), "staff");
	memcpy(a->groups, FAKE_GROUPS, sizeof(FAKE_GROUPS));
}

static inline void fake_munge(const char *socket,
			      const struct munge_question *q,
			      struct munge_answer *a)
{
	int n;

	(void)socket;
	if (q->what == MUNGE_READ) {
		fake_read(q, a);
		return;
	}
	n = snprintf(a->credential, sizeof(a->credential), "MUNGE:");
	for (size_t i = 0; i < sizeof(q->payload); i++)
		n += snprintf(a->credential + n,
			      sizeof(a->credential) - (size_t)n, "%02x",
			      ((const uint8_t *)&q->payload)[i]);
}

#endif
