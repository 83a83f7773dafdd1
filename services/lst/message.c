/* SPDX-License-Identifier: BSD-3-Clause */
#include "message.h"

#include <byteswap.h>
#include <errno.h>
#include <string.h>
#include <ulnet/lnet.h>

#define MAGIC	    UINT32_C(0xeeb0f00d)
#define MAGIC_AT    0
#define VERSION_AT  4
#define TYPE_AT	    8
#define FEATURES_AT 20
#define REPLY_ID_AT 24
#define FIELDS_MAX  23
#define INTEGER_MAX sizeof(uint64_t)

/* A field of a message, and the member of struct lst_msg for it. Both are
 * integers, of which the member may be wider, or both are names. */
struct field {
	uint8_t at, size;	      /* offset and bytes in the message */
	uint16_t member, member_size; /* offset and bytes in struct lst_msg */
};

#define SIZE_OF(m) sizeof(((struct lst_msg *)NULL)->m)
#define NARROW(at, n, m)                                       \
	{                                                      \
		at, n, offsetof(struct lst_msg, m), SIZE_OF(m) \
	}
#define FIELD(at, m) NARROW(at, SIZE_OF(m), m)
#define SESSION(at)  FIELD(at, session.console), FIELD(at + 8, session.stamp)
#define REQUEST	     FIELD(REPLY_ID_AT, reply_id)
#define REPLY	     FIELD(24, status)

/* By type: the fields of the message, up to one of size 0. */
static const struct field layouts[LST_TYPES][2 + FIELDS_MAX + 2] = {
	[LST_MAKE] = { REQUEST, SESSION(32), FIELD(48, make.force),
		       FIELD(52, name) },
	[LST_MAKE_REPLY] = { REPLY, SESSION(28), FIELD(44, timeout),
			     FIELD(48, name) },
	[LST_REMOVE] = { REQUEST, SESSION(32) },
	[LST_REMOVE_REPLY] = { REPLY, SESSION(28) },
	[LST_BATCH] = { REQUEST, SESSION(32), FIELD(48, batch.id),
			FIELD(56, batch.op), FIELD(60, batch.index),
			FIELD(64, batch.arg) },
	[LST_BATCH_REPLY] = { REPLY, SESSION(28), FIELD(44, batch.active) },
	[LST_STAT] = { REQUEST, SESSION(32) },
	[LST_STAT_REPLY] = { REPLY,
			     SESSION(28),
			     FIELD(44, stat.running_ms),
			     FIELD(48, stat.active_batches),
			     FIELD(52, stat.zombie_sessions),
			     FIELD(56, stat.brw_errors),
			     FIELD(60, stat.ping_errors),
			     FIELD(64, stat.errors),
			     FIELD(68, stat.rpcs_sent),
			     FIELD(72, stat.rpcs_received),
			     FIELD(76, stat.rpcs_dropped),
			     FIELD(80, stat.rpcs_expired),
			     FIELD(84, stat.bulk_got),
			     FIELD(92, stat.bulk_put),
			     FIELD(100, stat.msgs_alloc),
			     FIELD(104, stat.msgs_max),
			     FIELD(108, stat.msgs_errors),
			     FIELD(112, stat.send_count),
			     FIELD(116, stat.recv_count),
			     FIELD(120, stat.route_count),
			     FIELD(124, stat.drop_count),
			     FIELD(128, stat.send_length),
			     FIELD(136, stat.recv_length),
			     FIELD(144, stat.route_length),
			     FIELD(152, stat.drop_length) },
	[LST_TEST] = { REQUEST, FIELD(32, bulk_id), SESSION(40),
		       FIELD(56, test.batch), FIELD(64, test.service),
		       FIELD(68, test.loop), FIELD(72, test.concurrency),
		       FIELD(76, test.is_client), FIELD(77, test.stop_on_error),
		       FIELD(78, test.targets) },
	[LST_TEST_REPLY] = { REPLY, SESSION(28) },
	[LST_DEBUG] = { REQUEST, SESSION(32) },
	[LST_DEBUG_REPLY] = { REPLY, SESSION(28), FIELD(44, timeout),
			      FIELD(52, name) },
	[LST_BRW] = { REQUEST, FIELD(32, bulk_id), FIELD(40, brw.opcode),
		      FIELD(44, brw.length), FIELD(48, brw.flags) },
	[LST_BRW_REPLY] = { REPLY },
	[LST_PING] = { REQUEST, FIELD(32, ping.magic), FIELD(36, ping.sequence),
		       FIELD(40, ping.sec), FIELD(48, ping.nsec) },
	[LST_PING_REPLY] = { REPLY, FIELD(28, ping.magic),
			     FIELD(32, ping.sequence) },
	[LST_JOIN] = { REQUEST, SESSION(32), FIELD(48, name) },
	[LST_JOIN_REPLY] = { REPLY, SESSION(28), FIELD(44, timeout),
			     FIELD(48, name) },
};

