/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Texts of nets, NIDs, process ids and NID lists; the first byte chooses which.
 * What parses must print, and the print must parse to the same value.
 */
#include "ulnet/nid.h"

#include <stdlib.h>

#include "base/util.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void fuzz_net(const char *text)
{
	char buf[LNET_NIDSTR_SIZE];
	uint32_t again;
	uint32_t net;

	if (lnet_net_parse(text, &net) != 0)
		return;
	lnet_net_format(net, buf, sizeof(buf));
	BUG_ON(lnet_net_parse(buf, &again) != 0);
	BUG_ON(again != net);
}

static void fuzz_nid(const char *text)
{
	char buf[LNET_NIDSTR_SIZE];
	struct ulnet_nid again;
	struct ulnet_nid nid;

	if (lnet_nid_parse(text, &nid) != 0)
		return;
	lnet_nid_format(&nid, buf, sizeof(buf));
	BUG_ON(lnet_nid_parse(buf, &again) != 0);
	BUG_ON(!lnet_nid_eq(&again, &nid));
	if (!lnet_nid_is_nid4(&nid))
		return;
	again = lnet_nid_from_nid4(lnet_nid_to_nid4(&nid));
	BUG_ON(!lnet_nid_eq(&again, &nid));
}

static void fuzz_id(const char *text)
{
	char buf[LNET_NIDSTR_SIZE];
	struct ulnet_id again;
	struct ulnet_id id;

	if (lnet_id_parse(text, &id) != 0)
		return;
	lnet_id_format(&id, buf, sizeof(buf));
	BUG_ON(lnet_id_parse(buf, &again) != 0);
	BUG_ON(again.pid != id.pid || !lnet_nid_eq(&again.nid, &id.nid));
}

static char *list_text(const struct ulnet_nidlist *list)
{
	size_t len = lnet_nidlist_format(list, NULL, 0);
	char *text = malloc(len + 1);

	BUG_ON(!text);
	BUG_ON(lnet_nidlist_format(list, text, len + 1) != len);
	BUG_ON(strlen(text) != len);
	return text;
}

/* Both lists must agree about @nid and some of its neighbours. */
static void check_matches(const struct ulnet_nidlist *a,
			  const struct ulnet_nidlist *b, struct ulnet_nid nid)
{
	size_t i;

	for (i = 0; i < sizeof(nid.addr); i++) {
		BUG_ON(lnet_nidlist_match(a, &nid) !=
		       lnet_nidlist_match(b, &nid));
		nid.addr[i]++;
	}
}

/* Looks at NIDs that are likely to match: among them the one at the beginning
 * of the text, which must match if the text is nothing else. */
static void check_lists(const struct ulnet_nidlist *a,
			const struct ulnet_nidlist *b, const char *text)
{
	char head[LNET_NIDSTR_SIZE] = "";
	struct ulnet_nid nid;

	strncat(head, text, MIN(strcspn(text, " "), sizeof(head) - 1));
	check_matches(a, b, LNET_NID_LO);
	check_matches(a, b, lnet_nid_make(LNET_NET(LNET_TYPE_SOCK, 0), 0));
	if (lnet_nid_parse(head, &nid) != 0)
		return;
	BUG_ON(!lnet_nidlist_match(b, &nid) && strlen(text) == strlen(head));
	check_matches(a, b, nid);
}

/* Each NID of the expansion must match the list, and occur once. */
static void check_expansion(const struct ulnet_nidlist *list)
{
	struct ulnet_nid nids[64];
	size_t n;

	if (lnet_nidlist_expand(list, nids, ARRAY_SIZE(nids), &n))
		return;
	BUG_ON(n > ARRAY_SIZE(nids));
	for (size_t i = 0; i < n; i++) {
		BUG_ON(!lnet_nidlist_match(list, &nids[i]));
		for (size_t k = 0; k < i; k++)
			BUG_ON(lnet_nid_eq(&nids[i], &nids[k]));
	}
}

static void fuzz_nidlist(const char *text)
{
	struct ulnet_text_error err;
	struct ulnet_nidlist *again;
	struct ulnet_nidlist *list;
	char *once;
	char *twice;

	if (lnet_nidlist_parse(text, &list, &err) != 0) {
		BUG_ON(err.offset > strlen(text));
		BUG_ON(strlen(err.what) >= sizeof(err.what));
		return;
	}
	once = list_text(list);
	BUG_ON(lnet_nidlist_parse(once, &again, &err) != 0);
	twice = list_text(again);
	BUG_ON(strcmp(once, twice) != 0);
	check_lists(list, again, once);
	check_expansion(list);
	lnet_nidlist_free(list);
	lnet_nidlist_free(again);
	free(once);
	free(twice);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static void (*const fuzzers[])(const char *) = {
		fuzz_net,
		fuzz_nid,
		fuzz_id,
		fuzz_nidlist,
	};
	char *text;

	if (size == 0)
		return 0;
	text = malloc(size);
	BUG_ON(!text);
	memcpy(text, data + 1, size - 1);
	text[size - 1] = '\0';
	fuzzers[data[0] % ARRAY_SIZE(fuzzers)](text);
	free(text);
	return 0;
}
