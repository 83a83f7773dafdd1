/* SPDX-License-Identifier: BSD-3-Clause */
#include "names/lookup.h"

#include <ares.h>
#include <arpa/inet.h>
#include <arpa/nameser.h>
#include <errno.h>
#include <netdb.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <sys/time.h>

/* s: time to live of what has none: addresses in /etc/hosts, and texts that are
 * addresses */
#define TTL_HOSTS 30

/* A look-up. It is freed when none of its queries is under way. */
struct lookup {
	struct lookups *of;
	lookup_fn done;
	void *arg;
	/* queries under way, and the function that begins them */
	unsigned int pending;
	uint32_t net; /* of an SRV look-up: the net of all hosts */
	struct lookup_known *known;
	/* the hosts, and what was found; becomes *@known */
	struct lookup_known now;
	int *statuses; /* of c-ares, for each host */
	struct lookup_result result;
};

/* A query for the addresses of one host. */
struct query {
	struct lookup *lookup;
	unsigned int host; /* index in lookup.now.hosts */
};

/* ---- results ---- */

static const struct {
	int ares, status;
	const char *why;
} failures[] = {
	{ ARES_ENOTFOUND, -ENOENT, "there is no such name" },
	{ ARES_ENODATA, -ENODATA, "the name has no address" },
	{ ARES_EBADNAME, -EINVAL, "DNS has no such names" },
	{ ARES_ETIMEOUT, -ETIMEDOUT, "no name server answers" },
	{ ARES_ECONNREFUSED, -ECONNREFUSED,
	  "no name server takes the question" },
	{ ARES_ESERVFAIL, -EREMOTEIO, "the name server has failed" },
	{ ARES_EREFUSED, -EACCES, "the name server refuses to answer" },
	{ ARES_EBADRESP, -EBADMSG, "the name server's answer is damaged" },
	{ ARES_ENOMEM, -ENOMEM, "no memory" },
};

/* Keeps the reason of the first failure of a look-up. */
static void lookup_failed(struct lookup *l, const char *host, int ares)
{
	struct lookup_result *r = &l->result;
	const char *why = ares_strerror(ares);
	int status = -EIO;

	if (ares == ARES_ETIMEOUT || ares == ARES_ECONNREFUSED)
		l->of->doubtful = true;
	if (r->status)
		return;
	for (size_t i = 0; i < ARRAY_SIZE(failures); i++)
		if (failures[i].ares == ares) {
			status = failures[i].status;
			why = failures[i].why;
		}
	r->status = status;
	if (l->now.nhosts > 1)
		snprintf(r->why, sizeof(r->why), "%.60s: %s", host, why);
	else
		snprintf(r->why, sizeof(r->why), "%s", why);
}

static void result_ttl(struct lookup *l, uint64_t ttl)
{
	l->result.ttl = MIN(l->result.ttl, ttl);
}

static void found_add(struct lookup *l, unsigned int host, struct ulnet_nid nid)
{
	if (l->now.n < LNET_ADDRESSES_MAX)
		l->now.addresses[l->now.n++] =
			(struct lookup_address){ host, nid };
}

/* Adds the addresses of @host that were known before. */
static void found_before(struct lookup *l, unsigned int host)
{
	const struct lookup_host *h = &l->now.hosts[host];
	const struct lookup_known *k = l->known;
	unsigned int i;

	for (i = 0; i < k->nhosts; i++)
		if (k->hosts[i].net == h->net &&
		    !strcasecmp(k->hosts[i].host, h->host))
			break;
	for (unsigned int j = 0; j < k->n; j++)
		if (k->addresses[j].host == i)
			found_add(l, host, k->addresses[j].nid);
}

/* Has a name server said that there is no such host, or no address? */
static bool is_no(int ares)
{
	return ares == ARES_ENOTFOUND || ares == ARES_ENODATA ||
	       ares == ARES_EBADNAME;
}

