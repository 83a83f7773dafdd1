/* SPDX-License-Identifier: BSD-3-Clause */
#include "config/text/networks.h"

#include <ctype.h>
#include <errno.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "ulnet/control.h"

#define SPEC_CONFS_MAX 1024 /* interfaces in one text */

static const char *networks_blanks(const char *s)
{
	return s + strspn(s, " \t\n\r");
}

int spec_wrong(struct ulnet_text_error *err, const char *text, const char *at,
	       int rc, const char *fmt, ...)
{
	va_list ap;

	if (!err)
		return rc;
	err->offset = (size_t)(at - text);
	va_start(ap, fmt);
	vsnprintf(err->what, sizeof(err->what), fmt, ap);
	va_end(ap);
	return rc;
}

/* spec_wrong() for the text of @w. */
#define wrong(w, ...) spec_wrong((w)->err, (w)->text, __VA_ARGS__)

/* ---- CPTs ---- */

static bool networks_number(const char **pos, unsigned long *v)
{
	char *end;

	*pos = networks_blanks(*pos);
	if (!isdigit((unsigned char)**pos))
		return false;
	errno = 0;
	*v = strtoul(*pos, &end, 10);
	*pos = networks_blanks(end);
	return !errno;
}

int spec_cpts(const char *text, unsigned int cpts, unsigned long *highest_p)
{
	unsigned long highest = 0;
	uint32_t have = 0, all = (UINT32_C(1) << cpts) - 1;
	const char *s = networks_blanks(text);
	unsigned long low, high;

	if (*s++ != '[')
		return -EINVAL;
	do {
		if (!networks_number(&s, &low))
			return -EINVAL;
		high = low;
		if (*s == '-' && (s++, !networks_number(&s, &high)))
			return -EINVAL;
		if (high < low)
			return -EINVAL;
		highest = MAX(highest, high);
		for (; low <= high && low < cpts; low++)
			have |= UINT32_C(1) << low;
	} while (*s++ == ',');
	if (s[-1] != ']' || *networks_blanks(s))
		return -EINVAL;
	*highest_p = highest;
	return have == all ? 0 : -EOPNOTSUPP;
}

/* ---- interfaces ---- */

/* Copies the list of CPTs at @s. Returns what is behind it, or NULL: it is
 * malformed. */
static const char *cpts_end(const char *s, char cpts[SPEC_CPTS_SIZE])
{
	size_t len = strcspn(s, "]");
	unsigned long highest;

	if (!s[len] || len + 1 >= SPEC_CPTS_SIZE)
		return NULL;
	memcpy(cpts, s, len + 1);
	cpts[len + 1] = '\0';
	if (spec_cpts(cpts, 1, &highest) == -EINVAL)
		return NULL;
	return networks_blanks(s + len + 1);
}

int spec_interface(const char **pos, char name[LNET_INTERFACE_SIZE],
		   char cpts[SPEC_CPTS_SIZE])
{
	const char *start = networks_blanks(*pos),
		   *end = start + strcspn(start, ",[");
	size_t len = (size_t)(end - start);

	if (!*start)
		return 0;
	while (len && isspace((unsigned char)start[len - 1]))
		len--;
	*pos = start;
	*cpts = '\0';
	if (*end == '[')
		end = cpts_end(end, cpts);
	if (!end || !len || len >= LNET_INTERFACE_SIZE ||
	    (*end && (*end != ',' || !*networks_blanks(end + 1))))
		return -EINVAL;
	memcpy(name, start, len);
	name[len] = '\0';
	*pos = end + (*end == ',');
	return 1;
}

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

