/* SPDX-License-Identifier: BSD-3-Clause */
#include "o2ibcalc.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "config/yaml/tree.h"
#include "tools/common/program.h"
#include "tools/common/option.h"

/* ---- documents ---- */

/* As complain(), with the line of @t. */
#define wrong(c, t, ...) ((c)->line = (t)->line, complain(c, __VA_ARGS__))

/* Returns the text of @t; NULL: @t is NULL, or no scalar. */
static const char *text_of(const struct tree *t)
{
	return t && t->kind == TREE_SCALAR ? t->text : NULL;
}

/* Parses @text. Returns NULL if it is malformed or empty, as @c then says. */
static struct doc *doc_parse(struct complaint *c, const char *text)
{
	static const struct tree_limits limits = { FILE_TEXT_MAX, 1000000,
						   TREE_DEPTH_MAX };
	struct tree_error err = { 0 };
	struct doc *doc;

	if (tree_parse(text, strlen(text), &limits, &doc, &err)) {
		complain(c, "%s", err.what);
		c->line = err.line;
		return NULL;
	}
	c->line = 0;
	if (!tree_is_null(doc_root(doc)))
		return doc;
	complain(c, "there is nothing in it");
	doc_free(doc);
	return NULL;
}

/* ---- a node's inputs ---- */

static int take_value(struct complaint *c, const struct input *in,
		      const struct tree *value, struct ulnet_o2ib_conf *conf)
{
	if (!text_of(value))
		return wrong(c, value, "%s: a value is expected", in->name);
	c->line = value->line;
	return input_set(in, value->text, conf, c);
}

/* Takes the inputs out of a mapping that lnetctl has written, and ignores all
 * else in it. */
static int take_shown(struct complaint *c, const struct tree *map,
		      struct ulnet_o2ib_conf *conf)
{
	const struct tree *value;
	const struct input *in;

	if (!map || map->kind != TREE_MAP)
		return 0;
	tree_for_each (value, map) {
		in = input_find(value->key);
		if (in && take_value(c, in, value, conf))
			return -1;
	}
	return 0;
}

static int take_tunables(struct complaint *c, const struct tree *ni,
			 struct ulnet_o2ib_conf *conf)
{
	if (take_shown(c, tree_get(ni, "tunables"), conf) ||
	    take_shown(c, tree_get(ni, "lnd tunables"), conf))
		return -1;
	return 0;
}

static bool is_seq(const struct tree *t)
{
	return t && t->kind == TREE_SEQ;
}

/* Finds the first NI on a net of type o2ib, and counts the others. */
static const struct tree *find_ni(const struct tree *nets,
				  struct shown_ni *shown)
{
	const struct tree *net, *ni, *nis, *first = NULL;
	const char *type, *nid;

	if (!is_seq(nets))
		return NULL;
	tree_for_each (net, nets) {
		type = text_of(tree_get(net, "net type"));
		nis = tree_get(net, "local NI(s)");
		if (!type || strncmp(type, "o2ib", 4) != 0 || !is_seq(nis))
			continue;
		tree_for_each (ni, nis) {
			if (first) {
				shown->others++;
				continue;
			}
			first = ni;
			nid = text_of(tree_get(ni, "nid"));
			snprintf(shown->nid, sizeof(shown->nid), "%s",
				 nid ? nid : "?");
		}
	}
	return first;
}

static int take_nets(struct complaint *c, const struct tree *nets,
		     struct ulnet_o2ib_conf *conf, struct shown_ni *shown)
{
	const struct tree *ni = find_ni(nets, shown);

	if (ni && !tree_get(ni, "lnd tunables"))
		return wrong(c, ni,
			     "%s has no \"lnd tunables\": show it with "
			     "\"lnetctl net show -v 4\"",
			     shown->nid);
	if (ni)
		return take_tunables(c, ni, conf);
	return wrong(c, nets, "no NI is on an o2ib net");
}

/* Adds @number to the set *@given. Returns true if it was in the set already.
 */
static bool is_repeated(uint64_t *given, unsigned int number)
{
	bool before = *given >> number & 1;

	*given |= UINT64_C(1) << number;
	return before;
}