/* The fields of a TEST of brw that are its parameters: with LST_BYTES, and
 * without. */
static const struct field brw_bytes[] = {
	NARROW(82, 2, test.brw.opcode),
	NARROW(84, 2, test.brw.flags),
	FIELD(86, test.brw.length),
	FIELD(90, test.brw.offset),
	{ 0 },
};
static const struct field brw_pages[] = {
	FIELD(82, test.brw.opcode),
	FIELD(86, test.brw.pages),
	FIELD(90, test.brw.flags),
	{ 0 },
};

static const struct field *params_of(const struct lst_msg *msg)
{
	static const struct field none = { 0 };

	if (msg->type != LST_TEST || msg->test.service != LST_SERVICE_BRW)
		return &none;
	return msg->features & LST_BYTES ? brw_bytes : brw_pages;
}

/* ---- integers of 1, 2, 4, 8 bytes ---- */

static uint64_t message_load(const uint8_t *p, size_t size)
{
	uint16_t v16;
	uint32_t v32;
	uint64_t v64;

	switch (size) {
	case 1:
		return *p;
	case 2:
		memcpy(&v16, p, sizeof(v16));
		return v16;
	case 4:
		memcpy(&v32, p, sizeof(v32));
		return v32;
	default:
		memcpy(&v64, p, sizeof(v64));
		return v64;
	}
}

static void message_store(uint8_t *p, size_t size, uint64_t value)
{
	uint16_t v16 = (uint16_t)value;
	uint32_t v32 = (uint32_t)value;

	switch (size) {
	case 1:
		*p = (uint8_t)value;
		break;
	case 2:
		memcpy(p, &v16, sizeof(v16));
		break;
	case 4:
		memcpy(p, &v32, sizeof(v32));
		break;
	default:
		memcpy(p, &value, sizeof(value));
	}
}

static uint64_t swap(uint64_t value, size_t size)
{
	return bswap_64(value) >> 8 * (INTEGER_MAX - size);
}

static uint64_t load_as(const uint8_t *p, size_t size, bool swapped)
{
	uint64_t value = message_load(p, size);

	return swapped ? swap(value, size) : value;
}

/* ---- fields ---- */

static int field_encode(const struct field *f, const struct lst_msg *msg,
			uint8_t *buf)
{
	const uint8_t *member = (const uint8_t *)msg + f->member;
	uint64_t value;

	if (f->size > INTEGER_MAX) {
		size_t length = strnlen((const char *)member, f->size);

		if (length == f->size)
			return -EINVAL;
		memcpy(buf + f->at, member, length);
		return 0;
	}
	value = message_load(member, f->member_size);
	if (f->size < f->member_size && value >> 8 * f->size)
		return -EINVAL;
	message_store(buf + f->at, f->size, value);
	return 0;
}

static void field_decode(const struct field *f, struct lst_msg *msg,
			 const uint8_t *buf)
{
	uint8_t *member = (uint8_t *)msg + f->member;

	if (f->size > INTEGER_MAX)
		memcpy(member, buf + f->at, f->size - 1u);
	else
		message_store(member, f->member_size,
			      load_as(buf + f->at, f->size, msg->swapped));
}

