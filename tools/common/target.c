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

int target_lookup_nid(struct lnet *node, const char *text,
		      struct ulnet_nid *nid, char *why)
{
	struct ulnet_name_answer *answer;
	unsigned int port;
	int rc = target_lookup(node, text, &answer, why);

	if (rc)
		return rc;
	*nid = answer->addresses[0].nid;
	port = answer->addresses[0].port;
	free(answer);
	if (!port)
		return 0;
	snprintf(why, TARGET_WHY,
		 "its port is %u, but a port cannot be given here: the port "
		 "is that of the node",
		 port);
	return -EOPNOTSUPP;
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
