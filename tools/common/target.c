/* SPDX-License-Identifier: BSD-3-Clause */
#include "target.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "etcd.h"

/* us: so long it waits for a name to be looked up */
#define NAME_US UINT64_C(20000000)

static const char *reason(int rc, const struct ulnet_text_error *err)
{
	switch (rc) {
	case -EINVAL:
		return err->what;
	case -ETIMEDOUT:
		return "no name server answers";
	case -EPROTONOSUPPORT:
		return "there is no such scheme";
	}
	return strerror(-rc);
}

int target_lookup(struct lnet *node, const char *text,
		  struct ulnet_name_answer **answer_p, char *why)
{
	struct ulnet_text_error err = { .what = "" };
	struct ulnet_name_answer *answer;
	int rc = lnet_names_open(node);

	*why = '\0';
	if (!rc)
		rc = etcd_load_for(node, text, why, TARGET_WHY);
	if (*why)
		return rc;
	if (!rc)
		rc = lnet_name_lookup_wait(node, text, NAME_US, &answer, &err);
	if (rc) {
		snprintf(why, TARGET_WHY, "%s", reason(rc, &err));
		return rc;
	}
	if (answer->n) {
		*answer_p = answer;
		return 0;
	}
	rc = answer->status;
	snprintf(why, TARGET_WHY, "%s", answer->why);
	free(answer);
	return rc;
}

static const struct ulnet_address *first_of(const struct ulnet_name_answer *a)
{
	for (unsigned int i = 0; i < a->n; i++) {
		if (a->addresses[i].priority != a->addresses[0].priority)
			break;
		if (lnet_nid_is_nid4(&a->addresses[i].nid))
			return &a->addresses[i];
	}
	return &a->addresses[0];
}

int target_lookup_first(struct lnet *node, const char *text,
			struct ulnet_address *address, char *why)
{
	struct ulnet_name_answer *answer;
	int rc = target_lookup(node, text, &answer, why);

	if (rc)
		return rc;
	*address = *first_of(answer);
	free(answer);
	return 0;
}

void target_say(const char *who, const char *text,
		const struct ulnet_address *address)
{
	char nid[LNET_NIDSTR_SIZE];

	fprintf(stderr, "%s: %s is %s", who, text,
		lnet_nid_format(&address->nid, nid, sizeof(nid)));
	if (address->port)
		fprintf(stderr, ", port %u", address->port);
	fputc('\n', stderr);
}

bool target_is_name(const char *text)
{
	struct ulnet_target target;
	struct ulnet_nidlist *list;

	if (!lnet_nidlist_parse(text, &list, NULL)) {
		lnet_nidlist_free(list);
		return false;
	}
	/* A list would be several nodes. */
	return !lnet_target_parse(text, &target, NULL) && target.is_name &&
	       (!strchr(text, ',') || strstr(text, "://"));
}
