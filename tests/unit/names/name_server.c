/* SPDX-License-Identifier: BSD-3-Clause */
#include "tests/unit/names/name_server.h"

#include <ares.h>
#include <criterion/criterion.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

struct name_server name_server;

int __real_ares_init_options(struct ares_channeldata **channel,
			     struct ares_options *options, int mask);
int __wrap_ares_init_options(struct ares_channeldata **channel,
			     struct ares_options *options, int mask);

int __wrap_ares_init_options(struct ares_channeldata **channel,
			     struct ares_options *options, int mask)
{
	struct ares_options own = *options;

	own.servers = &name_server.address.sin_addr;
	own.nservers = 1;
	own.udp_port = own.tcp_port = ntohs(name_server.address.sin_port);
	own.ndomains = 0;
	own.timeout = name_server.timeout;
	return __real_ares_init_options(
		channel, &own,
		mask | ARES_OPT_SERVERS | ARES_OPT_UDP_PORT |
			ARES_OPT_TCP_PORT | ARES_OPT_DOMAINS);
}

void name_server_begin(void)
{
	struct name_server *s = &name_server;
	socklen_t len = sizeof(s->address);
	const int room = 4 << 20;

	memset(s, 0, sizeof(*s));
	s->timeout = 60000;
	s->address.sin_family = AF_INET;
	s->address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	s->socket = socket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK, 0);
	cr_assert_geq(s->socket, 0);
	setsockopt(s->socket, SOL_SOCKET, SO_RCVBUF, &room, sizeof(room));
	cr_assert_eq(bind(s->socket, (struct sockaddr *)&s->address, len), 0);
	cr_assert_eq(
		getsockname(s->socket, (struct sockaddr *)&s->address, &len),
		0);
}

void name_server_serve(name_server_fn answer)
{
	struct pollfd p = { .fd = name_server.socket, .events = POLLIN };
	unsigned char m[ANSWER_MAX];
	struct sockaddr_in from;
	socklen_t len = sizeof(from);
	ssize_t n;

	poll(&p, 1, 10);
	while ((n = recvfrom(p.fd, m, 512, 0, (struct sockaddr *)&from, &len)) >
	       12) {
		size_t length = answer(m, (size_t)n);

		if (length)
			sendto(p.fd, m, length, 0, (struct sockaddr *)&from,
			       len);
	}
}

void name_server_end(void)
{
	close(name_server.socket);
}

const char *question_name(const unsigned char *m, char text[256])
{
	size_t n = 0;

	for (const unsigned char *p = m + 12; *p; p += *p + 1) {
		memcpy(text + n, p + 1, *p);
		n += *p;
		text[n++] = '.';
	}
	text[n ? n - 1 : 0] = '\0';
	return text;
}

size_t question_end(const unsigned char *m)
{
	return 12 + strlen((const char *)m + 12) + 1 + 4;
}

enum dns_type question_type(const unsigned char *m)
{
	const unsigned char *end = m + question_end(m);

	return (enum dns_type)(end[-4] << 8 | end[-3]);
}
