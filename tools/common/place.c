/* SPDX-License-Identifier: BSD-3-Clause */
#include "place.h"

#include <errno.h>
#include <netdb.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#define AT_HOME "127.0.0.1"

struct place {
	char host[64];
	char port[8];
};

/* What is in front of the last colon, without brackets. */
static int split(const char *address, struct place *p)
{
	const char *colon = strrchr(address, ':');
	const char *port = colon ? colon + 1 : address;
	const char *host = colon ? address : AT_HOME;
	size_t len = colon ? (size_t)(colon - address) : strlen(host);
	size_t port_len = strlen(port);

	if (len >= 2 && host[0] == '[' && host[len - 1] == ']') {
		host++;
		len -= 2;
	} else if (memchr(host, ':', len)) {
		return -EINVAL;
	}
	if (!len || len >= sizeof(p->host) || !port_len || port_len > 5 ||
	    port[strspn(port, "0123456789")] || strtoul(port, NULL, 10) < 1 ||
	    strtoul(port, NULL, 10) > 65535)
		return -EINVAL;
	memcpy(p->host, host, len);
	p->host[len] = '\0';
	memcpy(p->port, port, port_len + 1);
	return 0;
}

int place_resolve(const char *address, struct addrinfo **info)
{
	const struct addrinfo hints = {
		.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV | AI_PASSIVE,
		.ai_socktype = SOCK_STREAM,
	};
	struct place p;

	if (split(address, &p) || getaddrinfo(p.host, p.port, &hints, info))
		return -EINVAL;
	return 0;
}

int place_check(const char *address)
{
	struct addrinfo *info;
	int rc = place_resolve(address, &info);

	if (!rc)
		freeaddrinfo(info);
	return rc;
}
