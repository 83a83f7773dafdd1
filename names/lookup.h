/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Looks up the addresses of hosts with c-ares, as the host is configured: in
 * /etc/hosts and by DNS. A look-up is for a list of hosts, or for a service
 * whose list of hosts DNS has (SRV). Owner: the resolver's thread.
 */
#ifndef NAMES_LOOKUP_H
#define NAMES_LOOKUP_H

#include "names/answer.h"

struct ares_channeldata;
struct pollfd;

/* ms until a name server is asked again, or the next one is asked. The time
 * doubles with each try. If the only name server is silent, a look-up fails
 * after 6 s. */
#define LOOKUP_TIMEOUT 2000
#define LOOKUP_TRIES   2
/* hosts of one look-up, and descriptors of all look-ups together, at most */
#define LOOKUP_HOSTS LNET_ADDRESSES_MAX
#define LOOKUP_FDS   16

struct lookups {
	struct lnet *node;
	struct ares_channeldata *channel; /* NULL: no look-up has made it yet */
	unsigned int under_way;		  /* how many queries are under way */
	/* a query was not answered, perhaps because the host's configuration
	 * has changed: it is read again when no query is under way */
	bool doubtful;
};

/* A server that is to be looked up. */
struct lookup_host {
	char host[NAME_HOST_MAX + 1];
	uint16_t port, priority, weight;
	/* net of the server's addresses; LNET_NET_ANY: answer_net() tells */
	uint32_t net;
};

/* What look-ups of one name have found so far, host by host: all 0 before the
 * first one. A host that could not be looked up keeps its addresses, unless
 * a name server has said that it has none. */
struct lookup_known {
	unsigned int nhosts, n;
	struct lookup_host *hosts;
	struct lookup_address {
		unsigned int host; /* index in @hosts */
		struct ulnet_nid nid;
	} * addresses;
};

/* The result of a look-up. */
struct lookup_result {
	/* 0 if any address was found now. Otherwise there may be addresses that
	 * were found before. */
	int status;
	/* partial: a host was not looked up, and nobody said that it has no
	 * address. So it should be asked for again soon. */
	bool partial;
	/* the reason of the first failure, of a host, too; "": there was none
	 */
	char why[LNET_NAME_WHY];
	uint64_t ttl; /* s: the shortest time to live in the answers */
	struct address_list found;
};

/* Is called with the result of a look-up, which is valid only during the call;
 * perhaps before the function that has begun the look-up returns. */
typedef void (*lookup_fn)(void *arg, const struct lookup_result *result);

/* Fills in *@host with the server that *@name names, as target_next() has
 * parsed it. */
void lookup_host_of(const struct name_text *name, struct lookup_host *host);

void lookups_init(struct lookups *x, struct lnet *node);
/* Ends all look-ups that are under way as failed. */
void lookups_fini(struct lookups *x);
/* Begin a look-up of @n @hosts, which are copied, or of the service @name,
 * whose hosts are on @net. @done(@arg, result) is called once. Until then
 * *@known is the look-up's; then it has what is known now. */
void lookup_hosts(struct lookups *x, const struct lookup_host *hosts,
		  unsigned int n, struct lookup_known *known, lookup_fn done,
		  void *arg);
void lookup_srv(struct lookups *x, const char *name, uint32_t net,
		struct lookup_known *known, lookup_fn done, void *arg);
void lookup_known_fini(struct lookup_known *known);

/* Fills in @fds, which has LOOKUP_FDS entries, with the descriptors to poll.
 * Lowers *@timeout (ms; -1: none) to the time after which lookups_run() has to
 * be called in any case. Returns how many entries it has filled. */
unsigned int lookups_fds(struct lookups *x, struct pollfd *fds, int *timeout);
/* Handles what poll() has reported in the @n entries of @fds, and time-outs. */
void lookups_run(struct lookups *x, const struct pollfd *fds, unsigned int n);

#endif
