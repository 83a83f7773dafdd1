/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Configurations of sites: each file of tests/config/sites, as a user would
 * give it to lnetd, must make of each host what the file of that name with
 * ".becomes" says. The README there tells how to add one.
 */
#include <arpa/inet.h>
#include <criterion/criterion.h>
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <ifaddrs.h>
#include <inttypes.h>
#include <net/if.h>
#include <stdlib.h>
#include <string.h>
#include "config/node/list.h"
#include "tests/source.h"
#include "tests/unit/config/rig.h"
#include "ulnet/route.h"

#define SITES	      "tests/config/sites"
#define ADDRESSES_MAX 16

/* ---- a host ---- */

struct site_address {
	char interface[LNET_INTERFACE_SIZE];
	struct ulnet_nid nid;
};

/* The addresses of the host that is played; 0: none is. */
static struct site_address site_addresses[ADDRESSES_MAX];
static unsigned int site_naddresses;

/* What getifaddrs() returns of a host that is played. */
struct site_ifaddrs {
	struct ifaddrs list[ADDRESSES_MAX];
	struct sockaddr_in6 address[ADDRESSES_MAX];
};

/* Instead of the C library's. */
int getifaddrs(struct ifaddrs **list_p)
{
	int (*real)(struct ifaddrs **);
	struct site_ifaddrs *all;

	if (!site_naddresses) {
		*(void **)&real = dlsym(RTLD_NEXT, "getifaddrs");
		return real(list_p);
	}
	all = calloc(1, sizeof(*all));
	cr_assert_not_null(all);
	for (unsigned int i = 0; i < site_naddresses; i++) {
		const struct site_address *a = &site_addresses[i];
		struct sockaddr_in6 *v6 = &all->address[i];
		struct sockaddr_in *v4 = (void *)v6;

		if (lnet_nid_is_nid4(&a->nid)) {
			v4->sin_family = AF_INET;
			memcpy(&v4->sin_addr, a->nid.addr, 4);
		} else {
			v6->sin6_family = AF_INET6;
			memcpy(&v6->sin6_addr, a->nid.addr, 16);
		}
		all->list[i] = (struct ifaddrs){
			.ifa_next = i + 1 < site_naddresses ? &all->list[i + 1]
							    : NULL,
			.ifa_name = (char *)a->interface,
			.ifa_flags = IFF_UP | IFF_RUNNING,
			.ifa_addr = (void *)v6,
		};
	}
	*list_p = all->list;
	return 0;
}

void freeifaddrs(struct ifaddrs *list)
{
	void (*real)(struct ifaddrs *);

	if (site_naddresses) {
		free(list);
		return;
	}
	*(void **)&real = dlsym(RTLD_NEXT, "freeifaddrs");
	real(list);
}

/* As LNDs over IP do: an interface is named, or one of its addresses; its name
 * stands for its first IPv4 address. */
static int site_resolve(const char *interface, struct ulnet_nid *nid,
			char name[LNET_INTERFACE_SIZE])
{
	struct ulnet_nid wanted = *nid;
	bool by_name = interface && lnet_nid_parse(interface, &wanted);

	for (unsigned int i = 0; i < site_naddresses; i++) {
		const struct site_address *a = &site_addresses[i];

		if (by_name ? strcmp(a->interface, interface) ||
				      a->nid.size != nid->size
			    : a->nid.size != wanted.size ||
				      memcmp(a->nid.addr, wanted.addr,
					     sizeof(wanted.addr)) != 0)
			continue;
		memcpy(nid->addr, a->nid.addr, sizeof(nid->addr));
		nid->size = a->nid.size;
		strcpy(name, a->interface);
		return 0;
	}
	return by_name ? -ENODEV : -EADDRNOTAVAIL;
}

/* Reads "eth0 10.0.0.1, eth0 fd00::1, ib0 10.1.0.1". */
static void host_read(const char *text, const char *file)
{
	char *copy = strdup(text), *rest = copy, *one;

	site_naddresses = 0;
	while ((one = strsep(&rest, ","))) {
		struct site_address *a = &site_addresses[site_naddresses++];
		char address[64], nid[80];

		cr_assert_leq(site_naddresses, ADDRESSES_MAX);
		cr_assert_eq(sscanf(one, " %15s %63s", a->interface, address),
			     2, "%s: %s", file, text);
		snprintf(nid, sizeof(nid), "%s@tcp", address);
		cr_assert_eq(lnet_nid_parse(nid, &a->nid), 0, "%s: %s", file,
			     address);
	}
	free(copy);
}

/* ---- a node ---- */

/* A node, what was noted, and the error that it was refused with. */
struct site {
	struct rig rig;
	char *notes;
	FILE *notes_out;
	char refused[512];
};