static void host_judge(struct lookup *l, unsigned int host)
{
	int ares = l->statuses[host];

	if (ares == ARES_SUCCESS)
		return;
	lookup_failed(l, l->now.hosts[host].host, ares);
	if (is_no(ares)) {
		/* How long this is true, c-ares does not tell. */
		result_ttl(l, TTL_HOSTS);
		return;
	}
	l->result.partial = true;
	found_before(l, host);
}

/* Adds the addresses of @host to the result. */
static void result_add(struct lookup *l, unsigned int host)
{
	const struct lookup_host *h = &l->now.hosts[host];

	for (unsigned int i = 0; i < l->now.n; i++) {
		const struct ulnet_address address = {
			.nid = l->now.addresses[i].nid,
			.port = h->port,
			.priority = h->priority,
			.weight = h->weight,
		};

		if (l->now.addresses[i].host == host)
			address_add(&l->result.found, &address);
	}
}

static void *array_fit(void *array, size_t n, size_t size)
{
	void *fitting = realloc(array, MAX(n, (size_t)1) * size);

	if (!fitting)
		return array;
	return fitting;
}

/* Remembers what was found. */
static void known_take(struct lookup *l)
{
	struct lookup_known *k = &l->now;

	lookup_known_fini(l->known);
	k->hosts = array_fit(k->hosts, k->nhosts, sizeof(k->hosts[0]));
	k->addresses = array_fit(k->addresses, k->n, sizeof(k->addresses[0]));
	*l->known = *k;
	*k = (struct lookup_known){ 0 };
}

static void lookup_free(struct lookup *l)
{
	lookup_known_fini(&l->now);
	free(l->statuses);
	free(l);
}

static void lookup_put(struct lookup *l)
{
	struct lookup_result *r = &l->result;
	bool fresh = l->now.n > 0;

	if (--l->pending)
		return;
	for (unsigned int i = 0; i < l->now.nhosts; i++)
		host_judge(l, i);
	/* In the order of the hosts, whichever was answered first. */
	for (unsigned int i = 0; i < l->now.nhosts; i++)
		result_add(l, i);
	/* A look-up that has found some servers has not failed. */
	if (fresh)
		r->status = 0;
	if (l->now.nhosts)
		known_take(l);
	l->done(l->arg, r);
	lookup_free(l);
}

static uint32_t host_net(const struct lookup *l, const struct lookup_host *h)
{
	return h->net == LNET_NET_ANY ? answer_net(l->of->node) : h->net;
}

/* ---- hosts ---- */

static void found_add_node(struct lookup *l, unsigned int host,
			   const struct ares_addrinfo_node *node)
{
	const void *from;
	char text[INET6_ADDRSTRLEN];
	struct ulnet_nid nid;

	if (node->ai_family == AF_INET)
		from = &((const struct sockaddr_in *)(const void *)
				 node->ai_addr)
				->sin_addr;
	else if (node->ai_family == AF_INET6)
		from = &((const struct sockaddr_in6 *)(const void *)
				 node->ai_addr)
				->sin6_addr;
	else
		return;
	if (inet_ntop(node->ai_family, from, text, sizeof(text)) &&
	    target_address(text, host_net(l, &l->now.hosts[host]), &nid))
		found_add(l, host, nid);
}

static void on_host(void *arg, int status, int timeouts,
		    struct ares_addrinfo *found)
{
	struct query *q = arg;
	struct lookup *l = q->lookup;
	const struct ares_addrinfo_node *node;

	(void)timeouts;
	l->of->under_way--;
	l->statuses[q->host] = status;
	for (node = found ? found->nodes : NULL; node; node = node->ai_next) {
		found_add_node(l, q->host, node);
		result_ttl(l, node->ai_ttl > 0 ? (uint64_t)node->ai_ttl
					       : TTL_HOSTS);
	}
	ares_freeaddrinfo(found);
	free(q);
	lookup_put(l);
}

