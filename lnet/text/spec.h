/* SPDX-License-Identifier: BSD-3-Clause */
/* Functions that the parsers of networks, of ip2nets and of routes share; the
 * readers of configurations in YAML use some of them, too. Knows no node. In
 * libulnet and in libulnetctl, hidden in each. */
#ifndef LNET_TEXT_SPEC_H
#define LNET_TEXT_SPEC_H

#include "ulnet/lnet.h"

/* Fills @err, unless that is NULL, with the message and with the place of the
 * error: @at points into @text. Returns @rc. */
int spec_wrong(struct ulnet_text_error *err, const char *text, const char *at,
	       int rc, const char *fmt, ...)
	__attribute__((format(printf, 5, 6)));

/* Returns @s without the blanks and ends of lines at its beginning. */
const char *spec_blanks(const char *s);
/* Returns a copy of @text, to be freed, of the same length, in which lines that
 * end with a backslash are joined, as modprobe joins them. NULL: no memory. */
char *spec_join(const char *text);
/* Returns the end of the comment at @s, which is that of the line, or the next
 * ';'. */
const char *spec_comment_end(const char *s);

/* Is @name a net of a type that other implementations have, or had, as "elan0"?
 * Such nets are passed over in texts that serve a whole cluster. False if @name
 * is no name of a net, or if it is, or nearly is, the name of a type that NIDs
 * can be on: then it is more likely misspelt. */
bool spec_is_foreign(const char *name, size_t len);

#define SPEC_CPTS_SIZE 512 /* bytes of a list of CPTs, "[0,1]" */

/* text for users: why a list that names only some CPTs is passed over */
#define SPEC_ALL_CPTS "all CPTs use each interface"

/* Takes the next interface of a list with commas at *@pos: its name, without
 * blanks around it, and the list of CPTs behind it, or "". Returns 1, and *@pos
 * is behind it; 0: there are no more; -EINVAL: the name is empty or too long,
 * or the list of CPTs is malformed, and *@pos points to the error. */
int spec_interface(const char **pos, char name[LNET_INTERFACE_SIZE],
		   char cpts[SPEC_CPTS_SIZE]);

/* Copies the list of CPTs in brackets at @s to @cpts. Returns the first byte
 * behind the list that is not a blank. NULL: the list is malformed. */
const char *spec_cpts_end(const char *s, char cpts[SPEC_CPTS_SIZE]);

/* Does the list of CPTs @text have all CPTs from 0 to @cpts - 1? Lists from all
 * sources are read by this function: "[0-3,5]", "0", "0-3", "[0-6/2]", "*".
 * Returns 0: it does; -EOPNOTSUPP: it does not; -EINVAL: it is malformed. CPTs
 * that do not exist do not matter: the list may have been written for another
 * host. */
int spec_cpts(const char *text, unsigned int cpts);

#endif
