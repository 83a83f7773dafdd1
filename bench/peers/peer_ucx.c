/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * UCX: active messages of UCP over its TCP transport, or with --shm those of
 * shared memory, the reply as another one. bench/load.h tells the command line
 * and what is printed.
 */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <ucp/api/ucp.h>

#include "bench/load.h"

#define ADDRESS_SIZE 4096

enum { AM_REQUEST, AM_REPLY };

struct peer {
	struct load load;
	void *address; /* address of the server's worker, in shared memory */
	ucp_context_h context;
	ucp_worker_h worker;
	ucp_ep_h ep;
	/* A reply has come: the server knows this client. */
	bool replied;
	/* free buffers for large messages */
	struct buffer *buffers;
	size_t buffer_size;
};

struct buffer {
	struct peer *peer;
	struct buffer *next;
	unsigned char *data;
};

static void must_ucs(ucs_status_t st, const char *what)
{
	if (st == UCS_OK)
		return;
	fprintf(stderr, "peer_ucx: %s: %s\n", what, ucs_status_string(st));
	exit(1);
}

static void on_sent(void *request, ucs_status_t st, void *arg)
{
	(void)arg;
	must_ucs(st, "send");
	ucp_request_free(request);
}

static void am_send(struct peer *p, unsigned int id, const void *data,
		    size_t size)
{
	/* the client's first messages tell the server its address */
	bool first = id == AM_REQUEST && !p->replied;
	ucp_request_param_t param = {
		.op_attr_mask =
			UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_FLAGS,
		.flags = first ? UCP_AM_SEND_FLAG_REPLY : 0,
		.cb.send = on_sent,
	};
	ucs_status_ptr_t r =
		ucp_am_send_nbx(p->ep, id, NULL, 0, data, size, &param);

	if (UCS_PTR_IS_ERR(r))
		must_ucs(UCS_PTR_STATUS(r), "ucp_am_send_nbx");
}

/* ---- messages ---- */

static void request_send(struct peer *p, size_t slot)
{
	am_send(p, AM_REQUEST, load_request(&p->load, slot),
		p->load.request_size);
}

static void on_message(struct peer *p, const void *data, size_t size)
{
	long slot;

	if (!p->load.server) {
		am_send(p, AM_REPLY, load_serve(&p->load, data, size),
			p->load.reply_size);
		return;
	}
	p->replied = true;
	slot = load_replied(&p->load, data, size);
	if (slot >= 0)
		request_send(p, (size_t)slot);
}

static void buffer_put(struct buffer *b)
{
	b->next = b->peer->buffers;
	b->peer->buffers = b;
}

static void on_large(void *request, ucs_status_t st, size_t size, void *arg)
{
	struct buffer *b = arg;

	must_ucs(st, "receive");
	on_message(b->peer, b->data, size);
	buffer_put(b);
	if (request)
		ucp_request_free(request);
}

/* Receives a large message that the sender has announced. */
static void fetch(struct peer *p, void *desc, size_t size)
{
	struct buffer *b = p->buffers;
	ucp_request_param_t param = {
		.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK |
				UCP_OP_ATTR_FIELD_USER_DATA,
		.cb.recv_am = on_large,
		.user_data = b,
	};
	ucs_status_ptr_t st;

	if (!b || size > p->buffer_size) {
		must(-ENOBUFS, "message");
		return;
	}
	p->buffers = b->next;
	st = ucp_am_recv_data_nbx(p->worker, desc, b->data, size, &param);
	if (UCS_PTR_IS_ERR(st))
		must_ucs(UCS_PTR_STATUS(st), "ucp_am_recv_data_nbx");
	if (!st)
		on_large(NULL, UCS_OK, size, b);
}

static ucs_status_t on_am(void *arg, const void *header, size_t header_size,
			  void *data, size_t size,
			  const ucp_am_recv_param_t *param)
{
	struct peer *p = arg;

	(void)header;
	(void)header_size;
	if (!p->ep && param->recv_attr & UCP_AM_RECV_ATTR_FIELD_REPLY_EP)
		p->ep = param->reply_ep;
	if (param->recv_attr & UCP_AM_RECV_ATTR_FLAG_RNDV) {
		fetch(p, data, size);
		return UCS_INPROGRESS;
	}
	on_message(p, data, size);
	return UCS_OK;
}

