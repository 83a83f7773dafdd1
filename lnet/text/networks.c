/* SPDX-License-Identifier: BSD-3-Clause */
#include "lnet/text/networks.h"

#include <errno.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "lnet/nid/nid.h"
#include "lnet/text/bridge.h"
#include "lnet/text/spec.h"

/* The interface of a net in shared memory that is named without any: a number
 * that no other node of this host has (shmlnd(7)). */
#define SHM_ANY "auto"
#define SPEC_CONFS_MAX 1024 /* interfaces in one text */

/* spec_wrong() for the text of @w. */
#define wrong(w, ...) spec_wrong((w)->err, (w)->text, __VA_ARGS__)

/* ---- networks ---- */

/* Do NIs on nets of this type have an IP address? */
static bool net_is_ip(uint32_t net)
{
	switch (LNET_NET_TYPE(net)) {
	case LNET_TYPE_SOCK:
	case LNET_TYPE_O2IB:
	case LNET_TYPE_GNIIP:
	case LNET_TYPE_EFA:
		return true;
	default:
		return false;
	}
}

/* Fills @a from @i. Returns false: @i has no address that a NID can have. */
static bool address_of(const struct ifaddrs *i, struct ip2nets_address *a)
{
	const struct sockaddr_in *v4 = (const void *)i->ifa_addr;
	const struct sockaddr_in6 *v6 = (const void *)i->ifa_addr;

	if (!i->ifa_addr || !(i->ifa_flags & IFF_UP))
		return false;
	text_copy(a->interface, sizeof(a->interface), i->ifa_name);
	a->loopback = i->ifa_flags & IFF_LOOPBACK;
	a->carrier = i->ifa_flags & IFF_RUNNING;
	a->nid = lnet_nid_make(LNET_NET(LNET_TYPE_SOCK, 0), 0);
	if (i->ifa_addr->sa_family == AF_INET) {
		memcpy(a->nid.addr, &v4->sin_addr, 4);
		return true;
	}
	if (i->ifa_addr->sa_family != AF_INET6)
		return false;
	a->nid.size = LNET_NID_IPV6_SIZE;
	memcpy(a->nid.addr, &v6->sin6_addr, 16);
	/* The meaning of a link-local address depends on the link. */
	return !IN6_IS_ADDR_LINKLOCAL(&v6->sin6_addr);
}

/* Sets *@addrs_p, to be freed, to the addresses of this host. Returns how many,
 * or -errno. */
static int host_addresses(struct ip2nets_address **addrs_p)
{
	struct ip2nets_address *addrs;
	struct ifaddrs *list;
	size_t room = 1;
	int n = 0;

	if (getifaddrs(&list))
		return -errno;
	for (const struct ifaddrs *i = list; i; i = i->ifa_next)
		room++;
	addrs = calloc(room, sizeof(*addrs));
	for (const struct ifaddrs *i = list; addrs && i; i = i->ifa_next)
		n += address_of(i, &addrs[n]);
	freeifaddrs(list);
	*addrs_p = addrs;
	return addrs ? n : -ENOMEM;
}

/* Returns how well the interface suits a net that is named without interfaces.
 * One with a carrier always suits better; one without a carrier, such as a
 * bridge of containers that nobody uses, is taken if there is no other, since
 * its link may come later. */
static int fitness(const struct ip2nets_address *a)
{
	return 2 * a->carrier + lnet_nid_is_nid4(&a->nid);
}

/* NULL: all are loopback. */
static struct ip2nets_address *fittest(struct ip2nets_address *addrs, int n)
{
	struct ip2nets_address *first = NULL;

	for (int i = 0; i < n; i++)
		if (!addrs[i].loopback &&
		    (!first || fitness(&addrs[i]) > fitness(first)))
			first = &addrs[i];
	return first;
}

/* Sets @name to the interface with the first address that is no loopback,
 * preferably one with a carrier, then preferably IPv4. Returns 0; -ENODEV:
 * there is none; or -errno. */
static int first_interface(char name[LNET_INTERFACE_SIZE])
{
	struct ip2nets_address *addrs = NULL, *first;
	int n = host_addresses(&addrs);

	while ((first = fittest(addrs, n)) && first->carrier &&
	       bridge_is_empty(first->interface))
		first->carrier = false;
	if (first)
		text_copy(name, LNET_INTERFACE_SIZE, first->interface);
	free(addrs);
	return n < 0 ? n : first ? 0 : -ENODEV;
}

