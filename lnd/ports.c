/* SPDX-License-Identifier: BSD-3-Clause */
#include "lnd/ports.h"

#include <errno.h>
#include <stdlib.h>

#define SOURCES (LNET_PORT_FOUND + 1)

struct port_entry {
	struct hash_node by_nid;
	struct ulnet_nid nid;
	/* by source, the strongest first */
	struct {
		unsigned int claims;
		uint16_t port;
	} of[SOURCES];
};

void lnd_ports_init(struct lnd_ports *ports, uint64_t seed)
{
	pthread_mutex_init(&ports->lock, NULL);
	hash_init(&ports->by_nid);
	ports->seed = seed;
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

static uint64_t nid_hash(const struct lnd_ports *ports,
			 const struct ulnet_nid *nid)
{
	return hash_bytes(nid, sizeof(*nid), ports->seed);
}

static struct port_entry *port_find(const struct lnd_ports *ports,
				    const struct ulnet_nid *nid)
{
	struct port_entry *e;

	hash_for_each_equal (e, &ports->by_nid, nid_hash(ports, nid), by_nid)
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
	rc = hash_add(&ports->by_nid, &e->by_nid, nid_hash(ports, nid));
	if (rc) {
		free(e);
		return rc;
	}
	ports->n++;
	*e_p = e;
	return 0;
}

/* Returns the entry of @nid, which is made if there is none. The lock is held.
 */
static int port_need(struct lnd_ports *ports, const struct ulnet_nid *nid,
		     struct port_entry **e_p)
{
	*e_p = port_find(ports, nid);
	return *e_p ? 0 : port_add(ports, nid, e_p);
}

int lnd_ports_set(struct lnd_ports *ports, const struct ulnet_nid *nid,
		  uint16_t port, uint16_t *before_p)
{
	struct port_entry *e;
	int rc;

	pthread_mutex_lock(&ports->lock);
	rc = port_need(ports, nid, &e);
	if (!rc) {
		*before_p = e->of[LNET_PORT_SET].port;
		e->of[LNET_PORT_SET].port = port;
		e->of[LNET_PORT_SET].claims = 1;
	}
	pthread_mutex_unlock(&ports->lock);
	return rc;
}

/* Does @source, or the strongest one that is stronger, say that it is at
 * another port than @port? What is between the two does not count. */
static bool port_differs(const struct port_entry *e, uint16_t port,
			 enum ulnet_port_source source)
{
	unsigned int i = 0;

	while (i < (unsigned int)source && !e->of[i].claims)
		i++;
	return (e->of[i].claims && e->of[i].port != port) ||
	       (e->of[source].claims && e->of[source].port != port);
}

int lnd_ports_claim(struct lnd_ports *ports, const struct ulnet_nid *nid,
		    uint16_t port, enum ulnet_port_source source)
{
	struct port_entry *e;
	int rc;

	pthread_mutex_lock(&ports->lock);
	rc = port_need(ports, nid, &e);
	if (!rc && source != LNET_PORT_GIVEN && port_differs(e, port, source))
		rc = -EEXIST;
	if (!rc) {
		e->of[source].port = port;
		e->of[source].claims++;
	}
	pthread_mutex_unlock(&ports->lock);
	return rc;
}

/* The lock is held. */
static void port_free_unused(struct lnd_ports *ports, struct port_entry *e)
{
	for (unsigned int i = 0; i < SOURCES; i++)
		if (e->of[i].claims)
			return;
	hash_del(&ports->by_nid, &e->by_nid);
	ports->n--;
	free(e);
}

void lnd_ports_release(struct lnd_ports *ports, const struct ulnet_nid *nid,
		       enum ulnet_port_source source)
{
	struct port_entry *e;

	pthread_mutex_lock(&ports->lock);
	e = port_find(ports, nid);
	if (e && e->of[source].claims) {
		e->of[source].claims--;
		port_free_unused(ports, e);
	}
	pthread_mutex_unlock(&ports->lock);
}

uint16_t lnd_ports_get(struct lnd_ports *ports, const struct ulnet_nid *nid,
		       uint16_t usual)
{
	const struct port_entry *e;
	uint16_t port = 0;

	pthread_mutex_lock(&ports->lock);
	e = port_find(ports, nid);
	for (unsigned int i = 0; e && !port && i < SOURCES; i++)
		if (e->of[i].claims)
			port = e->of[i].port;
	pthread_mutex_unlock(&ports->lock);
	return port ? port : usual;
}
