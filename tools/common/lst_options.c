/* SPDX-License-Identifier: BSD-3-Clause */
#include "lst_options.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "option.h"

#define RPC_S_MAX     3600
#define SESSION_S_MAX 86400

static int take_consoles(struct lst_options *o, const char *who,
			 const char *text)
{
	struct ulnet_text_error err;
	int rc = 0;

	lnet_nidlist_free(o->consoles);
	o->consoles = NULL;
	if (strcmp(text, "all") != 0)
		rc = lnet_nidlist_parse(text, &o->consoles, &err);
	o->wanted = true;
	if (!rc)
		return 0;
	if (rc != -EINVAL)
		return option_bad(who, "lst", text, strerror(-rc));
	fprintf(stderr,
		"%s: --lst %s: at character %zu: %s; all, or NIDs of consoles "
		"are "
		"expected, like '10.0.0.[1-3]@tcp 10.1.0.0/16@tcp1'\n",
		who, text, err.offset + 1, err.what);
	return OPTION_USAGE;
}

int lst_options_take(struct lst_options *o, const char *who, int option,
		     const char *arg)
{
	switch (option) {
	case LST_OPT:
		return take_consoles(o, who, arg);
	case LST_OPT_RPC:
		return option_number(who, "lst-rpc-timeout", arg, 1, RPC_S_MAX,
				     &o->rpc_s);
	case LST_OPT_SESSION:
		return option_number(who, "lst-session-timeout", arg, 1,
				     SESSION_S_MAX, &o->session_s);
	}
	return -ENOENT;
}

int lst_options_check(const struct lst_options *o, const char *who)
{
	if (o->wanted || (!o->rpc_s && !o->session_s))
		return 0;
	fprintf(stderr, "%s: --lst-%s-timeout: --lst is missing\n", who,
		o->rpc_s ? "rpc" : "session");
	return OPTION_USAGE;
}

int lst_options_open(const struct lst_options *o, const struct say *say_to,
		     struct lnet *node, struct lst **lst_p)
{
	const struct lst_conf conf = { .consoles = o->consoles,
				       .rpc_s = o->rpc_s,
				       .session_s = o->session_s };
	int rc = o->wanted ? lst_open(node, &conf, lst_p) : 0;

	if (rc)
		say(say_to, LNET_LOG_ERR, "--lst: %s", strerror(-rc));
	return rc;
}

void lst_options_free(struct lst_options *o)
{
	lnet_nidlist_free(o->consoles);
}