/* Takes one input; @given is the set of inputs that came before. */
static int take_input(struct complaint *c, const struct tree *value,
		      uint64_t *given, struct ulnet_o2ib_conf *conf)
{
	const struct input *in = input_find(value->key);

	if (!in) {
		wrong(c, value, "%.80s: there is no such input", value->key);
		c->near = input_near(value->key);
		return -1;
	}
	if (is_repeated(given, (unsigned int)(in - inputs)))
		return wrong(c, value, "%s is there twice", in->name);
	return take_value(c, in, value, conf);
}

static int take_node(struct complaint *c, const struct tree *map,
		     struct ulnet_o2ib_conf *conf, struct shown_ni *shown)
{
	const struct tree *value, *nets = tree_get(map, "net");
	uint64_t given = 0;
	bool by_lnetctl;

	if (map->kind != TREE_MAP)
		return wrong(c, map,
			     "inputs such as \"peer_credits: 8\" are expected");
	/* Inputs that stand beside what lnetctl shows override what it shows.
	 */
	by_lnetctl = nets || tree_get(map, "tunables") ||
		     tree_get(map, "lnd tunables");
	if ((nets && take_nets(c, nets, conf, shown)) ||
	    take_tunables(c, map, conf))
		return -1;
	tree_for_each (value, map)
		if ((!by_lnetctl || input_find(value->key)) &&
		    take_input(c, value, &given, conf))
			return -1;
	return 0;
}

/* ---- two nodes ---- */

enum top {
	TOP_A = LNET_O2IB_A,
	TOP_B = LNET_O2IB_B,
	TOP_BOTH,
	TOP_INITIATOR,
	TOP_NPEERS,
};

/* The keys of a file. The first ones are numbered by enum top. The others are
 * ignored: they are in the output of this program, which can be read again. */
static const char *const tops[] = {
	"a",	  "b",	     "both",	   "initiator", "npeers",
	"result", "what_if", "negotiated", NULL,
};

static int initiator_read(struct complaint *c, const struct tree *value,
			  struct ulnet_o2ib_pair *pair)
{
	const char *text = text_of(value) ? value->text : "";

	return side_parse(text, &pair->initiator)
		       ? 0
		       : wrong(c, value, "initiator: %.80s: A or B is expected",
			       text);
}

static int npeers_read(struct complaint *c, const struct tree *value,
		       struct ulnet_o2ib_pair *pair)
{
	const char *text = text_of(value) ? value->text : "";
	uint64_t n;

	if (!number_parse(text, 1, 1000000, &n))
		return wrong(
			c, value,
			"npeers: %.80s: a number from 1 to 1000000 is expected",
			text);
	pair->npeers = (uint32_t)n;
	return 0;
}

static int no_top(struct complaint *c, const struct tree *value)
{
	struct nearest near;

	/* This is an input, but it does not say of which node. */
	if (input_find(value->key))
		return wrong(c, value, "%s: of \"a:\", \"b:\" or \"both:\"?",
			     value->key);
	nearest_init(&near, value->key);
	for (unsigned int i = 0; tops[i]; i++)
		nearest_try(&near, tops[i]);
	wrong(c, value,
	      "%.80s: there are a, b, both, initiator and npeers, or what "
	      "lnetctl shows",
	      value->key);
	c->near = near.name;
	return -1;
}

/* Returns the number of the key in tops[], in upper or lower case. */
static unsigned int top_find(const char *key)
{
	unsigned int top = 0;

	while (tops[top] && strcasecmp(key, tops[top]) != 0)
		top++;
	return top;
}

static const struct tree *find_both(const struct tree *map)
{
	const struct tree *value;

	tree_for_each (value, map)
		if (top_find(value->key) == TOP_BOTH)
			return value;
	return NULL;
}

static int take_both(struct complaint *c, const struct tree *map,
		     struct ulnet_o2ib_pair *pair, struct shown_ni *shown)
{
	struct shown_ni again = { .nid = "" };

	if (take_node(c, map, &pair->node[LNET_O2IB_A], shown))
		return -1;
	return take_node(c, map, &pair->node[LNET_O2IB_B], &again);
}

