/* SPDX-License-Identifier: BSD-3-Clause */
/* YAML: the output of kernel nodes can be parsed, and is printed byte by byte
 * the same; errors name their line and column. */
#include <criterion/criterion.h>
#include <dirent.h>
#include <errno.h>
#include <string.h>
#include "config/yaml/scope.h"
#include "config/yaml/tree.h"
#include "tests/source.h"
#include "tests/tree_eq.h"
#include "ulnet/control.h"

static const struct tree_limits limits = { 1 << 20, 1000, 10 };

static struct doc *parse_ok(const char *text)
{
	struct tree_error err = { .what = "" };
	struct doc *doc;
	int rc = tree_parse(text, strlen(text), &limits, &doc, &err);

	cr_assert_eq(rc, 0, "%s\n%u:%u: %s", text, err.line, err.column,
		     err.what);
	return doc;
}

static char *emit(const struct tree *t, const struct tree_style *style)
{
	size_t size;
	char *text;
	FILE *f = open_memstream(&text, &size);

	tree_emit(t, style, f);
	fclose(f);
	return text;
}

/* ---- golden files ---- */

static char *file_read(const char *dir, const char *name)
{
	char path[4096];
	char *text = calloc(1, 65536);
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	f = fopen(path, "r");
	cr_assert_not_null(f, "%s", path);
	cr_assert_gt(fread(text, 1, 65535, f), 0);
	fclose(f);
	return text;
}

/* Puts the document into an answer, and returns what is printed of that. */
static char *print_again(const char *text)
{
	struct doc *doc = parse_ok(text);
	const struct tree *t = NULL, *root = doc_root(doc);
	bool error = list_next(list_next(root, NULL), NULL) &&
		     tree_get(list_next(list_next(root, NULL), NULL), "errno");
	struct answer a;
	char *answer, *out;
	size_t size;
	FILE *f = open_memstream(&out, &size);
	int status = 1;

	cr_assert_eq(answer_init(&a), 0);
	if (error)
		a.error = tree_copy(doc_root(a.doc), "error", root);
	else
		while ((t = list_next(root, t)))
			tree_copy(answer_output(&a), t->key, t);
	cr_assert_eq(answer_text(&a, 1 << 20, &answer), 0);
	cr_assert_eq(lnet_ctl_print(answer, error ? NULL : f, error ? f : NULL,
				    &status),
		     0);
	cr_assert_eq(status, 0);
	fclose(f);
	free(answer);
	answer_fini(&a);
	doc_free(doc);
	return out;
}

Test(tree, golden)
{
	char dir[2048];
	struct dirent *e;
	unsigned int n = 0;
	DIR *d;

	d = opendir(source_path("tests/config", dir, sizeof(dir)));
	cr_assert_not_null(d, "%s", dir);
	while ((e = readdir(d))) {
		char *text, *again;

		if (!strstr(e->d_name, ".yaml"))
			continue;
		text = file_read(dir, e->d_name);
		again = print_again(text);
		cr_assert_str_eq(again, text, "%s", e->d_name);
		free(text);
		free(again);
		n++;
	}
	closedir(d);
	cr_assert_geq(n, 15, "%u files in %s", n, dir);
}

/* ---- errors ---- */

static void wrong(const char *text, int rc, unsigned int line,
		  unsigned int column, const char *what)
{
	struct tree_error err;
	struct doc *doc;

	cr_assert_eq(tree_parse(text, strlen(text), &limits, &doc, &err), rc,
		     "%s", text);
	cr_assert_eq(err.line, line, "%s: line %u", text, err.line);
	cr_assert_eq(err.column, column, "%s: column %u", text, err.column);
	cr_assert(strstr(err.what, what), "%s: %s", text, err.what);
}

Test(tree, errors)
{
	wrong("a: 1\nb: [1, 2\n", -EINVAL, 3, 1, "expected ',' or ']'");
	wrong("a: 1\na: 2\n", -EINVAL, 2, 1, "key 'a' comes twice");
	wrong("a: &x 1\nb: *x\n", -EINVAL, 1, 4, "anchors");
	wrong("a: *x\n", -EINVAL, 1, 4, "anchors");
	wrong("&x [1]\n", -EINVAL, 1, 1, "anchors");
	wrong("a: !!binary aaaa\n", -EINVAL, 1, 4, "tags");
	wrong("a: !<tag:x> {}\n", -EINVAL, 1, 4, "tags");
	wrong("? [a]\n: 1\n", -EINVAL, 1, 3, "key must be a text");
	wrong("? {a: 1}\n: 1\n", -EINVAL, 1, 3, "key must be a text");
	wrong("a: 1\n---\nb: 2\n", -EINVAL, 2, 1, "second document");
	wrong("a: \"\\0\"\n", -EINVAL, 1, 4, "NUL");
	wrong("a: \"\n", -EINVAL, 2, 1, "unexpected end");
	wrong("\ta: 1\n", -EINVAL, 1, 1, "cannot start any token");
	wrong("a: \xff\n", -EINVAL, 1, 1, "UTF-8");
	wrong("a: 1\n b: 2\n", -EINVAL, 2, 3, "not allowed");
}