/* For whom nets are read. */
enum reader {
	READ_HERE, /* nets for this host */
	/* nets of a rule for this host: a net without interfaces gets one with
	 * the name "", and foreign nets are left out */
	READ_RULE,
	/* nets of a rule for other hosts: as READ_RULE, but nothing is logged
	 */
	READ_OTHER,
};

/* What has been parsed so far. */
struct networks {
	const char *text; /* the whole text */
	struct ulnet_text_error *err;
	enum reader reader;
	unsigned int n;
	uint32_t nets[SPEC_CONFS_MAX];
	char names[SPEC_CONFS_MAX][LNET_INTERFACE_SIZE];
};

static int put(struct networks *w, const char *at, uint32_t net,
	       const char *name)
{
	if (w->n == SPEC_CONFS_MAX)
		return wrong(w, at, -EINVAL, "more than %d interfaces",
			     SPEC_CONFS_MAX);
	for (unsigned int i = 0; i < w->n; i++)
		if (w->nets[i] == net && !strcmp(w->names[i], name))
			return wrong(w, at, -EINVAL,
				     "interface %s comes twice on one net",
				     name);
	w->nets[w->n] = net;
	text_copy(w->names[w->n++], LNET_INTERFACE_SIZE, name);
	return 0;
}

static void note_cpts(const struct networks *w, uint32_t net, const char *cpts)
{
	char text[LNET_NIDSTR_SIZE];

	if (*cpts && net != LNET_NET_ANY && w->reader != READ_OTHER)
		lnet_log(LNET_LOG_WARN, "config",
			 "%s: CPTs %s are passed over: " SPEC_ALL_CPTS,
			 lnet_net_format(net, text, sizeof(text)), cpts);
}

/* Adds the interfaces between @s and @end, which are in parentheses. */
static int put_interfaces(struct networks *w, const char *s, const char *end,
			  uint32_t net)
{
	char name[LNET_INTERFACE_SIZE], cpts[SPEC_CPTS_SIZE];
	char *list = strndup(s, (size_t)(end - s));
	const char *pos = list;
	int rc;

	if (!list)
		return -ENOMEM;
	do {
		const char *at = s + (pos - list);

		rc = spec_interface(&pos, name, cpts);
		if (rc < 0)
			wrong(w, at, rc, "not the name of an interface");
		if (rc <= 0)
			break;
		note_cpts(w, net, cpts);
		rc = put(w, at, net, name);
	} while (!rc);
	free(list);
	return rc;
}

static int put_default(struct networks *w, const char *at, uint32_t net)
{
	char name[LNET_INTERFACE_SIZE] = "", text[LNET_NIDSTR_SIZE];
	int rc = 0;

	if (LNET_NET_TYPE(net) == LNET_TYPE_SHM)
		text_copy(name, sizeof(name), SHM_ANY);
	else if (w->reader != READ_OTHER && !net_is_ip(net))
		rc = -ENODEV;
	else if (w->reader == READ_HERE)
		rc = first_interface(name);
	if (rc)
		return wrong(w, at, rc, "%s: no interface that could be used",
			     lnet_net_format(net, text, sizeof(text)));
	return put(w, at, net, name);
}

/* Refuses @text, at @start, which is no net. Who has written a NID, or
 * INTERFACE@NET, learns how it would be an interface of its net. */
static int no_such_net(struct networks *w, const char *start, const char *text)
{
	const char *at = strchr(text, '@');
	uint32_t net;

	if (at && at > text && !lnet_net_parse(at + 1, &net) && net_is_ip(net))
		return wrong(w, start, -EINVAL,
			     "no such net; an interface goes so: '%s(%.*s)'",
			     at + 1, (int)(at - text), text);
	return wrong(w, start, -EINVAL, "no such net: %s", text);
}

/* Reads the name of a net. LNET_NET_ANY: it is a foreign net, and left out. */
static int parse_net_name(struct networks *w, const char *start, size_t len,
			  uint32_t *net_p)
{
	char text[LNET_NIDSTR_SIZE];

	if (!len)
		return wrong(w, start, -EINVAL, "a net is expected");
	snprintf(text, sizeof(text), "%.*s", (int)MIN(len, sizeof(text) - 1),
		 start);
	if (len < sizeof(text) && !lnet_net_parse(text, net_p))
		return LNET_NET_TYPE(*net_p) != LNET_TYPE_LO
			       ? 0
			       : wrong(w, start, -EINVAL,
				       "net lo is always there");
	if (w->reader == READ_HERE || !spec_is_foreign(start, len))
		return no_such_net(w, start, text);
	lnet_log(w->reader == READ_RULE ? LNET_LOG_WARN : LNET_LOG_INFO,
		 "config", "net %s is passed over: there is no such net here",
		 text);
	*net_p = LNET_NET_ANY;
	return 0;
}

