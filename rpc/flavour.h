/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Flavours (enum ulrpc_flavour): how messages are protected. Each flavour
 * protects from everything that the one before it does, and from more. Each
 * service has a lowest flavour that it accepts, and each client one that it
 * offers. When a client opens a service, both agree on the higher one: Open has
 * the client's flavour, Opened the one to use. Each message of requests names
 * the flavour by which its calls, their replies and their bulk are protected.
 *
 * Nobody in between can lower the flavour: where it is more than
 * ULRPC_FLAVOUR_NONE, Open, Opened and requests are sealed (rpc/sealed.h), and
 * both sides refuse a flavour that is less than their own.
 */
#ifndef RPC_FLAVOUR_H
#define RPC_FLAVOUR_H

#include "rpc/wire/wire.h"
#include "ulnet/rpc.h"

/* The highest flavour of this release. */
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

/* Returns the flavour with the number @value on the wire. All flavours of later
 * releases become ULRPC_FLAVOUR_PRIVACY + 1. */
static inline enum ulrpc_flavour flavour_of_wire(uint32_t value)
{
	return (enum ulrpc_flavour)(MIN(value, WIRE_FLAVOUR_PRIVACY + 1) +
				    ULRPC_FLAVOUR_NONE);
}

/* Returns how bulk with the flavour @f is sealed: enum seal_protection; 0: it
 * is not. */
static inline unsigned int flavour_protection(enum ulrpc_flavour f)
{
	return f > ULRPC_FLAVOUR_AUTH ? (unsigned int)(f - ULRPC_FLAVOUR_AUTH)
				      : 0;
}

/* Returns the flavour that @f, from a configuration, means on a node that has
 * keys or has none. */
static inline enum ulrpc_flavour flavour_meant(enum ulrpc_flavour f,
					       bool has_keys)
{
	if (f != ULRPC_FLAVOUR_DEFAULT)
		return f;
	return has_keys ? ULRPC_FLAVOUR_AUTH : ULRPC_FLAVOUR_NONE;
}

#endif
