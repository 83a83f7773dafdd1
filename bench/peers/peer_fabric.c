/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * libfabric: messages of a reliable, unconnected endpoint of the tcp provider,
 * or with --shm of the shm provider, the reply as another one. bench/load.h
 * tells the command line and what is printed. FABRIC_PROVIDER in the
 * environment names another provider.
 */
#include <errno.h>
#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "bench/load.h"

#define COMPLETIONS 64 /* read at a time */

struct peer {
	struct load load;
	uint16_t server_port, client_port;
	struct fi_info *info;
	struct fid_fabric *fabric;
	struct fid_domain *domain;
	struct fid_av *av;
	struct fid_cq *cq;
	struct fid_ep *ep;
	fi_addr_t to;
};

/* A receive buffer, which is also the context of its operation. */
struct buffer {
	struct fi_context2 context;
	unsigned char *data;
};

static void must_fi(ssize_t rc, const char *what)
{
	if (rc >= 0)
		return;
	fprintf(stderr, "peer_fabric: %s: %s\n", what, fi_strerror((int)-rc));
	exit(1);
}

/* ---- messages ---- */

static void must_be_alive(struct peer *p)
{
	struct fi_cq_err_entry e = { 0 };

	must_fi(fi_cq_readerr(p->cq, &e, 0), "fi_cq_readerr");
	must_fi(-e.err, "completion");
}

/* Makes room in a full queue, by reading completions. */
static void progress(struct peer *p)
{
	ssize_t n = fi_cq_read(p->cq, NULL, 0);

	if (n == -FI_EAVAIL)
		must_be_alive(p);
}

static void receive(struct peer *p, struct buffer *b, size_t size)
{
	ssize_t rc;

	while ((rc = fi_recv(p->ep, b->data, size, NULL, FI_ADDR_UNSPEC,
			     &b->context)) == -FI_EAGAIN)
		progress(p);
	must_fi(rc, "fi_recv");
}

/* Does not wait until the message is sent: its bytes stay until the answer
 * comes. */
static void message_send(struct peer *p, const void *data, size_t size)
{
	ssize_t rc;

	for (;;) {
		rc = size <= p->info->tx_attr->inject_size
			     ? fi_inject(p->ep, data, size, p->to)
			     : fi_send(p->ep, data, size, NULL, p->to, NULL);
		if (rc != -FI_EAGAIN)
			break;
		progress(p);
	}
	must_fi(rc, "fi_send");
}

static void to_address(struct peer *p, const char *address, uint16_t port)
{
	struct sockaddr_in a = duo_address(address, port);
	char name[64];

	/* what the shm provider makes of the other side's address and port */
	snprintf(name, sizeof(name), "fi_ns://%s:%u", address, port);
	if (fi_av_insert(p->av, p->load.shm ? (void *)name : (void *)&a, 1,
			 &p->to, 0, NULL) != 1)
		must(-EINVAL, "fi_av_insert");
}

static void request_send(struct peer *p, size_t slot)
{
	message_send(p, load_request(&p->load, slot), p->load.request_size);
}

static void on_message(struct peer *p, const struct buffer *b, size_t size)
{
	long slot;

	if (p->to == FI_ADDR_UNSPEC)
		to_address(p, DUO_CLIENT, p->client_port);
	if (!p->load.server) {
		message_send(p, load_serve(&p->load, b->data, size),
			     p->load.reply_size);
		return;
	}
	slot = load_replied(&p->load, b->data, size);
	if (slot >= 0)
		request_send(p, (size_t)slot);
}

/* Handles messages that have arrived; with --block, waits for one. */
static void turn(struct peer *p, size_t size)
{
	struct fi_cq_msg_entry e[COMPLETIONS];
	ssize_t n = p->load.block ? fi_cq_sread(p->cq, e, COMPLETIONS, NULL, -1)
				  : fi_cq_read(p->cq, e, COMPLETIONS);

	if (n == -FI_EAVAIL)
		must_be_alive(p);
	if (n == -FI_EAGAIN || n == -FI_EINTR)
		return;
	must_fi(n, "fi_cq_read");
	for (ssize_t i = 0; i < n; i++) {
		struct buffer *b = e[i].op_context;

		if (!(e[i].flags & FI_RECV))
			continue;
		on_message(p, b, e[i].len);
		receive(p, b, size);
	}
}