/* Reads what is in the parentheses at *@pos. */
static int parse_interfaces(struct networks *w, const char **pos, uint32_t net)
{
	const char *start = *pos, *end = strchr(start, ')');
	unsigned int before = w->n;
	int rc;

	if (!end)
		return wrong(w, start, -EINVAL, "')' is missing");
	rc = put_interfaces(w, start + 1, end, net);
	if (rc)
		return rc;
	if (w->n == before)
		return wrong(w, start, -EINVAL, "an interface is expected");
	if (net == LNET_NET_ANY)
		w->n = before;
	*pos = spec_blanks(end + 1);
	return 0;
}

static int parse_net(struct networks *w, const char **pos)
{
	const char *start = spec_blanks(*pos), *end;
	size_t len = strcspn(start, "([, \t\n\r");
	char cpts[SPEC_CPTS_SIZE];
	uint32_t net = LNET_NET_ANY;
	int rc = parse_net_name(w, start, len, &net);

	if (rc)
		return rc;
	*pos = spec_blanks(start + len);
	if (**pos == '(')
		rc = parse_interfaces(w, pos, net);
	else if (net != LNET_NET_ANY)
		rc = put_default(w, start, net);
	if (rc || **pos != '[')
		return rc;
	end = spec_cpts_end(*pos, cpts);
	if (!end)
		return wrong(w, *pos, -EINVAL, "no list of CPTs");
	note_cpts(w, net, cpts);
	*pos = end;
	return 0;
}

static int networks_parse_all(struct networks *w)
{
	const char *pos = w->text;
	int rc;

	for (;;) {
		rc = parse_net(w, &pos);
		if (rc)
			return rc;
		if (!*pos)
			return 0;
		if (*pos != ',')
			return wrong(w, pos, -EINVAL, "',' is expected");
		pos++;
	}
}

/* Sets *@confs_p to the NIs and their names: one block, to be freed. */
static int networks_give(const struct networks *w,
			 struct ulnet_ni_conf **confs_p)
{
	struct ulnet_ni_conf *confs;
	char *names;

	confs = calloc(w->n + 1, sizeof(*confs) + LNET_INTERFACE_SIZE);
	if (!confs)
		return -ENOMEM;
	names = (char *)&confs[w->n];
	for (unsigned int i = 0; i < w->n; i++, names += LNET_INTERFACE_SIZE) {
		confs[i].nid = lnet_nid_make(w->nets[i], 0);
		text_copy(names, LNET_INTERFACE_SIZE, w->names[i]);
		confs[i].interface = names;
	}
	*confs_p = confs;
	return 0;
}

/* As lnet_networks_parse(3), but for @reader. */
static int spec_networks(const char *text, enum reader reader,
			 struct ulnet_ni_conf **confs_p, unsigned int *n_p,
			 struct ulnet_text_error *err)
{
	struct networks *w = malloc(sizeof(*w));
	char *joined = spec_join(text);
	int rc = w && joined ? 0 : -ENOMEM;

	if (!rc) {
		w->text = joined;
		w->err = err;
		w->reader = reader;
		w->n = 0;
		rc = networks_parse_all(w);
	}
	if (!rc)
		rc = networks_give(w, confs_p);
	if (!rc)
		*n_p = w->n;
	free(joined);
	free(w);
	return rc;
}

int lnet_networks_parse(const char *text, struct ulnet_ni_conf **confs_p,
			unsigned int *n_p, struct ulnet_text_error *err)
{
	return spec_networks(text, READ_HERE, confs_p, n_p, err);
}

const char *networks_end(const char *s, const char *end)
{
	bool inside = false;
	char last = ',';

	for (; s < end; s++) {
		const char *next = spec_blanks(s);

		if (*s == '(')
			inside = true;
		else if (*s == ')')
			inside = false;
		if (next == s)
			last = *s;
		else if (!inside && last != ',' && *next != ',' && *next != '(')
			break;
	}
	return s;
}