Test(tree, limits)
{
	const struct tree_limits small = { 20, 1000, 10 };
	struct tree_error err;
	struct doc *doc;
	char text[8192] = "", key[TREE_KEY_SIZE + 8];

	cr_assert_eq(
		tree_parse("a: 123456789012345678", 21, &small, &doc, &err),
		-EMSGSIZE);
	for (int i = 0; i < 11; i++)
		strcat(text, "[");
	wrong(text, -EMSGSIZE, 1, 11, "deeply");
	strcpy(text, "[");
	for (int i = 0; i < 1000; i++)
		strcat(text, "1,");
	strcat(text, "]");
	wrong(text, -EMSGSIZE, 1, 2000, "too many entries");
	memset(key, 'k', sizeof(key));
	strcpy(key + TREE_KEY_SIZE, ": 1");
	wrong(key, -EINVAL, 1, 1, "key is too long");
	doc = parse_ok(key + 1);
	cr_assert_eq(strlen(list_next(doc_root(doc), NULL)->key),
		     TREE_KEY_SIZE - 1);
	doc_free(doc);
}

Test(tree, keys_max)
{
	const struct tree_limits many = { 1 << 20, 100000, 10 };
	char *text = malloc(TREE_KEYS_MAX * 16), *p = text;
	struct tree_error err;
	struct doc *doc;

	for (int i = 0; i < TREE_KEYS_MAX; i++)
		p += sprintf(p, "k%d: 1\n", i);
	cr_assert_eq(tree_parse(text, (size_t)(p - text), &many, &doc, &err),
		     0);
	cr_assert_eq(doc_root(doc)->count, TREE_KEYS_MAX);
	doc_free(doc);
	p += sprintf(p, "more: 1\n");
	cr_assert_eq(tree_parse(text, (size_t)(p - text), &many, &doc, &err),
		     -EMSGSIZE);
	cr_assert_eq(err.line, TREE_KEYS_MAX + 1);
	free(text);
}

/* ---- round trips ---- */

static void same(const char *text)
{
	static const struct tree_style *const styles[] = { &tree_wide,
							   &tree_middle,
							   &tree_narrow };
	struct doc *a = parse_ok(text), *b;
	char *once;

	for (unsigned int i = 0; i < ARRAY_SIZE(styles); i++) {
		once = emit(doc_root(a), styles[i]);
		b = parse_ok(once);
		cr_assert(tree_eq(doc_root(a), doc_root(b)), "%s\n---\n%s",
			  text, once);
		doc_free(b);
		free(once);
	}
	doc_free(a);
}

Test(tree, round_trips)
{
	same("");
	same("~");
	same("\"\"");
	same("[]");
	same("{}");
	same("a: {}\nb: []\nc:\nd: ''\ne: \"null\"\nf: null\n");
	same("- - - 1\n  - 2\n- {a: [{b: c}]}\n");
	same("a: ! \"x: y\"\nb: ! 'it''s'\nc: ! plain\n");
	same("\"key: with\\n odd # things\": \"- v\"\n");
	same("a: \"\\x01\\x85\\u2028\\U0001F600\\t\"\nb: gr\xc3\xbc\xc3\x9f\n");
	same("a: |\n  two\n  lines\nb: >\n  folded\n  text\n");
	same("- '- a'\n- '# b'\n- 'c: '\n- 'd #e'\n- '...'\n- '---'\n- '-'\n"
	     "- ':'\n- '?'\n- ' x'\n- 'x '\n- '%'\n- '@'\n- '`'\n");
	same("a: ::1@tcp\nb: fd77::2@tcp\nc: 'fd77::'\nd: -1\n");
	same("'---': '...'\n'': ''\n");
	same("a: plain over\n  two lines\n");
}

