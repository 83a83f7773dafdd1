/* SPDX-License-Identifier: BSD-3-Clause */
#include "reload.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "ulnet/control.h"
#include "ulnet/keys.h"

#define NAME "reload"

/* If a file cannot be read, the keys of before stay. 0, or -errno, with a
 * sentence in @why. */
static int renew(const struct reload *r, char why[KEYS_WHY])
{
	struct ulrpc_keys *keys;
	int rc = keys_again(r->keys, &keys, why);

	if (rc)
		return rc;
	rc = lnet_use_keys(r->lnet, keys);
	if (!rc && r->rpc)
		rc = ulrpc_use_keys(r->rpc, keys);
	if (rc)
		snprintf(why, KEYS_WHY, "%s", strerror(-rc));
	ulrpc_keys_put(keys);
	return rc;
}

/* ulnet_control_command.fn */
static int on_reload(void *arg, struct lnet_control_call *call, char **output_p)
{
	char why[KEYS_WHY];
	int rc = renew(arg, why);

	(void)output_p;
	return rc ? lnet_control_fail(call, rc, why) : 0;
}

int reload_start(struct reload *r, struct lnet_control *control)
{
	const struct ulnet_control_command reload = { .name = NAME,
						      .fn = on_reload,
						      .arg = r };
	int rc = lnet_control_add(control, &reload);

	if (!rc)
		r->control = control;
	return rc;
}

void reload_stop(struct reload *r)
{
	if (r->control)
		lnet_control_del(r->control, NAME);
	r->control = NULL;
}

void reload_on_hangup(const struct reload *r)
{
	char why[KEYS_WHY];

	if (!r->keys->folder)
		say(r->say, LNET_LOG_WARN, HANGUP_IGNORED);
	else if (renew(r, why))
		say(r->say, LNET_LOG_ERR, "SIGHUP: %s; the keys of before stay",
		    why);
	else
		say(r->say, LNET_LOG_INFO, "SIGHUP: the keys are read again");
}
