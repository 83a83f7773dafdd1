/* SPDX-License-Identifier: BSD-3-Clause */
#include "lnd/socklnd/caller.h"

#include <errno.h>
#include <stdlib.h>

#include "base/share.h"
#include "lnd/netif.h"

void sock_callers_init(struct sock_callers *cs, uint64_t seed, uint64_t now)
{
	*cs = (struct sock_callers){ 0 };
	hash_init(&cs->by_addr);
	door_init(&cs->door, sizeof(struct ulnet_nid), seed, now);
	for (unsigned int i = 0; i < DOOR_CLASSES; i++)
		list_init(&cs->turns[i]);
}

void sock_callers_fini(struct sock_callers *cs)
{
	BUG_ON(cs->n);
	hash_fini(&cs->by_addr);
	door_fini(&cs->door);
}

static uint64_t addr_hash(const struct sock_callers *cs,
			  const struct ulnet_nid *addr)
{
	return hash_bytes(addr, sizeof(*addr), cs->door.seed);
}

static struct sock_caller *caller_find(const struct sock_callers *cs,
				       const union netif_addr *from,
				       struct ulnet_nid *addr)
{
	struct sock_caller *c;

	*addr = (struct ulnet_nid){ 0 };
	(void)!netif_addr_take(addr, &from->any);
	hash_for_each_equal (c, &cs->by_addr, addr_hash(cs, addr), by_addr)
		if (lnet_nid_eq(&c->addr, addr))
			return c;
	return NULL;
}

static struct sock_caller *caller_new(struct sock_callers *cs,
				      const struct ulnet_nid *addr)
{
	struct sock_caller *c = calloc(1, sizeof(*c));

	if (!c)
		return NULL;
	c->addr = *addr;
	list_init(&c->handshakes);
	list_init(&c->waiting);
	list_init(&c->turn);
	if (hash_add(&cs->by_addr, &c->by_addr, addr_hash(cs, addr))) {
		free(c);
		return NULL;
	}
	return c;
}

bool sock_callers_allow(const struct sock_callers *cs,
			const union netif_addr *from, uint32_t max,
			struct sock_conn **instead_p)
{
	struct ulnet_nid addr;
	const struct sock_caller *c = caller_find(cs, from, &addr);

	*instead_p = NULL;
	if (share_allows(c ? c->n : 0, cs->n, max, 1))
		return true;
	if (c)
		*instead_p =
			list_first(&c->handshakes, struct sock_conn, caller.of);
	return false;
}

int sock_callers_enter(struct sock_callers *cs, struct sock_conn *conn)
{
	struct sock_conn_caller *in = &conn->caller;
	struct ulnet_nid addr;
	struct sock_caller *c = caller_find(cs, &conn->remote, &addr);

	if (!c)
		c = caller_new(cs, &addr);
	if (!c)
		return -ENOMEM;
	*in = (struct sock_conn_caller){ .caller = c };
	list_init(&in->waits);
	list_add_tail(&c->handshakes, &in->of);
	c->n++;
	cs->n++;
	return 0;
}

void sock_callers_heard(struct sock_conn *conn)
{
	list_del(&conn->caller.of);
	list_add_tail(&conn->caller.caller->handshakes, &conn->caller.of);
}

/* Takes @conn off the list of those that wait, if it is in it. */
static void wait_end(struct sock_conn *conn)
{
	struct sock_caller *c = conn->caller.caller;

	list_del(&conn->caller.waits);
	if (list_empty(&c->waiting))
		list_del(&c->turn);
}

void sock_callers_leave(struct sock_callers *cs, struct sock_conn *conn)
{
	struct sock_caller *c = conn->caller.caller;

	wait_end(conn);
	list_del(&conn->caller.of);
	if (conn->caller.begun)
		c->begun--;
	c->n--;
	cs->n--;
	conn->caller.caller = NULL;
	if (c->n)
		return;
	hash_del(&cs->by_addr, &c->by_addr);
	free(c);
}

/* ---- processor time, for TLS ---- */

static bool may_begin(const struct sock_callers *cs,
		      const struct sock_caller *c, uint64_t now,
		      enum door_class *class_p)
{
	return door_begin(&cs->door, &c->addr, c->begun,
			  sock_callers_any_waits(cs), now, class_p);
}

/* Is there processor time for @conn, apart from those that wait? */
static bool has_time(const struct sock_callers *cs, struct sock_conn *conn,
		     uint64_t now)
{
	struct sock_conn_caller *in = &conn->caller;

	return in->begun ? door_go_on(&cs->door, in->class, now)
			 : may_begin(cs, in->caller, now, &in->class);
}

bool sock_callers_may(const struct sock_callers *cs, struct sock_conn *conn,
		      uint64_t now)
{
	struct sock_conn_caller *in = &conn->caller;

	if (in->called)
		return true;
	/* A new handshake does not overtake those that wait. */
	if (!in->begun &&
	    !list_empty(
		    &cs->turns[door_class(&cs->door, &in->caller->addr, now)]))
		return false;
	return has_time(cs, conn, now);
}

void sock_callers_begin(struct sock_conn *conn)
{
	struct sock_conn_caller *in = &conn->caller;

	in->begun = true;
	in->caller->begun++;
}

void sock_callers_pay(struct sock_callers *cs, struct sock_conn *conn,
		      uint64_t ns, uint64_t now)
{
	conn->caller.called = false;
	door_take(&cs->door, &conn->caller.caller->addr, conn->caller.class, ns,
		  now);
}

void sock_callers_proved(struct sock_callers *cs, const struct sock_conn *conn)
{
	door_proved(&cs->door, &conn->caller.caller->addr);
}

void sock_callers_wait(struct sock_callers *cs, struct sock_conn *conn,
		       uint64_t now)
{
	struct sock_conn_caller *in = &conn->caller;
	struct sock_caller *c = in->caller;

	if (list_empty(&c->waiting))
		list_add_tail(&cs->turns[door_class(&cs->door, &c->addr, now)],
			      &c->turn);
	/* Handshakes that have begun TLS go first. */
	if (in->begun)
		list_add(&c->waiting, &in->waits);
	else
		list_add_tail(&c->waiting, &in->waits);
}

bool sock_callers_any_waits(const struct sock_callers *cs)
{
	for (unsigned int i = 0; i < DOOR_CLASSES; i++)
		if (!list_empty(&cs->turns[i]))
			return true;
	return false;
}

struct sock_conn *sock_callers_next(struct sock_callers *cs,
				    enum door_class class, uint64_t now)
{
	struct list *turns = &cs->turns[class];
	struct sock_caller *c;
	struct sock_conn *conn;

	if (list_empty(turns))
		return NULL;
	c = list_first(turns, struct sock_caller, turn);
	conn = list_first(&c->waiting, struct sock_conn, caller.waits);
	list_del(&c->turn);
	list_add_tail(turns, &c->turn);
	if (!has_time(cs, conn, now))
		return NULL;
	wait_end(conn);
	conn->caller.called = true;
	return conn;
}