/* Whether a text is quoted is kept; null differs from the text "null". */
Test(tree, forms)
{
	struct doc *doc = parse_ok("a: x\nb: \"x\"\nc: 'x'\nd: ! \"x\"\n"
				   "e: ! 'x'\nf:\ng: \"\"\nh: ~\ni: '~'\n");
	const struct tree *root = doc_root(doc);
	char *text = emit(root, &tree_narrow);

	cr_assert_eq(tree_get(root, "a")->form, TREE_PLAIN);
	cr_assert_eq(tree_get(root, "e")->form, TREE_TAG_SINGLE);
	cr_assert(tree_is_null(tree_get(root, "f")));
	cr_assert(!tree_is_null(tree_get(root, "g")));
	cr_assert(tree_is_null(tree_get(root, "h")));
	cr_assert(tree_is_text(tree_get(root, "i")));
	cr_assert_null(tree_get(root, "j"));
	cr_assert_eq(tree_get(root, "c")->line, 3);
	cr_assert_eq(tree_get(root, "c")->column, 4);
	cr_assert_str_eq(text, "a: x\nb: \"x\"\nc: 'x'\nd: ! \"x\"\n"
			       "e: ! 'x'\nf:\ng: \"\"\nh: ~\ni: '~'\n");
	free(text);
	doc_free(doc);
}

Test(tree, numbers)
{
	static const struct {
		const char *text;
		bool ok;
		int64_t value;
	} cases[] = {
		{ "0", true, 0 },
		{ "-1", true, -1 },
		{ "+7", true, 7 },
		{ "9223372036854775807", true, INT64_MAX },
		{ "-9223372036854775808", true, INT64_MIN },
		{ "9223372036854775808", false, 0 },
		{ "0x10", false, 0 },
		{ "1 ", true, 1 }, /* YAML strips the blank */
		{ "1s", false, 0 },
		{ "\" 1\"", false, 0 },
		{ "-", false, 0 },
		{ "\"\"", false, 0 },
		{ "", false, 0 },
		{ "[1]", false, 0 },
	};

	for (unsigned int i = 0; i < ARRAY_SIZE(cases); i++) {
		char text[64];
		struct doc *doc;
		int64_t v = 77;

		snprintf(text, sizeof(text), "a: %s", cases[i].text);
		if (!strcmp(cases[i].text, "-"))
			strcpy(text, "a: '-'");
		doc = parse_ok(text);
		cr_assert_eq(tree_number(tree_get(doc_root(doc), "a"), &v),
			     cases[i].ok, "%s", text);
		cr_assert_eq(v, cases[i].ok ? cases[i].value : 77, "%s", text);
		doc_free(doc);
	}
}

Test(tree, quote)
{
	char *q;

	cr_assert_eq(lnet_ctl_quote("a \"b\"\n\\ \t\x01 gr\xc3\xbc\xc3\x9f "
				    "\xf0\x9f\x98\x80",
				    &q),
		     0);
	cr_assert_str_eq(q, "\"a \\\"b\\\"\\n\\\\ \\t\\x01 gr\\xFC\\xDF "
			    "\\U0001F600\"");
	free(q);
	q = NULL;
	cr_assert_eq(lnet_ctl_quote("\xff", &q), -EILSEQ);
	cr_assert_eq(lnet_ctl_quote("\xc3", &q), -EILSEQ);
	cr_assert_eq(lnet_ctl_quote("\xc0\x80", &q), -EILSEQ);
	cr_assert_eq(lnet_ctl_quote("\xed\xa0\x80", &q), -EILSEQ);
	cr_assert_null(q);
}

Test(tree, print_no_answer)
{
	int status = 5;

	cr_assert_eq(lnet_ctl_print("", NULL, NULL, &status), -EINVAL);
	cr_assert_eq(lnet_ctl_print("[", NULL, NULL, &status), -EINVAL);
	cr_assert_eq(lnet_ctl_print("a: 1", NULL, NULL, &status), -EINVAL);
	cr_assert_eq(lnet_ctl_print("status: x", NULL, NULL, &status), -EINVAL);
	cr_assert_eq(lnet_ctl_print("status: 1", NULL, NULL, &status), -EINVAL);
	cr_assert_eq(status, 5);
	cr_assert_eq(lnet_ctl_print("status: -2\noutput: [x]\nerror: y\n"
				    "notes: {z: w}\n",
				    stdout, stdout, &status),
		     0);
	cr_assert_eq(status, -2);
}