/* Warnings of the configuration are notes. */
static void site_log(int level, const char *line, void *arg)
{
	struct site *site = arg;
	const char *config = strstr(line, "config: ");

	(void)level;
	if (config)
		fprintf(site->notes_out, "note %s\n",
			config + strlen("config: "));
}

static void site_refused(struct site *site, int rc, const char *what)
{
	if (rc && !*site->refused)
		snprintf(site->refused, sizeof(site->refused), "%s",
			 *what ? what : strerror(-rc));
}

typedef int (*parse_fn)(const char *text, struct ulnet_ni_conf **confs_p,
			unsigned int *n_p, struct ulnet_text_error *err);

static void site_networks(struct site *site, const char *text, parse_fn parse)
{
	struct ulnet_text_error err = { 0, "" };
	struct ulnet_ni_conf *confs;
	unsigned int n;
	int rc = parse(text, &confs, &n, &err);

	site_refused(site, rc, err.what);
	for (unsigned int i = 0; !rc && i < n; i++)
		site_refused(site, lnet_ni_add(site->rig.node, &confs[i]), "");
	if (!rc)
		free(confs);
}

static void site_passed(void *arg, const struct ulnet_route *route,
			const char *why)
{
	struct site *site = arg;
	char net[LNET_NIDSTR_SIZE], nid[LNET_NIDSTR_SIZE];

	fprintf(site->notes_out, "passed over %s %s: %s\n",
		lnet_net_format(route->net, net, sizeof(net)),
		lnet_nid_format(&route->gateway, nid, sizeof(nid)), why);
}

static void site_routes(struct site *site, const char *text)
{
	struct ulnet_text_error err = { 0, "" };
	struct ulnet_route *routes = NULL;
	unsigned int n;
	int rc = lnet_routes_parse(text, &routes, &n, &err);

	if (!rc)
		rc = lnet_routes_add(site->rig.node, routes, n, site_passed,
				     site);
	site_refused(site, rc, err.what);
	free(routes);
}

static void site_yaml(struct site *site, const char *text)
{
	struct result r = import(&site->rig, "add", text);
	char *rest = r.err, *line;

	if (r.status)
		site_refused(site, r.status, r.err);
	while (!r.status && (line = strsep(&rest, "\n")))
		if (!strncmp(line, "# ", 2))
			fprintf(site->notes_out, "note %s\n", line + 2);
	result_free(&r);
}

/* Takes the value at *@pos of an option of modprobe, in quotes or up to a
 * blank. */
static char *modprobe_value(char **pos)
{
	char *start = *pos,
	     quote = *start == '"' || *start == '\'' ? *start : 0;
	size_t len;

	start += quote != 0;
	len = strcspn(start, quote ? (char[]){ quote, 0 } : " \t\n");
	*pos = start + len + (start[len] != 0);
	return strndup(start, len);
}

/* Takes what modprobe would give to the module lnet. */
static void site_modprobe(struct site *site, char *text)
{
	char *routes = NULL, *rest = text, *line;

	for (char *s = text; (s = strstr(s, "\\\n"));)
		memset(s, ' ', 2);
	while ((line = strsep(&rest, "\n"))) {
		int end = 0;

		(void)sscanf(line, " options lnet %n", &end);
		for (char *s = line + end; end && *s; s += strspn(s, " \t")) {
			char *key = s, *value;

			s += strcspn(s, "=");
			cr_assert(*s, "%s", key);
			*s++ = 0;
			value = modprobe_value(&s);
			if (!strcmp(key, "networks"))
				site_networks(site, value, lnet_networks_parse);
			else if (!strcmp(key, "ip2nets"))
				site_networks(site, value, lnet_ip2nets_parse);
			else if (!strcmp(key, "routes") && !routes)
				routes = strdup(value);
			free(value);
		}
	}
	if (routes)
		site_routes(site, routes);
	free(routes);
}

static void site_configure(struct site *site, const char *form,
			   const char *text)
{
	char *copy = strdup(text);

	if (!strcmp(form, ".networks"))
		site_networks(site, copy, lnet_networks_parse);
	else if (!strcmp(form, ".ip2nets"))
		site_networks(site, copy, lnet_ip2nets_parse);
	else if (!strcmp(form, ".routes"))
		site_routes(site, copy);
	else if (!strcmp(form, ".modprobe"))
		site_modprobe(site, copy);
	else if (!strcmp(form, ".yaml"))
		site_yaml(site, copy);
	else
		cr_assert_fail("%s: unknown form", form);
	free(copy);
}

/* ---- what a node has become ---- */

static void write_tunables(struct lnet *node, const struct ulnet_ni_info *info,
			   FILE *out)
{
	struct ulnet_tunable_info all[LNET_TUNABLES_MAX];
	int n = lnet_tunables(node, lnet_nid_net(&info->nid), all,
			      LNET_TUNABLES_MAX);

	for (unsigned int i = 0; i < info->ntunables; i++)
		for (int k = 0; k < n; k++)
			if (!strcmp(info->tunables[i].name, all[k].name) &&
			    info->tunables[i].value != all[k].def)
				fprintf(out, " %s=%" PRId64, all[k].name,
					info->tunables[i].value);
}

