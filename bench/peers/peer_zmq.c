/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ZeroMQ: a DEALER and a ROUTER over TCP. bench/load.h tells the command line
 * and what is printed. --block only: the sockets are served by a thread of the
 * library's, which a spinning caller would only keep from its core.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zmq.h>

#include "bench/load.h"

#define SHARED 65536 /* bytes; messages from this size on are not copied */

struct peer {
	struct load load;
	char address[64];
	void *socket;
};

static void must_zmq(long rc, const char *what)
{
	if (rc >= 0)
		return;
	fprintf(stderr, "peer_zmq: %s: %s\n", what, zmq_strerror(errno));
	exit(1);
}

static void on_sent(void *data, void *hint)
{
	(void)data;
	(void)hint;
}

static void message_send(struct peer *p, unsigned char *data, size_t size)
{
	zmq_msg_t m;

	if (size >= SHARED) {
		must_zmq(zmq_msg_init_data(&m, data, size, on_sent, NULL),
			 "zmq_msg_init_data");
	} else {
		must_zmq(zmq_msg_init_size(&m, size), "zmq_msg_init_size");
		memcpy(zmq_msg_data(&m), data, size);
	}
	must_zmq(zmq_msg_send(&m, p->socket, 0), "zmq_msg_send");
}

static void init(struct peer *p, int type)
{
	void *context = zmq_ctx_new();

	p->socket = context ? zmq_socket(context, type) : NULL;
	if (!p->socket)
		must_zmq(-1, "zmq_socket");
}

static void server(void *arg, int ready)
{
	struct peer *p = arg;
	zmq_msg_t from, m;

	init(p, ZMQ_ROUTER);
	must_zmq(zmq_bind(p->socket, p->address), "zmq_bind");
	duo_ready(ready);
	zmq_msg_init(&from);
	zmq_msg_init(&m);
	for (;;) {
		unsigned char *reply;

		must_zmq(zmq_msg_recv(&from, p->socket, 0), "zmq_msg_recv");
		must_zmq(zmq_msg_recv(&m, p->socket, 0), "zmq_msg_recv");
		reply = load_serve(&p->load, zmq_msg_data(&m),
				   zmq_msg_size(&m));
		must_zmq(zmq_msg_send(&from, p->socket, ZMQ_SNDMORE),
			 "zmq_msg_send");
		message_send(p, reply, p->load.reply_size);
	}
}

static void request_send(struct peer *p, size_t slot)
{
	message_send(p, load_request(&p->load, slot), p->load.request_size);
}

static void client(struct peer *p)
{
	zmq_msg_t m;

	init(p, ZMQ_DEALER);
	must_zmq(zmq_connect(p->socket, p->address), "zmq_connect");
	for (size_t i = 0; i < p->load.depth; i++)
		request_send(p, i);
	zmq_msg_init(&m);
	while (p->load.under_way) {
		long slot;

		must_zmq(zmq_msg_recv(&m, p->socket, 0), "zmq_msg_recv");
		slot = load_replied(&p->load, zmq_msg_data(&m),
				    zmq_msg_size(&m));
		if (slot >= 0)
			request_send(p, (size_t)slot);
	}
}

int main(int argc, char **argv)
{
	struct peer p = { 0 };

	load_args(&p.load, argc, argv);
	if (!p.load.block)
		must(-EOPNOTSUPP, "--poll");
	snprintf(p.address, sizeof(p.address), "tcp://%s:%u", DUO_SERVER,
		 duo_free_port());
	load_fork(&p.load, server, &p);
	client(&p);
	load_end(&p.load);
	return 0;
}
