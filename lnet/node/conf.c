/* SPDX-License-Identifier: BSD-3-Clause */
/* The configuration of a node: fills in defaults, and refuses what makes no
 * sense. */
#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>

#include "base/log.h"
#include "lnet/node/node.h"

#define LOG_VARIABLE "ULNET_LOG"

#define ACCEPT_PORT 988
/* The default of net.core.somaxconn, which bounds the backlog. */
#define ACCEPT_BACKLOG	    4096
#define ACCEPT_MAX	    1024
#define ACCEPT_TIMEOUT_USEC (5 * USEC_PER_SEC)

#define USEC_PER_SEC UINT64_C(1000000)
#define TIMEOUT_MAX  (TIMEOUT_MAX_SEC * USEC_PER_SEC)

#define DEFAULT(field, value)              \
	do {                               \
		if (!(field))              \
			(field) = (value); \
	} while (0)

static void conf_defaults(struct ulnet_conf *c)
{
	DEFAULT(c->cpts, 1);
	DEFAULT(c->transaction_timeout, 50 * USEC_PER_SEC);
	DEFAULT(c->peers_max, 100000);
	DEFAULT(c->messages_max, 65536);
	DEFAULT(c->lazy_max, 4096);
	DEFAULT(c->lazy_bytes_max, UINT64_C(64) << 20);
	DEFAULT(c->shared_max, UINT64_C(1) << 30);
	DEFAULT(c->discovery, LNET_DISCOVERY_ON);
	DEFAULT(c->interfaces_max, 200);
	DEFAULT(c->port, ACCEPT_PORT);
	DEFAULT(c->accept_backlog, ACCEPT_BACKLOG);
	DEFAULT(c->accept_max, ACCEPT_MAX);
	DEFAULT(c->accept_timeout, ACCEPT_TIMEOUT_USEC);
}

void lnet_conf_init(struct ulnet_conf *conf)
{
	*conf = (struct ulnet_conf){ 0 };
	conf_defaults(conf);
}

/* ---- what is refused ---- */

int node_conf_refuse(const struct ulnet_conf *c, int rc, const char *fmt, ...)
{
	struct ulnet_conf_error err;
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(err.what, sizeof(err.what), fmt, ap);
	va_end(ap);
	log_err("open", "the configuration is refused: %s", err.what);
	if (c->err)
		*c->err = err;
	return rc;
}

#define refuse(c, ...) node_conf_refuse(c, -EINVAL, __VA_ARGS__)

/* Refuses the value @v of the field @name if it is above @max. */
static int conf_at_most(const struct ulnet_conf *c, const char *name,
			uint64_t v, uint64_t max)
{
	return v <= max ? 0
			: refuse(c, "%s: %ju is more than %ju", name,
				 (uintmax_t)v, (uintmax_t)max);
}

static int conf_check_run(const struct ulnet_conf *c)
{
	if ((unsigned int)c->run > LNET_RUN_SHARED)
		return refuse(c, "run: %u is no way to run a node",
			      (unsigned int)c->run);
	if (c->run != LNET_RUN_THREADS && c->run != LNET_RUN_SHARED &&
	    c->cpts != 1)
		return refuse(c, "cpts: %u of them take LNET_RUN_THREADS",
			      c->cpts);
	if (c->run == LNET_RUN_EV && !c->ev)
		return refuse(c, "ev: LNET_RUN_EV takes a loop");
	if (c->run != LNET_RUN_EV && c->ev)
		return refuse(c, "ev: only LNET_RUN_EV has a loop");
	return conf_at_most(c, "cpts", c->cpts, LNET_CPTS_MAX);
}

static int conf_check_identity(const struct ulnet_conf *c)
{
	if ((unsigned int)c->discovery > LNET_DISCOVERY_VERIFY)
		return refuse(c, "discovery: %u is none of its values",
			      (unsigned int)c->discovery);
	if ((unsigned int)c->accept > LNET_ACCEPT_NONE)
		return refuse(c, "accept: %u is none of its values",
			      (unsigned int)c->accept);
	if (c->pid == LNET_PID_ANY)
		return refuse(c, "pid: LNET_PID_ANY is not the pid of a node");
	/* LNet makes no connections to a process whose pid has this flag. */
	if (c->accept != LNET_ACCEPT_NONE && c->pid & LNET_PID_USERFLAG)
		return refuse(c,
			      "pid: %u has LNET_PID_USERFLAG, but the node "
			      "accepts connections",
			      c->pid);
	return 0;
}

static int conf_check_limits(const struct ulnet_conf *c)
{
	int rc = conf_at_most(c, "transaction_timeout", c->transaction_timeout,
			      TIMEOUT_MAX);

	if (!rc)
		rc = conf_at_most(c, "interfaces_max", c->interfaces_max,
				  INTERFACES_LIMIT);
	if (!rc)
		rc = conf_at_most(c, "shared_max", c->shared_max, COMMONS_MAX);
	if (!rc)
		rc = conf_at_most(c, "accept_backlog", c->accept_backlog,
				  INT32_MAX);
	if (!rc)
		rc = conf_at_most(c, "accept_max", c->accept_max, INT32_MAX);
	if (!rc)
		rc = conf_at_most(c, "accept_timeout", c->accept_timeout,
				  TIMEOUT_MAX);
	return rc;
}

/* Sets the administrator's levels of the log. */
static int conf_check_log(const struct ulnet_conf *c)
{
	const char *text = secure_getenv(LOG_VARIABLE);
	struct ulnet_conf_error err;

	if (!text || !*text ||
	    __atomic_load_n(&log_environment_read, __ATOMIC_RELAXED))
		return 0;
	if (lnet_log_levels_set(text, &err))
		return refuse(c, LOG_VARIABLE ": %s", err.what);
	__atomic_store_n(&log_environment_read, true, __ATOMIC_RELAXED);
	return 0;
}

int node_conf_fill(struct ulnet_conf *c)
{
	int rc;

	conf_defaults(c);
	if (c->accept == LNET_ACCEPT_DEFAULT)
		c->accept = c->port < PRIVILEGED_PORTS ? LNET_ACCEPT_SECURE
						       : LNET_ACCEPT_ALL;
	rc = conf_check_log(c);
	if (!rc)
		rc = conf_check_run(c);
	if (!rc)
		rc = conf_check_identity(c);
	return rc ? rc : conf_check_limits(c);
}
