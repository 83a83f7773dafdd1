/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Messages of the self-test from hostile peers; what follows a message is taken
 * for a list of destinations. What can be decoded is encoded, and decodes to
 * the same.
 */
#include "services/lst/message.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"

#define TARGETS_MAX 1024

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Copies the bytes to memory of just that length, so that the sanitizer notices
 * a read behind them. */
static uint8_t *copy_of(const uint8_t *data, size_t len)
{
	uint8_t *copy = malloc(len ? len : 1);

	BUG_ON(!copy);
	memcpy(copy, data, len);
	return copy;
}

static int decode(struct lst_msg *msg, const uint8_t *data, size_t len)
{
	uint8_t *copy = copy_of(data, len);
	int rc = lst_msg_decode(msg, copy, len);

	free(copy);
	return rc;
}

static void encode_again(const struct lst_msg *was)
{
	uint8_t first[LST_MSG_SIZE], second[LST_MSG_SIZE];
	struct lst_msg is;

	BUG_ON(memchr(was->name, '\0', sizeof(was->name)) == NULL);
	BUG_ON(lst_msg_encode(was, first) != 0);
	BUG_ON(decode(&is, first, sizeof(first)) != 0);
	BUG_ON(is.swapped || is.type != was->type);
	BUG_ON(is.reply_id != was->reply_id || is.status != was->status);
	BUG_ON(lst_msg_encode(&is, second) != 0);
	BUG_ON(memcmp(first, second, sizeof(first)) != 0);
}

static void list(const uint8_t *data, size_t size, bool swapped)
{
	static struct ulnet_id ids[TARGETS_MAX];
	size_t n = (size + LST_RECORD_SIZE - 1) / LST_RECORD_SIZE;
	uint8_t *copy = copy_of(data, size);
	int rc;

	n = n < TARGETS_MAX ? n : TARGETS_MAX;
	rc = lst_list_decode(ids, n, copy, size, swapped);
	BUG_ON(rc != 0 && rc != -EINVAL && rc != -EMSGSIZE);
	for (size_t i = 0; rc == 0 && i < n; i++)
		BUG_ON(lnet_nid_is_any(&ids[i].nid) ||
		       lnet_nid_is_lo(&ids[i].nid));
	free(copy);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct lst_msg msg = { 0 };
	size_t len = MIN(size, (size_t)LST_MSG_SIZE);
	int rc = decode(&msg, data, len);

	BUG_ON(rc != 0 && rc != -EBADMSG && rc != -EPROTONOSUPPORT);
	BUG_ON(rc == 0 && len != LST_MSG_SIZE);
	if (rc == 0)
		encode_again(&msg);
	list(data + len, size - len, msg.swapped);
	return 0;
}
