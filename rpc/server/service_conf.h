/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Checks of a service's configuration (ulrpc_service_conf), with a complaint
 * that names the field, and its defaults. This file looks at one configuration
 * only: whether a name or a portal is free, services.c checks.
 *
 * Any thread.
 */
#ifndef RPC_SERVICE_CONF_H
#define RPC_SERVICE_CONF_H

#include "rpc/text.h"
#include "ulnet/service.h"

static inline struct conf_owner service_owner(
	const struct ulrpc_service_conf *c)
{
	return (struct conf_owner){ "service", c->name, c->err };
}

/* Logs why the configuration @c is refused, and returns @rc. */
#define service_refuse(c, rc, ...) \
	conf_refuse(service_owner(c), rc, __VA_ARGS__)

/* Checks @c as the user has given it. Returns 0 or -EINVAL. */
int service_conf_check(const struct ulrpc_service_conf *c);
/* Checks the method @mc of @c. Returns 0 or -EINVAL. */
int service_method_check(const struct ulrpc_service_conf *c,
			 const struct ulrpc_method_conf *mc);
/* Replaces each field that is 0 by its default. @workers: some methods run on
 * workers. */
void service_conf_fill(struct ulrpc_service_conf *c, bool workers);
/* Checks that the sizes in @full, which service_conf_fill() has filled in, fit
 * each other. @message_max: bytes of the longest request message. @c: as the
 * user has given it, for the complaint. Returns 0 or -EINVAL. */
int service_conf_fits(const struct ulrpc_service_conf *full,
		      uint32_t message_max, const struct ulrpc_service_conf *c);

#endif
