/* SPDX-License-Identifier: BSD-3-Clause */
/* What the tests of config/ share: a node with threads over a stub LND, and
 * requests to its control. */
#ifndef TESTS_CONFIG_RIG_H
#define TESTS_CONFIG_RIG_H

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>
#include "stub_lnd.h"
#include "tests/source.h"
#include "ulnet/control.h"

/* ---- the node ---- */

struct rig {
	struct lnet *node;
	struct lnet_control *control;
};

static inline struct rig rig_open_with(unsigned int cpts,
				       const struct ulnet_control_conf *conf)
{
	struct node_params p = { .lnds = open_lnds, .lnd = &stub_lnd };
	struct rig rig;

	lnet_conf_init(&p.conf);
	p.conf.cpts = cpts;
	cr_assert_eq(node_open(&p, &rig.node), 0);
	cr_assert_eq(lnet_control_start(rig.node, conf, &rig.control), 0);
	return rig;
}

static inline struct rig rig_open(void)
{
	return rig_open_with(1, NULL);
}

static inline void rig_close(struct rig *rig)
{
	lnet_control_stop(rig->control);
	lnet_close(rig->node);
}

/* ---- requests ---- */

/* What lnetctl would print of an answer, and what it would exit with. */
struct result {
	int status;
	char *out, *err, *answer;
};

static inline struct result result_of(char *answer)
{
	struct result r = { .answer = answer };
	size_t out_size, err_size;
	FILE *out = open_memstream(&r.out, &out_size);
	FILE *err = open_memstream(&r.err, &err_size);

	cr_assert_eq(lnet_ctl_print(answer, out, err, &r.status), 0, "%s",
		     answer);
	fclose(out);
	fclose(err);
	return r;
}

static inline void result_free(struct result *r)
{
	free(r->out);
	free(r->err);
	free(r->answer);
}

static inline struct result ask(struct rig *rig, const char *request)
{
	char *answer;

	cr_assert_eq(lnet_control_request(rig->control, request, &answer), 0);
	return result_of(answer);
}

/* Sends a request that must succeed and print exactly @out. */
static inline void ask_out(struct rig *rig, const char *request,
			   const char *out)
{
	struct result r = ask(rig, request);

	cr_assert_eq(r.status, 0, "%s: %s", request, r.answer);
	cr_assert_str_eq(r.out, out);
	cr_assert_str_eq(r.err, "");
	result_free(&r);
}

/* Sends a request that must fail with @status, and whose error must contain
 * @words. */
static inline void ask_fail(struct rig *rig, const char *request, int status,
			    const char *words)
{
	struct result r = ask(rig, request);

	cr_assert_eq(r.status, status, "%s: %s", request, r.answer);
	cr_assert(strstr(r.err, words), "'%s' is not in:\n%s", words, r.err);
	result_free(&r);
}

/* Repeats a request until it prints @words: what the node does in a turn of its
 * own, after it has answered, is waited for like this. */
static inline void ask_until(struct rig *rig, const char *request,
			     const char *words)
{
	bool printed;

	do {
		struct result r = ask(rig, request);

		cr_assert_eq(r.status, 0, "%s: %s", request, r.answer);
		printed = strstr(r.out, words);
		result_free(&r);
	} while (!printed);
}

/* Returns the contents of tests/config/@name, which the caller frees. */
static inline char *config_file(const char *name)
{
	char file[128], *text = calloc(1, 65536);
	FILE *f;

	snprintf(file, sizeof(file), "tests/config/%s", name);
	f = source_open(file);
	cr_assert_not_null(f, "%s", file);
	cr_assert_gt(fread(text, 1, 65535, f), 0);
	fclose(f);
	return text;
}

static inline struct result import(struct rig *rig, const char *mode,
				   const char *text)
{
	char *quoted, *request;
	struct result r;

	cr_assert_eq(lnet_ctl_quote(text, &quoted), 0);
	cr_assert_geq(asprintf(&request, "import: {mode: %s, text: %s}", mode,
			       quoted),
		      0);
	r = ask(rig, request);
	free(request);
	free(quoted);
	return r;
}

static inline void import_ok(struct rig *rig, const char *mode,
			     const char *text)
{
	struct result r = import(rig, mode, text);

	cr_assert_eq(r.status, 0, "%s", r.answer);
	cr_assert_str_eq(r.err, "");
	result_free(&r);
}

/* Returns a backup of the node's configuration, to compare. */
static inline char *rig_state(struct rig *rig)
{
	struct result r = ask(rig, "export: {backup: true}");
	char *state = strdup(r.out);

	cr_assert_eq(r.status, 0);
	result_free(&r);
	return state;
}

/* Returns all peers that the node knows, configured or not, to compare. */
static inline char *rig_peers(struct rig *rig)
{
	struct result r = ask(rig, "peer show:");
	char *peers = strdup(r.out);

	cr_assert_eq(r.status, 0);
	result_free(&r);
	return peers;
}

/* Imports a file, which must fail with @status, contain @words in its error,
 * and leave the node unchanged. */
static inline void import_fail(struct rig *rig, const char *mode,
			       const char *text, int status, const char *words)
{
	char *before = rig_state(rig), *after;
	struct result r = import(rig, mode, text);

	cr_assert_eq(r.status, status, "%s\n%s", text, r.answer);
	cr_assert(strstr(r.err, words), "'%s' is not in:\n%s", words, r.err);
	result_free(&r);
	after = rig_state(rig);
	cr_assert_str_eq(after, before);
	free(before);
	free(after);
}

#endif
