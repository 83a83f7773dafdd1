/* SPDX-License-Identifier: BSD-3-Clause */
/* lnet_tell(): one push to a process that nobody discovers. */
#include <errno.h>

#include "lnet/discovery/ask.h"
#include "lnet/discovery/discovery.h"
#include "lnet/discovery/info.h"
#include "lnet/nid/nid.h"
#include "ulnet/loop.h"

/* Whoever takes longer has lost the connection. */
#define TELL_TIMEOUT NSEC_PER_SEC

static void told_caller(struct ask *a)
{
	if (!a->status)
		cpt_stat(a->cpt, STAT_pushes_sent);
	ask_fini(a);
	free(a);
}

static int tell_begin(struct ask *a, const struct ulnet_id *to)
{
	const struct lnet_cpt *cpt = a->cpt;
	size_t size = ping_info_encode(cpt->node, cpt->config, NULL, 0);
	int rc = ask_reserve(a, size);

	if (rc)
		return rc;
	ping_info_encode(cpt->node, cpt->config, a->buf, size);
	return ask_tell(a, to, size, TELL_TIMEOUT);
}

int lnet_tell(struct lnet *node, unsigned int cpt, const struct ulnet_id *peer)
{
	struct lnet_cpt *here = node->cpt[cpt];
	struct ask *a;
	int rc;

	loop_assert_owner(here->loop);
	if (!pid_only_calls(peer->pid))
		return -EINVAL;
	if (here->closing)
		return -ESHUTDOWN;
	if (settings_discovery(&node->settings) == LNET_DISCOVERY_OFF)
		return -EOPNOTSUPP;
	a = malloc(sizeof(*a));
	if (!a)
		return -ENOMEM;
	ask_init(a, here, told_caller);
	rc = tell_begin(a, peer);
	if (rc) {
		ask_fini(a);
		free(a);
	}
	return rc;
}