static int fields_encode(const struct field *f, const struct lst_msg *msg,
			 uint8_t *buf)
{
	int rc = 0;

	for (; f->size && rc == 0; f++)
		rc = field_encode(f, msg, buf);
	return rc;
}

static void fields_decode(const struct field *f, struct lst_msg *msg,
			  const uint8_t *buf)
{
	for (; f->size; f++)
		field_decode(f, msg, buf);
}

/* ---- messages ---- */

int lst_msg_encode(const struct lst_msg *msg, uint8_t *buf)
{
	int rc;

	if (msg->type >= LST_TYPES)
		return -EINVAL;
	memset(buf, 0, LST_MSG_SIZE);
	message_store(buf + MAGIC_AT, 4, MAGIC);
	message_store(buf + VERSION_AT, 4, LST_VERSION);
	message_store(buf + TYPE_AT, 4, msg->type);
	message_store(buf + FEATURES_AT, 4, msg->features);
	rc = fields_encode(layouts[msg->type], msg, buf);
	return rc ? rc : fields_encode(params_of(msg), msg, buf);
}

int lst_msg_decode(struct lst_msg *msg_p, const void *data, size_t len)
{
	struct lst_msg msg = { 0 };
	const uint8_t *buf = data;
	uint64_t magic;

	if (len != LST_MSG_SIZE)
		return -EBADMSG;
	magic = message_load(buf + MAGIC_AT, 4);
	msg.swapped = magic == swap(MAGIC, 4);
	if (magic != MAGIC && !msg.swapped)
		return -EBADMSG;
	msg.type = (uint32_t)load_as(buf + TYPE_AT, 4, msg.swapped);
	if (msg.type >= LST_TYPES)
		return -EBADMSG;
	if (load_as(buf + VERSION_AT, 4, msg.swapped) != LST_VERSION) {
		if (!lst_msg_is_reply(msg.type))
			msg.reply_id =
				load_as(buf + REPLY_ID_AT, 8, msg.swapped);
		*msg_p = msg;
		return -EPROTONOSUPPORT;
	}
	msg.features = (uint32_t)load_as(buf + FEATURES_AT, 4, msg.swapped);
	fields_decode(layouts[msg.type], &msg, buf);
	fields_decode(params_of(&msg), &msg, buf);
	*msg_p = msg;
	return 0;
}

unsigned int lst_request_portal(uint32_t type)
{
	return type == LST_BRW || type == LST_PING ? LST_PORTAL_TEST
						   : LST_PORTAL_FRAME;
}

uint64_t lst_request_bits(uint32_t type)
{
	static const uint8_t services[LST_TYPES] = {
		[LST_MAKE] = LST_SERVICE_MAKE,
		[LST_REMOVE] = LST_SERVICE_REMOVE,
		[LST_BATCH] = LST_SERVICE_BATCH,
		[LST_STAT] = LST_SERVICE_STAT,
		[LST_TEST] = LST_SERVICE_TEST,
		[LST_DEBUG] = LST_SERVICE_DEBUG,
		[LST_BRW] = LST_SERVICE_BRW,
		[LST_PING] = LST_SERVICE_PING,
		[LST_JOIN] = LST_SERVICE_JOIN,
	};

	return services[type];
}

/* ---- lists of destinations ---- */

#define PID_AT sizeof(uint64_t)

static size_t record_at(size_t i)
{
	return i / LST_LIST_WHOLE * LST_PAGE_SIZE +
	       i % LST_LIST_WHOLE * LST_RECORD_SIZE;
}

