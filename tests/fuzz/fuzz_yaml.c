/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Documents of any contents. The first byte says what they are: YAML (what was
 * read is written, read again, and is the same); a request; a file to import
 * (if that fails, the node is as before; if it succeeds, what the node exports
 * makes it anew), perhaps with rules for callers; networks, ip2nets and routes
 * in one line.
 */
#include "tests/unit/config/stub_lnd.h"

#include "lnet/text/networks.h"
#include "lnet/text/spec.h"
#include "config/yaml/tree.h"
#include "tests/tree_eq.h"
#include "ulnet/control.h"
#include "ulnet/service.h"

static const struct tree_limits limits = { 1 << 20, 20000, TREE_DEPTH_MAX };

static struct lnet *node;
static struct lnet_control *control;

/* ---- trees ---- */

static char *emit(const struct tree *t, const struct tree_style *style)
{
	size_t size;
	char *text;
	FILE *f = open_memstream(&text, &size);

	BUG_ON(!f);
	tree_emit(t, style, f);
	BUG_ON(fclose(f));
	return text;
}

static void again(const struct doc *doc, const struct tree_style *style)
{
	char *text = emit(doc_root(doc), style), *twice;
	struct tree_error err;
	struct doc *same;

	/* the written text is longer, and may be over the limit */
	if (strlen(text) <= limits.bytes) {
		BUG_ON(tree_parse(text, strlen(text), &limits, &same, &err));
		BUG_ON(!tree_eq(doc_root(doc), doc_root(same)));
		twice = emit(doc_root(same), style);
		BUG_ON(strcmp(text, twice) != 0);
		free(twice);
		doc_free(same);
	}
	free(text);
}

static void fuzz_tree(const char *text, size_t len)
{
	struct tree_error err = { .what = "" };
	struct doc *doc;

	if (tree_parse(text, len, &limits, &doc, &err)) {
		BUG_ON(!*err.what || strlen(err.what) >= sizeof(err.what));
		return;
	}
	again(doc, &tree_wide);
	again(doc, &tree_middle);
	again(doc, &tree_narrow);
	doc_free(doc);
}

/* ---- requests ---- */

static void quiet(int level, const char *line, void *arg)
{
	(void)level;
	(void)line;
	(void)arg;
}

static void node_start(void)
{
	struct node_params p = { .lnds = open_lnds, .lnd = &stub_lnd };

	if (node)
		return;
	stub_lnd_loses = -1; /* no ping is lost, so none waits */
	lnet_log_set(LNET_LOG_ERR, quiet, NULL);
	lnet_conf_init(&p.conf);
	p.conf.run = LNET_RUN_POLL;
	BUG_ON(node_open(&p, &node));
	BUG_ON(lnet_control_start(node, NULL, &control));
}

static char *ask(const char *request, int *status_p)
{
	char *answer;

	BUG_ON(lnet_control_request(control, request, &answer));
	BUG_ON(lnet_ctl_print(answer, NULL, NULL, status_p));
	return answer;
}

/* Returns what a request's answer prints. */
static char *ask_out(const char *request, int *status_p)
{
	char *answer = ask(request, status_p), *text;
	size_t size;
	FILE *f = open_memstream(&text, &size);

	BUG_ON(!f || lnet_ctl_print(answer, f, NULL, NULL));
	BUG_ON(fclose(f));
	free(answer);
	return text;
}

static char *export(void)
{
	int status;
	char *text = ask_out("export: {backup: true}", &status);

	BUG_ON(status);
	return text;
}

static void node_reset(void)
{
	int status;

	free(ask("lnet unconfigure:", &status));
	free(ask("lnet configure:", &status));
	BUG_ON(status);
	for (unsigned int i = 0; i < 4; i++)
		lnet_poll(node, 0);
}

static void fuzz_request(const char *text)
{
	int status;

	node_start();
	free(ask(text, &status));
	node_reset();
}