/* ---- both processes ---- */

static void take(struct peer *p, unsigned int id)
{
	ucp_am_handler_param_t param = {
		.field_mask = UCP_AM_HANDLER_PARAM_FIELD_ID |
			      UCP_AM_HANDLER_PARAM_FIELD_FLAGS |
			      UCP_AM_HANDLER_PARAM_FIELD_CB |
			      UCP_AM_HANDLER_PARAM_FIELD_ARG,
		.id = id,
		.flags = UCP_AM_FLAG_WHOLE_MSG,
		.cb = on_am,
		.arg = p,
	};

	must_ucs(ucp_worker_set_am_recv_handler(p->worker, &param),
		 "ucp_worker_set_am_recv_handler");
}

static void buffers_init(struct peer *p, size_t size)
{
	struct buffer *b = duo_buffer(p->load.depth * sizeof(*b));

	p->buffer_size = size;
	for (size_t i = 0; i < p->load.depth; i++, b++) {
		b->peer = p;
		b->data = duo_buffer(size);
		buffer_put(b);
	}
}

static void init(struct peer *p, unsigned int id)
{
	ucp_params_t params = {
		.field_mask = UCP_PARAM_FIELD_FEATURES,
		.features = UCP_FEATURE_AM |
			    (p->load.block ? UCP_FEATURE_WAKEUP : 0),
	};
	ucp_worker_params_t worker = {
		.field_mask = UCP_WORKER_PARAM_FIELD_THREAD_MODE,
		.thread_mode = UCS_THREAD_MODE_SINGLE,
	};
	ucp_config_t *config;

	must_ucs(ucp_config_read(NULL, NULL, &config), "ucp_config_read");
	must_ucs(ucp_config_modify(config, "TLS", p->load.shm ? "shm" : "tcp"),
		 "TLS");
	if (!p->load.shm)
		must_ucs(ucp_config_modify(config, "NET_DEVICES", "lo"),
			 "NET_DEVICES");
	must_ucs(ucp_init(&params, config, &p->context), "ucp_init");
	ucp_config_release(config);
	must_ucs(ucp_worker_create(p->context, &worker, &p->worker),
		 "ucp_worker_create");
	take(p, id);
	buffers_init(p, id == AM_REQUEST ? p->load.request_size
					 : p->load.reply_size);
}

/* Runs until something may have happened. */
static void turn(struct peer *p)
{
	struct pollfd fd = { .events = POLLIN };
	ucs_status_t st;

	if (ucp_worker_progress(p->worker) || !p->load.block)
		return;
	st = ucp_worker_arm(p->worker);
	if (st == UCS_ERR_BUSY)
		return;
	must_ucs(st, "ucp_worker_arm");
	must_ucs(ucp_worker_get_efd(p->worker, &fd.fd), "ucp_worker_get_efd");
	must_sys(poll(&fd, 1, -1), "poll");
}

/* ---- the server ---- */

static void server(void *arg, int ready)
{
	struct peer *p = arg;
	ucp_address_t *address;
	size_t size;

	init(p, AM_REQUEST);
	must_ucs(ucp_worker_get_address(p->worker, &address, &size),
		 "ucp_worker_get_address");
	if (size > ADDRESS_SIZE)
		must(-ENOBUFS, "address");
	memcpy(p->address, address, size);
	ucp_worker_release_address(p->worker, address);
	duo_ready(ready);
	for (;;)
		turn(p);
}

/* ---- the client ---- */

static void client(struct peer *p)
{
	ucp_ep_params_t params = {
		.field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS,
		.address = p->address,
	};

	init(p, AM_REPLY);
	must_ucs(ucp_ep_create(p->worker, &params, &p->ep), "ucp_ep_create");
	for (size_t i = 0; i < p->load.depth; i++)
		request_send(p, i);
	while (p->load.under_way)
		turn(p);
}

int main(int argc, char **argv)
{
	struct peer p = { 0 };

	load_args(&p.load, argc, argv);
	p.address = mmap(NULL, ADDRESS_SIZE, PROT_READ | PROT_WRITE,
			 MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (p.address == MAP_FAILED)
		must_sys(-1, "mmap");
	load_fork(&p.load, server, &p);
	client(&p);
	load_end(&p.load);
	return 0;
}