/* ==== ip2nets ==== */

#define WORD_SIZE 512 /* bytes of an address range, with "@tcp" */

/* An interface that a rule has chosen. */
struct chosen {
	uint32_t net;
	/* where the rule, its ranges, and their end are in the text */
	const char *rule, *ranges, *end;
	char name[LNET_INTERFACE_SIZE];
	/* the address by which the interface is chosen; NULL: this host has no
	 * such interface, which is an error only when its NI is added */
	const struct ip2nets_address *address;
	bool outside; /* the address is not in the ranges */
};

struct matcher {
	const char *text; /* the whole text */
	struct ulnet_text_error *err;
	const struct ip2nets_address *addrs;
	unsigned int naddrs;
	bool *hit;    /* hit[i]: addrs[i] is in a range of the current rule */
	bool matched; /* one of the rules is for this host */
	unsigned int n;
	struct chosen chosen[SPEC_CONFS_MAX];
};

/* ---- addresses ---- */

/* Does @range match loopback addresses? Other ranges, such as *.*.*.*, do not.
 */
static bool is_for_loopback(const char *range)
{
	return !strncmp(range, "127.", 4) || !strncmp(range, "::1", 3);
}

/* ---- ranges of addresses ---- */

/* Sets hit[] for the addresses in the range at @at. */
static int match_range(struct matcher *m, const char *at, size_t len)
{
	struct ulnet_text_error err = { 0, "" };
	struct ulnet_nidlist *list;
	char word[WORD_SIZE];
	int rc;

	if (len + sizeof("@tcp") > sizeof(word))
		return wrong(m, at, -EINVAL, "a range of more than %zu bytes",
			     sizeof(word) - sizeof("@tcp"));
	snprintf(word, sizeof(word), "%.*s@tcp", (int)len, at);
	if (memchr(word, '@', len))
		return wrong(m, at, -EINVAL, "a range of addresses has no '@'");
	rc = lnet_nidlist_parse(word, &list, &err);
	if (rc)
		return wrong(m, at + MIN(err.offset, len), rc, "%s",
			     rc == -ENOMEM ? "no memory" : err.what);
	for (unsigned int i = 0; i < m->naddrs; i++)
		m->hit[i] |= lnet_nidlist_match(list, &m->addrs[i].nid) &&
			     (!nid_is_loopback(&m->addrs[i].nid) ||
			      is_for_loopback(word));
	lnet_nidlist_free(list);
	return 0;
}

/* Sets hit[] by the ranges between @s and @end. Returns whether an address is
 * in one of them, or -errno. */
static int match_ranges(struct matcher *m, const char *s, const char *end)
{
	unsigned int n = 0;
	int rc = 0;

	memset(m->hit, 0, m->naddrs * sizeof(*m->hit));
	while (!rc) {
		size_t len;

		s += MIN(strspn(s, " \t\r"), (size_t)(end - s));
		len = MIN(strcspn(s, " \t\r"), (size_t)(end - s));
		if (!len)
			break;
		rc = match_range(m, s, len);
		s += len;
		n++;
	}
	if (!rc && !n)
		rc = wrong(m, s, -EINVAL, "a range of addresses is expected");
	for (unsigned int i = 0; !rc && i < m->naddrs; i++)
		rc = m->hit[i];
	return rc;
}

/* ---- nets of a rule ---- */

/* Is @name the name of the address's interface, or the address? */
static bool networks_is_named(const struct ip2nets_address *a, const char *name)
{
	struct ulnet_nid nid;

	if (!strcmp(a->interface, name))
		return true;
	return !strchr(name, '@') && !lnet_nid_parse(name, &nid) &&
	       lnet_nid_eq(&nid, &a->nid);
}

/* Returns the address by which @name is chosen: the first one that is in the
 * ranges of the rule, or else the first one. NULL: this host has no such
 * interface. */
static const struct ip2nets_address *find_interface(const struct matcher *m,
						    const char *name,
						    bool *outside_p)
{
	const struct ip2nets_address *first = NULL;

	for (unsigned int i = 0; i < m->naddrs; i++) {
		if (!networks_is_named(&m->addrs[i], name))
			continue;
		if (m->hit[i])
			return &m->addrs[i];
		first = first ? first : &m->addrs[i];
	}
	*outside_p = first != NULL;
	return first;
}

