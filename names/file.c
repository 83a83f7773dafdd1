/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdlib.h>

#include "names/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "names/target.h"

#define BLANKS	   " \t\r"
#define WEIGHT_MAX 65535

/* ---- what is wrong ---- */

/* bytes of an item that are shown in a complaint, at most */
#define ITEM_SHOWN 48

/* Writes to list->why what is wrong: "line 3: 'item': what". Returns -EBADMSG.
 */
static int list_wrong(struct server_list *list, unsigned int line,
		      const char *item, size_t len, const char *what)
{
	char shown[ITEM_SHOWN + 1];
	size_t n = MIN(len, (size_t)ITEM_SHOWN);

	memcpy(shown, item, n);
	shown[n] = '\0';
	for (size_t i = 0; i < n; i++)
		if (shown[i] < ' ' || shown[i] > '~')
			shown[i] = '?';
	snprintf(list->why, sizeof(list->why), "line %u: '%s%s': %.80s", line,
		 shown, n < len ? "..." : "", what);
	return -EBADMSG;
}

/* ---- lines ---- */

/* A line that is being parsed, without the newline at its end. */
struct line {
	const char *p, *end;
	unsigned int number; /* from 1 */
};

/* Skips blanks, and returns the length of the word that l->p is at then; 0: the
 * line has no more words. */
static size_t word_take(struct line *l)
{
	size_t n = 0;

	while (l->p < l->end && *l->p && strchr(BLANKS, *l->p))
		l->p++;
	while (l->p + n < l->end && (!l->p[n] || !strchr(BLANKS, l->p[n])))
		n++;
	return n;
}

static int server_add(struct server_list *list, const struct line *l,
		      size_t len)
{
	struct ulnet_text_error err = { .what = "" };
	char text[NAME_WHAT_SIZE];
	struct name_text name;
	const char *next = text;

	if (list->n == LOOKUP_HOSTS)
		return list_wrong(list, l->number, l->p, len,
				  "further servers than the 256 that a list "
				  "may have");
	if (len >= sizeof(text) || memchr(l->p, '\0', len))
		return list_wrong(list, l->number, l->p, len,
				  "a NID, or the name of a host, is expected");
	memcpy(text, l->p, len);
	text[len] = '\0';
	if (target_next(&next, &name, &err))
		return list_wrong(list, l->number, l->p, len, err.what);
	if (next)
		return list_wrong(list, l->number, l->p, len,
				  "each server has a line of its own");
	lookup_host_of(&name, &list->host[list->n++]);
	return 0;
}

static int weight_take(struct server_list *list, struct line *l, size_t len,
		       uint16_t *weight)
{
	unsigned int number = 0;

	for (size_t i = 0; i < len && number <= WEIGHT_MAX; i++) {
		if (l->p[i] < '0' || l->p[i] > '9')
			return list_wrong(list, l->number, l->p, len,
					  "no weight: a number was expected");
		number = number * 10 + (unsigned int)(l->p[i] - '0');
	}
	if (number > WEIGHT_MAX)
		return list_wrong(list, l->number, l->p, len,
				  "the weight is not within 0..65535");
	*weight = (uint16_t)number;
	l->p += len;
	return 0;
}

/* Parses a line. If its server has a weight, sets its entry in @weighs, and
 * *@weighs_p. */
static int line_take(struct server_list *list, struct line *l, bool *weighs,
		     bool *weighs_p)
{
	const char *comment = memchr(l->p, '#', (size_t)(l->end - l->p));
	size_t len;
	int rc;

	if (comment)
		l->end = comment;
	len = word_take(l);
	if (!len)
		return 0;
	rc = server_add(list, l, len);
	l->p += len;
	len = word_take(l);
	if (rc || !len)
		return rc;
	weighs[list->n - 1] = *weighs_p = true;
	rc = weight_take(list, l, len, &list->host[list->n - 1].weight);
	if (rc)
		return rc;
	len = word_take(l);
	return len ? list_wrong(list, l->number, l->p, len,
				"a server and its weight are expected, and "
				"nothing else")
		   : 0;
}

int server_list_parse(const char *text, size_t len, struct server_list *list)
{
	const char *end = text + len, *next;
	bool weighs[LOOKUP_HOSTS] = { false }, any = false;
	struct line l = { .number = 1 };

	list->n = 0;
	for (; text < end; text = next + 1, l.number++) {
		int rc;

		l.p = text;
		l.end = next = memchr(text, '\n', (size_t)(end - text));
		if (!next)
			return list_wrong(list, l.number, text,
					  (size_t)(end - text),
					  "the line does not end: is the file "
					  "being written?");
		rc = line_take(list, &l, weighs, &any);
		if (rc)
			return rc;
	}
	for (unsigned int i = 0; i < list->n && any; i++)
		if (!weighs[i])
			list->host[i].weight = 1;
	if (list->n)
		return 0;
	snprintf(list->why, sizeof(list->why), "the list has no server");
	return -EBADMSG;
}

/* ---- files ---- */

/* Reads at most @size bytes, and sets *@len_p to how many. */
static int read_all(int fd, char *buf, size_t size, size_t *len_p)
{
	size_t len = 0;
	ssize_t n;

	do {
		n = read(fd, buf + len, size - len);
		if (n > 0)
			len += (size_t)n;
	} while ((n > 0 && len < size) || (n < 0 && errno == EINTR));
	*len_p = len;
	return n < 0 ? -errno : 0;
}

static int file_fail(struct server_list *list, int rc, const char *what)
{
	snprintf(list->why, sizeof(list->why), "%s",
		 what ? what : strerror(-rc));
	return rc;
}

static int server_list_read_fd(int fd, struct server_list *list)
{
	struct stat st;
	size_t len;
	char *text;
	int rc;

	if (fstat(fd, &st))
		return file_fail(list, -errno, NULL);
	if (!S_ISREG(st.st_mode))
		return file_fail(list, -EBADMSG, "it is no regular file");
	text = malloc(FILE_BYTES + 1);
	if (!text)
		return file_fail(list, -ENOMEM, "no memory");
	rc = read_all(fd, text, FILE_BYTES + 1, &len);
	if (rc)
		rc = file_fail(list, rc, NULL);
	else if (len > FILE_BYTES)
		rc = file_fail(list, -EBADMSG, "more than 262144 bytes");
	else
		rc = server_list_parse(text, len, list);
	free(text);
	return rc;
}

int server_list_read(const char *path, struct server_list *list)
{
	/* O_NONBLOCK and O_NOCTTY: opening a FIFO or a device by mistake has no
	 * effect. */
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	int rc;

	if (fd < 0)
		return file_fail(list, -errno, NULL);
	rc = server_list_read_fd(fd, list);
	close(fd);
	return rc;
}
