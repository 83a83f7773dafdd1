/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Flavours (enum ulrpc_flavour), of which each protects from what the one
 * before it does, and from more. Each service has one that it takes at least,
 * and each client one that it offers at least. Opening a service agrees on the
 * higher one: Open has the client's, and Opened the one that is used. Each
 * message of requests says its own, which is what its calls, their replies and
 * their bulk are protected with.
 *
 * Nobody in between can lower it: Open, Opened and requests are sealed
 * (rpc/sealed.h) where there is more to lose than ULRPC_FLAVOUR_NONE, and both
 * sides refuse what is less than their own.
 */
#ifndef RPC_FLAVOUR_H
#define RPC_FLAVOUR_H

#include "rpc/wire/wire.h"
#include "ulnet/rpc.h"

/* The highest that this release has. */
#define FLAVOUR_MAX ULRPC_FLAVOUR_PRIVACY

_Static_assert((int)ULRPC_FLAVOUR_NONE == (int)WIRE_FLAVOUR_NONE + 1 &&
		       (int)ULRPC_FLAVOUR_AUTH == (int)WIRE_FLAVOUR_AUTH + 1 &&
		       (int)ULRPC_FLAVOUR_INTEGRITY ==
			       (int)WIRE_FLAVOUR_INTEGRITY + 1 &&
		       (int)ULRPC_FLAVOUR_PRIVACY ==
			       (int)WIRE_FLAVOUR_PRIVACY + 1,
	       "values on the wire begin with 0");

static inline uint32_t flavour_to_wire(enum ulrpc_flavour f)
{
	return (uint32_t)f - ULRPC_FLAVOUR_NONE;
}

/* One of a later release is ULRPC_FLAVOUR_PRIVACY + 1. */
static inline enum ulrpc_flavour flavour_of_wire(uint32_t value)
{
	return (enum ulrpc_flavour)(MIN(value, WIRE_FLAVOUR_PRIVACY + 1) +
				    ULRPC_FLAVOUR_NONE);
}

/* How bulk of the flavour @f is sealed: enum seal_protection, or 0. */
static inline unsigned int flavour_protection(enum ulrpc_flavour f)
{
	return f > ULRPC_FLAVOUR_AUTH ? (unsigned int)(f - ULRPC_FLAVOUR_AUTH)
				      : 0;
}

/* What @f, of a configuration, is on a node with keys, or without. */
static inline enum ulrpc_flavour flavour_meant(enum ulrpc_flavour f,
					       bool has_keys)
{
	if (f != ULRPC_FLAVOUR_DEFAULT)
		return f;
	return has_keys ? ULRPC_FLAVOUR_AUTH : ULRPC_FLAVOUR_NONE;
}

#endif
