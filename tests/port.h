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

/* Below those that the system gives to connections: one of these may be taken
 * between the look and the use. */
#define FREE_PORT_MIN 1024
#define FREE_PORTS    (32768 - FREE_PORT_MIN)

/* Takes the port among tests: it is this process's, and its children's, while
 * they live, for a socket of its name is bound (tests/port.sh does so, too). */
static inline bool port_claim(uint16_t port)
{
	struct sockaddr_un a = { .sun_family = AF_UNIX };
	int n = snprintf(a.sun_path + 1, sizeof(a.sun_path) - 1,
			 "ulnet-port-%u", port);
	socklen_t len = offsetof(struct sockaddr_un, sun_path) + 1 + n;
	int fd = socket(AF_UNIX, SOCK_DGRAM, 0);

	if (fd < 0 || !bind(fd, (const struct sockaddr *)&a, len))
		return fd >= 0; /* left open */
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

/* A TCP port, from 1024 up, that nobody uses now on any address, and no other
 * test gets while this process lives; 0: none. */
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
