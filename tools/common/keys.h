/* SPDX-License-Identifier: BSD-3-Clause */
/* The keys of a program that makes or serves calls: files as ulnet-keys(8)
 * makes them. */
#ifndef TOOLS_KEYS_H
#define TOOLS_KEYS_H

#include <stdatomic.h>

#include "option.h"
#include "program.h"

struct ulrpc_keys;

#define KEYS_WHY 512 /* bytes of a text that says what is wrong with keys */

struct keys_options {
	char *folder; /* --keys: folder of the files; NULL: no keys */
	/* --as: the name whose certificate in the folder is used; NULL: the
	 * cluster's key is used */
	const char *name;
	/* --munge, of a server, and of a client */
	bool munge_take, munge_show;
	const char *munge_socket; /* --munge-socket; NULL: libmunge's */
	unsigned int flavour; /* --flavour: enum ulrpc_flavour */
	/* Keys with a list of revoked certificates have been read: keys without
	 * it, as while the file is being replaced, are not taken any more. */
	atomic_bool revoked;
};

extern const struct option_row keys_rows[];
/* Frees what the rows have allocated. */
void keys_options_free(struct keys_options *o);
/* Rows of options, for programs that make or serve calls. */
extern const struct option_row flavour_rows[];
/* Likewise, for a program that serves calls, and for one that makes them. */
extern const struct option_row munge_take_rows[], munge_show_rows[];
/* Checks that the options go together. Returns 0, or, after a message, the exit
 * status. */
int keys_check(const struct keys_options *o, const char *who);
/* Sets *@keys_p to the keys, a reference to be given back with
 * ulrpc_keys_put(); NULL: there are none. Returns 0, or -errno after a message.
 */
int keys_read(struct keys_options *o, const struct say *say,
	      struct ulrpc_keys **keys_p);
/* Reads the keys again, as keys_read(). Returns 0, or -errno, with a sentence
 * in @why. */
int keys_again(struct keys_options *o, struct ulrpc_keys **keys_p,
	       char why[KEYS_WHY]);

#endif
