/* SPDX-License-Identifier: BSD-3-Clause */
#include "config/spec.h"

#include <ctype.h>
#include <errno.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <stdarg.h>

#include "base/util.h"
#include "ulnet/control.h"

/* More is an error. */
#define SPEC_CONFS_MAX 1024

static const char *blanks(const char *s)
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

/* ---- CPTs ---- */

static bool number(const char **pos, unsigned long *v)
{
	char *end;

	*pos = blanks(*pos);
	if (!isdigit((unsigned char)**pos))
		return false;
	errno = 0;
	*v = strtoul(*pos, &end, 10);
	*pos = blanks(end);
	return !errno;
}

int spec_cpts(const char *text, unsigned int cpts, unsigned long *highest_p)
{
	unsigned long highest = 0;
	uint32_t have = 0, all = (UINT32_C(1) << cpts) - 1;
	const char *s = blanks(text);
	unsigned long low, high;

	if (*s++ != '[')
		return -EINVAL;
	do {
		if (!number(&s, &low))
			return -EINVAL;
		high = low;
		if (*s == '-' && (s++, !number(&s, &high)))
			return -EINVAL;
		if (high < low)
			return -EINVAL;
		highest = MAX(highest, high);
		for (; low <= high && low < cpts; low++)
			have |= UINT32_C(1) << low;
	} while (*s++ == ',');
	if (s[-1] != ']' || *blanks(s))
		return -EINVAL;
	*highest_p = highest;
	return have == all ? 0 : -EOPNOTSUPP;
}

/* ---- interfaces ---- */

/* Where the brackets that begin there end; NULL: they hold no list of CPTs. */
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
	return blanks(s + len + 1);
}

int spec_interface(const char **pos, char name[LNET_INTERFACE_SIZE],
		   char cpts[SPEC_CPTS_SIZE])
{
	const char *start = blanks(*pos), *end = start + strcspn(start, ",[");
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
	    (*end && (*end != ',' || !*blanks(end + 1))))
		return -EINVAL;
	memcpy(name, start, len);
	name[len] = '\0';
	*pos = end + (*end == ',');
	return 1;
}

/* ---- networks ---- */

/* Do interfaces on this type of net have an IP address? */
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

/* Is it an address that messages to other hosts can use? */
static bool is_outward(const struct ifaddrs *i, int family)
{
	const struct sockaddr_in6 *v6 = (const void *)i->ifa_addr;

	return i->ifa_addr && i->ifa_addr->sa_family == family &&
	       i->ifa_flags & IFF_UP && !(i->ifa_flags & IFF_LOOPBACK) &&
	       (family == AF_INET || !IN6_IS_ADDR_LINKLOCAL(&v6->sin6_addr));
}

static const struct ifaddrs *first_outward(const struct ifaddrs *list,
					   int family)
{
	for (; list && !is_outward(list, family); list = list->ifa_next)
		;
	return list;
}

/* The first interface with such an address, of IPv4 if there is one. */
static int first_interface(char name[LNET_INTERFACE_SIZE])
{
	const struct ifaddrs *i;
	struct ifaddrs *list;

	if (getifaddrs(&list))
		return -errno;
	i = first_outward(list, AF_INET);
	if (!i)
		i = first_outward(list, AF_INET6);
	if (i)
		snprintf(name, LNET_INTERFACE_SIZE, "%s", i->ifa_name);
	freeifaddrs(list);
	return i ? 0 : -ENODEV;
}

/* What has been parsed so far. */
struct networks {
	const char *text; /* all of it */
	struct ulnet_text_error *err;
	const char *interface; /* of nets without one; NULL: this host's */
	unsigned int n;
	uint32_t nets[SPEC_CONFS_MAX];
	char names[SPEC_CONFS_MAX][LNET_INTERFACE_SIZE];
};

#define wrong(w, ...) spec_wrong((w)->err, (w)->text, __VA_ARGS__)

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

/* What is in the parentheses, @s to @end. */
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
	const char *start = blanks(*pos), *end;
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
	*pos = blanks(start + len);
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
		*pos = blanks(end + 1);
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

static int parse_all(struct networks *w)
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

/* One block, so that it is one free(). */
static int give(const struct networks *w, struct ulnet_ni_conf **confs_p)
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

int spec_networks(const char *text, const char *interface,
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
	rc = parse_all(w);
	if (!rc)
		rc = give(w, confs_p);
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