static void write_nis(struct lnet *node, FILE *out)
{
	struct ulnet_ni_info info;
	char nid[LNET_NIDSTR_SIZE];

	for (unsigned int i = 1; !lnet_ni_info(node, i, &info); i++) {
		fprintf(out, "ni %s %s",
			lnet_nid_format(&info.nid, nid, sizeof(nid)),
			info.interface);
		if (info.tx_credits != 256)
			fprintf(out, " credits=%u", info.tx_credits);
		if (info.peer_credits != 8)
			fprintf(out, " peer_credits=%u", info.peer_credits);
		if (info.peer_buffer_credits != info.peer_credits)
			fprintf(out, " peer_buffer_credits=%u",
				info.peer_buffer_credits);
		if (info.peer_timeout != 180)
			fprintf(out, " peer_timeout=%d", info.peer_timeout);
		write_tunables(node, &info, out);
		fputc('\n', out);
	}
}

static void write_routes(struct lnet *node, FILE *out)
{
	struct ulnet_route_info *infos;
	struct ulnet_routing routing;
	char net[LNET_NIDSTR_SIZE], nid[LNET_NIDSTR_SIZE];
	int n = routes_read(node, &infos);

	for (int i = 0; i < n; i++) {
		const struct ulnet_route *r = &infos[i].route;

		fprintf(out, "route %s %s",
			lnet_net_format(r->net, net, sizeof(net)),
			lnet_nid_format(&r->gateway, nid, sizeof(nid)));
		if (r->hops)
			fprintf(out, " hops=%u", r->hops);
		if (r->priority)
			fprintf(out, " priority=%u", r->priority);
		fputc('\n', out);
	}
	free(infos);
	lnet_routing(node, &routing);
	if (routing.enabled)
		fputs("router\n", out);
	if (routing.buffers[LNET_TINY_BUFFERS] != LNET_TINY_BUFFERS_DEFAULT ||
	    routing.buffers[LNET_SMALL_BUFFERS] != LNET_SMALL_BUFFERS_DEFAULT ||
	    routing.buffers[LNET_LARGE_BUFFERS] != LNET_LARGE_BUFFERS_DEFAULT)
		fprintf(out, "buffers tiny=%u small=%u large=%u\n",
			routing.buffers[LNET_TINY_BUFFERS],
			routing.buffers[LNET_SMALL_BUFFERS],
			routing.buffers[LNET_LARGE_BUFFERS]);
}

static void write_peers(struct lnet *node, FILE *out)
{
	struct peer_list list;
	char nid[LNET_NIDSTR_SIZE];

	cr_assert_eq(peer_list_read(node, &list), 0);
	peer_list_keep_configured(&list);
	for (unsigned int i = 0, n; i < list.n; i += n) {
		n = peer_list_span(&list, i);
		fputs(list.infos[i].multi_rail ? "peer" : "peer single", out);
		for (unsigned int k = i; k < i + n; k++)
			fprintf(out, " %s",
				lnet_nid_format(&list.infos[k].nid, nid,
						sizeof(nid)));
		fputc('\n', out);
	}
	peer_list_free(&list);
}

static void write_policies(struct lnet *node, FILE *out)
{
	struct ulnet_policy *all;
	int n = policies_read(node, &all);

	for (int i = 0; i < n; i++) {
		fputs("policy", out);
		if (*all[i].src)
			fprintf(out, " src=%s", all[i].src);
		if (*all[i].dst)
			fprintf(out, " dst=%s", all[i].dst);
		if (*all[i].rte)
			fprintf(out, " rte=%s", all[i].rte);
		if (all[i].priority != LNET_PRIORITY_NONE)
			fprintf(out, " priority=%u", all[i].priority);
		fputc('\n', out);
	}
	free(all);
}

/* Writes the settings that are not as they were, @before. */
static void write_settings(struct lnet *node, const struct setting_list *before,
			   FILE *out)
{
	struct setting_list list;

	cr_assert_eq(settings_read(node, &list), 0);
	for (unsigned int i = 0; i < list.n; i++)
		if (!list.all[i].derived &&
		    list.all[i].value != before->all[i].value)
			fprintf(out, "setting %s %" PRId64 "\n",
				list.all[i].name, list.all[i].value);
}

