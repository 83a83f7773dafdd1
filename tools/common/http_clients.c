/* SPDX-License-Identifier: BSD-3-Clause */
#include "http_clients.h"

#include <netinet/in.h>
#include <string.h>

static void take_address(uint8_t from[16], const struct sockaddr *a)
{
	if (!a)
		return;
	if (a->sa_family == AF_INET)
		memcpy(from, &((const struct sockaddr_in *)a)->sin_addr, 4);
	else if (a->sa_family == AF_INET6)
		memcpy(from, &((const struct sockaddr_in6 *)a)->sin6_addr, 16);
}

struct http_client *http_client_come(struct http_clients *all, int fd,
				     const struct sockaddr *from)
{
	for (unsigned int i = 0; i < HTTP_CLIENTS_ROOM; i++) {
		struct http_client *c = &all->client[i];

		if (c->number)
			continue;
		*c = (struct http_client){ .number = ++all->numbers, .fd = fd };
		take_address(c->from, from);
		return c;
	}
	return NULL;
}

void http_client_go(struct http_client *c)
{
	c->number = 0;
}

static bool is_there(const struct http_client *c)
{
	return c->number && !c->leaving;
}

/* Returns how many connections the host of @c has. */
static unsigned int count_of_host(const struct http_clients *all,
				  const struct http_client *c)
{
	unsigned int n = 0;

	for (unsigned int i = 0; i < HTTP_CLIENTS_ROOM; i++)
		n += is_there(&all->client[i]) &&
		     !memcmp(all->client[i].from, c->from, sizeof(c->from));
	return n;
}

/* Must @a be dismissed rather than @b? */
static bool goes_before(const struct http_clients *all,
			const struct http_client *a,
			const struct http_client *b)
{
	unsigned int of_a, of_b;

	of_a = count_of_host(all, a);
	of_b = count_of_host(all, b);
	if (of_a != of_b)
		return of_a > of_b;
	return a->asked != b->asked ? b->asked : a->number < b->number;
}

int http_clients_dismiss(struct http_clients *all)
{
	struct http_client *first = NULL;
	unsigned int n = 0;

	for (unsigned int i = 0; i < HTTP_CLIENTS_ROOM; i++) {
		struct http_client *c = &all->client[i];

		if (!is_there(c))
			continue;
		n++;
		/* The client that came last is kept: it has had no time to ask.
		 */
		if (c->number == all->numbers)
			continue;
		if (!first || goes_before(all, c, first))
			first = c;
	}
	if (n <= HTTP_CLIENTS)
		return HTTP_CLIENT_NOBODY;
	first->leaving = true;
	return first->fd;
}
