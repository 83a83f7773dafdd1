/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Looking up the addresses of hosts: in /etc/hosts and by DNS, as the host is
 * configured, with c-ares. A look-up is for one list of hosts, or first asks
 * DNS for the list (SRV). Owner: the resolver's thread.
 */
#ifndef NAMES_LOOKUP_H
#define NAMES_LOOKUP_H

#include "names/answer.h"

struct ares_channeldata;
struct pollfd;

/* ms until a name server is asked again, or the next one is asked; the time
 * then doubles. A look-up fails after 6 s if the only name server is silent. */
#define LOOKUP_TIMEOUT 2000
#define LOOKUP_TRIES   2
/* The most hosts that one look-up has, and the most descriptors of all
 * look-ups. */
#define LOOKUP_HOSTS LNET_ADDRESSES_MAX
#define LOOKUP_FDS   16

struct lookups {
	struct lnet *node;
	struct ares_channeldata *channel; /* NULL: it has to be made */
	unsigned int under_way;		  /* how many queries are under way */
	/* A query was not answered. Perhaps the configuration of the host has
	 * changed: it is read again when no query is under way. */
	bool doubtful;
};

/* A server that is to be looked up. */
struct lookup_host {
	char host[NAME_HOST_MAX + 1];
	uint16_t port, priority, weight;
	/* the net of its addresses; LNET_NET_ANY: answer_net() says */
	uint32_t net;
};

/* What was found. */
struct lookup_result {
	int status;
	char why[LNET_NAME_WHY];
	uint64_t ttl; /* s: the shortest time to live of what was found */
	struct address_list found;
};

/* @result is valid only during the call. The call may come before the function
 * that began the look-up has returned. */
typedef void (*lookup_fn)(void *arg, const struct lookup_result *result);

/* The server that a text names: target_next(). */
void lookup_host_of(const struct name_text *name, struct lookup_host *host);

void lookups_init(struct lookups *x, struct lnet *node);
/* Ends all look-ups that are under way as failed. */
void lookups_fini(struct lookups *x);
/* Begin a look-up; @hosts is copied. */
void lookup_hosts(struct lookups *x, const struct lookup_host *hosts,
		  unsigned int n, lookup_fn done, void *arg);
void lookup_srv(struct lookups *x, const char *name, uint32_t net,
		lookup_fn done, void *arg);

/* Fills in @fds, which has LOOKUP_FDS entries, with the descriptors to poll.
 * Lowers *@timeout, ms (-1: none), to the time after which lookups_run() has to
 * be called in any case. Returns how many entries it has filled. */
unsigned int lookups_fds(struct lookups *x, struct pollfd *fds, int *timeout);
/* Handles what poll() has reported in @fds, and time-outs. */
void lookups_run(struct lookups *x, const struct pollfd *fds, unsigned int n);

#endif
