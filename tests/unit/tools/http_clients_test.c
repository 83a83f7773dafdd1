/* SPDX-License-Identifier: BSD-3-Clause */
#include <criterion/criterion.h>
#include <netinet/in.h>
#include "tools/common/http_clients.h"

static struct http_clients all;

static struct http_client *come(int fd, uint32_t host)
{
	struct sockaddr_in a = { .sin_family = AF_INET,
				 .sin_port = (in_port_t)fd,
				 .sin_addr.s_addr = htonl(host) };

	return http_client_come(&all, fd, (struct sockaddr *)&a);
}

/* The oldest that says nothing goes, and not who has asked. */
Test(http_clients, the_oldest_silent_one_goes)
{
	come(100, 1)->asked = true;
	for (int fd = 101; fd < 100 + HTTP_CLIENTS; fd++) {
		come(fd, 1);
		cr_assert_eq(http_clients_dismiss(&all), HTTP_CLIENT_NOBODY);
	}
	for (int i = 0; i < HTTP_CLIENTS; i++) {
		cr_assert_not_null(come(200 + i, 1));
		cr_assert_eq(http_clients_dismiss(&all),
			     i + 101 < 100 + HTTP_CLIENTS ? i + 101 : 200);
		cr_assert_eq(http_clients_dismiss(&all), HTTP_CLIENT_NOBODY);
	}
	/* Nobody who was told to go has gone yet. */
	cr_assert_null(come(300, 1));
	http_client_go(&all.client[1]);
	cr_assert_not_null(come(300, 1));
	cr_assert_eq(http_clients_dismiss(&all), 201);
}

/* A host with many connections loses one before a host with few, whether it has
 * asked or not, as long as it is silent. */
Test(http_clients, hosts_have_shares)
{
	come(50, 2);
	for (int fd = 100; fd < 100 + HTTP_CLIENTS - 1; fd++)
		come(fd, 1)->asked = true;
	come(51, 2);
	cr_assert_eq(http_clients_dismiss(&all), 100);
	for (int i = 0; i < 13; i++) {
		come(60 + i, 2);
		cr_assert_eq(http_clients_dismiss(&all), 101 + i);
	}
}

/* Who has just come is not the one that goes, though all others have asked. */
Test(http_clients, the_last_one_stays)
{
	for (int fd = 0; fd < HTTP_CLIENTS; fd++)
		come(fd, 1)->asked = true;
	come(100, 1);
	cr_assert_eq(http_clients_dismiss(&all), 0);
}

/* If all have asked, and read nothing, one of them goes. */
Test(http_clients, slow_readers)
{
	for (int fd = 0; fd <= HTTP_CLIENTS; fd++)
		come(fd, (uint32_t)fd)->asked = true;
	cr_assert_eq(http_clients_dismiss(&all), 0);
}