int lst_list_encode(const struct ulnet_id *ids, size_t n, void *buf)
{
	uint8_t *record = buf;

	if (n > LST_LIST_WHOLE)
		return -E2BIG;
	for (size_t i = 0; i < n; i++, record += LST_RECORD_SIZE) {
		uint64_t nid4 = lnet_nid_to_nid4(&ids[i].nid);

		if (!lnet_nid_is_nid4(&ids[i].nid))
			return -EAFNOSUPPORT;
		memcpy(record, &nid4, sizeof(nid4));
		memcpy(record + PID_AT, &ids[i].pid, sizeof(ids[i].pid));
	}
	return 0;
}

static int nid_decode(struct ulnet_nid *nid, const uint8_t *p, bool swapped)
{
	uint64_t nid4;

	memcpy(&nid4, p, sizeof(nid4));
	*nid = lnet_nid_from_nid4(swapped ? bswap_64(nid4) : nid4);
	if (lnet_nid_is_any(nid) || lnet_nid_is_lo(nid) || nid->type == 0)
		return -EINVAL;
	return 0;
}

static uint32_t pid_decode(const uint8_t *p, bool swapped)
{
	uint32_t pid;

	memcpy(&pid, p, sizeof(pid));
	return swapped ? bswap_32(pid) : pid;
}

int lst_list_decode(struct ulnet_id *ids, size_t n, const void *buf, size_t len,
		    bool swapped)
{
	for (size_t i = 0; i < n; i++) {
		size_t at = record_at(i);
		const uint8_t *record = (const uint8_t *)buf + at;
		int rc;

		if (at > len || len - at < PID_AT)
			return -EMSGSIZE;
		rc = nid_decode(&ids[i].nid, record, swapped);
		if (rc)
			return rc;
		ids[i].pid = len - at < LST_RECORD_SIZE
				     ? LNET_PID_LUSTRE
				     : pid_decode(record + PID_AT, swapped);
	}
	return 0;
}

/* ---- bulk data of brw tests ---- */

#define FILLED	 UINT64_C(0xeeb0eeb1eeb2eeb3)
#define POISONED UINT64_C(0xbeefbeefbeefbeef)

bool lst_data_valid(uint32_t opcode, uint32_t check, uint64_t length)
{
	if (opcode != LST_READ && opcode != LST_WRITE)
		return false;
	if (check < LST_CHECK_NONE || check > LST_CHECK_FULL)
		return false;
	if (!length || length > LNET_MTU)
		return false;
	return check == LST_CHECK_NONE || length % LST_WORD == 0;
}

/* Returns the offset of the next word that is checked after the one at @at. The
 * simple check looks at the first and the last word in each page. */
static uint32_t data_next_word(uint32_t at, uint32_t length, uint32_t offset,
			       enum lst_check check)
{
	uint32_t in_page = (offset + at) % LST_PAGE_SIZE;
	uint32_t page_end = at - in_page + LST_PAGE_SIZE;
	uint32_t last = (page_end < length ? page_end : length) - LST_WORD;

	if (check == LST_CHECK_SIMPLE && at < last)
		return last;
	return at + LST_WORD;
}

static void words_set(uint8_t *data, uint32_t length, uint32_t offset,
		      enum lst_check check, uint64_t word)
{
	if (check == LST_CHECK_NONE)
		return;
	for (uint32_t at = 0; at < length;
	     at = data_next_word(at, length, offset, check))
		memcpy(data + at, &word, LST_WORD);
}

void lst_data_fill(void *data, uint32_t length, uint32_t offset,
		   enum lst_check check)
{
	words_set(data, length, offset, check, FILLED);
}

void lst_data_poison(void *data, uint32_t length, uint32_t offset,
		     enum lst_check check)
{
	words_set(data, length, offset, check, POISONED);
}

bool lst_data_good(const void *data, uint32_t length, uint32_t offset,
		   enum lst_check check, bool swapped)
{
	uint64_t wanted = swapped ? bswap_64(FILLED) : FILLED;

	if (check == LST_CHECK_NONE)
		return true;
	for (uint32_t at = 0; at < length;
	     at = data_next_word(at, length, offset, check))
		if (memcmp((const uint8_t *)data + at, &wanted, LST_WORD) != 0)
			return false;
	return true;
}
