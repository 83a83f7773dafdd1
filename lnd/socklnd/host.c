/* SPDX-License-Identifier: BSD-3-Clause */
#include "lnd/socklnd/host.h"

#include <errno.h>

#include "base/share.h"
#include "lnd/socklnd/sock.h"

static uint64_t host_hash(const struct sock_cpt *cpt,
			  const struct ulnet_nid *nid)
{
	return sock_nid_hash(nid, 0, cpt->sni->seed);
}

static struct sock_host *host_find(struct sock_cpt *cpt,
				   const struct ulnet_nid *nid)
{
	struct sock_host *host;

	hash_for_each_equal (host, &cpt->hosts, host_hash(cpt, nid), hash)
		if (lnet_nid_eq(&host->nid, nid))
			return host;
	return NULL;
}

static struct sock_host *host_new(struct sock_cpt *cpt,
				  const struct ulnet_nid *nid)
{
	struct sock_host *host = calloc(1, sizeof(*host));

	if (!host)
		return NULL;
	host->nid = *nid;
	list_init(&host->waiting);
	list_init(&host->turn);
	if (hash_add(&cpt->hosts, &host->hash, host_hash(cpt, nid))) {
		free(host);
		return NULL;
	}
	return host;
}

struct sock_host *sock_host_hold(struct sock_cpt *cpt,
				 const struct ulnet_nid *nid)
{
	struct sock_host *host = host_find(cpt, nid);

	if (!host)
		host = host_new(cpt, nid);
	if (host)
		host->holders++;
	return host;
}

void sock_host_release(struct sock_cpt *cpt, struct sock_host *host)
{
	if (!host || --host->holders)
		return;
	BUG_ON(!list_empty(&host->waiting) || !list_empty(&host->turn));
	hash_del(&cpt->hosts, &host->hash);
	free(host);
}

/* Counts one more connection of a host that has @held, if its share allows one
 * more. Counts it before looking, since all CPTs share one counter. */
static bool host_reserve(struct sock_cpt *cpt, unsigned int held,
			 unsigned int *used_p)
{
	unsigned int used = atomic_fetch_add(&cpt->sni->accepted, 1);

	*used_p = used;
	if (share_allows(held, used, sock_files_max(), 1))
		return true;
	atomic_fetch_sub(&cpt->sni->accepted, 1);
	return false;
}

/* Adds a connection, which sock_ni.accepted counts already, to the host @nid.
 * Returns 0 or -ENOMEM. */
static int host_add_conn(struct sock_cpt *cpt, const struct ulnet_nid *nid,
			 struct sock_host **host_p)
{
	struct sock_host *host = sock_host_hold(cpt, nid);

	if (!host) {
		atomic_fetch_sub(&cpt->sni->accepted, 1);
		return -ENOMEM;
	}
	host->conns++;
	*host_p = host;
	return 0;
}

int sock_host_get(struct sock_cpt *cpt, const struct ulnet_nid *nid,
		  struct sock_host **host_p)
{
	struct sock_host *host = host_find(cpt, nid);
	unsigned int held = host ? host->conns : 0, used;
	char text[LNET_NIDSTR_SIZE];

	if (!host_reserve(cpt, held, &used)) {
		log_warn_limited(&cpt->complaints, loop_now(cpt->loop),
				 "socklnd",
				 "%s: refused: it has %u of %u connections, "
				 "its share of the %llu files that this "
				 "process may open (ulimit -n)",
				 lnet_nid_format(nid, text, sizeof(text)), held,
				 used, (unsigned long long)sock_files_max());
		return -EALREADY;
	}
	return host_add_conn(cpt, nid, host_p);
}

int sock_host_keep(struct sock_cpt *cpt, const struct ulnet_nid *nid,
		   struct sock_host **host_p)
{
	atomic_fetch_add(&cpt->sni->accepted, 1);
	return host_add_conn(cpt, nid, host_p);
}

void sock_host_put(struct sock_cpt *cpt, struct sock_host *host)
{
	if (!host)
		return;
	atomic_fetch_sub(&cpt->sni->accepted, 1);
	host->conns--;
	sock_host_release(cpt, host);
}

/* ---- frames that were given up ---- */

int sock_host_copy_get(struct sock_cpt *cpt, const struct ulnet_nid *nid,
		       uint32_t bytes, struct sock_host **host_p)
{
	uint64_t most = (uint64_t)cpt->sni->tunables[SOCK_finish_max];
	struct sock_host *host = sock_host_hold(cpt, nid);
	char text[LNET_NIDSTR_SIZE];

	if (!host)
		return -ENOMEM;
	if (!share_allows(host->copied, cpt->copied, most, bytes)) {
		log_warn_limited(&cpt->complaints, loop_now(cpt->loop),
				 "socklnd",
				 "%s: a message given up half sent costs the "
				 "connections: copies of such messages take "
				 "%llu bytes already, of %llu (finish_max)",
				 lnet_nid_format(nid, text, sizeof(text)),
				 (unsigned long long)cpt->copied,
				 (unsigned long long)most);
		sock_host_release(cpt, host);
		return -ENOBUFS;
	}
	host->copied += bytes;
	cpt->copied += bytes;
	*host_p = host;
	return 0;
}

void sock_host_copy_put(struct sock_cpt *cpt, struct sock_host *host,
			uint32_t bytes)
{
	host->copied -= bytes;
	cpt->copied -= bytes;
	sock_host_release(cpt, host);
}
