/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a service may be configured to be: checks of ulrpc_service_conf, with a
 * complaint that names the field, and its defaults. Knows of one configuration
 * only: whether a name or a portal is free, services.c knows.
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

/* Says why @c is refused, and returns @rc. */
#define service_refuse(c, rc, ...) \
	conf_refuse(service_owner(c), rc, __VA_ARGS__)

/* As the user has given it. 0 or -EINVAL. */
int service_conf_check(const struct ulrpc_service_conf *c);
/* The method @mc of @c. 0 or -EINVAL. */
int service_method_check(const struct ulrpc_service_conf *c,
			 const struct ulrpc_method_conf *mc);
/* Replaces each 0 by the default. @workers: a method needs them. */
void service_conf_fill(struct ulrpc_service_conf *c, bool workers);
/* Do the sizes in @full, which service_conf_fill() has filled, fit each other?
 * @message_max: bytes of the longest request message. @c: as the user has given
 * it. 0 or -EINVAL. */
int service_conf_fits(const struct ulrpc_service_conf *full,
		      uint32_t message_max, const struct ulrpc_service_conf *c);

#endif