static int import(const char *quoted, const char *mode)
{
	char *request;
	int status;

	BUG_ON(asprintf(&request, "import: {mode: %s, text: %s}", mode,
			quoted) < 0);
	free(ask(request, &status));
	free(request);
	return status;
}

static void fuzz_import(const char *text)
{
	char *quoted, *before, *after, *same;
	int status;

	node_start();
	if (lnet_ctl_quote(text, &quoted))
		return;
	before = export();
	status = import(quoted, "add");
	after = export();
	BUG_ON(status && strcmp(before, after) != 0);
	free(quoted);
	node_reset();
	if (!status) {
		BUG_ON(lnet_ctl_quote(after, &quoted));
		BUG_ON(import(quoted, "add"));
		same = export();
		BUG_ON(strcmp(after, same) != 0);
		BUG_ON(import(quoted, "del"));
		free(same);
		free(quoted);
		node_reset();
	}
	free(before);
	free(after);
}

/* Rules for callers, in the same file. */
static void fuzz_rules(const char *text)
{
	struct ulrpc_rules_conf *conf;
	char why[64] = "";
	unsigned int n = 0;

	if (lnet_rules_parse(text, &conf, why, sizeof(why))) {
		BUG_ON(!*why);
		BUG_ON(!lnet_rules_parse(text, &conf, NULL, 0));
		return;
	}
	for (unsigned int i = 0; i < conf->nrules; i++)
		for (const char *const *s = conf->rules[i].services; s && *s;
		     s++)
			n += (unsigned int)strlen(*s);
	BUG_ON(n > strlen(text) * 2);
	free(conf);
}

static void fuzz_networks(const char *text)
{
	struct ulnet_text_error err = { 0, "" };
	struct ulnet_ni_conf *confs;
	unsigned int n;

	(void)spec_cpts(text, 3);
	if (lnet_networks_parse(text, &confs, &n, &err)) {
		BUG_ON(err.offset > strlen(text) || !*err.what);
		return;
	}
	BUG_ON(!n);
	free(confs);
}

static void fuzz_routes(const char *text)
{
	struct ulnet_text_error err = { 0, "" };
	struct ulnet_route *routes;
	unsigned int n;

	if (lnet_routes_parse(text, &routes, &n, &err)) {
		BUG_ON(err.offset > strlen(text) || !*err.what);
		return;
	}
	BUG_ON(!n != !routes);
	for (unsigned int i = 0; i < n; i++)
		BUG_ON(routes[i].hops > LNET_HOPS_MAX);
	free(routes);
}

/* On a host with an address of each kind. The result must be a valid text. */
static void fuzz_ip2nets(const char *text)
{
	struct ip2nets_address addrs[2] = {
		{ "eth0", LNET_NID_ANY, false, true },
		{ "eth1", LNET_NID_ANY, false, true }
	};
	struct ulnet_text_error err = { 0, "" };
	struct ulnet_ni_conf *confs;
	unsigned int n;
	char *networks;

	addrs[0].nid = lnet_nid_make(LNET_NET(LNET_TYPE_SOCK, 0), 0x0a000001);
	addrs[1].nid = addrs[0].nid;
	addrs[1].nid.size = 12;
	if (ip2nets_networks(text, addrs, 2, &networks, &err)) {
		BUG_ON(err.offset > strlen(text) || !*err.what);
		return;
	}
	BUG_ON(lnet_networks_parse(networks, &confs, &n, &err) || !n);
	free(confs);
	free(networks);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text;

	if (!size)
		return 0;
	text = malloc(size);
	BUG_ON(!text);
	memcpy(text, data + 1, size - 1);
	text[size - 1] = '\0';
	switch (data[0] % 4) {
	case 0:
		fuzz_tree(text, size - 1);
		break;
	case 1:
		fuzz_request(text);
		break;
	case 2:
		fuzz_import(text);
		fuzz_rules(text);
		break;
	default:
		fuzz_networks(text);
		fuzz_ip2nets(text);
		fuzz_routes(text);
	}
	free(text);
	return 0;
}