/* Is @name localhost, or in that domain? RFC 6761, 6.3: such names are the
 * loopback addresses of this host, and no name server is asked for them; so
 * they are known on a host without /etc/hosts, too. */
static bool is_localhost(const char *name)
{
	static const char home[] = "localhost";
	size_t length = strlen(name);

	if (length && name[length - 1] == '.')
		length--;
	if (length < sizeof(home) - 1)
		return false;
	name += length - (sizeof(home) - 1);
	return !strncasecmp(name, home, sizeof(home) - 1) &&
	       (length == sizeof(home) - 1 || name[-1] == '.');
}

/* Adds the addresses that @host has without a query. Returns false if there are
 * none. */
static bool found_without_query(struct lookup *l, unsigned int index)
{
	static const char *const loopback[] = { "127.0.0.1", "::1" };
	const struct lookup_host *host = &l->now.hosts[index];
	uint32_t net = host_net(l, host);
	struct ulnet_nid nid;

	if (target_address(host->host, net, &nid)) {
		found_add(l, index, nid);
		return true;
	}
	if (!is_localhost(host->host))
		return false;
	for (size_t i = 0; i < ARRAY_SIZE(loopback); i++)
		if (target_address(loopback[i], net, &nid))
			found_add(l, index, nid);
	return true;
}

static void host_ask(struct lookup *l, unsigned int index)
{
	const struct lookup_host *host = &l->now.hosts[index];
	const struct ares_addrinfo_hints hints = { .ai_family = AF_UNSPEC };
	struct query *q;

	if (found_without_query(l, index))
		return;
	q = malloc(sizeof(*q));
	if (!q) {
		l->statuses[index] = ARES_ENOMEM;
		return;
	}
	*q = (struct query){ l, index };
	l->pending++;
	l->of->under_way++;
	ares_getaddrinfo(l->of->channel, host->host, NULL, &hints, on_host, q);
}

static void hosts_ask(struct lookup *l)
{
	for (unsigned int i = 0; i < l->now.nhosts; i++)
		host_ask(l, i);
}

/* ---- SRV ---- */

/* A position in a message of DNS. */
struct dns_text {
	const unsigned char *begin, *p, *end;
};

static bool dns_skip_name(struct dns_text *t)
{
	char *name;
	long used;

	if (t->p >= t->end ||
	    ares_expand_name(t->p, t->begin, (int)(t->end - t->begin), &name,
			     &used) != ARES_SUCCESS)
		return false;
	ares_free_string(name);
	t->p += used;
	return t->p <= t->end;
}

static unsigned int get_be16(const unsigned char *p)
{
	return (unsigned int)p[0] << 8 | p[1];
}

/* Adds the server of the SRV record whose data are the @len bytes at @p.
 * Returns false if they are damaged. */
static bool take_srv(struct lookup *l, const struct dns_text *t,
		     const unsigned char *p, unsigned int len)
{
	struct lookup_host *host = &l->now.hosts[l->now.nhosts];
	char *name;
	long used;

	if (len < 7 ||
	    ares_expand_name(p + 6, t->begin, (int)(t->end - t->begin), &name,
			     &used) != ARES_SUCCESS)
		return false;
	/* The name "." says that there is no such service. */
	if (*name && strlen(name) <= NAME_HOST_MAX &&
	    l->now.nhosts < LOOKUP_HOSTS) {
		*host = (struct lookup_host){
			.priority = (uint16_t)get_be16(p),
			.weight = (uint16_t)get_be16(p + 2),
			.port = (uint16_t)get_be16(p + 4),
			.net = l->net,
		};
		memcpy(host->host, name, strlen(name) + 1);
		l->now.nhosts++;
	}
	ares_free_string(name);
	return used == (long)len - 6;
}

