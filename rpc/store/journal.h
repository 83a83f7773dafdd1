/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The files of a store. A file is a head and frames behind it, and each frame
 * is there as a whole or not at all. This file does not know what is in the
 * frames: table.h does.
 *
 * There are two kinds of files, with a generation in their names. "log.N" grows
 * by frames, until log.N+1 takes over. "snapshot.N" has all that was in the
 * logs before log.N; it is written under another name, and gets its own when
 * all of it is on disk. Little endian:
 *
 *	8  "ulstore\n"
 *	4  version of the format
 *	4  kind
 *	16 incarnation of the store
 *	8  generation
 *	4  0
 *	4  CRC32C of all that is before
 *
 * and for each frame:
 *
 *	4  CRC32C of what follows in the frame, begun with the file's CRC32C
 *	4  bytes of the payload
 *	8  number of the frame, from 1
 *	8  how many bytes of the file were on disk when the frame was written
 *	   the payload
 *
 * If the machine fails, what was written since the last sync may be on disk in
 * part, and in any order. Nobody was told yet that it is on disk, so a reader
 * cuts the file before the first frame that is not whole. But if a later frame
 * says that this place was on disk when the later frame was written, something
 * that was promised has been damaged, and the file is refused. Therefore a log
 * that is closed in order ends with a sync and an empty frame: damage to any
 * byte of such a file is noticed.
 *
 * Owner: whoever embeds it. Thread: one at a time.
 */
#ifndef RPC_STORE_JOURNAL_H
#define RPC_STORE_JOURNAL_H

#include <sys/uio.h>
#include "base/util.h"

#define JOURNAL_ID_SIZE 16
/* bytes of the name of a file, at most, with its 0 */
#define JOURNAL_NAME	 40
#define JOURNAL_LOG	 "log"
#define JOURNAL_SNAPSHOT "snapshot"
#define JOURNAL_HEAD	 48 /* bytes of a file's head */
/* frames that one journal_append() writes, at most */
#define JOURNAL_GROUP 64

/* Names a file of a store. */
struct journal_id {
	const char *kind; /* JOURNAL_LOG or JOURNAL_SNAPSHOT */
	uint64_t generation;
	uint8_t incarnation[JOURNAL_ID_SIZE];
};

/* A file that is being written. */
struct journal {
	int fd;
	uint32_t sum;	 /* checksum of the head */
	uint64_t size;	 /* bytes of the file */
	uint64_t synced; /* how many of these bytes are on disk */
	uint64_t frames;
	/* a write or sync has failed so that nobody knows what is on disk:
	 * nothing more may be written */
	bool broken;
};

/* ---- writing ---- */

/* Makes the file in the directory @dir, under the name of an unfinished one.
 * Returns 0 or -errno. */
int journal_new(int dir, const struct journal_id *id,
		struct journal *j) must_check;
/* Finishes the file: waits until all of it is on disk, gives it its name, and
 * waits until the name is on disk, too. Returns 0 or -errno. */
int journal_publish(int dir, const struct journal_id *id,
		    struct journal *j) must_check;
/* Appends a frame for each of up to JOURNAL_GROUP payloads. With @sync, waits
 * until they are on disk. Returns 0; -errno: none of the frames is in the file;
 * -ENOTRECOVERABLE: it is not known whether they are, and @j is broken. */
int journal_append(struct journal *j, const struct iovec *payload,
		   unsigned int n, bool sync) must_check;
/* Waits until all of the file is on disk. Returns 0 or -ENOTRECOVERABLE. */
int journal_sync(struct journal *j) must_check;
/* Ends writing, and frees what @j has. The file stays. */
void journal_close(struct journal *j);

/* Deletes the file, finished or not. If that fails, it stays. */
void journal_delete(int dir, const struct journal_id *id);

/* ---- reading ---- */

/* Is called with the payload of each frame. Returns 0, or -errno, which ends
 * the reading. */
typedef int (*journal_frame_fn)(void *arg, const uint8_t *payload,
				size_t length);

struct journal_found {
	uint8_t incarnation[JOURNAL_ID_SIZE];
	uint64_t size; /* bytes up to the end of the last whole frame */
	uint64_t torn; /* bytes behind the last whole frame */
	uint64_t frames;
	uint32_t sum;
	bool closed; /* the last frame is empty: the file was closed in order */
};

/*
 * Reads the file, and calls @frame(@arg, ...) for each frame. Unless @any, the
 * file must have the incarnation in @id. Returns 0; what @frame returned;
 * -EMEDIUMTYPE: the file is of another kind or store; -EPROTONOSUPPORT: its
 * version is unknown; -EBADMSG: it is damaged; -ENOMEM; or an errno of reading.
 * On failure, writes a sentence to @why, of ULRPC_STORE_TEXT bytes.
 */
int journal_read(int dir, const struct journal_id *id, bool any,
		 journal_frame_fn frame, void *arg, struct journal_found *found,
		 char *why) must_check;
/* Opens for writing a log that journal_read() has read, with the result @found,
 * and cuts off what is torn. Returns 0 or -errno. */
int journal_resume(int dir, const struct journal_id *id,
		   const struct journal_found *found,
		   struct journal *j) must_check;

/* Writes the name of a finished file to @name, of JOURNAL_NAME bytes, and
 * returns @name. */
const char *journal_name(const struct journal_id *id, char *name);
/* Writes the formatted text to @why, of ULRPC_STORE_TEXT bytes; if it ends in
 * ':', also the text of the error @rc, a negative errno. Returns @rc. */
int journal_why(char *why, int rc, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

#endif
