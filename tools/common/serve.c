/* SPDX-License-Identifier: BSD-3-Clause */
#include "serve.h"

#include <errno.h>
#include <string.h>

static int take_consoles(const struct option_at *at)
{
	struct serve *o = at->object;
	struct ulnet_text_error err;
	int rc = 0;

	lnet_nidlist_free(o->consoles);
	o->consoles = NULL;
	if (strcmp(at->text, "all") != 0)
		rc = lnet_nidlist_parse(at->text, &o->consoles, &err);
	o->selftest = true;
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

#define AT(field) offsetof(struct serve, field)

const struct option_row serve_rows[] = {
	{ "metrics", 'm', "[ADDRESS:]PORT",
	  "serve metrics to Prometheus there, by HTTP; without an address at "
	  "127.0.0.1",
	  .kind = OPTION_CALL, AT(metrics.address),
	  .take = metrics_take_address },
	{ "metrics-peers", 0, "N", "metrics of at most N NIDs of peers (256)",
	  .kind = OPTION_NUMBER, AT(metrics.peers), 0, METRICS_PEERS_MAX },
	{ "lst", 0, "CONSOLES",
	  "take part in LNet's self-test, lnet_selftest(7), as these "
	  "consoles say: NIDs like \"10.0.0.[1-3]@tcp\", or all",
	  .kind = OPTION_CALL, .take = take_consoles },
	{ "lst-rpc-timeout", 0, "S",
	  "seconds that other nodes have to answer (64)", .kind = OPTION_NUMBER,
	  AT(rpc_s), 1, 3600 },
	{ "lst-session-timeout", 0, "S",
	  "seconds without a console until its session ends (100)",
	  .kind = OPTION_NUMBER, AT(session_s), 1, 86400 },
	{ 0 },
};

void serve_init(struct serve *s)
{
	*s = (struct serve){ .metrics.peers = METRICS_PEERS };
}

int serve_check(const struct serve *s, const char *who)
{
	if (s->selftest || (!s->rpc_s && !s->session_s))
		return 0;
	return option_wrong(who, "--lst-%s-timeout: --lst is missing",
			    s->rpc_s ? "rpc" : "session");
}

int serve_selftest(struct serve *s, const struct say *say_to, struct lnet *node)
{
	const struct lst_conf conf = { .consoles = s->consoles,
				       .rpc_s = s->rpc_s,
				       .session_s = s->session_s };
	int rc = s->selftest ? lst_open(node, &conf, &s->lst) : 0;

	if (rc)
		say(say_to, LNET_LOG_ERR, "--lst: %s", strerror(-rc));
	return rc;
}

int serve_metrics(struct serve *s, const struct say *say_to,
		  struct lnet_control *control)
{
	s->source = (struct metrics_source){ metrics_ask_control, control,
					     s->metrics.peers };
	return exporter_start(&s->source, s->metrics.address, say_to,
			      &s->exporter);
}

void serve_stop(struct serve *s)
{
	exporter_stop(s->exporter);
}

void serve_free(struct serve *s)
{
	lst_free(s->lst);
	lnet_nidlist_free(s->consoles);
}