/* ---- endpoints ---- */

static void information(struct peer *p, const char *address, uint16_t port)
{
	const char *provider = p->load.shm ? "shm" : getenv("FABRIC_PROVIDER");
	struct fi_info *hints = fi_allocinfo();
	char service[8];

	if (!hints) {
		must(-ENOMEM, "fi_allocinfo");
		return;
	}
	hints->ep_attr->type = FI_EP_RDM;
	hints->caps = FI_MSG;
	hints->mode = FI_CONTEXT | FI_CONTEXT2;
	hints->addr_format = p->load.shm ? FI_ADDR_STR : FI_SOCKADDR_IN;
	hints->domain_attr->threading = FI_THREAD_DOMAIN;
	hints->fabric_attr->prov_name = strdup(provider ? provider : "tcp");
	snprintf(service, sizeof(service), "%u", port);
	must_fi(fi_getinfo(FI_VERSION(1, 17), address, service, FI_SOURCE,
			   hints, &p->info),
		"fi_getinfo");
	fi_freeinfo(hints);
}

static void open_endpoint(struct peer *p)
{
	struct fi_av_attr av = { .type = FI_AV_TABLE };
	struct fi_cq_attr cq = {
		.size = p->load.depth * 2 + COMPLETIONS,
		.format = FI_CQ_FORMAT_MSG,
		.wait_obj = p->load.block ? FI_WAIT_UNSPEC : FI_WAIT_NONE,
	};

	must_fi(fi_fabric(p->info->fabric_attr, &p->fabric, NULL), "fi_fabric");
	must_fi(fi_domain(p->fabric, p->info, &p->domain, NULL), "fi_domain");
	must_fi(fi_av_open(p->domain, &av, &p->av, NULL), "fi_av_open");
	must_fi(fi_cq_open(p->domain, &cq, &p->cq, NULL), "fi_cq_open");
	must_fi(fi_endpoint(p->domain, p->info, &p->ep, NULL), "fi_endpoint");
	must_fi(fi_ep_bind(p->ep, &p->av->fid, 0), "fi_ep_bind");
	must_fi(fi_ep_bind(p->ep, &p->cq->fid, FI_RECV), "fi_ep_bind");
	must_fi(fi_ep_bind(p->ep, &p->cq->fid,
			   FI_TRANSMIT | FI_SELECTIVE_COMPLETION),
		"fi_ep_bind");
	must_fi(fi_enable(p->ep), "fi_enable");
}

static void init(struct peer *p, const char *address, uint16_t port,
		 size_t size)
{
	size_t n = p->load.depth;
	struct buffer *b;

	information(p, address, port);
	open_endpoint(p);
	b = duo_buffer(n * sizeof(*b));
	for (size_t i = 0; i < n; i++) {
		b[i].data = duo_buffer(size);
		receive(p, &b[i], size);
	}
}

static void server(void *arg, int ready)
{
	struct peer *p = arg;

	init(p, DUO_SERVER, p->server_port, p->load.request_size);
	/* The shm provider maps the client's memory, which has to be there. */
	p->to = FI_ADDR_UNSPEC;
	if (!p->load.shm)
		to_address(p, DUO_CLIENT, p->client_port);
	duo_ready(ready);
	for (;;)
		turn(p, p->load.request_size);
}

static void client(struct peer *p)
{
	init(p, DUO_CLIENT, p->client_port, p->load.reply_size);
	to_address(p, DUO_SERVER, p->server_port);
	for (size_t i = 0; i < p->load.depth; i++)
		request_send(p, i);
	while (p->load.under_way)
		turn(p, p->load.reply_size);
}

/* Who is killed leaves its memory in /dev/shm. */
static void forget(const char *address, uint16_t port)
{
	char name[64];

	snprintf(name, sizeof(name), "/%s:%u", address, port);
	shm_unlink(name);
}

int main(int argc, char **argv)
{
	struct peer p = { 0 };

	load_args(&p.load, argc, argv);
	p.server_port = p.client_port = duo_free_port();
	load_fork(&p.load, server, &p);
	client(&p);
	load_end(&p.load);
	if (p.load.shm) {
		forget(DUO_SERVER, p.server_port);
		forget(DUO_CLIENT, p.client_port);
	}
	return 0;
}
