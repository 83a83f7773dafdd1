/* SPDX-License-Identifier: BSD-3-Clause */
#include "lnd/o2iblnd/simqp/mr.h"

#include <errno.h>

#include "lnd/o2iblnd/simqp/port.h"

struct key {
	struct hash_node hash; /* port.keys, by the key */
	bool remote;
};

struct mr {
	struct ib_mr ib;
	struct key lkey, rkey;
	bool remote;
};

/* No key of a port comes twice: who uses an old one is found out. */
static uint32_t key_new(struct simqp_fabric *f)
{
	f->last_key += 1 + (uint32_t)rng_below(&f->key_rng, 200);
	return f->last_key;
}

static int keys_add(struct simqp_port *port, struct mr *mr)
{
	mr->ib.lkey = key_new(port->fabric);
	mr->ib.rkey = key_new(port->fabric);
	mr->rkey.remote = true;
	if (hash_add(&port->keys, &mr->lkey.hash, mr->ib.lkey))
		return -ENOMEM;
	if (hash_add(&port->keys, &mr->rkey.hash, mr->ib.rkey)) {
		hash_del(&port->keys, &mr->lkey.hash);
		return -ENOMEM;
	}
	return 0;
}

static int reg_refused(struct simqp_port *port, const void *addr, size_t length)
{
	const struct simqp_device *d = &port->addr->device;

	if (port->removed)
		return -ENODEV;
	if (!addr)
		return -EFAULT;
	if (!length || length > UINTPTR_MAX - (uintptr_t)addr ||
	    (d->limits.max_mr_size && length > d->limits.max_mr_size))
		return -EINVAL;
	if (d->locked_max && length > d->locked_max - port->usage.locked)
		return -ENOMEM;
	if (simqp_dice(port->fabric, d->reg_fails))
		return -ENOMEM;
	return simqp_addr_fails(port->addr, SIMQP_CALL_REG);
}

int simqp_reg(struct ib_port *ib, void *addr, size_t length, bool remote,
	      struct ib_mr **mr_p)
{
	struct simqp_port *port = simqp_port(ib);
	int rc = reg_refused(port, addr, length);
	struct mr *mr;

	if (rc)
		return rc;
	mr = simqp_alloc(sizeof(*mr));
	mr->ib.addr = addr;
	mr->ib.length = length;
	mr->remote = remote;
	rc = keys_add(port, mr);
	if (rc) {
		free(mr);
		return rc;
	}
	port->usage.mrs++;
	port->usage.locked += length;
	*mr_p = &mr->ib;
	return 0;
}

void simqp_dereg(struct ib_port *ib, struct ib_mr *ib_mr)
{
	struct simqp_port *port = simqp_port(ib);
	struct mr *mr = container_of(ib_mr, struct mr, ib);

	hash_del(&port->keys, &mr->lkey.hash);
	hash_del(&port->keys, &mr->rkey.hash);
	port->usage.mrs--;
	port->usage.locked -= mr->ib.length;
	free(mr);
}

/* NULL: no memory has it. */
static const struct key *key_find(const struct simqp_port *port, uint32_t key)
{
	struct hash_node *n = hash_first(&port->keys, key);

	return n ? container_of(n, struct key, hash) : NULL;
}

static bool mr_covers(const struct mr *mr, uint64_t addr, uint64_t length)
{
	uint64_t start = (uintptr_t)mr->ib.addr;

	return addr >= start && length <= mr->ib.length &&
	       addr - start <= mr->ib.length - length;
}

bool simqp_mr_is_local(const struct simqp_port *port, const struct ib_sge *sge)
{
	const struct key *key;

	if (!sge->length)
		return true;
	key = key_find(port, sge->lkey);
	return key && !key->remote &&
	       mr_covers(container_of(key, struct mr, lkey),
			 (uintptr_t)sge->addr, sge->length);
}

bool simqp_mr_is_remote(const struct simqp_port *port, uint64_t addr,
			uint64_t length, uint32_t rkey)
{
	const struct key *key = key_find(port, rkey);
	const struct mr *mr;

	if (!key || !key->remote)
		return false;
	mr = container_of(key, struct mr, rkey);
	return mr->remote && mr_covers(mr, addr, length);
}
