/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Strangers: many hosts, which are nodes of this process with NIDs of their
 * own, begin handshakes with a server, and do not go on with them.
 *
 *	knock SERVER PORT KEYS HOSTS RATE SECONDS
 *
 * SERVER is a NID, KEYS a folder with authority.crt, a.crt and a.key, by which
 * what they say is made; RATE is that of all, in a second. Prints how many
 * there were: "knocks N".
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/duo.h"
#include "rpc/wire/wire.h"
#include "secure/handshake.h"
#include "ulnet/lnet.h"
#include "ulnet/rpc.h"

#define WAY 64 /* messages on their way from a host, at most */

struct stranger {
	struct lnet *node;
	unsigned int under_way;
	uint8_t bytes[WAY][1024];
};

static void on_sent(const struct ulnet_event *ev)
{
	struct stranger *s = ev->user_ptr;

	if (ev->unlinked)
		s->under_way--;
}

static void stranger_open(struct stranger *s, unsigned int i, uint16_t port)
{
	struct ulnet_conf conf;
	struct ulnet_ni_conf ni = { 0 };
	char text[LNET_NIDSTR_SIZE];

	snprintf(text, sizeof(text), "127.9.%u.%u@tcp", i / 250, i % 250 + 1);
	lnet_conf_init(&conf);
	conf.run = LNET_RUN_POLL;
	conf.port = port;
	conf.accept = LNET_ACCEPT_NONE;
	must(lnet_open(&conf, &s->node), "lnet_open");
	must(lnet_nid_parse(text, &ni.nid), text);
	must(lnet_ni_add(s->node, &ni), "lnet_ni_add");
}

static struct handshake *hello_of(const char *folder)
{
	char crt[256], key[256], authority[256];
	const struct keys_conf files = { .certificate = crt,
					 .key = key,
					 .authority = authority };
	struct keys_error err = { "" };
	struct handshake *h;
	struct keys *k;

	snprintf(crt, sizeof(crt), "%s/a.crt", folder);
	snprintf(key, sizeof(key), "%s/a.key", folder);
	snprintf(authority, sizeof(authority), "%s/authority.crt", folder);
	must(keys_load(&files, &k, &err), err.text);
	h = handshake_new(HANDSHAKE_CLIENT, k, NULL);
	if (!h || handshake_feed(h, NULL, 0))
		must(-ENOMEM, "a handshake");
	keys_put(k);
	return h;
}

static void knock(struct stranger *s, const struct ulnet_id *to,
		  const struct handshake *hello, uint64_t begun, uint64_t n)
{
	uint8_t *bytes = s->bytes[n % WAY];
	struct wire_control m = { .kind = WIRE_SHAKE, .shake = { .epoch = 1 } };
	struct ulnet_md md = { .start = bytes,
			       .threshold = 1,
			       .user_ptr = s,
			       .handler = on_sent };
	struct ulnet_md_handle mdh;
	uint64_t hdr_data;
	size_t length;

	m.shake.piece.p = handshake_bytes(hello, &length);
	m.shake.piece.end = m.shake.piece.p + length;
	m.shake.client = begun;
	memcpy(m.shake.client_id, &n, sizeof(n));
	memcpy(m.shake.client_id + sizeof(n), &begun, sizeof(begun));
	if (wire_control_bound(&m) > sizeof(s->bytes[0]))
		must(-EMSGSIZE, "a message");
	md.length = (uint32_t)wire_control_encode(&m, bytes, &hdr_data);
	must(LNetMDBind(s->node, &md, LNET_UNLINK, &mdh), "LNetMDBind");
	s->under_way++;
	must(LNetPut(LNET_NID_ANY, mdh, LNET_NOACK_REQ, *to,
		     ULRPC_PORTAL_CONTROL, 0, 0, hdr_data),
	     "LNetPut");
}

int main(int argc, char **argv)
{
	struct ulnet_id to = { .pid = LNET_PID_LUSTRE };
	uint64_t start, now, end, rate, n = 0;
	struct handshake *hello;
	struct stranger *all;
	unsigned int hosts;

	if (argc != 7)
		must(-EINVAL, "see the head of bench/knock.c");
	must(lnet_nid_parse(argv[1], &to.nid), argv[1]);
	hello = hello_of(argv[3]);
	hosts = (unsigned int)atoi(argv[4]);
	rate = (uint64_t)atoll(argv[5]);
	all = calloc(hosts, sizeof(*all));
	if (!all || !hosts)
		must(-ENOMEM, "hosts");
	for (unsigned int i = 0; i < hosts; i++)
		stranger_open(&all[i], i, (uint16_t)atoi(argv[2]));
	start = now = duo_now();
	end = start + (uint64_t)(atof(argv[6]) * 1e9);
	for (unsigned int i = 0; now < end; i++) {
		struct stranger *s = &all[i % hosts];

		if (n < (now - start) * rate / 1000000000 && s->under_way < WAY)
			knock(s, &to, hello, start, ++n);
		must(lnet_poll(s->node, 0), "lnet_poll");
		now = duo_now();
	}
	printf("knocks %ju\n", (uintmax_t)n);
	return 0;
}