/* Reads one record. Returns false if the message is damaged. */
static bool take_record(struct lookup *l, struct dns_text *t)
{
	const unsigned char *p;
	unsigned int len;

	if (!dns_skip_name(t) || t->end - t->p < 10)
		return false;
	p = t->p;
	len = get_be16(p + 8);
	if (t->end - p - 10 < (long)len)
		return false;
	t->p = p + 10 + len;
	if (get_be16(p) != ns_t_srv || get_be16(p + 2) != ns_c_in)
		return true;
	result_ttl(l, (uint64_t)get_be16(p + 4) << 16 | get_be16(p + 6));
	return take_srv(l, t, p + 10, len);
}

/* Returns false if the answer is damaged. */
static bool take_srv_answer(struct lookup *l, const unsigned char *answer,
			    int length)
{
	struct dns_text t = { answer, answer + 12, answer + length };
	unsigned int left;

	if (length < 12)
		return false;
	for (left = get_be16(answer + 4); left; left--) {
		if (!dns_skip_name(&t) || t.end - t.p < 4)
			return false;
		t.p += 4;
	}
	for (left = get_be16(answer + 6); left; left--)
		if (!take_record(l, &t))
			return false;
	return true;
}

static void on_srv(void *arg, int status, int timeouts, unsigned char *answer,
		   int length)
{
	struct lookup *l = arg;

	(void)timeouts;
	l->of->under_way--;
	/* One half of a list is worse than the list that was known before. */
	if (status == ARES_SUCCESS && !take_srv_answer(l, answer, length)) {
		l->now.nhosts = 0;
		status = ARES_EBADRESP;
	} else if (status == ARES_SUCCESS && !l->now.nhosts) {
		status = ARES_ENODATA;
	}
	if (status != ARES_SUCCESS)
		lookup_failed(l, "", status);
	/* Hosts are not looked up when the channel ends: it would not answer.
	 */
	if (status != ARES_EDESTRUCTION)
		hosts_ask(l);
	lookup_put(l);
}

/* ---- look-ups ---- */

/* Makes the channel, if there is none. Makes it anew, with the configuration
 * that the host has now, if queries had no answer and none is under way. */
static int channel_make(struct lookups *x)
{
	struct ares_options options = {
		.timeout = LOOKUP_TIMEOUT,
		.tries = LOOKUP_TRIES,
	};
	int rc;

	if (x->channel && x->doubtful && !x->under_way) {
		ares_destroy(x->channel);
		x->channel = NULL;
	}
	if (x->channel)
		return ARES_SUCCESS;
	x->doubtful = false;
	rc = ares_init_options(&x->channel, &options,
			       ARES_OPT_TIMEOUTMS | ARES_OPT_TRIES);
	if (rc != ARES_SUCCESS)
		x->channel = NULL;
	return rc;
}

/* Returns a look-up with room for @room hosts, or NULL. */
static struct lookup *lookup_alloc(unsigned int room)
{
	struct lookup *l = calloc(1, sizeof(*l));

	if (!l)
		return NULL;
	l->now.hosts = calloc(room, sizeof(l->now.hosts[0]));
	l->now.addresses =
		calloc(LNET_ADDRESSES_MAX, sizeof(l->now.addresses[0]));
	l->statuses = calloc(room, sizeof(l->statuses[0]));
	if (l->now.hosts && l->now.addresses && l->statuses)
		return l;
	lookup_free(l);
	return NULL;
}

/* Makes a look-up with room for @room hosts, which is not 0. If that fails,
 * calls @done with the reason, and returns NULL. */
static struct lookup *lookup_new(struct lookups *x, unsigned int room,
				 struct lookup_known *known, lookup_fn done,
				 void *arg)
{
	struct lookup_result none = { .status = -ENOMEM, .why = "no memory" };
	struct lookup *l = lookup_alloc(room);
	int rc;

	if (!l) {
		done(arg, &none);
		return NULL;
	}
	l->of = x;
	l->known = known;
	l->done = done;
	l->arg = arg;
	l->pending = 1;
	l->result.ttl = UINT64_MAX;
	rc = channel_make(x);
	if (rc == ARES_SUCCESS)
		return l;
	lookup_failed(l, "", rc);
	lookup_put(l);
	return NULL;
}

