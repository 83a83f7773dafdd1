/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <sys/resource.h>

#include "lnd/o2iblnd/rdma.h"

struct ibr_mr {
	struct ib_mr mr;
	struct ibv_mr *ibv;
};

int ibr_port_complain(struct ibr_port *p, const char *what, int rc)
{
	char text[LNET_NIDSTR_SIZE];
	struct rlimit limit;

	if (rc != -ENOMEM || getrlimit(RLIMIT_MEMLOCK, &limit) ||
	    limit.rlim_cur == RLIM_INFINITY ||
	    atomic_exchange(&p->locked, true))
		return rc;
	log_warn("o2iblnd",
		 "%s: %s: %s: this process may lock %llu KiB (ulimit -l)",
		 ibr_port_name(p, text), what, strerror(-rc),
		 (unsigned long long)(limit.rlim_cur >> 10));
	return rc;
}

int ibr_mr_reg(struct ib_port *port, void *addr, size_t length, bool remote,
	       struct ib_mr **mr_p)
{
	int access = IBV_ACCESS_LOCAL_WRITE;
	struct ibr_port *p = ibr_port(port);
	struct ibr_mr *m = malloc(sizeof(*m));

	if (!m)
		return -ENOMEM;
	/* No relaxed ordering: what tells of the data must not overtake it. */
	if (remote)
		access |= IBV_ACCESS_REMOTE_WRITE;
	m->ibv = ibv_reg_mr(p->pd, addr, length, access);
	if (!m->ibv) {
		int rc = -errno;

		free(m);
		return ibr_port_complain(p, "memory cannot be registered", rc);
	}
	m->mr.addr = addr;
	m->mr.length = length;
	m->mr.lkey = m->ibv->lkey;
	m->mr.rkey = m->ibv->rkey;
	*mr_p = &m->mr;
	return 0;
}

void ibr_mr_dereg(struct ib_port *port, struct ib_mr *mr)
{
	struct ibr_mr *m = container_of(mr, struct ibr_mr, mr);
	char text[LNET_NIDSTR_SIZE];
	int rc = ibv_dereg_mr(m->ibv);

	/* A device that has gone touches nothing. */
	if (rc && rc != EIO && rc != ENODEV)
		log_err("o2iblnd", "%s: memory cannot be deregistered: %s",
			ibr_port_name(ibr_port(port), text), strerror(rc));
	free(m);
}
