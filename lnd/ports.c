/* SPDX-License-Identifier: BSD-3-Clause */
#include "lnd/ports.h"

#include <errno.h>
#include <stdlib.h>

struct port_entry {
	struct hash_node by_nid;
	struct ulnet_nid nid;
	uint16_t port;
};

void lnd_ports_init(struct lnd_ports *ports)
{
	pthread_mutex_init(&ports->lock, NULL);
	hash_init(&ports->by_nid);
	ports->n = 0;
}

void lnd_ports_fini(struct lnd_ports *ports)
{
	struct hash_node *n;

	while ((n = hash_pop(&ports->by_nid)))
		free(container_of(n, struct port_entry, by_nid));
	hash_fini(&ports->by_nid);
	pthread_mutex_destroy(&ports->lock);
}

static uint64_t nid_hash(const struct ulnet_nid *nid)
{
	return hash_bytes(nid, sizeof(*nid), 0);
}

static struct port_entry *port_find(const struct lnd_ports *ports,
				    const struct ulnet_nid *nid)
{
	struct port_entry *e;

	hash_for_each_equal (e, &ports->by_nid, nid_hash(nid), by_nid)
		if (lnet_nid_eq(&e->nid, nid))
			return e;
	return NULL;
}

/* A new entry, without a port. The lock is held. */
static int port_add(struct lnd_ports *ports, const struct ulnet_nid *nid,
		    struct port_entry **e_p)
{
	struct port_entry *e;
	int rc;

	if (ports->n >= PORTS_MAX)
		return -ENOSPC;
	e = calloc(1, sizeof(*e));
	if (!e)
		return -ENOMEM;
	e->nid = *nid;
	rc = hash_add(&ports->by_nid, &e->by_nid, nid_hash(nid));
	if (rc) {
		free(e);
		return rc;
	}
	ports->n++;
	*e_p = e;
	return 0;
}

int lnd_ports_set(struct lnd_ports *ports, const struct ulnet_nid *nid,
		  uint16_t port, uint16_t *before_p)
{
	struct port_entry *e;
	int rc = 0;

	pthread_mutex_lock(&ports->lock);
	e = port_find(ports, nid);
	if (!e)
		rc = port_add(ports, nid, &e);
	if (!rc) {
		*before_p = e->port;
		e->port = port;
	}
	pthread_mutex_unlock(&ports->lock);
	return rc;
}

uint16_t lnd_ports_get(struct lnd_ports *ports, const struct ulnet_nid *nid,
		       uint16_t usual)
{
	const struct port_entry *e;
	uint16_t port;

	pthread_mutex_lock(&ports->lock);
	e = port_find(ports, nid);
	port = e ? e->port : usual;
	pthread_mutex_unlock(&ports->lock);
	return port;
}
