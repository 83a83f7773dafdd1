/* SPDX-License-Identifier: BSD-3-Clause */
/* Ports: of which NI, what listens, which connect requests come. Inside simqp
 * only. */
#ifndef LND_O2IBLND_SIMQP_PORT_H
#define LND_O2IBLND_SIMQP_PORT_H

#include "lnd/o2iblnd/simqp/fabric.h"

struct simqp_port {
	struct ib_port ib;
	struct simqp_fabric *fabric;
	struct simqp_addr *addr;
	struct ib_port_conf conf;
	bool listening;
	bool removed;		  /* its device has gone */
	bool dying;		  /* its node has died: it waits for nothing */
	struct simqp_inbox inbox; /* CPT 0 */
	struct list qps;	  /* simqp_qp.link */
	struct hash keys;	  /* of registered memory */
	struct simqp_usage usage;
	uint16_t last_src_port;
	uint8_t src_ports[8192]; /* a bit for each that is in use */
};

static inline struct simqp_port *simqp_port(struct ib_port *ib)
{
	return container_of(ib, struct simqp_port, ib);
}

/* As verbs.h. */
int simqp_open(struct lnd_ni *ni, const struct ib_port_conf *conf,
	       const struct ib_events *events, void *user,
	       struct ib_port **port_p, const char **why);
void simqp_close(struct ib_port *ib);
void simqp_deafen(struct ib_port *ib);

/* A port to connect from; 0: none is left. */
uint16_t simqp_src_port_get(struct simqp_port *port);
void simqp_src_port_put(struct simqp_port *port, uint16_t src_port);

/* Tells the LND. */
void simqp_port_changed(struct simqp_port *port, bool up, bool removed,
			const char *why);

/* ---- registered memory ---- */

/* Registered memory of a port, by its keys. Inside simqp only. */

/* As verbs.h. */
int simqp_reg(struct ib_port *ib, void *addr, size_t length, bool remote,
	      struct ib_mr **mr_p);
void simqp_dereg(struct ib_port *ib, struct ib_mr *ib_mr);

/* Is all of it memory that has this lkey? What is empty, is. */
bool simqp_mr_is_local(const struct simqp_port *port, const struct ib_sge *sge);
/* May peers write there? */
bool simqp_mr_is_remote(const struct simqp_port *port, uint64_t addr,
			uint64_t length, uint32_t rkey);

#endif