/* Opens a node on the host, configures it, and returns what it has become. */
static char *site_become(const char *with, const char *form, const char *text)
{
	struct site site = { .refused = "" };
	struct lnd lnd = stub_lnd;
	struct node_params p = { .lnds = open_lnds, .lnd = &lnd };
	struct setting_list before;
	char *become;
	size_t size, notes_size;
	FILE *out = open_memstream(&become, &size);

	lnd.resolve = site_resolve;
	site.notes_out = open_memstream(&site.notes, &notes_size);
	lnet_log_set(LNET_LOG_WARN, site_log, &site);
	lnet_conf_init(&p.conf);
	cr_assert_eq(node_open(&p, &site.rig.node), 0);
	cr_assert_eq(lnet_control_start(site.rig.node, NULL, &site.rig.control),
		     0);
	cr_assert_eq(settings_read(site.rig.node, &before), 0);
	if (*with)
		site_networks(&site, with, lnet_networks_parse);
	site_configure(&site, form, text);
	write_nis(site.rig.node, out);
	write_routes(site.rig.node, out);
	write_settings(site.rig.node, &before, out);
	write_peers(site.rig.node, out);
	write_policies(site.rig.node, out);
	rig_close(&site.rig);
	lnet_log_set(LNET_LOG_WARN, NULL, NULL);
	fclose(site.notes_out);
	fputs(site.notes, out);
	fclose(out);
	free(site.notes);
	if (!*site.refused)
		return become;
	free(become);
	cr_assert_geq(asprintf(&become, "refused %s", site.refused), 0);
	return become;
}

/* ---- the files ---- */

static char *site_file(const char *name)
{
	char path[512], *text = calloc(1, 65536);
	FILE *f;

	snprintf(path, sizeof(path), SITES "/%s", name);
	f = source_open(path);
	cr_assert_not_null(f, "%s: there is no such file", path);
	cr_assert_gt(fread(text, 1, 65535, f), 0, "%s is empty", path);
	fclose(f);
	return text;
}

/* One host, of which the file says that it is to become @expected. */
static void check_host(const char *name, const char *form, const char *text,
		       const char *host, const char *with, const char *expected)
{
	static const char refused[] = "refused ";
	char *become;

	host_read(host, name);
	become = site_become(with, form, text);
	if (!strncmp(expected, refused, strlen(refused)) &&
	    !strncmp(become, refused, strlen(refused))) {
		char *words =
			strndup(expected + strlen(refused),
				strcspn(expected, "\n") - strlen(refused));

		cr_expect(strstr(become, words), "%s: host %s:\n%s\nnot: %s",
			  name, host, become, words);
		free(words);
	} else {
		cr_expect_str_eq(become, expected,
				 "%s: host %s: has become\n%s\nnot\n%s", name,
				 host, become, expected);
	}
	free(become);
	site_naddresses = 0;
}

/* Checks each host of @becomes. Lines with # are comments. Returns how many
 * there are. */
static unsigned int check_file(const char *name, const char *form,
			       const char *text, char *becomes)
{
	char host[512] = "", with[512] = "", expected[16384] = "";
	char *rest = becomes, *line;
	unsigned int hosts = 0;

	for (;;) {
		line = strsep(&rest, "\n");
		if ((!line || !strncmp(line, "host ", 5)) && *host) {
			check_host(name, form, text, host, with, expected);
			hosts++;
		}
		if (!line)
			return hosts;
		if (!strncmp(line, "host ", 5)) {
			snprintf(host, sizeof(host), "%s", line + 5);
			*with = *expected = 0;
		} else if (!strncmp(line, "with ", 5)) {
			snprintf(with, sizeof(with), "%s", line + 5);
		} else if (*line && *line != '#') {
			strcat(strcat(expected, line), "\n");
		}
	}
}

static int is_site(const struct dirent *entry)
{
	const char *dot = strrchr(entry->d_name, '.');

	return dot && *entry->d_name != '.' && strcmp(dot, ".becomes") != 0 &&
	       strcmp(dot, ".md") != 0;
}

static int is_becomes(const struct dirent *entry)
{
	const char *dot = strrchr(entry->d_name, '.');

	return dot && !strcmp(dot, ".becomes");
}

Test(sites, all)
{
	struct dirent **files, **becomes_files;
	char path[4096];
	int n = scandir(source_path(SITES, path, sizeof(path)), &files, is_site,
			alphasort);

	cr_assert_gt(n, 0, "%s: %d files", path, n);
	cr_assert_eq(scandir(path, &becomes_files, is_becomes, alphasort), n,
		     "a file in %s has no configuration, or no .becomes", path);
	for (int i = 0; i < n; i++) {
		const char *name = files[i]->d_name;
		char becomes[512], *text = site_file(name), *expected;

		snprintf(becomes, sizeof(becomes), "%s.becomes", name);
		expected = site_file(becomes);
		cr_expect_gt(
			check_file(name, strrchr(name, '.'), text, expected), 0,
			"%s: no host", becomes);
		free(expected);
		free(text);
		free(files[i]);
		free(becomes_files[i]);
	}
	free(files);
	free(becomes_files);
}