static int take_pair(struct complaint *c, const struct tree *map,
		     struct ulnet_o2ib_pair *pair, struct shown_ni *shown)
{
	const struct tree *value, *both;
	uint64_t given = 0;
	int rc = 0;

	if (map->kind != TREE_MAP)
		return wrong(c, map, "\"a:\" and \"b:\" are expected");
	if (tree_get(map, "net") || tree_get(map, "lnd tunables"))
		return take_both(c, map, pair, shown);
	/* Inputs of one node override those of both. */
	both = find_both(map);
	if (both && take_both(c, both, pair, shown))
		return -1;
	tree_for_each (value, map) {
		unsigned int top = top_find(value->key);

		if (!tops[top])
			return no_top(c, value);
		if (is_repeated(&given, top))
			return wrong(c, value, "%s is there twice", tops[top]);
		if (top == TOP_A || top == TOP_B)
			rc = take_node(c, value, &pair->node[top], shown);
		else if (top == TOP_INITIATOR)
			rc = initiator_read(c, value, pair);
		else if (top == TOP_NPEERS)
			rc = npeers_read(c, value, pair);
		if (rc)
			return -1;
	}
	return 0;
}

int nodes_read(const char *text, struct ulnet_o2ib_pair *pair,
	       enum ulnet_o2ib_side side, struct shown_ni *shown,
	       struct complaint *c)
{
	struct doc *doc = doc_parse(c, text);
	int rc;

	*shown = (struct shown_ni){ .nid = "" };
	if (!doc)
		return -1;
	if (side == LNET_O2IB_BOTH)
		rc = take_pair(c, doc_root(doc), pair, shown);
	else
		rc = take_node(c, doc_root(doc), &pair->node[side], shown);
	doc_free(doc);
	return rc;
}

/* ---- what was negotiated ---- */

static int take_count(struct complaint *c, const struct tree *map,
		      const char *name, bool *has, uint64_t *value_p)
{
	const struct tree *value = tree_get(map, name);

	if (!value)
		return 0;
	if (!text_of(value) || !number_parse(value->text, 0, 65535, value_p))
		return wrong(c, value,
			     "%s: a number from 0 to 65535 is expected", name);
	*has = true;
	return 0;
}

static int add_conn(struct complaint *c, const struct tree *map,
		    const char *nid, struct negotiated_list *list)
{
	struct negotiated conn = { .line = map->line }, *conns;

	if (take_count(c, map, "queue_depth", &conn.has_depth, &conn.depth) ||
	    take_count(c, map, "max_frags", &conn.has_frags, &conn.frags))
		return -1;
	if (!conn.has_depth && !conn.has_frags)
		return 0;
	snprintf(conn.nid, sizeof(conn.nid), "%s", nid);
	conns = realloc(list->conns, (list->n + 1) * sizeof(*conns));
	if (!conns)
		return wrong(c, map, "%s", strerror(ENOMEM));
	list->conns = conns;
	conns[list->n++] = conn;
	return 0;
}

/* Adds all connections in @t to @list. @nid is the NID of the nearest mapping
 * around @t that has one. */
static int find_conns(struct complaint *c, const struct tree *t,
		      const char *nid, struct negotiated_list *list)
{
	const struct tree *child;
	const char *own = text_of(tree_get(t, "nid"));

	if (!own)
		own = text_of(tree_get(t, "primary nid"));
	if (own)
		nid = own;
	if (t->kind == TREE_MAP && add_conn(c, t, nid, list))
		return -1;
	tree_for_each (child, t)
		if (find_conns(c, child, nid, list))
			return -1;
	return 0;
}

int negotiated_read(const char *text, struct negotiated_list *list,
		    struct complaint *c)
{
	struct doc *doc = doc_parse(c, text);
	int rc;

	*list = (struct negotiated_list){ NULL, 0 };
	if (!doc)
		return -1;
	rc = find_conns(c, doc_root(doc), "", list);
	doc_free(doc);
	if (!rc && !list->n) {
		c->line = 0;
		rc = complain(c, "no connection: neither queue_depth nor "
				 "max_frags is in it");
	}
	if (rc)
		negotiated_free(list);
	return rc;
}

void negotiated_free(struct negotiated_list *list)
{
	free(list->conns);
	*list = (struct negotiated_list){ NULL, 0 };
}