/* Fills @a from @i. False: @i has no address that a NID can have. */
static bool address_of(const struct ifaddrs *i, struct ip2nets_address *a)
{
	const struct sockaddr_in *v4 = (const void *)i->ifa_addr;
	const struct sockaddr_in6 *v6 = (const void *)i->ifa_addr;

	if (!i->ifa_addr || !(i->ifa_flags & IFF_UP))
		return false;
	text_copy(a->interface, sizeof(a->interface), i->ifa_name);
	a->loopback = i->ifa_flags & IFF_LOOPBACK;
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

/* The first interface with an address that is no loopback, preferably IPv4.
 * -ENODEV: there is none. */
static int first_interface(char name[LNET_INTERFACE_SIZE])
{
	const struct ip2nets_address *first = NULL;
	struct ip2nets_address *addrs = NULL;
	int n = host_addresses(&addrs);

	for (int i = 0; i < n; i++)
		if (!addrs[i].loopback &&
		    (!first || (lnet_nid_is_nid4(&addrs[i].nid) &&
				!lnet_nid_is_nid4(&first->nid))))
			first = &addrs[i];
	if (first)
		text_copy(name, LNET_INTERFACE_SIZE, first->interface);
	free(addrs);
	return n < 0 ? n : first ? 0 : -ENODEV;
}

/* What has been parsed so far. */
struct networks {
	const char *text; /* all of it */
	struct ulnet_text_error *err;
	/* for nets that name no interface; NULL: first_interface() */
	const char *interface;
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

static void note_cpts(uint32_t net, const char *cpts)
{
	char text[LNET_NIDSTR_SIZE];

	if (*cpts)
		lnet_log(LNET_LOG_INFO, "config",
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
		note_cpts(net, cpts);
		rc = put(w, at, net, name);
	} while (!rc);
	free(list);
	return rc;
}

static int default_interface(const struct networks *w, uint32_t net,
			     char name[LNET_INTERFACE_SIZE])
{
	if (!net_is_ip(net))
		return -ENODEV;
	if (!w->interface)
		return first_interface(name);
	text_copy(name, LNET_INTERFACE_SIZE, w->interface);
	return 0;
}

static int parse_net(struct networks *w, const char **pos)
{
	const char *start = networks_blanks(*pos), *end;
	char text[LNET_NIDSTR_SIZE], name[LNET_INTERFACE_SIZE];
	char cpts[SPEC_CPTS_SIZE];
	size_t len = strcspn(start, "([, \t\n\r");
	unsigned int before = w->n;
	uint32_t net;
	int rc;

	if (!len)
		return wrong(w, start, -EINVAL, "a net is expected");
	snprintf(text, sizeof(text), "%.*s", (int)MIN(len, sizeof(text) - 1),
		 start);
	if (lnet_net_parse(text, &net) || len >= sizeof(text))
		return wrong(w, start, -EINVAL, "no such net: %s", text);
	if (LNET_NET_TYPE(net) == LNET_TYPE_LO)
		return wrong(w, start, -EINVAL, "net lo is always there");
	*pos = networks_blanks(start + len);
	if (**pos == '(') {
		end = strchr(*pos, ')');
		if (!end)
			return wrong(w, *pos, -EINVAL, "')' is missing");
		rc = put_interfaces(w, *pos + 1, end, net);
		if (rc)
			return rc;
		if (w->n == before)
			return wrong(w, *pos, -EINVAL,
				     "an interface is expected");
		*pos = networks_blanks(end + 1);
	} else {
		rc = default_interface(w, net, name);
		if (rc)
			return wrong(w, start, rc,
				     "%s: no interface that could be used",
				     text);
		rc = put(w, start, net, name);
		if (rc)
			return rc;
	}
	if (**pos != '[')
		return 0;
	end = cpts_end(*pos, cpts);
	if (!end)
		return wrong(w, *pos, -EINVAL, "no list of CPTs");
	note_cpts(net, cpts);
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

/* Sets *@confs_p, to be freed, with the names in the same block. */
static int networks_give(const struct networks *w,
			 struct ulnet_ni_conf **confs_p)
{
	struct ulnet_ni_conf *confs;
	char *names;

	BUG_ON(w->n == 0);
	confs = calloc(w->n, sizeof(*confs) + LNET_INTERFACE_SIZE);
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

/* As lnet_networks_parse(3), but nets that name no interface have @interface,
 * unless that is NULL. */
static int spec_networks(const char *text, const char *interface,
			 struct ulnet_ni_conf **confs_p, unsigned int *n_p,
			 struct ulnet_text_error *err)
{
	struct networks *w = malloc(sizeof(*w));
	int rc;

	if (!w)
		return -ENOMEM;
	w->text = text;
	w->err = err;
	w->interface = interface;
	w->n = 0;
	rc = networks_parse_all(w);
	if (!rc)
		rc = networks_give(w, confs_p);
	if (!rc)
		*n_p = w->n;
	free(w);
	return rc;
}

int lnet_networks_parse(const char *text, struct ulnet_ni_conf **confs_p,
			unsigned int *n_p, struct ulnet_text_error *err)
{
	return spec_networks(text, NULL, confs_p, n_p, err);
}

/* ==== ip2nets ==== */

#define WORD_SIZE 512 /* of an address range, with "@tcp" */
#define NETS_MAX  1024

struct matcher {
	const char *text; /* all of it */
	struct ulnet_text_error *err;
	const struct ip2nets_address *addrs;
	unsigned int naddrs;
	bool *hit; /* hit[i]: addrs[i] is in a range of the current rule */
	FILE *out; /* networks of the rules so far */
	uint32_t nets[NETS_MAX]; /* the nets in @out */
	unsigned int nnets;
};

/* ---- addresses ---- */

static bool networks_is_loopback(const struct ulnet_nid *nid)
{
	static const uint8_t one[16] = { [15] = 1 };

	return lnet_nid_is_nid4(nid) ? nid->addr[0] == 127
				     : !memcmp(nid->addr, one, sizeof(one));
}

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
			     (!networks_is_loopback(&m->addrs[i].nid) ||
			      is_for_loopback(word));
	lnet_nidlist_free(list);
	return 0;
}

/* Sets hit[] by the ranges between @s and @end. *@first_p is the first address
 * that is in one of them, or NULL. */
static int match_ranges(struct matcher *m, const char *s, const char *end,
			const struct ip2nets_address **first_p)
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
	*first_p = NULL;
	for (unsigned int i = m->naddrs; i--;)
		if (m->hit[i])
			*first_p = &m->addrs[i];
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

/* *@which_p is the address of interface @name in the ranges of the rule, which
 * are between @ranges and @end; NULL: there is no such interface, which is an
 * error only when its NI is added. */
static int find_interface(const struct matcher *m, const char *at,
			  const char *name, const char *ranges, const char *end,
			  const struct ip2nets_address **which_p)
{
	bool there = false;

	*which_p = NULL;
	for (unsigned int i = 0; i < m->naddrs; i++) {
		if (!networks_is_named(&m->addrs[i], name))
			continue;
		*which_p = &m->addrs[i];
		if (m->hit[i])
			return 0;
		there = true;
	}
	ranges += strspn(ranges, " \t\r");
	return there ? wrong(m, at, -EINVAL, "%.24s has no address in %.*s",
			     name, (int)MIN(end - ranges, 48), ranges)
		     : 0;
}

/* Writes the interface that a rule has selected by the address @which: by its
 * name, which stands for its IPv4 address, or, if @which is an IPv6 address, as
 * that address. */
static void put_interface(struct matcher *m, const char *name,
			  const struct ip2nets_address *which)
{
	char text[LNET_NIDSTR_SIZE];

	if (!which || lnet_nid_is_nid4(&which->nid)) {
		fprintf(m->out, "(%s)", name);
		return;
	}
	lnet_nid_format(&which->nid, text, sizeof(text));
	fprintf(m->out, "(%.*s)", (int)strcspn(text, "@"), text);
}

/* Notes that a rule has @net, which must not have come before. */
static int use_net(struct matcher *m, const char *at, uint32_t net)
{
	char name[LNET_NIDSTR_SIZE];

	for (unsigned int i = 0; i < m->nnets; i++)
		if (m->nets[i] == net)
			return wrong(m, at, -EINVAL, "net %s comes twice",
				     lnet_net_format(net, name, sizeof(name)));
	if (m->nnets == NETS_MAX)
		return wrong(m, at, -EINVAL, "more than %d nets", NETS_MAX);
	m->nets[m->nnets++] = net;
	return 0;
}

/* Writes the nets @confs of a rule that matches, which is at @at. */
static int use_nets(struct matcher *m, const char *at,
		    const struct ulnet_ni_conf *confs, unsigned int n,
		    const char *ranges, const char *end)
{
	char name[LNET_NIDSTR_SIZE];
	int rc = 0;

	for (unsigned int i = 0; !rc && i < n; i++) {
		uint32_t net = lnet_nid_net(&confs[i].nid);
		const struct ip2nets_address *which;

		/* Interfaces of one net follow each other. */
		if (!i || net != lnet_nid_net(&confs[i - 1].nid))
			rc = use_net(m, at, net);
		if (!rc)
			rc = find_interface(m, at, confs[i].interface, ranges,
					    end, &which);
		if (rc)
			return rc;
		fprintf(m->out, "%s%s", ftell(m->out) ? "," : "",
			lnet_net_format(net, name, sizeof(name)));
		put_interface(m, confs[i].interface, which);
	}
	return rc;
}

/* ---- rules ---- */

/* The end of the nets of a rule: the first blank that is not in parentheses. */
static const char *nets_end(const char *s, const char *end)
{
	bool inside = false;

	for (; s < end; s++) {
		if (*s == '(')
			inside = true;
		else if (*s == ')')
			inside = false;
		else if (!inside && strchr(" \t\r", *s))
			break;
	}
	return s;
}

static int read_nets(struct matcher *m, const char *s, const char *end,
		     const char *interface, struct ulnet_ni_conf **confs_p,
		     unsigned int *n_p)
{
	struct ulnet_text_error err = { 0, "" };
	char *nets = strndup(s, (size_t)(end - s));
	int rc = nets ? spec_networks(nets, interface, confs_p, n_p, &err)
		      : -ENOMEM;

	free(nets);
	return rc ? wrong(m, s + err.offset, rc, "%s",
			  rc == -ENOMEM ? "no memory" : err.what)
		  : 0;
}

/* Reads the rule between @s and @end. A rule that matches no address is
 * checked, too. */
static int networks_read_rule(struct matcher *m, const char *s, const char *end)
{
	const char *ranges = nets_end(s, end);
	const struct ip2nets_address *first;
	struct ulnet_ni_conf *confs = NULL;
	unsigned int n = 0;
	int rc = match_ranges(m, ranges, end, &first);

	if (!rc)
		rc = read_nets(m, s, ranges, first ? first->interface : "-",
			       &confs, &n);
	if (rc)
		return rc;
	if (first)
		rc = use_nets(m, s, confs, n, ranges, end);
	free(confs);
	return rc;
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
		s = *end == '#' ? end + strcspn(end, "\n") : end;
	}
	if (!rc && !m->nnets)
		rc = wrong(m, s, -ENOENT,
			   "no rule matches an address of this host");
	return rc;
}

int ip2nets_networks(const char *rules, const struct ip2nets_address *addrs,
		     unsigned int n, char **networks_p,
		     struct ulnet_text_error *err)
{
	struct matcher m = {
		.text = rules, .err = err, .addrs = addrs, .naddrs = n
	};
	char *networks = NULL;
	size_t size;
	int rc = -ENOMEM;

	m.hit = calloc(n + 1, sizeof(*m.hit));
	m.out = m.hit ? open_memstream(&networks, &size) : NULL;
	if (m.out) {
		rc = networks_read_all(&m);
		if (fclose(m.out) && !rc)
			rc = -ENOMEM;
	}
	free(m.hit);
	if (rc == -ENOMEM)
		wrong(&m, rules, rc, "no memory");
	if (rc)
		free(networks);
	else
		*networks_p = networks;
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
	rc = spec_networks(networks, NULL, confs_p, n_p, err);
	free(networks);
	return rc;
}
