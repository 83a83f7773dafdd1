/* SPDX-License-Identifier: BSD-3-Clause */
#include "lst_options.h"

#include <errno.h>
#include <string.h>

static int take_consoles(const struct option_at *at)
{
	struct lst_options *o = at->object;
	struct ulnet_text_error err;
	int rc = 0;

	lnet_nidlist_free(o->consoles);
	o->consoles = NULL;
	if (strcmp(at->text, "all") != 0)
		rc = lnet_nidlist_parse(at->text, &o->consoles, &err);
	o->wanted = true;
	if (!rc)
		return 0;
	if (rc != -EINVAL)
		return option_bad(at, strerror(-rc));
	return option_wrong(at->who,
			    "--lst %s: at character %zu: %s; all, or NIDs of "
			    "consoles are expected, like "
			    "'10.0.0.[1-3]@tcp 10.1.0.0/16@tcp1'",
			    at->text, err.offset + 1, err.what);
}

#define AT(field) offsetof(struct lst_options, field)

const struct option_row lst_rows[] = {
	{ "lst", 0, "CONSOLES",
	  "take part in LNet's self-test, lnet_selftest(7), by the word of "
	  "these NIDs: \"10.0.0.[1-3]@tcp\", or of all",
	  .kind = OPTION_CALL, .take = take_consoles },
	{ "lst-rpc-timeout", 0, "S",
	  "in which those it sends to have to answer (64)",
	  .kind = OPTION_NUMBER, AT(rpc_s), 1, 3600 },
	{ "lst-session-timeout", 0, "S",
	  "of silence, after which it is free again (100)",
	  .kind = OPTION_NUMBER, AT(session_s), 1, 86400 },
	{ 0 },
};

int lst_options_check(const struct lst_options *o, const char *who)
{
	if (o->wanted || (!o->rpc_s && !o->session_s))
		return 0;
	return option_wrong(who, "--lst-%s-timeout: --lst is missing",
			    o->rpc_s ? "rpc" : "session");
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