static int choose(struct matcher *m, const struct chosen *like,
		  const char *name)
{
	struct chosen *c = &m->chosen[m->n];

	if (m->n == SPEC_CONFS_MAX)
		return wrong(m, like->rule, -EINVAL, "more than %d interfaces",
			     SPEC_CONFS_MAX);
	*c = *like;
	c->address = find_interface(m, name, &c->outside);
	text_copy(c->name, sizeof(c->name), name);
	m->n++;
	return 0;
}

/* Are @a and @b names of one interface? An alias is eth0:1. */
static bool same_link(const char *a, const char *b)
{
	size_t len = strcspn(a, ":");

	return len == strcspn(b, ":") && !strncmp(a, b, len);
}

/* Chooses each interface with an address in the ranges, once. */
static int choose_matching(struct matcher *m, const struct chosen *like)
{
	int rc = 0;

	for (unsigned int i = 0; !rc && i < m->naddrs; i++) {
		const char *name = m->addrs[i].interface;
		bool before = false;

		for (unsigned int k = 0; k < i; k++)
			before |= m->hit[k] &&
				  same_link(m->addrs[k].interface, name);
		if (m->hit[i] && !before)
			rc = choose(m, like, name);
	}
	return rc;
}

/* Has a rule before @rule chosen interfaces for @net? */
static bool has_come(const struct matcher *m, const char *rule, uint32_t net)
{
	for (unsigned int i = 0; i < m->n; i++)
		if (m->chosen[i].net == net && m->chosen[i].rule != rule)
			return true;
	return false;
}

/* Takes the nets @confs of a rule that is for this host. For each net the first
 * such rule counts. */
static int use_nets(struct matcher *m, struct chosen *like,
		    const struct ulnet_ni_conf *confs, unsigned int n)
{
	char net[LNET_NIDSTR_SIZE];
	int rc = 0;

	for (unsigned int i = 0; !rc && i < n; i++) {
		like->net = lnet_nid_net(&confs[i].nid);
		if (has_come(m, like->rule, like->net))
			lnet_log(LNET_LOG_INFO, "config",
				 "net %s: the rule at character %zu is passed "
				 "over: an earlier one is for this host",
				 lnet_net_format(like->net, net, sizeof(net)),
				 (size_t)(like->rule - m->text) + 1);
		else if (*confs[i].interface)
			rc = choose(m, like, confs[i].interface);
		else
			rc = choose_matching(m, like);
	}
	return rc;
}

/* ---- rules ---- */

static int read_nets(struct matcher *m, const char *s, const char *end,
		     enum reader reader, struct ulnet_ni_conf **confs_p,
		     unsigned int *n_p)
{
	struct ulnet_text_error err = { 0, "" };
	char *nets = strndup(s, (size_t)(end - s));
	int rc = nets ? spec_networks(nets, reader, confs_p, n_p, &err)
		      : -ENOMEM;

	free(nets);
	return rc ? wrong(m, s + err.offset, rc, "%s",
			  rc == -ENOMEM ? "no memory" : err.what)
		  : 0;
}

/* Reads the rule between @s and @end. A rule for other hosts is checked, too.
 */
static int networks_read_rule(struct matcher *m, const char *s, const char *end)
{
	struct chosen like = { .rule = s,
			       .ranges = networks_end(s, end),
			       .end = end };
	struct ulnet_ni_conf *confs = NULL;
	unsigned int n = 0;
	int here = match_ranges(m, like.ranges, end), rc;

	if (here < 0)
		return here;
	rc = read_nets(m, s, like.ranges, here ? READ_RULE : READ_OTHER, &confs,
		       &n);
	if (rc)
		return rc;
	m->matched |= here;
	if (here)
		rc = use_nets(m, &like, confs, n);
	free(confs);
	return rc;
}

/* Is an address in the ranges, which are in hit[], that of an interface that is
 * chosen? */
static bool chosen_in_ranges(const struct matcher *m)
{
	for (unsigned int i = 0; i < m->naddrs; i++)
		for (unsigned int k = 0; m->hit[i] && k < m->n; k++)
			if (m->chosen[k].address &&
			    same_link(m->chosen[k].address->interface,
				      m->addrs[i].interface))
				return true;
	return false;
}

/*
 * An interface that is named, and has no address in the ranges of its rule,
 * contradicts them (requirement B6). But ranges may also say which hosts are
 * meant, by the address of another interface that the text uses: "o2ib
 * 10.0.0.*; tcp(eth2) 10.0.0.[1-4]".
 */
