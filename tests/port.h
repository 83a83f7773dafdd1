/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TESTS_PORT_H
#define TESTS_PORT_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

/* Below the ports that the system gives to connections: it could give one of
 * these away between the check that it is free and its use. */
#define FREE_PORT_MIN 1024
#define FREE_PORTS    (32768 - FREE_PORT_MIN)

/* Claims the port among all tests, for the life of this process and its
 * children: binds a socket in the abstract namespace whose name has the port,
 * as does tests/port.sh. Returns false if another test has claimed the port. */
static inline bool port_claim(uint16_t port)
{
	struct sockaddr_un a = { .sun_family = AF_UNIX };
	int n = snprintf(a.sun_path + 1, sizeof(a.sun_path) - 1,
			 "ulnet-port-%u", port);
	socklen_t len = offsetof(struct sockaddr_un, sun_path) + 1 + n;
	int fd = socket(AF_UNIX, SOCK_DGRAM, 0);

	if (fd < 0 || !bind(fd, (const struct sockaddr *)&a, len))
		return fd >= 0; /* the socket stays open, as the claim */
	close(fd);
	return false;
}

static inline bool port_is_free(uint16_t port)
{
	const struct sockaddr_in a = { .sin_family = AF_INET,
				       .sin_port = htons(port) };
	int fd = socket(AF_INET, SOCK_STREAM, 0);
	bool is = fd >= 0 && !bind(fd, (const struct sockaddr *)&a, sizeof(a));

	if (fd >= 0)
		close(fd);
	return is;
}

/* Returns a TCP port, from 1024 up, that no process uses now on any address,
 * and that no other test gets while this process lives; 0 if there is none. */
static inline uint16_t free_port(void)
{
	uint16_t first = 0;

	if (getrandom(&first, sizeof(first), 0) != sizeof(first))
		return 0;
	for (unsigned int i = 0; i < FREE_PORTS; i++) {
		unsigned int at = FREE_PORT_MIN + (first + i) % FREE_PORTS;

		if (port_claim((uint16_t)at) && port_is_free((uint16_t)at))
			return (uint16_t)at;
	}
	return 0;
}

#endif