void lookup_host_of(const struct name_text *name, struct lookup_host *host)
{
	*host = (struct lookup_host){ .port = name->port, .net = name->net };
	snprintf(host->host, sizeof(host->host), "%.*s", NAME_HOST_MAX,
		 name->what);
}

void lookup_hosts(struct lookups *x, const struct lookup_host *hosts,
		  unsigned int n, struct lookup_known *known, lookup_fn done,
		  void *arg)
{
	struct lookup *l = lookup_new(x, n, known, done, arg);

	if (!l)
		return;
	l->now.nhosts = n;
	memcpy(l->now.hosts, hosts, n * sizeof(hosts[0]));
	hosts_ask(l);
	lookup_put(l);
}

void lookup_srv(struct lookups *x, const char *name, uint32_t net,
		struct lookup_known *known, lookup_fn done, void *arg)
{
	struct lookup *l = lookup_new(x, LOOKUP_HOSTS, known, done, arg);

	if (!l)
		return;
	l->net = net;
	x->under_way++;
	/* The query takes over this function's share in l->pending. */
	ares_search(x->channel, name, ns_c_in, ns_t_srv, on_srv, l);
}

void lookup_known_fini(struct lookup_known *known)
{
	free(known->hosts);
	free(known->addresses);
	*known = (struct lookup_known){ 0 };
}

void lookups_init(struct lookups *x, struct lnet *node)
{
	*x = (struct lookups){ .node = node };
}

void lookups_fini(struct lookups *x)
{
	if (x->channel)
		ares_destroy(x->channel);
	x->channel = NULL;
}

/* ---- waiting ---- */

unsigned int lookups_fds(struct lookups *x, struct pollfd *fds, int *timeout)
{
	ares_socket_t sockets[ARES_GETSOCK_MAXNUM];
	struct timeval most, t, *next;
	unsigned int n = 0, mask;

	_Static_assert(LOOKUP_FDS >= ARES_GETSOCK_MAXNUM, "room for all");
	if (!x->channel)
		return 0;
	mask = (unsigned int)ares_getsock(x->channel, sockets,
					  ARES_GETSOCK_MAXNUM);
	for (int i = 0; i < ARES_GETSOCK_MAXNUM; i++) {
		short events = 0;

		/* The same bits as ARES_GETSOCK_READABLE() and
		 * ARES_GETSOCK_WRITABLE() test, but these shift into the sign.
		 */
		if (mask & 1u << i)
			events |= POLLIN;
		if (mask & 1u << (i + ARES_GETSOCK_MAXNUM))
			events |= POLLOUT;
		if (events)
			fds[n++] = (struct pollfd){ .fd = sockets[i],
						    .events = events };
	}
	most = (struct timeval){ .tv_sec = 3600 };
	next = ares_timeout(x->channel, &most, &t);
	if (n && next) {
		int ms = (int)(next->tv_sec * 1000 + next->tv_usec / 1000) + 1;

		*timeout = *timeout < 0 ? ms : MIN(*timeout, ms);
	}
	return n;
}

void lookups_run(struct lookups *x, const struct pollfd *fds, unsigned int n)
{
	if (!x->channel)
		return;
	for (unsigned int i = 0; i < n; i++) {
		bool in = fds[i].revents & (POLLIN | POLLERR | POLLHUP);
		bool out = fds[i].revents & (POLLOUT | POLLERR | POLLHUP);

		if (in || out)
			ares_process_fd(x->channel,
					in ? fds[i].fd : ARES_SOCKET_BAD,
					out ? fds[i].fd : ARES_SOCKET_BAD);
	}
	ares_process_fd(x->channel, ARES_SOCKET_BAD, ARES_SOCKET_BAD);
}