static int check_outside(struct matcher *m)
{
	for (unsigned int i = 0; i < m->n; i++) {
		const struct chosen *c = &m->chosen[i];
		const char *ranges = c->ranges + strspn(c->ranges, " \t\r");
		int rc = c->outside ? match_ranges(m, ranges, c->end) : 0;

		if (rc < 0)
			return rc;
		if (c->outside && !chosen_in_ranges(m))
			return wrong(m, c->rule, -EINVAL,
				     "%.24s has no address in %.*s", c->name,
				     (int)MIN(c->end - ranges, 48), ranges);
	}
	return 0;
}

static int networks_read_all(struct matcher *m)
{
	const char *s = m->text, *end;
	int rc = 0;

	while (!rc && *s) {
		s += strspn(s, " \t\r\n;");
		end = s + strcspn(s, ";\n#");
		if (end > s)
			rc = networks_read_rule(m, s, end);
		s = *end == '#' ? spec_comment_end(end) : end;
	}
	if (!rc)
		rc = check_outside(m);
	if (!rc && !m->n)
		rc = wrong(m, s, -ENOENT, "%s",
			   m->matched ? "the nets of the rules for this host "
					"are not there"
				      : "no rule matches an address of this "
					"host");
	return rc;
}

/* Is @a what the name of its interface stands for: its first IPv4 address? */
static bool is_first(const struct matcher *m, const struct ip2nets_address *a)
{
	for (unsigned int i = 0; i < m->naddrs; i++)
		if (lnet_nid_is_nid4(&m->addrs[i].nid) &&
		    !strcmp(m->addrs[i].interface, a->interface))
			return &m->addrs[i] == a;
	return false;
}

/* Writes an interface by the name that the text has for it; if that name does
 * not stand for the address by which the interface was chosen, by that address.
 */
static void put_chosen(const struct matcher *m, const struct chosen *c,
		       FILE *out)
{
	char text[LNET_NIDSTR_SIZE];

	fputs(lnet_net_format(c->net, text, sizeof(text)), out);
	snprintf(text, sizeof(text), "%s", c->name);
	if (c->address && !c->outside && !is_first(m, c->address) &&
	    !strcmp(c->name, c->address->interface))
		lnet_nid_format(&c->address->nid, text, sizeof(text));
	fprintf(out, "(%.*s)", (int)strcspn(text, "@"), text);
}

/* Sets *@networks_p to what has been chosen. */
static int networks_write(const struct matcher *m, char **networks_p)
{
	char *networks = NULL;
	size_t size;
	FILE *out = open_memstream(&networks, &size);

	if (!out)
		return -ENOMEM;
	for (unsigned int i = 0; i < m->n; i++) {
		fputs(i ? "," : "", out);
		put_chosen(m, &m->chosen[i], out);
	}
	if (fclose(out)) {
		free(networks);
		return -ENOMEM;
	}
	*networks_p = networks;
	return 0;
}

int ip2nets_networks(const char *rules, const struct ip2nets_address *addrs,
		     unsigned int n, char **networks_p,
		     struct ulnet_text_error *err)
{
	struct matcher *m = calloc(1, sizeof(*m));
	bool *hit = calloc(n + 1, sizeof(*hit));
	char *text = spec_join(rules);
	int rc = -ENOMEM;

	if (m && hit && text) {
		m->text = text;
		m->err = err;
		m->addrs = addrs;
		m->naddrs = n;
		m->hit = hit;
		rc = networks_read_all(m);
		if (!rc)
			rc = networks_write(m, networks_p);
	}
	if (rc == -ENOMEM)
		spec_wrong(err, rules, rules, rc, "no memory");
	free(text);
	free(hit);
	free(m);
	return rc;
}

int lnet_ip2nets_parse(const char *text, struct ulnet_ni_conf **confs_p,
		       unsigned int *n_p, struct ulnet_text_error *err)
{
	struct ip2nets_address *addrs = NULL;
	int n = host_addresses(&addrs);
	char *networks;
	int rc;

	if (n < 0)
		return spec_wrong(err, text, text, n,
				  "the addresses of this host: %s",
				  strerror(-n));
	rc = ip2nets_networks(text, addrs, (unsigned int)n, &networks, err);
	free(addrs);
	if (rc)
		return rc;
	rc = spec_networks(networks, READ_HERE, confs_p, n_p, err);
	free(networks);
	return rc;
}
