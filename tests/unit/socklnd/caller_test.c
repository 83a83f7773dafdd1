/* SPDX-License-Identifier: BSD-3-Clause */
/* Callers: the share of an address, and whose handshake of TLS has its turn. */
#include "lnd/socklnd/caller.h"

#include <arpa/inet.h>
#include <criterion/criterion.h>

#define MSEC UINT64_C(1000000)
/* when everybody has become a stranger */
#define NOW (DOOR_START + 1000 * MSEC)

static struct sock_conn *enter(struct sock_callers *cs, unsigned int host)
{
	struct sock_conn *conn = calloc(1, sizeof(*conn));

	cr_assert(conn);
	conn->remote.v4.sin_family = AF_INET;
	conn->remote.v4.sin_addr.s_addr = htonl(0x0a000000 + host);
	conn->remote.v4.sin_port = htons((uint16_t)(1024 + cs->n));
	cr_assert_eq(sock_callers_enter(cs, conn), 0);
	return conn;
}

static void leave(struct sock_callers *cs, struct sock_conn *conn)
{
	sock_callers_leave(cs, conn);
	free(conn);
}

/* @conn begins with TLS, for @ns, if it may; else it waits. */
static bool begins(struct sock_callers *cs, struct sock_conn *conn, uint64_t ns,
		   uint64_t now)
{
	if (!sock_callers_may(cs, conn, now)) {
		sock_callers_wait(cs, conn, now);
		return false;
	}
	sock_callers_begin(conn);
	sock_callers_pay(cs, conn, ns, now);
	return true;
}

Test(caller, share)
{
	enum { MAX_ALL = 16 };
	struct sock_conn *conn[MAX_ALL], *other, *instead;
	struct sock_callers cs;
	unsigned int n = 0;

	sock_callers_init(&cs, 1, NOW);
	do
		conn[n++] = enter(&cs, 1);
	while (sock_callers_allow(&cs, &conn[0]->remote, MAX_ALL, &instead));
	cr_assert_eq(n, MAX_ALL / 2 + 1);
	cr_assert_eq(instead, conn[0]);
	sock_callers_heard(conn[0]);
	cr_assert_not(
		sock_callers_allow(&cs, &conn[0]->remote, MAX_ALL, &instead));
	cr_assert_eq(instead, conn[1]);
	/* There is room for another address, whatever its port. */
	other = enter(&cs, 2);
	cr_assert(sock_callers_allow(&cs, &other->remote, MAX_ALL, &instead));
	leave(&cs, other);
	while (n--)
		leave(&cs, conn[n]);
	cr_assert_eq(cs.by_addr.count, 0);
	sock_callers_fini(&cs);
}

/* Strangers have used up their time, and wait. One with many handshakes has as
 * many turns as one with a single handshake, and known hosts do not wait for
 * them. */
Test(caller, turns)
{
	enum { MANY = 10 };
	struct sock_conn *many[MANY], *single, *known, *next;
	struct sock_callers cs;
	uint64_t later = NOW + 1000 * MSEC;

	sock_callers_init(&cs, 1, 0);
	known = enter(&cs, 9);
	cr_assert(begins(&cs, known, MSEC, NOW));
	sock_callers_proved(&cs, known);
	for (unsigned int i = 0; i < MANY; i++) {
		many[i] = enter(&cs, 1);
		cr_assert_eq(begins(&cs, many[i], 100 * MSEC, NOW), i == 0);
	}
	leave(&cs, many[0]);
	single = enter(&cs, 2);
	cr_assert_not(begins(&cs, single, MSEC, NOW));
	cr_assert(sock_callers_any_waits(&cs));
	cr_assert_null(sock_callers_next(&cs, DOOR_STRANGER, NOW));
	cr_assert_null(sock_callers_next(&cs, DOOR_KNOWN, NOW));
	leave(&cs, known);
	known = enter(&cs, 9);
	cr_assert(begins(&cs, known, MSEC, NOW));

	/* who has looked in vain is behind the other one */
	next = sock_callers_next(&cs, DOOR_STRANGER, later);
	cr_assert_eq(next, single);
	cr_assert(begins(&cs, next, MSEC, later));
	next = sock_callers_next(&cs, DOOR_STRANGER, later);
	cr_assert_eq(next, many[1]);
	cr_assert(begins(&cs, next, MSEC, later));
	/* One is under way, so its others wait, and come behind who is new. */
	cr_assert_null(sock_callers_next(&cs, DOOR_STRANGER, later));
	leave(&cs, many[1]);
	cr_assert_eq(sock_callers_next(&cs, DOOR_STRANGER, later), many[2]);

	for (unsigned int i = 2; i < MANY; i++)
		leave(&cs, many[i]);
	cr_assert_not(sock_callers_any_waits(&cs));
	leave(&cs, single);
	leave(&cs, known);
	sock_callers_fini(&cs);
}

/* What is under way goes on before its caller begins another one. */
Test(caller, under_way)
{
	struct sock_conn *first, *second;
	struct sock_callers cs;
	uint64_t later = NOW + 2000 * MSEC;

	sock_callers_init(&cs, 1, 0);
	first = enter(&cs, 1);
	second = enter(&cs, 1);
	cr_assert(begins(&cs, first, 200 * MSEC, NOW));
	cr_assert_not(begins(&cs, second, MSEC, NOW));
	cr_assert_not(sock_callers_may(&cs, first, NOW));
	sock_callers_wait(&cs, first, NOW);
	cr_assert_null(sock_callers_next(&cs, DOOR_STRANGER, NOW));
	cr_assert_eq(sock_callers_next(&cs, DOOR_STRANGER, later), first);
	cr_assert(sock_callers_may(&cs, first, later));
	leave(&cs, first);
	cr_assert_eq(sock_callers_next(&cs, DOOR_STRANGER, later), second);
	leave(&cs, second);
	sock_callers_fini(&cs);
}
